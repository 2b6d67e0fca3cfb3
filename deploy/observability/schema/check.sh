#!/usr/bin/env bash
# Compares the boards with Grafana's schemas, as the types that Grafana publishes of them: of
# boards and panels those of the release that docker-compose.yml runs, of queries the last that
# it published with them. It needs npm.
set -euo pipefail
cd "$(dirname "$0")/../../.."

command -v npm >/dev/null || { echo 'npm is missing: the boards were not compared with the schemas of Grafana' >&2; exit 1; }
folder=bin/boards
rm -rf "$folder"
mkdir -p "$folder"
cp deploy/observability/schema/{package.json,package-lock.json,.npmrc} "$folder"
npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$folder"
node deploy/observability/schema/check.mjs "$folder" deploy/observability/grafana/boards/*.json

compile() { "$folder/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --target esnext --module esnext --moduleResolution bundler "$@"; }
compile "$folder"/*.right.ts
for file in "$folder"/*.wrong-*.ts; do
	if compile "$file" >/dev/null; then
		echo "a board with a mistake fits too: $file" >&2
		exit 1
	fi
done
echo "all fit the schemas, and $(find "$folder" -maxdepth 1 -name '*.wrong-*.ts' | wc -l) with a mistake do not"
