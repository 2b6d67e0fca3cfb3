#!/usr/bin/env bash
# Checks the providers of models against servers and clients of others, on
# loopback: installs them into bin/peers, as package-lock.json pins them, and
# runs the tests that need them.
#
#   internal/dev/peers/run.sh GO-TEST-FLAGS…
#
# CODITECT_OPENAPI  a folder with the vendors' descriptions of their interfaces:
#                   anthropic.yaml, openai.yaml, ollama.yaml, as where GitHub cannot
#                   be reached. Without it they are downloaded; they belong to the
#                   vendors, and are no part of this repository.
# CODITECT_TEST_PEERS=require  fails where it would otherwise skip.
set -euo pipefail
cd "$(dirname "$0")/../../.."
peers=$PWD/bin/peers

# missing WHAT: says why something is not tested.
missing() {
	echo "test-peers: $1" >&2
	[ "${CODITECT_TEST_PEERS-}" != require ] || exit 1
}

command -v npm > /dev/null || {
	missing 'npm is not installed, so nothing is tested'
	exit 0
}

mkdir -p "$peers"
if ! cmp -s internal/dev/peers/package-lock.json "$peers/installed"; then
	cp internal/dev/peers/{package.json,package-lock.json,.npmrc} "$peers"
	(cd "$peers" && npm ci)
	cp internal/dev/peers/package-lock.json "$peers/installed"
fi

# describe VENDOR SHA256 URL: downloads one description, unless it is there.
describe() {
	local file=$peers/openapi/$1.yaml
	echo "$2  $file" | sha256sum --check --status 2> /dev/null && return
	curl --fail --silent --show-error --location --max-time 60 --output "$file.part" "$3" \
		&& echo "$2  $file.part" | sha256sum --check --status \
		&& mv "$file.part" "$file" \
		|| missing "there is no description of $1; name a folder that has it with CODITECT_OPENAPI"
}

if [ -z "${CODITECT_OPENAPI-}" ]; then
	export CODITECT_OPENAPI=$peers/openapi
	mkdir -p "$CODITECT_OPENAPI"
	raw=https://raw.githubusercontent.com
	describe anthropic b53f82a0caa6daa36dfacb2446bf181b9d1076ae95004a81292a92a52ada1145 \
		$raw/tryAGI/Anthropic/8b42a21e6aa7fc9b521cc0c1581f586480b5cad3/src/libs/Anthropic/openapi.yaml
	describe openai db5d7478feae10b4d331834c60d9765a8aa042e38419f9b1694288c11aa8ebc8 \
		$raw/openai/openai-openapi/f85dbe223d40e1a31cba812ab2d755c7e98a92a3/openapi.yaml
	describe ollama 9c660bb9a714bcb746cff7ec4270a0e43f63b705f7f3362fcc335f18b5d0b178 \
		$raw/ollama/ollama/fb30760996871fa9460115c753afd2c60d4ab0f7/docs/openapi.yaml
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
CODITECT_PEERS=$peers go test -v -count 1 -run '^TestPeers' "$@" ./worker/llm/vendors > "$log" 2>&1 || status=$?
[ $status = 0 ] || cat "$log"

# passed TEST: whether a test has run to its end and passed.
passed() {
	grep -q -- "--- PASS: $1 " "$log"
}

# One line a vendor, of what was checked and what was not.
for vendor in anthropic openai ollama; do
	said=
	for check in \
		"TestPeersEveryRequestIsAsDescribed/$vendor=requests as described" \
		"TestPeersRefuseWhatIsNotDescribed/$vendor=others refused" \
		"TestPeersAnswerAsWeUnderstandThem=answers of a server of others" \
		"TestPeersUnderstandTheScriptedModel=the scripted model by its own client"; do
		passed "${check%%=*}" && said+="; ${check#*=}" || said+="; NOT CHECKED OR NOT PASSED: ${check#*=}"
	done
	requests=$(sed -n "s/.* \([0-9]* requests\) were held against the description of $vendor$/\1/p" "$log")
	echo "test-peers: $vendor: ${requests:-no requests} sent${said}"
done
exit $status
