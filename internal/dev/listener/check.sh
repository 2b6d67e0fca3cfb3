#!/usr/bin/env bash
# Looks at the listeners of a server as strangers would, with OpenSSL and nmap: nothing but
# TLS 1.3 with strong ciphers answers, and nobody without a certificate. What tools are
# missing is said.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null; rm -rf "$work"' EXIT
fail() {
	echo "listener: $*" >&2
	exit 1
}
command -v openssl >/dev/null || { echo 'listener: not looked at, as openssl is not installed'; exit 0; }

bin/coditect certs --output "$work/certs" --host 127.0.0.1 --client alice >/dev/null
echo "principals: [{match: 'dns:alice', tenant: a, roles: [viewer]}]" >"$work/policy.yaml"
bin/coditect serve --listen 127.0.0.1:0 --http 127.0.0.1:0 --data-dir "$work/data" --workers 0 --policy "$work/policy.yaml" \
	--tls-cert "$work/certs/server.pem" --tls-key "$work/certs/server.key" --client-ca "$work/certs/ca.pem" 2>"$work/log" &
server=$!
for _ in $(seq 300); do
	grep -q msg=serving "$work/log" && break
	sleep 0.1
done
grpc=$(sed -nE 's/.*msg=serving address=127.0.0.1:([0-9]+).*/\1/p' "$work/log")
http=$(sed -nE 's/.* http=127.0.0.1:([0-9]+).*/\1/p' "$work/log")
[ -n "$grpc" ] && [ -n "$http" ] || fail "the server did not start: $(cat "$work/log")"

# speak PORT FLAG… prints what OpenSSL says of a connection.
speak() {
	local port=$1
	shift
	{ printf 'GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'; sleep 1; } |
		timeout 20 openssl s_client -connect "127.0.0.1:$port" -CAfile "$work/certs/ca.pem" "$@" 2>&1 || true
}
own=(-cert "$work/certs/alice.pem" -key "$work/certs/alice.key")
for port in "$grpc" "$http"; do
	for version in tls1 tls1_1 tls1_2; do
		speak "$port" "-$version" "${own[@]}" | grep -qE 'alert protocol version|no protocols available' || fail "port $port speaks $version"
	done
	speak "$port" -tls1_3 "${own[@]}" -alpn h2 | grep -q 'New, TLSv1.3' || fail "port $port does not speak TLS 1.3"
	speak "$port" -alpn h2 | grep -q 'certificate required' || fail "port $port lets in who has no certificate"
done
speak "$http" -quiet "${own[@]}" | grep -q '200 OK' || fail 'HTTP does not answer who has a certificate'
echo 'listener: OpenSSL gets TLS 1.3 alone, and nothing without a certificate, from both listeners'

if command -v nmap >/dev/null; then
	nmap -sT -Pn --script ssl-enum-ciphers -p "$grpc,$http" 127.0.0.1 >"$work/nmap"
	[ "$(grep -c 'least strength: A' "$work/nmap")" = 2 ] && ! grep -qE 'TLSv1\.[012]|SSLv|warnings' "$work/nmap" || fail "$(cat "$work/nmap")"
	echo 'listener: nmap finds TLS 1.3 alone, and no cipher below A'
else
	echo 'listener: nmap is not installed, so ciphers were not listed'
fi
