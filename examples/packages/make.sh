#!/bin/sh
# Turns the package index of this machine into input and truth of the example:
# DIR/packages.jsonl, one stanza a line as {"id", "text"}, and DIR/truth.jsonl,
# what the stanza says, found by another way than the rules: fields of a stanza
# are split at their colons.
#
#   examples/packages/make.sh DIR [FILE]
#
# FILE is a package index to read instead of that of apt-cache.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: $0 DIR [FILE]" >&2
	exit 2
fi
dir=$1
mkdir -p "$dir"

if [ $# -eq 2 ]; then
	stanzas() { cat "$file"; }
	file=$2
elif command -v apt-cache >/dev/null; then
	stanzas() { apt-cache dumpavail; }
else
	echo "$0: there is no apt-cache here; give a package index as FILE" >&2
	exit 1
fi

stanzas | LC_ALL=C awk -v docs="$dir/packages.jsonl" -v truth="$dir/truth.jsonl" '
# json returns a text as a JSON string.
function json(s, i) {
	gsub(/\\/, "&&", s)
	gsub(/"/, "\\\\&", s)
	gsub(/\t/, "\\t", s)
	gsub(/\n/, "\\n", s)
	if (s ~ /[\001-\037]/) # other control characters, in the rare text that has any
		for (i = 1; i < 32; i++) gsub(sprintf("%c", i), sprintf("\\u%04x", i), s)
	return "\"" s "\""
}

# field adds a field of the stanza to the line of truth.
function field(name, key, number) {
	if (!(key in value)) return
	line = line ", " json(name) ": " (number ? value[key] : json(value[key]))
}

function flush() {
	if (text == "") return
	id = value["Package"] "_" value["Version"] "_" value["Architecture"]
	if (id in seen) id = id "_" (++seen[id])
	else seen[id] = 1
	print "{\"id\": " json(id) ", \"text\": " json(text) "}" > docs
	line = "{\"document\": " json(id)
	field("package", "Package")
	field("version", "Version")
	field("architecture", "Architecture")
	field("maintainer", "Maintainer")
	field("installed_size", "Installed-Size", 1)
	field("depends", "Depends")
	field("section", "Section")
	field("priority", "Priority")
	field("homepage", "Homepage")
	field("filename", "Filename")
	field("size", "Size", 1)
	field("sha256", "SHA256")
	field("description", "Description")
	print line "}" > truth
	text = ""
	split("", value)
}

BEGIN { printf "" > docs; printf "" > truth }
/^$/ { flush(); next }
{
	text = text $0 "\n"
	if ($0 ~ /^[ \t]/) next # the rest of a longer field
	colon = index($0, ":")
	if (!colon) next
	v = substr($0, colon + 1)
	sub(/^[ \t]+/, "", v)
	sub(/[ \t]+$/, "", v)
	if (v != "") value[substr($0, 1, colon - 1)] = v
}
END { flush() }
'
wc -l "$dir/packages.jsonl" "$dir/truth.jsonl" >&2
