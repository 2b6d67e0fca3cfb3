// Package testenv lets a test say in which pass of `make test` it runs. That has two
// passes with -short: one with the race detector, of all packages in which something runs
// at once, and one without. A test that says nothing runs once: with the race detector in
// those packages, without it in all others.
//
// The race detector makes a test five to fifteen times as dear, and finds races only
// where something runs at once. So tests of which others show the same races leave it to
// those others: they call [Unraced], or [Variant] in one of their subtests. A test of
// minutes calls [Lengthy]; `make test-long` runs it.
//
// Without -short everything runs, with or without the race detector: `go test` of a
// package is all of its tests, and `make test-race` all of them with the race detector.
//
// The Makefile finds the tests of the second pass by these calls, so they stand in the
// functions of tests, and not in what these call; a test here looks after that. The package
// imports nothing of the project, and only tests import it.
package testenv

import (
	"os"
	"strconv"
	"testing"
)

// A Reason says why a test runs without the race detector.
type Reason string

// The reasons there are.
const (
	// Sizes is that of a test of sizes, counts or formats. As nothing in it depends on
	// chance, `make flaky` leaves it out too.
	Sizes Reason = "it is about sizes, counts or formats; what runs at once in it runs at once in other tests"

	// Processes is that of a test that starts the program that users have, and looks at
	// what it leaves. Some scripts and tests with models start one that looks for races.
	Processes Reason = "it starts the program that users have"

	// Alike is that of a test that differs in numbers or contents from one that runs with
	// the race detector.
	Alike Reason = "it differs in numbers or contents from a test with the race detector"
)

// Unraced leaves a test out of the pass with the race detector.
func Unraced(t testing.TB, why Reason) {
	t.Helper()

	if raced && testing.Short() {
		t.Skipf("not with the race detector: %s", why)
	}
}

// Raced lets a test run with the race detector in a package whose other tests run without, as
// nothing runs at once in them that does not in those that call it.
func Raced(t testing.TB) {
	t.Helper()

	if !raced && testing.Short() {
		t.Skip("in the other pass of `make test`, with the race detector")
	}
}

// Variant says which subtests of a test run with the race detector: those with
// withRaces, once, and the others once without it.
func Variant(t testing.TB, withRaces bool) {
	t.Helper()

	if !VariantRuns(withRaces) {
		t.Skipf("in the other pass of `make test`: with the race detector is %t", withRaces)
	}
}

// VariantRuns tells whether a subtest for which withRaces is said runs in this pass, for tests
// that choose before they begin one.
func VariantRuns(withRaces bool) bool {
	if !testing.Short() {
		return true
	}
	if raced {
		return withRaces
	}
	return !withRaces
}

// Lengthy leaves a test out of `make test`, as it needs minutes of a processor.
func Lengthy(t testing.TB) {
	t.Helper()

	if testing.Short() {
		t.Skip("`make test-long` runs it")
	}
}

// SlowOnFDB leaves a test out on FoundationDB where CODITECT_TEST_FDB_TIME is short, as CI has
// it: kills and large levels, of which others are left; plans that are many, which one store
// makes as the other does; and tests of what is found in documents and written of it, which keep
// little in the cluster. `make test-fdb` has time for them.
func SlowOnFDB(t testing.TB) {
	t.Helper()

	if !HasTime() {
		t.Skip("slow on FoundationDB, and CODITECT_TEST_FDB_TIME is short")
	}
}

// HasTime tells whether what is slow on FoundationDB runs, for tests that choose before they
// begin one.
func HasTime() bool { return !onFDB || os.Getenv("CODITECT_TEST_FDB_TIME") != "short" }

// Storms returns how many runs of virtual time a test makes, each of which draws other
// events: one in the pass with the race detector, and otherwise usual, or as many as
// CODITECT_STORM_TRIALS says.
func Storms(t testing.TB, usual int) int {
	t.Helper()

	said := os.Getenv("CODITECT_STORM_TRIALS")
	if said == "" {
		if raced && testing.Short() {
			return 1
		}
		return usual
	}

	n, err := strconv.Atoi(said)
	if err != nil || n < 1 {
		t.Fatalf("CODITECT_STORM_TRIALS is %q; it is a number of runs, from 1 on", said)
	}
	return n
}
