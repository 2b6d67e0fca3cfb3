#!/usr/bin/env bash
# Shows that docker-compose.yml holds: builds the images, refuses who shows no
# certificate or the wrong one, runs receipts through the fleet, adds workers, kills one
# container of each kind while the job runs, and compares the results with those of a run
# in a single process. With TELEMETRY=1 it starts Prometheus, Grafana and Jaeger too, and
# looks for the metrics, the board and the trace there.
#
#   CODITECT_TESTDATA=FOLDER deploy/docker/smoke.sh      # or make compose-smoke
#
# With IMAGES=bin/images it uses those that make images has made, and builds none.
#
# The folder holds receipts/docs/*.txt, as CONTRIBUTING.md says. It goes through as
# often as COPIES says, 15 times, so that the job lasts longer than the killing.
# All that it starts is removed at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."

COPIES=${COPIES:-15}
PURE=coditect/mapreduce:pure
# Of use to old versions only; newer ones have them on.
export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
export COMPOSE_PROJECT_NAME=coditect-smoke

say() { printf '\n=== %3d s  %s\n' $SECONDS "$*"; }

fail() {
	printf 'compose-smoke: %s\n' "$*" >&2
	exit 1
}

# check makes sure that all that is needed is there.
check() {
	command -v docker >/dev/null || fail 'docker is missing: install Docker Engine 23 or newer, with Compose'
	docker info >/dev/null 2>&1 || fail "docker is installed, but there is no daemon that answers at ${DOCKER_HOST:-its socket}"
	if docker compose version >/dev/null 2>&1; then
		COMPOSE=(docker compose)
	elif command -v docker-compose >/dev/null; then
		COMPOSE=(docker-compose)
	else
		fail 'Compose is missing: install the plugin docker-compose-plugin'
	fi
	[ -n "${CODITECT_TESTDATA:-}" ] || fail 'CODITECT_TESTDATA names no folder with receipts/docs'
	DOCS=$(cd "$CODITECT_TESTDATA/receipts/docs" && pwd) || fail "there is no $CODITECT_TESTDATA/receipts/docs"
	"${COMPOSE[@]}" version
}

compose() { "${COMPOSE[@]}" "$@"; }

# container SERVICE [N] prints the id of a service's container.
container() { docker ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
	--filter "label=com.docker.compose.service=$1" --filter "label=com.docker.compose.container-number=${2:-1}" \
	--filter "label=com.docker.compose.oneoff=False"; }

# teardown removes what was started, and shows what it said if something failed.
teardown() {
	local rc=$?
	trap - EXIT
	if [ "$rc" -ne 0 ]; then
		say 'failed; the last lines of each service'
		compose logs --tail 20 || true
		docker logs --tail 20 "$CLIENT" || true
	fi
	say 'tearing down'
	docker rm --force --volumes "$CLIENT" >/dev/null 2>&1 || true
	compose --profile telemetry down --volumes --remove-orphans --timeout 5 >/dev/null 2>&1 || true
	rm -rf "$work"
	exit "$rc"
}

# until_true WHAT COMMAND... waits for the command to succeed.
until_true() {
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "$what: not within two minutes"
		sleep 0.2
	done
}

healthy() { [ "$(docker inspect --format '{{.State.Health.Status}}' "$(container "$1")")" = healthy ]; }

# says CONTAINER TEXT succeeds once it is in the container's log.
says() { docker logs "$1" 2>&1 | grep "$2"; }

# on SERVICE COMMAND... runs the command line in an orchestrator's container.
on() {
	local id
	id=$(container "$1")
	shift
	docker exec "$id" coditect mapreduce "$@" --server 127.0.0.1:7600
}

# field NAME prints a value of the job's status.
field() {
	on "$watcher" status --job-id "$job" -o json |
		sed -n "s/^  \"$1\": \"\{0,1\}\([0-9a-z_]*\)\"\{0,1\},\{0,1\}$/\1/p"
}

# past N succeeds once so many units are complete.
past() { [ "$(field completed_units)" -ge "$1" ]; }

# killed WHAT CONTAINER kills a container while the job runs; after the job that
# would show nothing.
killed() {
	say "killing $1"
	[ "$(field status)" != complete ] || fail "the job has ended before: run this again with COPIES=$((COPIES * 2))"
	from=$(field completed_units)
	docker kill "$2" >/dev/null
}

# goes_on waits until the job has clearly gone on since something was killed.
goes_on() {
	local more=$((total / 50)) start=$SECONDS
	until_true 'the job goes on' past $((from + more))
	echo "$from units were complete; $more more were within $((SECONDS - start)) s"
}

# scrubbed FILE prints a file of results without what may differ between runs:
# ids, times, hashes over those, and how often something was tried.
scrubbed() {
	sed -E -e 's/mr_[0-9]{8}_[0-9a-z]{6}/JOB/g' \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/g' \
		-e 's/"(attempts|elapsed_ms|duration_ms|audit_head)": ?("[^"]*"|[0-9.]+)/"\1":0/g' "$1"
}

build() {
	if [ -n "${IMAGES:-}" ]; then
		say "loading the images of $IMAGES"
		docker load --quiet --input "$IMAGES/pure.tar"
		docker load --quiet --input "$IMAGES/fdb.tar"
	else
		say 'building the images'
		compose build orchestrator-1 worker cli
	fi
	docker images coditect/mapreduce
}

# reference runs the job in a single process, without a network.
reference() {
	say "the same in a single process: $COPIES times $(find "$DOCS" -type f | wc -l) receipts"
	docker run --rm --network none --read-only "${MOUNTS[@]}" "$PURE" \
		mapreduce run --data-dir /work/data --output /work/want "${JOB[@]}"
}

start() {
	say 'starting the fleet with one worker'
	compose "${PROFILE[@]}" up --detach
	until_true 'orchestrator-1 is healthy' healthy orchestrator-1
	until_true 'orchestrator-2 is healthy' healthy orchestrator-2
}

submit() {
	say 'submitting'
	compose run --detach --name "$CLIENT" "${MOUNTS[@]}" cli mapreduce run --output /work/got "${JOB[@]}"
	until_true 'the job is submitted' says "$CLIENT" 'job mr_'
	job=$(docker logs "$CLIENT" 2>&1 | sed -n 's/^job //p')
	total=$(field total_units)
	echo "$job has $total units"
}

# client ARG... runs the command line as the fleet's client, with what docker run needs
# before it in OPTIONS.
client() { compose run --rm --no-deps "${OPTIONS[@]}" cli mapreduce "$@" 2>&1; }

# refuses WHAT TEXT COMMAND... makes sure that a command fails, and says a text.
refuses() {
	local what=$1 text=$2 out
	shift 2
	if out=$("$@"); then fail "$what: it was let in"; fi
	grep -q "$text" <<<"$out" || fail "$what: it says $out"
	echo "$what: refused"
}

strangers() {
	say 'who shows no certificate, or the wrong one, is refused'
	OPTIONS=(-e CODITECT_TLS_CERT= -e CODITECT_TLS_KEY=)
	refuses 'no certificate' 'asks for a certificate' client list
	OPTIONS=(-e CODITECT_TLS_CA= -e CODITECT_TLS_CERT= -e CODITECT_TLS_KEY=)
	refuses 'no TLS' 'cannot reach' client list
	OPTIONS=(-e CODITECT_TLS_CERT=/etc/coditect/tls/worker.pem -e CODITECT_TLS_KEY=/etc/coditect/tls/worker.key)
	refuses 'a worker that lists jobs' 'may not' client list
	OPTIONS=()
	client list
}

# page URL PATTERN succeeds once a page of the telemetry has a pattern.
page() { curl -fsS "$1" | grep -q "$2"; }

telemetry() {
	say 'telemetry: each orchestrator and worker is scraped, the board is there, and the trace'
	until_true 'Prometheus has six targets' page 'http://127.0.0.1:9090/api/v1/query?query=sum(up)' '"6"'
	until_true 'Grafana has the board' page "http://127.0.0.1:3000/api/dashboards/uid/coditect" '"title"'
	until_true 'Jaeger has the trace' page 'http://127.0.0.1:16686/api/services' 'coditect-worker'
}

scale() {
	say 'four workers'
	compose up --detach --no-recreate --scale worker=4
	local n
	for n in 1 2 3 4; do
		until_true "worker $n has an orchestrator" says "$(container worker $n)" 'connected to orchestrator'
	done
}

kills() {
	watcher=orchestrator-2
	killed 'a worker, for good' "$(container worker 2)"
	goes_on

	killed 'orchestrator-1' "$(container orchestrator-1)"
	goes_on
	docker start "$(container orchestrator-1)" >/dev/null

	killed 'FoundationDB, the only process of it: all wait until it is back' "$(container fdb)"
	docker start "$(container fdb)" >/dev/null
	goes_on

	# One of the two is the one that the client had.
	until_true 'orchestrator-1 is back' on orchestrator-1 list
	watcher=orchestrator-1
	killed 'orchestrator-2' "$(container orchestrator-2)"
	goes_on
	docker start "$(container orchestrator-2)" >/dev/null
}

# finish waits for the job and compares its results.
finish() {
	local rc file
	say 'waiting for the client'
	rc=$(docker wait "$CLIENT")
	docker logs "$CLIENT" 2>&1 | tail -n 4
	[ "$rc" = 0 ] || fail "the client ended with $rc"
	for file in result.json report.md dag.json units.jsonl; do
		diff <(scrubbed "$work/want/$file") <(scrubbed "$work/got/$file") >"$work/diff" ||
			{ head -c 4000 "$work/diff"; fail "$file differs from that of a single process"; }
		echo "$file is equal"
	done
	on "$watcher" audit --job-id "$job" --verify | grep 'the chain'
	on "$watcher" doctor
}

check
CLIENT=$COMPOSE_PROJECT_NAME-client
watcher=orchestrator-1 # is asked about the job
JOB=(--input /in --schema /schema.yaml --parallelism 2)
work=$(mktemp -d)
mkdir "$work/certs"
# All run as who runs this, so that certificates and results belong to them.
CODITECT_UID=$(id -u) CODITECT_GID=$(id -g)
export CODITECT_UID CODITECT_GID CODITECT_CERTS=$work/certs
PROFILE=()
if [ -n "${TELEMETRY:-}" ]; then
	PROFILE=(--profile telemetry)
	export OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4317
fi
trap teardown EXIT
MOUNTS=(--user "$CODITECT_UID:$CODITECT_GID" --volume "$work:/work" --volume "$PWD/examples/receipts/schema.yaml:/schema.yaml:ro")
for ((i = 1; i <= COPIES; i++)); do MOUNTS+=(--volume "$DOCS:/in/$i:ro"); done

build
reference
start
strangers
submit
scale
[ -z "${TELEMETRY:-}" ] || telemetry
kills
finish
say 'all is as it should be'
