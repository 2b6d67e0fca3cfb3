package fault_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// TestLateOrder: a late commit lands just before one of the next few others.
func TestLateOrder(t *testing.T) {
	const lateAfter = 3
	landed := make(map[int]int) // how often, by the number of commits before
	for seed := range uint64(200) {
		s := open(t, fault.Config{Seed: seed, LateAfter: lateAfter})
		s.FailNext(fault.TimedOutLate)
		wantErr(t, "late", set(t, s, "late", "1"), store.ErrTimedOut)
		n := 0
		for get(t, s, "late") == "" && n < 100 {
			wantErr(t, "other", set(t, s, "other", "1"), nil)
			n++
		}
		landed[n]++
	}
	for n := 1; n <= lateAfter+1; n++ {
		if landed[n] == 0 {
			t.Errorf("nothing landed before commit %d", n)
		}
		delete(landed, n)
	}
	if len(landed) > 0 {
		t.Errorf("landed before other commits: %v", landed)
	}
}

// TestLateLoses: a late commit is validated like any other, so that whoever
// read what it was to change is safe from it.
func TestLateLoses(t *testing.T) {
	s := open(t, fault.Config{LateAfter: 1000})
	tx := begin(t, s)
	if _, err := tx.Get(t.Context(), []byte("k")); err != nil {
		t.Fatal(err)
	}
	value := []byte("late")
	tx.Set([]byte("k"), value)
	s.FailNext(fault.TimedOutLate)
	wantErr(t, "late", tx.Commit(t.Context()), store.ErrTimedOut)
	copy(value, "####") // the transaction has ended: its slices are the caller's
	wantErr(t, "winner", set(t, s, "k", "winner"), nil)
	s.Settle()
	if got := get(t, s, "k"); got != "winner" {
		t.Errorf("got %q, want the value of the winner", got)
	}
}

func TestLateKeepsItsBytes(t *testing.T) {
	s := open(t, fault.Config{})
	key, value := []byte("k"), []byte("late")
	tx := begin(t, s)
	tx.Set(key, value)
	s.FailNext(fault.TimedOutLate)
	wantErr(t, "late", tx.Commit(t.Context()), store.ErrTimedOut)
	copy(key, "#")
	copy(value, "####")
	s.Settle()
	if got := get(t, s, "k"); got != "late" {
		t.Errorf("got %q, want %q", got, "late")
	}
}

// A ledger notes what reaches the store below, and when it was closed.
type ledger struct {
	memory.Store
	commits atomic.Int64
	closed  atomic.Bool
	after   atomic.Int64 // commits after the close
}

func (l *ledger) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := l.Store.Begin(ctx)
	return noted{tx, l}, err
}

func (l *ledger) Close() error {
	defer l.closed.Store(true)
	return l.Store.Close()
}

type noted struct {
	store.Tx
	ledger *ledger
}

func (tx noted) Commit(ctx context.Context) error {
	err := tx.Tx.Commit(ctx)
	if err == nil {
		tx.ledger.commits.Add(1)
		if tx.ledger.closed.Load() {
			tx.ledger.after.Add(1)
		}
	}
	return err
}

func TestCloseLandsWhatIsLate(t *testing.T) {
	l := new(ledger)
	s := fault.New(l, fault.Config{LateAfter: 1000})
	for i := range 5 {
		s.FailNext(fault.TimedOutLate)
		wantErr(t, "late", set(t, s, fmt.Sprint(i), "1"), store.ErrTimedOut)
	}
	if got := l.commits.Load(); got != 0 {
		t.Errorf("before closing: got %d commits, want none", got)
	}
	wantErr(t, "close", s.Close(), nil)
	if got := l.commits.Load(); got != 5 {
		t.Errorf("after closing: got %d commits, want 5", got)
	}
	s.Settle()
	_, err := s.Begin(t.Context())
	wantErr(t, "begin", err, store.ErrClosed)
}

// TestCloseWhileCommitting races commits, many of them late, against the close.
func TestCloseWhileCommitting(t *testing.T) {
	l := new(ledger)
	s := fault.New(l, fault.Config{Rates: fault.Rates{fault.TimedOutLate: 0.5}})
	var running sync.WaitGroup
	started := make(chan struct{}, 4)
	for g := range 4 {
		running.Go(func() {
			for i := 0; ; i++ {
				tx, err := s.Begin(t.Context())
				if err != nil {
					return
				}
				tx.Set([]byte(fmt.Sprint(g)), []byte(fmt.Sprint(i)))
				_ = tx.Commit(t.Context()) // every outcome is allowed
				if i == 50 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	wantErr(t, "close", s.Close(), nil)
	total := l.commits.Load()
	running.Wait()
	if got := l.commits.Load(); got != total || l.after.Load() != 0 {
		t.Errorf("after the close returned: got %d more commits, want none", got-total)
	}
}
