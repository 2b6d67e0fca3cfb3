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
TRIALS   ?= 200
# How many programs each property is tried with by test-race and on FoundationDB,
# and which tests are left out there; CI has less time than `make test-fdb`.
CHECKS   ?= 100
SKIP_FDB ?= ^$$
BUGGY    ?= ./store/fdb ./orchestrator ./cmd/coditect
BUGGY_JOBS ?= ./store/jobs

TOOLS := deploy/tools
BUF   := bin/tools/buf
LINT  := bin/tools/golangci-lint

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/coditect, without cgo
	CGO_ENABLED=0 go build $(TRIM) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/coditect ./cmd/coditect

.PHONY: build-fdb
build-fdb: ## build bin/coditect-fdb, with FoundationDB; needs cgo and libfdb_c 7.3
	CGO_ENABLED=1 go build -tags fdb $(TRIM) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/coditect-fdb ./cmd/coditect

# The race detector makes these tests five to fifteen times as dear, and what runs at
# once in them runs at once in others too: they read many documents, plan thousands of units,
# count calls, or try formats of models that differ in what they encode. They run
# without it. So do properties of store/jobs, which are tried with it as well, a
# fifth as often.
UNRACED    := TestPackages|TestLargeLevel|TestChunkingKeeps|TestResultDoesNotDependOnTheTree|TestMatrixOfFaults/(openai|ollama)|TestTheFleetKeeps|TestTheFleetLearns|TestFiftyCalls
PROPERTIES := TestAgainstModel|TestBudgetIsNeverOverspent|TestTreesInAnyOrder|SlotsAreNeverExceeded
HOLD       := ./orchestrator ./store/jobs ./worker/output ./worker/rules
PLAIN       = $(filter $(HOLD),$(PKG:./...=$(HOLD)))

.PHONY: test
test: ## run all tests, nearly all with the race detector
	go test -race -timeout 45m -skip '$(UNRACED)' $(PKG)
	$(if $(PLAIN),go test -timeout 45m -run '$(UNRACED)|$(PROPERTIES)' $(PLAIN))

.PHONY: test-race
test-race: ## run all tests with the race detector, and properties in full: CHECKS=100
	RAPID_CHECKS=$(CHECKS) go test -race -timeout 60m $(PKG)

# Suites run on the cluster that FDB_CLUSTER_FILE names, in parts of it of their
# own, which they clear; then again with a client that fails and dawdles at random.
TEST_FDB := CODITECT_TEST_FDB=require go test -tags fdb -count 1 -timeout 120m -skip '$(SKIP_FDB)'

.PHONY: test-fdb
test-fdb: ## run the suites on FoundationDB: FDB_CLUSTER_FILE=file
	RAPID_CHECKS=$(CHECKS) $(TEST_FDB) ./cmd/... ./orchestrator ./store/jobs ./store/fdb ./store/storetest/driver
	FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE= $(TEST_FDB) $(BUGGY)
	$(if $(BUGGY_JOBS),FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE= $(TEST_FDB) $(BUGGY_JOBS) -rapid.checks=$(CHECKS))

.PHONY: test-peers
test-peers: ## check providers of models against servers and clients of others; needs npm
	deploy/peers/run.sh

.PHONY: lint
lint: $(LINT) $(BUF) ## run the linters, on Go and on .proto files
	$(LINT) run --allow-serial-runners $(PKG)
	$(BUF) lint

.PHONY: fmt
fmt: $(LINT) ## format Go files
	$(LINT) fmt

.PHONY: check-fmt
check-fmt: $(LINT) ## fail if a Go file is not formatted
	$(LINT) fmt --diff

.PHONY: generate
generate: $(BUF) ## generate Go from the .proto files
	$(BUF) generate

# Compares both ways: a file generated from a .proto that is gone is stale too.
.PHONY: check-generated
check-generated: $(BUF) ## fail if generated code is stale
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(BUF) generate --output "$$tmp"; \
	diff -r --exclude='*.proto' "$$tmp/proto" proto \
		|| { echo 'generated code is stale: run make generate' >&2; exit 1; }

.PHONY: bench
bench: ## measure how fast it is, beside goals and ceilings: FIGURES=pattern
	CGO_ENABLED=0 go run ./deploy/bench -run '$(FIGURES)'

.PHONY: bench-fdb
bench-fdb: ## measure the same on FoundationDB: FDB_CLUSTER_FILE=file FIGURES=pattern
	go run -tags fdb ./deploy/bench -store "fdb:$$FDB_CLUSTER_FILE" -run '$(FIGURES)'

.PHONY: microbench
microbench: ## run the benchmarks of packages: BENCH=pattern PKG=package
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PKG)

.PHONY: figures-of-code
figures-of-code: ## count how long, how documented and how named the code is, beside others
	go run ./deploy/figures-of-code

.PHONY: soak
soak: ## kill -9 and resume, over and over: TRIALS=200
	CODITECT_SOAK_TRIALS=$(TRIALS) CODITECT_STORM_TRIALS=$(TRIALS) go test -run Soak -count 1 -timeout 120m -v $(PKG)

.PHONY: compose-smoke
compose-smoke: ## kill what docker-compose.yml starts while a job runs, and compare results
	VERSION='$(VERSION)' deploy/docker/smoke.sh

.PHONY: soak-fdb
soak-fdb: ## kill servers and workers on FoundationDB, and its cluster: TRIALS=200
	CODITECT_TIMED=1 CODITECT_SOAK_TRIALS=$(TRIALS) $(TEST_FDB) -run 'Soak' -v ./cmd/coditect

.PHONY: fuzz
fuzz: ## run each fuzz target a while: FUZZTIME=10s
	@grep -roE --include='*_test.go' '^func Fuzz\w+' . | sort | while IFS=: read -r file func; do \
		echo "$$(dirname "$$file") $${func#func }"; \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")"; \
	done

.PHONY: tidy-check
tidy-check: ## fail if a go.mod is not tidy
	go mod tidy -diff
	go -C $(TOOLS) mod tidy -diff

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
tools: $(BUF) $(LINT)

$(BUF): $(TOOLS)/go.mod $(TOOLS)/go.sum
	CGO_ENABLED=0 go build -C $(TOOLS) -o $(CURDIR)/$@ github.com/bufbuild/buf/cmd/buf
	@touch $@

$(LINT): $(TOOLS)/go.mod $(TOOLS)/go.sum
	CGO_ENABLED=0 go build -C $(TOOLS) -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
