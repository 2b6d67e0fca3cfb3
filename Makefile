# Everything is built with Go alone; what else is needed is built from the
# module in deploy/tools, once, into bin/tools.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Programs name files as their modules do. Without it, all that tests have compiled
# is compiled for a program too.
TRIM ?= -trimpath

# What to run, e.g. make microbench PKG=./store/pebble BENCH=Commit
PKG      ?= ./...
BENCH    ?= .
FIGURES  ?= .
FUZZTIME ?= 10s
TIME     ?= 30s
GOVULNCHECK := v1.9.0
CYCLONEDX_GOMOD := v1.10.0
TRIALS   ?= 200
TIMES    ?= 50
FLAKY    ?= .
# How many programs each property is tried with by test-race and on FoundationDB.
# CI has less time than `make test-fdb`.
CHECKS   ?= 100
BUGGY    ?= ./store/fdb ./orchestrator/... ./cmd/coditect
BUGGY_JOBS ?= ./store/jobs/...

TOOLS := deploy/tools
BUF   := bin/tools/buf
LINT  := bin/tools/golangci-lint
SPELL := bin/tools/misspell

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/coditect, without cgo
	CGO_ENABLED=0 go build $(TRIM) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/coditect ./cmd/coditect

.PHONY: build-fdb
build-fdb: ## build bin/coditect-fdb, with FoundationDB; needs cgo and libfdb_c 7.3
	CGO_ENABLED=1 go build -tags fdb $(TRIM) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/coditect-fdb ./cmd/coditect

# The race detector makes a test five to fifteen times as dear, and finds races only
# where something runs at once. So it is left out of packages in which nothing begins a
# goroutine, in code or in tests: locks alone show no race. In the others a test says by
# internal/dev/testenv which pass it has, and why, or that it takes minutes. That counts
# where -short is given. `make test-race` runs all of it with the race detector.

# How often processes are killed in each soak test: where nobody says, less often in `make test`
# than in `make test-long`, and 200 times in `make soak`.
SOAK_TRIALS := $(or $(CODITECT_SOAK_TRIALS),5)
export CODITECT_SOAK_TRIALS ?= 2

# Packages with tests, apart by whether something runs at once in them; the longest go
# first, so that no core waits for them at the end. Of those in FEW, tests that say so run with
# the race detector, and all others without.
TESTED     = $(eval TESTED := $(patsubst $(CURDIR)/%,./%,$(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' $(PKG))))$(TESTED)
BEGINS    := ^[[:space:]]*go (func|[a-z])|\.Go\(|[a-z]\.Parallel\(\)|synctest|AfterFunc|oidctest|enginetest|\.Serve\(|testenv\.Variant
FEW        = $(eval FEW := $(call packages-of,Raced,$(TESTED)))$(FEW)
CONCURRENT = $(eval CONCURRENT := $(filter-out $(FEW),$(filter $(TESTED),$(patsubst %/,%,$(sort $(dir $(shell grep -lE --exclude='*bench_test.go' '$(BEGINS)' $(TESTED:=/*.go) /dev/null)))))))$(CONCURRENT)
LONGEST   := ./cmd/coditect ./orchestrator ./orchestrator/schedule ./orchestrator/lifecycle ./orchestrator/dispatch ./store/jobs ./internal/text/rules
ALONE      = $(filter-out $(CONCURRENT),$(TESTED))
SEQUENTIAL = $(filter $(LONGEST),$(ALONE)) $(filter-out $(LONGEST),$(ALONE))
RACED      = $(filter $(LONGEST),$(CONCURRENT)) $(filter-out $(LONGEST),$(CONCURRENT))

# saying is a pattern for the tests of packages $(2) that name $(1) of testenv, and
# packages-of are those packages.
saying      = ^($(shell awk '/^func / { test = $$2; sub(/[^A-Za-z0-9_].*/, "", test) } /testenv\.($(1))/ { print test }' $(2:=/*_test.go) /dev/null | sort -u | paste -sd '|'))$$
packages-of = $(patsubst %/,%,$(sort $(dir $(shell grep -lE 'testenv\.($(1))' $(2:=/*_test.go) /dev/null))))

# What PLAIN has of tests that are left out with the race detector, wholly or in part.
LEFT_OUT  := Unraced|Variant|Storms
PLAIN_ALL  = $(eval PLAIN_ALL := $(call packages-of,$(LEFT_OUT),$(CONCURRENT)))$(PLAIN_ALL)
PLAIN      = $(filter $(LONGEST),$(PLAIN_ALL)) $(filter-out $(LONGEST),$(PLAIN_ALL))

.PHONY: memory
memory:
	@echo $(MEMORY)

# Stores sync what they write, thousands of times. What tests kill is a process and
# never the machine, so their folders are in memory where there is room; those of the
# compiler stay where they are.
MEMORY    := $(shell [ -w /dev/shm ] && [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 3000000 ] && \
	probe=$$(mktemp -p /dev/shm) && { dd if=/dev/zero of="$$probe" bs=4k count=1 oflag=direct status=none 2>/dev/null && echo /dev/shm; rm "$$probe"; })

# Nobody takes a debugger to what is compiled for tests, and without what a debugger needs
# it is compiled in four fifths of the time. Traces of panics and races are as they were.
# All that is to share what is compiled has the same flags.
UNDEBUGGED = $(eval UNDEBUGGED := $(shell go env GOFLAGS) -gcflags=$(shell go list -m)/...=-dwarf=false)$(UNDEBUGGED)

# Tests and the compiler look at GOTMPDIR, so only the settings of the compiler have it. The
# name of the folder is that of before, so that results of tests are found again. A folder
# that cannot be removed, as a process still writes to it, fails no test that has passed.
IN_MEMORY = base="$(or $(MEMORY),$${TMPDIR:-/tmp})"; tmp="$$base/t.$$(printf %s "$(CURDIR)" | cksum | cut -d ' ' -f 1)"; \
	mkdir "$$tmp" 2>/dev/null || tmp=$$(mktemp -d "$$base/t.XXXXXX"); trap 'rm -rf "$$tmp" || true' EXIT; chmod 711 "$$tmp"; \
	{ grep -hv '^GOTMPDIR=' "$$(go env GOENV)" 2>/dev/null || true; echo "GOTMPDIR=$${GOTMPDIR:-$${TMPDIR:-/tmp}}"; } >"$$tmp/go.env"; \
	unset GOTMPDIR; export GOENV="$$tmp/go.env" TMPDIR="$$tmp" GOFLAGS='$(UNDEBUGGED)';

.PHONY: undebugged
undebugged:
	@echo '$(UNDEBUGGED)'

# What vet has to say, `make lint` says.
TEST := go test -vet=off

# A program that looks for races dawdles a second before it ends.
QUICK_RACE := GORACE=atexit_sleep_ms=0

# What has the race detector and what has not are run at the same time: each waits for
# time and for processes, and has a long package at its end, while the other computes.
.PHONY: test
test: ## run the tests, but for those of minutes, what runs at once with the race detector
	@$(IN_MEMORY) $(MAKE) --no-print-directory -j 2 -k test-raced test-plain

.PHONY: test-raced
test-raced:
	rc=0; export CGO_ENABLED=1 $(QUICK_RACE); \
	$(if $(FEW),$(TEST) -short -p 2 -race -timeout 45m -run '$(call saying,Raced|Variant,$(FEW))' $(FEW) || rc=$$?;) \
	$(if $(strip $(RACED)),$(TEST) -short -p 2 -race -timeout 45m $(RACED) || rc=$$?;) \
	exit $$rc

.PHONY: test-plain
test-plain:
	rc=0; \
	$(if $(strip $(SEQUENTIAL)),$(TEST) -short -p 2 -timeout 45m $(SEQUENTIAL) || rc=$$?;) \
	$(if $(strip $(PLAIN)),$(TEST) -short -p 2 -timeout 45m -run '$(call saying,$(LEFT_OUT),$(PLAIN))' $(PLAIN) || rc=$$?;) \
	exit $$rc

.PHONY: test-long
test-long: ## run the tests of minutes that `make test` leaves out: kills, damage, restarts, and texts that cost much
	@$(IN_MEMORY) set -x; CODITECT_SOAK_TRIALS=$(SOAK_TRIALS) $(TEST) -p 2 -timeout 45m -run '$(call saying,Lengthy,$(TESTED))' $(call packages-of,Lengthy,$(TESTED))

.PHONY: test-race
test-race: ## run all tests with the race detector, and properties in full: CHECKS=100
	@$(IN_MEMORY) set -x; RAPID_CHECKS=$(CHECKS) CGO_ENABLED=1 $(TEST) -race -timeout 120m $(PKG)

# Tests of all packages in which something runs at once: of time, processes and chance, so
# none that is about sizes.
.PHONY: flaky
flaky: ## run tests of time, processes and chance over and over, and count: TIMES=50 FLAKY=pattern PKG=package
	@$(IN_MEMORY) set -x; CODITECT_SOAK_TRIALS=1 $(TEST) -json -timeout 0 -count $(TIMES) \
		-run '$(FLAKY)' -skip '$(call saying,Sizes,$(FEW) $(RACED))' $(FEW) $(RACED) | go run ./internal/dev/tally

.PHONY: test-all
test-all: test test-long test-race test-oracle test-secured test-clients check-breaking soak flaky fuzz ## run all there is on one machine, at length: hours

# Suites run on the cluster that FDB_CLUSTER_FILE names, in parts of it of their
# own, which they clear; then again with a client that fails and dawdles at random. They
# wait for the cluster much of the time, so more of them run at once than there are cores.
TEST_FDB := CODITECT_TEST_FDB=require CGO_ENABLED=1 go test -vet=off -tags fdb -count 1 -timeout 120m
ON_FDB   := ./cmd/coditect ./orchestrator/... ./store/jobs/... ./cmd/coditect/internal/show ./cmd/coditect/internal/embedded ./store/fdb ./store/storetest/driver

.PHONY: test-fdb
test-fdb: ## run the suites on FoundationDB: FDB_CLUSTER_FILE=file
	@$(IN_MEMORY) $(MAKE) --no-print-directory suites-fdb; $(MAKE) --no-print-directory buggy-fdb

.PHONY: suites-fdb
suites-fdb:
	RAPID_CHECKS=$(CHECKS) $(TEST_FDB) -p 4 $(ON_FDB)

.PHONY: buggy-fdb
buggy-fdb: export FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE =
buggy-fdb:
	$(TEST_FDB) $(BUGGY)
	$(if $(BUGGY_JOBS),RAPID_CHECKS=$(CHECKS) $(TEST_FDB) $(BUGGY_JOBS))

# helm, kubectl-validate and the rest of the tools are found in CODITECT_KUBE_TOOLS or in
# PATH; what is missing is said. docs/kubernetes.md names them.
.PHONY: test-kubernetes
test-kubernetes: ## check the chart, and run it on a control plane: CODITECT_KUBE_TOOLS=folder
	CGO_ENABLED=0 go build -tags scripted $(TRIM) -ldflags '-s -w' -o bin/coditect-scripted ./cmd/coditect
	CODITECT_PROGRAM=$(CURDIR)/bin/coditect-scripted go test -C deploy/kubernetes -count 1 -timeout 60m -v ./... | grep -vE '^ *(=== |--- PASS: .*/)'

# The vendors' SDKs take longer to compile than most of the program, so they are in a module of
# their own.
ORACLE := worker/llm/oracle

.PHONY: test-oracle
test-oracle: ## compare requests to models and what is read of answers with the vendors' own SDKs: ORACLES=1000
	go test -C $(ORACLE) -count 1 ./... $(if $(ORACLES),-rapid.checks=$(ORACLES))

.PHONY: test-recorded
test-recorded: ## read responses and batches of vendors that others have recorded, and count them: CASSETTES=folder
	CODITECT_CASSETTES='$(abspath $(CASSETTES))' go test -count 1 -v -run 'TestRecordedResponses|TestRecordedBatches' ./worker/llm/vendors ./worker/llm/batch

.PHONY: test-peers
test-peers: ## check providers of models against servers and clients of others; needs npm
	internal/dev/peers/run.sh

.PHONY: test-mcp
test-mcp: ## check MCP, on both sides, against servers and a client of others; needs npm
	internal/dev/mcp/run.sh

.PHONY: test-clients
test-clients: build $(BUF) ## run the examples in Python and TypeScript against a server; says what tools are missing
	examples/clients/run.sh

# The commands of users over mutual TLS, as principals of an issuer: a few of their scripts
# are in `make test`.
.PHONY: test-secured
test-secured: ## run the scripts of the command line over mutual TLS with tokens of OpenID Connect
	@$(IN_MEMORY) set -x; CODITECT_SECURED=all $(TEST) -count 1 -timeout 60m -run TestScriptsSecured ./cmd/coditect

.PHONY: test-browser
test-browser: ## check the browser of agents against hostile pages and 50 sources of news; needs Chromium
	CODITECT_TEST_BROWSER=all go test -count 1 -v ./worker/tool/browser
	CODITECT_TEST_BROWSER=all go test -count 1 -v -run 'Compare(ThroughChromium|BrowsesWithRules)' ./cmd/coditect

.PHONY: test-page
test-page: build ## check report.html and the pages of a server in Chromium for what keeps people out, with axe-core, and pages of runs over CODITECT_TESTDATA; needs npm
	npm install --silent --no-audit --no-fund --prefix bin/axe axe-core@4.14.1
	CODITECT_AXE=$(CURDIR)/bin/axe/node_modules/axe-core/axe.min.js CODITECT_PROGRAM=$(CURDIR)/bin/coditect go test -count 1 -v -run 'Accessible|PagesOfRuns' ./cmd/coditect/internal/page ./api/dashboard

.PHONY: pictures
pictures: build ## make the pictures of docs/page.md anew; needs Chromium
	go run ./internal/dev/pictures -program bin/coditect -out docs/images

.PHONY: lint
lint: $(LINT) $(BUF) spell ## run the linters, on Go, on .proto files and on texts
	$(LINT) run --allow-serial-runners $(PKG)
	cd $(ORACLE) && $(CURDIR)/$(LINT) run --allow-serial-runners ./...
	$(BUF) lint

# internal/dev/prose holds the words that the texts do without, and what to write instead.
PROSE = $(shell git ls-files '*.md' '*.txtar' '*.proto' '*.yaml' '*.yml' '*.tmpl')
.PHONY: spell
spell: $(SPELL) ## check the spelling of texts and what people read of the program, and their style
	$(SPELL) -locale UK -i "$$(grep -v '^#' internal/dev/prose/accepted.txt | paste -sd ,)" -error $(PROSE)
	go test -count 1 ./internal/dev/prose

.PHONY: fmt
fmt: $(LINT) ## format Go files
	$(LINT) fmt

.PHONY: check-fmt
check-fmt: $(LINT) ## fail if a Go file is not formatted
	$(LINT) fmt --diff

.PHONY: generate
generate: $(BUF) ## generate Go from the .proto files, and docs/packages.md from packages
	$(BUF) generate
	go run ./internal/dev/packages >bin/packages.md && mv bin/packages.md docs/packages.md

# Compares both ways: a file generated from a .proto that is gone is stale too.
.PHONY: check-generated
check-generated: $(BUF) ## fail if generated code is stale
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(BUF) generate --output "$$tmp"; \
	diff -r --exclude='*.proto' --exclude='*.yaml' "$$tmp/proto" proto && diff "$$tmp/api/web/openapi.swagger.json" api/web/openapi.swagger.json \
		&& go run ./internal/dev/packages | diff - docs/packages.md \
		|| { echo 'generated code is stale: run make generate' >&2; exit 1; }

# What the protocol must stay compatible with: the last release, or, before there is one,
# the last commit that has changed it so that older clients do not understand it. Until the
# first release such a change is allowed; it moves PROTO_BASE. What is stored is no protocol.
PROTO_BASE := 6ea6fc7818afe9b27034c99d5b6fb37a6585b473

.PHONY: check-listener
check-listener: build ## look at the listeners of a server with OpenSSL and nmap, where these are installed
	internal/dev/listener/check.sh

.PHONY: check-breaking
check-breaking: $(BUF) ## fail if clients or workers of the last release would not understand the protocol
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	base=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || echo $(PROTO_BASE)); \
	if ! git cat-file -e "$$base^{commit}" 2>/dev/null; then \
		echo "the protocol is not compared, as this clone does not have $$base" >&2; exit 0; \
	fi; \
	git archive "$$base" buf.yaml proto/coditect/mapreduce/v1 | tar -x -C "$$tmp"; \
	$(BUF) breaking --against "$$tmp"; \
	echo "the protocol is compatible with $$base"

.PHONY: bench
bench: ## measure how fast it is, beside goals and ceilings: FIGURES=pattern
	CGO_ENABLED=0 go run ./internal/dev/bench -run '$(FIGURES)'

.PHONY: bench-fdb
bench-fdb: ## measure the same on FoundationDB: FDB_CLUSTER_FILE=file FIGURES=pattern
	go run -tags fdb ./internal/dev/bench -store "fdb:$$FDB_CLUSTER_FILE" -run '$(FIGURES)'

# Other systems are in a module of their own, as the SDKs are. Each has a program of its own, so
# that one may be measured without building the others. Temporal's server needs older versions of what the
# others need, so it has a module to itself.
RIVALS  := internal/dev/rivals
SYSTEMS ?= coditect river nats dbos restate temporal

.PHONY: bench-rivals
bench-rivals: ## measure other systems that run units beside this one, in turns: SYSTEMS='coditect nats' RIVAL=-short; needs PostgreSQL and restate-server
	@mkdir -p bin/rivals
	CGO_ENABLED=0 go build -C $(RIVALS) -o $(CURDIR)/bin/rivals/ . $(addprefix ./,$(filter-out temporal,$(SYSTEMS)))
	$(if $(filter temporal,$(SYSTEMS)),CGO_ENABLED=0 go build -C $(RIVALS)/temporal -o $(CURDIR)/bin/rivals/ .)
	bin/rivals/rivals -systems '$(SYSTEMS)' $(RIVAL)

.PHONY: check-rivals
check-rivals: ## vet and test what bench-rivals builds
	go -C $(RIVALS) vet ./...
	go -C $(RIVALS)/temporal vet ./...
	go test -C $(RIVALS) -count 1 ./...
	go test -C $(RIVALS)/temporal -count 1 ./...

.PHONY: scale
scale: ## simulate 100 orchestrators and 10,000 workers in virtual time, minutes: SCALE='-units 100000'
	CGO_ENABLED=0 go run ./internal/dev/scale $(SCALE)

.PHONY: microbench
microbench: ## run the benchmarks of packages: BENCH=pattern PKG=package
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PKG)

.PHONY: figures-of-code
figures-of-code: ## count how long, how documented and how named the code is, beside others
	go run ./internal/dev/figures-of-code

.PHONY: documents
documents: build ## compare documents that LibreOffice writes with their source, and read large hostile files
	CODITECT_LIBREOFFICE=1 CODITECT_HOSTILE=1 CODITECT_PROGRAM=$(CURDIR)/bin/coditect go test -count 1 -timeout 60m -v ./internal/document/internal/producers

.PHONY: documents-bench
documents-bench: ## pages of PDF read a second and the memory that takes, beside pdftotext; pages drawn a second
	go test -run '^$$' -bench 'Pages' -benchtime 3x ./internal/document/pdf

.PHONY: scans-bench
scans-bench: build ## how pictures are read, beside Tesseract alone: PICTURES=folder of JPEG pictures, SCANS='-pages 1000'
	go run ./internal/dev/scans -pictures '$(PICTURES)' $(SCANS)

.PHONY: calibrate
calibrate: ## how often what was recognised in pictures is right: PICTURES=folder with truth.jsonl or words.jsonl, OTHER=another one
	go run ./internal/dev/calibrate -pictures '$(PICTURES)' -other '$(OTHER)'

.PHONY: observability
observability: ## run the tests of alerts, boards and traces, with Prometheus where it is installed, and the collector CODITECT_OTELCOL
	CODITECT_OBSERVABILITY=1 go test -count 1 -v -run 'TestAlerts|TestOperatorsAreServed|TestPrometheus|TestExemplars|TestOneTraceInACollectorOfOthers' ./cmd/coditect

.PHONY: check-boards
check-boards: ## compare the boards with the schemas of Grafana; needs npm
	deploy/observability/schema/check.sh

.PHONY: soak
soak: ## kill -9 and resume, over and over: TRIALS=200
	CODITECT_SOAK_TRIALS=$(TRIALS) CODITECT_STORM_TRIALS=$(TRIALS) go test -run Soak -count 1 -timeout 120m -v $(PKG)

# Where jobs are kept: the embedded store, or a cluster with FDB_CLUSTER_FILE=file.
HOURS ?= 24
.PHONY: soak-day
soak-day: ## let a server and workers work on jobs of every kind, and say what grows: HOURS=24 SOAK='-every 2m -out file'
	CGO_ENABLED=$(if $(FDB_CLUSTER_FILE),1,0) go build -tags 'scripted $(if $(FDB_CLUSTER_FILE),fdb)' $(TRIM) -o bin/coditect-scripted ./cmd/coditect
	go run ./internal/dev/soak -program bin/coditect-scripted -hours $(HOURS) $(if $(FDB_CLUSTER_FILE),-store 'fdb:$(FDB_CLUSTER_FILE)') $(SOAK)

# Natively many runs go fast, and none is ever quite the same again; `go run ./internal/dev/simulate` has one
# again to the last byte.
SEEDS ?= 1-10000
.PHONY: simulate
simulate: ## run everything in one process on virtual time, with faults of all kinds: SEEDS=1-10000
	CODITECT_SIMULATION_SEEDS=$(SEEDS) go test -run TestSeeds -count 1 -timeout 0 ./internal/dev/simulation

# Each trial kills about four processes.
.PHONY: kills
kills: ## kill processes at random while they work on jobs of every kind, some 2,000 times: TRIALS=250
	CODITECT_SOAK_TRIALS=$(if $(filter file,$(origin TRIALS)),250,$(TRIALS)) go test -count 1 -timeout 180m -v -run 'TestSoakStormOf(Kills|AFleet)|TestPoison' ./cmd/coditect

# A test of each kind of harm: files of the store, power, clocks, processes.
.PHONY: damage
damage: ## damage stores, cut the power, move clocks and kill processes: TRIALS=420
	CODITECT_SOAK_TRIALS=$(if $(filter file,$(origin TRIALS)),420,$(TRIALS)) go test -count 1 -timeout 180m -v -run TestSoakDamage ./cmd/coditect
	CODITECT_SOAK_TRIALS=36 CODITECT_CLOCKS=1 go test -count 1 -timeout 60m -v -run TestSoakClocks ./cmd/coditect
	go test -count 1 -timeout 60m -v -run 'TestPowerLoss|TestFullDisk' ./store/pebble
	CODITECT_SOAK_TRIALS=40 go test -count 1 -timeout 120m -v -run 'TestSoakKills|TestSoakStopped|TestKilledAtEveryPoint' ./cmd/coditect

.PHONY: schemas
schemas: ## run schemas and documents that are drawn at random, twice each: TRIALS=1000
	CODITECT_SCHEMA_TRIALS=$(if $(filter file,$(origin TRIALS)),1000,$(TRIALS)) go test -count 1 -timeout 120m -v -run TestSchemasAtRandom ./cmd/coditect

.PHONY: quota-kills
quota-kills: ## kill nodes that work for tenants with quotas: KILLS=10000, on a cluster with FDB_CLUSTER_FILE=file
	$(if $(FDB_CLUSTER_FILE),$(TEST_FDB),go test -vet=off -count 1 -timeout 60m) -run 'TestQuotasAreExactUnderKills$$' -v ./store/jobs -quota.kills $(or $(KILLS),10000)

# In virtual time; on a cluster with FDB_CLUSTER_FILE=file, where it takes about half an hour for each vendor.
.PHONY: batch-kills
batch-kills: ## kill servers and workers at every point of the path of batches, at each vendor: UNITS=10000 KILLS=200
	$(if $(FDB_CLUSTER_FILE),$(TEST_FDB),go test -vet=off -count 1 -timeout 180m) -run 'TestBatchesSurviveKills' -v ./orchestrator -batch.killed $(or $(UNITS),10000) -batch.kills $(or $(KILLS),200)

.PHONY: batch-week
batch-week: ## run a job whose calls go by batch through days of virtual time, and print memory and time: LINES=1000000
	GOGC=200 GOMEMLIMIT=2GiB go test -vet=off -count 1 -timeout 300m -run 'TestAWeekOfBatches$$' -v ./orchestrator -batch.week $(or $(LINES),1000000)

.PHONY: plans
plans: ## print what plans expect of jobs over receipts beside what came of them; needs CODITECT_TESTDATA
	CODITECT_PLANS=1 go test -vet=off -count 1 -timeout 60m -run 'TestPlansBesideWhatHappened$$' -v ./cmd/coditect

.PHONY: connections
connections: ## keep idle and slow connections open to both listeners, and print memory and times: CONNECTIONS=10000
	CODITECT_CONNECTIONS=$(or $(CONNECTIONS),10000) go test -vet=off -count 1 -timeout 30m -run 'TestIdleAndSlowConnections$$' -v ./cmd/coditect

.PHONY: rotation
rotation: ## replace certificates, authorities, tokens, the policy and keys of the issuer while a job runs: UNITS=10000
	CODITECT_ROTATION_UNITS=$(or $(UNITS),10000) go test -vet=off -count 1 -timeout 60m -run 'TestRotation$$' -v ./cmd/coditect

.PHONY: rolling
rolling: ## replace all servers and workers while a job runs: UNITS=200, on a cluster with FDB_CLUSTER_FILE=file
	CODITECT_ROLLING_UNITS=$(or $(UNITS),200) $(if $(FDB_CLUSTER_FILE),$(TEST_FDB),go test -vet=off -count 1) -run 'TestRollingRestart$$' -v ./cmd/coditect

# With IMAGES=server,worker the processes are containers under the constraints of pods. Their
# programs need the scripted provider: make images TAGS=scripted.
.PHONY: rolling-fleet
rolling-fleet: ## the same with thousands of units and users' settings: UNITS=10000 IMAGES=coditect/mapreduce:fdb,coditect/mapreduce:pure
	CODITECT_ROLLING_FLEET=$(or $(UNITS),10000) CODITECT_ROLLING_IMAGES=$(IMAGES) $(if $(FDB_CLUSTER_FILE),$(TEST_FDB),go test -vet=off -count 1 -timeout 60m) -run 'TestRollingFleet$$' -v ./cmd/coditect

# FoundationDB's client is a shared library, so the image with it is that of this machine's
# platform: it brings along what the program needs here.
PLATFORMS := linux/amd64 linux/arm64
IMAGE = go run ./deploy/images -version '$(VERSION)' -revision "$$(git rev-parse HEAD)" -date "$$(git log -1 --format=%ct)"
.PHONY: images
images: ## make the images as OCI layouts in bin/images, without daemon and registry
	@mkdir -p bin/images
	for p in $(PLATFORMS); do \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -tags '$(TAGS)' -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/images/coditect-$${p#*/} ./cmd/coditect; \
	done
	$(IMAGE) -out bin/images/pure.tar $(foreach p,$(PLATFORMS),$(p)=bin/images/coditect-$(notdir $(p)))
	@if [ -e /usr/include/foundationdb/fdb_c.h ] || [ -e /usr/local/include/foundationdb/fdb_c.h ]; then set -x; \
		CGO_ENABLED=1 go build -tags 'fdb $(TAGS)' -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/images/coditect-fdb ./cmd/coditect; \
		$(IMAGE) -reference coditect/mapreduce:fdb -out bin/images/fdb.tar linux/$$(go env GOHOSTARCH)=bin/images/coditect-fdb; \
	else echo "FoundationDB's client is not installed: the image with it is left out"; fi

# The same commit and version of Go give the same files. `make release-files` makes them again of a
# tagged commit, for those who compare checksums.
RELEASE = go run ./internal/dev/release -bom $(CYCLONEDX_GOMOD)
.PHONY: release release-files
release: ## make the newest version of CHANGELOG.md in bin/release, and tag it: archives, notes, checksums, bills of materials
	$(RELEASE) -tag

release-files: ## make the same files without the tag
	$(RELEASE)

.PHONY: test-images
test-images: images ## run the images as pods do: no root, nothing writable, no capabilities; needs a Docker daemon
	CODITECT_IMAGES=$(CURDIR)/bin/images go test -count 1 -v ./deploy/images/...

.PHONY: compose-smoke
compose-smoke: ## kill what docker-compose.yml starts while a job runs, and compare results
	VERSION='$(VERSION)' deploy/docker/smoke.sh

.PHONY: soak-fdb
soak-fdb: ## kill servers and workers on FoundationDB, and its cluster: TRIALS=200
	CODITECT_TIMED=1 CODITECT_SOAK_TRIALS=$(TRIALS) $(TEST_FDB) -run 'Soak' -v ./cmd/coditect

.PHONY: hostile
hostile: build ## attack a server as hostile clients and workers would: TIME=30s HOSTILE=-untimed
	CGO_ENABLED=0 go build -o bin/hostile ./internal/dev/hostile
	bin/hostile -program bin/coditect -time $(TIME) $(HOSTILE)

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what the program calls
	@go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...; rc=$$?; \
	case $$rc in 0|3) ;; *) echo 'govulncheck did not run: its database or the tool cannot be had here' >&2;; esac; exit $$rc

# -fuzzminimizetime: a minute would go into making each interesting input smaller, and
# little would be tried.
.PHONY: fuzz
fuzz: ## run each fuzz target a while: FUZZTIME=10s
	@grep -roE --include='*_test.go' '^func Fuzz\w+' . | sort | while IFS=: read -r file func; do \
		echo "$$(dirname "$$file") $${func#func }"; \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "./$$(dirname "$$file")"; \
	done

.PHONY: tidy-check
tidy-check: ## fail if a go.mod is not tidy
	go mod tidy -diff
	go -C $(TOOLS) mod tidy -diff
	go -C deploy/kubernetes mod tidy -diff
	go -C $(ORACLE) mod tidy -diff
	go -C $(RIVALS) mod tidy -diff

.PHONY: first-run
first-run: ## time the README's first command from a clone on, cold and warm
	.ci/first-run

.PHONY: ci
ci: ## all that a change has to pass
	.ci/run

.PHONY: clean
clean: ## remove what was built
	rm -rf bin

.PHONY: tools
tools: $(BUF) $(LINT) $(SPELL)

$(BUF): $(TOOLS)/go.mod $(TOOLS)/go.sum
	CGO_ENABLED=0 go build -C $(TOOLS) -o $(CURDIR)/$@ github.com/bufbuild/buf/cmd/buf
	@touch $@

$(LINT): $(TOOLS)/go.mod $(TOOLS)/go.sum
	CGO_ENABLED=0 go build -C $(TOOLS) -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(SPELL): $(TOOLS)/go.mod $(TOOLS)/go.sum
	CGO_ENABLED=0 go build -C $(TOOLS) -o $(CURDIR)/$@ github.com/golangci/misspell/cmd/misspell
	@touch $@
