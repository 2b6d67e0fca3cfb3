#!/usr/bin/env bash
# Checks the tools of MCP servers, and what coditect mcp serves, against servers and a
# client that others wrote: installs them into bin/mcp, as package-lock.json pins them, and
# runs the tests that need them.
#
#   internal/dev/mcp/run.sh GO-TEST-FLAGS…
#
# CODITECT_TEST_PEERS=require  fails where it would otherwise skip.
set -euo pipefail
cd "$(dirname "$0")/../../.."
peers=$PWD/bin/mcp

for program in node npm; do
	command -v $program > /dev/null || {
		echo "test-mcp: $program is not installed, so nothing is tested" >&2
		[ "${CODITECT_TEST_PEERS-}" != require ] || exit 1
		exit 0
	}
done

mkdir -p "$peers"
if ! cmp -s internal/dev/mcp/package-lock.json "$peers/installed"; then
	cp internal/dev/mcp/{package.json,package-lock.json,.npmrc} "$peers"
	(cd "$peers" && npm ci)
	cp internal/dev/mcp/package-lock.json "$peers/installed"
fi
CODITECT_MCP_PEERS=$peers go test -v -count 1 -run '^TestPeers(Everything|Filesystem|Inspector)$' "$@" ./worker/tool/mcp ./cmd/coditect
