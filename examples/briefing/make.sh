#!/bin/sh
# make.sh FILE… > documents.jsonl
#
# Makes one file of documents out of files of JSON lines that have _id, title and text.
# It needs jq.
set -eu
exec jq -c '{id: ._id, title: .title, url: .sourceUrl, text: .text}' "$@"
