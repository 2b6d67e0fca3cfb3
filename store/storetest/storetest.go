// Package storetest is the contract of package store as tests. Every driver
// runs it, and so does every wrapper around a driver; what the contract says is
// changed here first.
//
// A check states one clause and fails by returning an error, so that the suite
// can itself be tested against stores that are wrong on purpose. Two tests look
// for what no clause foresaw: Lockstep holds a driver against the reference in
// package memory, transaction by interleaved transaction, and History lets
// goroutines race and asks whether some serial order explains what they saw.
//
// What needs waiting for, such as store.MaxTxAge, is left to drivers with a
// clock of their own. The package is for tests only: it imports testing.
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
)

// Options say what a driver is allowed. The zero value is the strictest.
type Options struct {
	// Prefix is put before all keys, and what is below it is cleared. Without
	// one the keys begin with the names of the checks.
	Prefix string
	// Faulty says that any operation may fail with a retryable error. A check
	// that meets one is then run again; it must pass once in a hundred times,
	// and may never see a wrong answer.
	Faulty bool
	// FalseConflicts says that a commit may conflict although nothing it read
	// was written. Clauses about what must not conflict are then left out.
	FalseConflicts bool
}

// maxRuns bounds the runs of a check on a faulty store.
const maxRuns = 100

// checkTimeout bounds one check. What waits for ever fails by it.
const checkTimeout = time.Minute

// histories is how many histories a run of the suite looks at.
const histories = 5

// Run runs the suite. open returns a store that nobody else uses; the suite
// closes it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	RunWith(t, open, Options{})
}

// RunWith runs the suite on a driver that is allowed what o says.
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
		if err := History(t.Context(), s, fmt.Sprint(below, seed, "/"), seed); err != nil {
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
	Name  string // which says what holds
	check func(e *env)
	exact bool // says what must not conflict
}

// Checks returns all checks, in the order of the contract.
func Checks() []Check {
	return slices.Concat(
		pointChecks(), rangeChecks(), limitChecks(), ownWriteChecks(),
		conflictChecks(), conflictTable(), addChecks(), stampChecks(),
		versionChecks(), watchChecks(), endChecks(), concurrentChecks(),
	)
}

// Run runs the check on s and returns how s breaks the clause, if it does.
func (c Check) Run(ctx context.Context, s store.Store, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for run := 1; ; run++ {
		e := &env{
			ctx:    ctx,
			store:  s,
			prefix: fmt.Sprintf("%s%s/%d/", o.Prefix, c.Name, run),
		}
		err := e.run(c.check)
		if err == nil || !o.Faulty || !store.Retryable(err) || run == maxRuns {
			return err
		}
	}
}
