// Package storetest is the contract of package store as tests. Every driver and
// every wrapper around a driver runs it. A change of the contract begins here.
//
// A check states one clause and fails by returning an error, so that the suite
// itself can be tested against stores that are wrong on purpose. Two tests find
// faults that no clause covers: Lockstep compares a driver with the reference in
// package memory over interleaved transactions, and package history lets goroutines
// race and checks that some serial order explains what they saw.
//
// Drivers with a clock of their own test clauses that need waiting, such as
// store.MaxTxAge. The package is for tests only: it imports testing.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest/history"
)

// Options tell what a driver is allowed to do. The zero value is the strictest.
type Options struct {
	// Prefix precedes all keys. All keys below it are cleared. Without a
	// prefix the keys begin with the names of the checks.
	Prefix string
	// Faulty means that any operation may fail with a retryable error. A check
	// that meets one is run again. It must pass within a hundred runs, and may
	// never see a wrong answer.
	Faulty bool
	// FalseConflicts means that a commit may conflict although nobody wrote
	// what it read. Checks that exclude conflicts are skipped then.
	FalseConflicts bool
}

// maxRuns bounds the runs of a check on a faulty store.
const maxRuns = 100

// checkTimeout bounds one check, so that a check that waits for ever fails.
const checkTimeout = time.Minute

// histories is the number of histories that a run of the suite checks.
const histories = 5

// Run runs the suite. open returns a store that nobody else uses; the suite
// closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	RunWith(t, open, Options{})
}

// RunWith runs the suite on a driver with the freedoms of o.
func RunWith(t *testing.T, open func(t *testing.T) store.Store, o Options) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if c.exact && o.FalseConflicts {
				t.Skip("this driver may conflict for no reason")
			}
			s := open(t)
			if err := c.Run(t.Context(), s, o); err != nil {
				t.Error(err)
			}
			closeStore(t, s)
		})
	}

	t.Run("lockstep", func(t *testing.T) { runLockstep(t, open(t), o) })
	t.Run("history", func(t *testing.T) { runHistory(t, open(t), o) })
}

func runLockstep(t *testing.T, s store.Store, o Options) {
	defer closeStore(t, s)
	below, run := o.Prefix+"lockstep/", 0
	if err := clearBelow(t.Context(), s, below); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		run++
		program := Programs().Draw(rt, "program")
		if err := Lockstep(t.Context(), s, fmt.Sprint(below, run, "/"), program, o); err != nil {
			rt.Fatal(err)
		}
	})
}

func runHistory(t *testing.T, s store.Store, o Options) {
	defer closeStore(t, s)
	below := o.Prefix + "history/"
	if err := clearBelow(t.Context(), s, below); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(histories) {
		if err := history.Check(t.Context(), s, fmt.Sprint(below, seed, "/"), seed); err != nil {
			t.Error(err)
		}
	}
}

func closeStore(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
		t.Errorf("close: %v", err)
	}
}

// A Check is one clause of the contract.
type Check struct {
	Name  string // states the clause
	check func(e *env)
	exact bool // the clause excludes conflicts
}

// Checks returns all checks, in the order of the contract.
func Checks() []Check {
	return slices.Concat(
		pointChecks(), rangeChecks(), limitChecks(), ownWriteChecks(),
		conflictChecks(), conflictTable(), addChecks(), stampChecks(),
		versionChecks(), watchChecks(), endChecks(), concurrentChecks(),
	)
}

// Run runs the check on s. The error tells how s breaks the clause.
func (c Check) Run(ctx context.Context, s store.Store, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)

	defer cancel()
	for run := 1; ; run++ {
		e := &env{
			ctx:    ctx,
			store:  s,
			prefix: fmt.Sprintf("%s%s/%d/", o.Prefix, c.Name, run),
		}
		err := e.runCheck(c.check)
		if err == nil || !o.Faulty || !store.Retryable(err) || run == maxRuns {
			return err
		}
	}
}
