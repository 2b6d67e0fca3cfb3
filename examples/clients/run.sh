#!/usr/bin/env bash
# Generates code of proto/ for each language, and runs its example against a server that
# asks for a token over TLS, and against one that asks for nothing. What tools are missing
# is said.
#
# CODITECT_TEST_CLIENTS=require  fails where it would otherwise skip.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
built=$root/bin/clients
work=$(mktemp -d)
servers=()
trap '[ ${#servers[@]} = 0 ] || { kill "${servers[@]}"; wait; } 2>/dev/null; rm -rf "$work"' EXIT
mkdir -p "$built"

ran=0 left=0
# has LANGUAGE COMMAND… reports whether all commands are installed.
has() {
	local language=$1 command
	shift
	for command in "$@"; do
		command -v "$command" >/dev/null && continue
		echo "clients: $language is left out, as $command is not installed"
		left=$((left + 1))
		return 1
	done
}

# said FILE PATTERN waits for a line of a server's log and prints what is between brackets.
said() {
	local i found
	for i in $(seq 600); do
		found=$(sed -nE "s/.*$2.*/\1/p" "$1" | head -n 1)
		[ -z "$found" ] || { echo "$found"; return; }
		sleep 0.1
	done
	cat "$1" >&2
	return 1
}

# serve NAME FLAG… starts a server and sets grpc and http.
serve() {
	local name=$1
	shift
	bin/coditect serve --listen 127.0.0.1:0 --http 127.0.0.1:0 --data-dir "$work/$name" "$@" 2>"$work/$name.log" &
	servers+=($!)
	http=$(said "$work/$name.log" 'http=([^ ]+)')
	grpc=$(said "$work/$name.log" 'msg=serving address=([^ ]+)')
}

expected() {
	cat <<-'END'
		JOB_STATE_COMPLETE 2 documents
		Acme Tools 10.5 from orders/1.txt '10.50'
		Bolt & Sons 20.25 from orders/2.txt '20.25'
	END
}

# check NAME COMMAND… compares what a command prints.
check() {
	local name=$1
	shift
	"$@" >"$work/out" || { cat "$work/out"; return 1; }
	diff <(expected) "$work/out"
	echo "clients: $name ok"
	ran=$((ran + 1))
}

bin/coditect certs --output "$work/certs" --host 127.0.0.1 >/dev/null
bin/coditect certs token ci --output "$work/token" >"$work/tokens"
echo "principals: [{match: 'token:ci', tenant: a, roles: [submitter, operator]}]" >"$work/policy.yaml"
serve open
open_grpc=$grpc open_http=http://$http
serve secured --tls-cert "$work/certs/server.pem" --tls-key "$work/certs/server.key" --tokens "$work/tokens" --policy "$work/policy.yaml"
secured_grpc=$grpc secured_http=https://$http

python=/usr/bin/python3
if has Python protoc grpc_python_plugin "$python"; then
	if "$python" -c 'import grpc, google.protobuf' 2>/dev/null; then
		gen=$built/python
		mkdir -p "$gen"
		protoc -I proto -I examples/clients/python --python_out="$gen" --grpc_python_out="$gen" \
			--plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" \
			proto/coditect/mapreduce/v1/*.proto examples/clients/python/hints.proto
		export PYTHONPATH=$gen
		check 'Python' "$python" examples/clients/python/orders.py "$open_grpc"
		check 'Python with a token' env TLS_CA="$work/certs/ca.pem" TOKEN_FILE="$work/token" "$python" examples/clients/python/orders.py "$secured_grpc"
		if "$python" -c 'import pydantic' 2>/dev/null; then
			check 'Python with a Pydantic model' "$python" examples/clients/python/orders_pydantic.py "$open_grpc"
		else
			echo 'clients: the Pydantic model is left out, as python3-pydantic is not installed'
			left=$((left + 1))
		fi
	else
		echo 'clients: Python is left out, as python3-grpcio and python3-protobuf are not installed'
		left=$((left + 1))
	fi
fi

if has TypeScript node npm; then
	gen=$built/typescript
	mkdir -p "$gen"
	cp examples/clients/typescript/{.npmrc,package.json,package-lock.json,tsconfig.json,orders.ts} "$gen"
	if cmp -s "$gen/package-lock.json" "$gen/installed" || (cd "$gen" && npm ci); then
		cp "$gen/package-lock.json" "$gen/installed"
		(
			cd "$gen"
			"$root/bin/tools/buf" generate --template "$root/examples/clients/typescript/buf.gen.yaml" "$root" --path "$root/proto/coditect/mapreduce/v1"
			node_modules/.bin/tsc
		)
		check 'TypeScript with a Zod schema' node "$gen/out/orders.js" "$open_http"
		check 'TypeScript with a token' env TLS_CA="$work/certs/ca.pem" TOKEN_FILE="$work/token" node "$gen/out/orders.js" "$secured_http"
	else
		echo 'clients: TypeScript is left out, as npm could not install what it needs'
		left=$((left + 1))
	fi
fi

echo "clients: $ran ran, $left left out"
[ "$left" = 0 ] || [ "${CODITECT_TEST_CLIENTS:-}" != require ]
