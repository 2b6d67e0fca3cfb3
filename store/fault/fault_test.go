package fault_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, c fault.Config) *fault.Store {
	t.Helper()
	s := fault.New(new(memory.Store), c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func begin(t *testing.T, s store.Store) store.Tx {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tx.Discard)
	return tx
}

// set commits a value and returns what the commit said.
func set(t *testing.T, s store.Store, key, value string) error {
	t.Helper()
	tx := begin(t, s)
	tx.Set([]byte(key), []byte(value))
	return tx.Commit(t.Context())
}

func get(t *testing.T, s store.Store, key string) string {
	t.Helper()
	value, err := begin(t, s).Get(t.Context(), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

func wantErr(t *testing.T, op string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (got == nil) != (want == nil) {
		t.Errorf("%s: got %v, want %v", op, got, want)
	}
}

func TestCommitFaults(t *testing.T) {
	for _, test := range []struct {
		kind          fault.Kind
		want          error
		done, settled string // the value at once, and when late commits have landed
	}{
		{fault.Conflict, store.ErrConflict, "old", "old"},
		{fault.Rerun, store.ErrConflict, "old", "old"},
		{fault.TooOld, store.ErrTooOld, "old", "old"},
		{fault.Behind, store.ErrProcessBehind, "old", "old"},
		{fault.UnknownCommitted, store.ErrUnknownResult, "new", "new"},
		{fault.UnknownLost, store.ErrUnknownResult, "old", "old"},
		{fault.TimedOutLate, store.ErrTimedOut, "old", "new"},
		{fault.TimedOutLost, store.ErrTimedOut, "old", "old"},
		{fault.TooLarge, store.ErrTxTooLarge, "old", "old"},
		{fault.SlowCommit, nil, "new", "new"},
	} {
		t.Run(test.kind.String(), func(t *testing.T) {
			s := open(t, fault.Config{})
			wantErr(t, "set", set(t, s, "k", "old"), nil)
			s.FailNext(test.kind)
			tx := begin(t, s)
			tx.Set([]byte("k"), []byte("new"))
			err := tx.Commit(t.Context())
			wantErr(t, "commit", err, test.want)
			if kind, ok := fault.Injected(err); err != nil && (!ok || kind != test.kind) {
				t.Errorf("injected: got %v, %v, want %v", kind, ok, test.kind)
			}
			_, stampErr := tx.Versionstamp()
			if (stampErr == nil) != (test.want == nil) {
				t.Errorf("versionstamp: got error %v after commit error %v", stampErr, err)
			}
			wantErr(t, "commit again", tx.Commit(t.Context()), store.ErrUsed)
			tx.Discard()
			if got := get(t, s, "k"); got != test.done {
				t.Errorf("value at once: got %q, want %q", got, test.done)
			}
			s.Settle()
			if got := get(t, s, "k"); got != test.settled {
				t.Errorf("value in the end: got %q, want %q", got, test.settled)
			}
			if d := cmp.Diff(map[fault.Kind]int{test.kind: 1}, s.Counts()); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
		})
	}
}

func TestReadFaults(t *testing.T) {
	ctx := t.Context()
	reads := map[string]func(tx store.Tx) error{
		"get":     func(tx store.Tx) error { _, err := tx.Get(ctx, []byte("k")); return err },
		"get all": func(tx store.Tx) error { _, err := tx.GetAll(ctx, [][]byte{[]byte("k")}); return err },
		"get range": func(tx store.Tx) error {
			_, _, err := tx.GetRange(ctx, store.Range{}, store.RangeOptions{})
			return err
		},
		"snapshot":     func(tx store.Tx) error { _, err := tx.Snapshot().Get(ctx, []byte("k")); return err },
		"read version": func(tx store.Tx) error { _, err := tx.ReadVersion(ctx); return err },
	}
	kinds := map[fault.Kind]error{
		fault.ReadTooOld: store.ErrTooOld, fault.ReadBehind: store.ErrProcessBehind, fault.SlowRead: nil,
	}
	for name, read := range reads {
		for kind, want := range kinds {
			t.Run(fmt.Sprint(name, "/", kind), func(t *testing.T) {
				s := open(t, fault.Config{})
				s.FailNext(kind)
				tx := begin(t, s)
				wantErr(t, "first read", read(tx), want)
				wantErr(t, "second read", read(tx), want)
				tx.Set([]byte("k"), nil)
				wantErr(t, "commit", tx.Commit(ctx), want)
				wantErr(t, "read of another", read(begin(t, s)), nil)
				if got := s.Count(kind); got != 1 {
					t.Errorf("count: got %d, want 1", got)
				}
			})
		}
	}
}

// TestReadersCommit: the contract says that what only reads always commits.
func TestReadersCommit(t *testing.T) {
	rates := fault.Rates{}
	for _, k := range []fault.Kind{fault.Conflict, fault.UnknownLost, fault.TimedOutLate} {
		rates[k] = 0.3
	}
	s := open(t, fault.Config{Rates: rates})
	for range 50 {
		tx := begin(t, s)
		if _, err := tx.Get(t.Context(), []byte("k")); err != nil {
			t.Fatal(err)
		}
		tx.AddReadConflict(store.Single([]byte("k")))
		wantErr(t, "commit", tx.Commit(t.Context()), nil)
	}
}

func TestTwice(t *testing.T) {
	s := open(t, fault.Config{Rates: fault.Twice()})
	db := store.NewDB(s, store.Config{MaxBackoff: 1})
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			for range 20 {
				runs := 0
				err := db.Update(t.Context(), func(tx store.Tx) error {
					runs++
					tx.Set([]byte(fmt.Sprint("k", g)), nil)
					return nil
				})
				if err != nil || runs != 2 {
					t.Errorf("got %d runs and error %v, want 2 runs", runs, err)
				}
			}
		})
	}
	running.Wait()
}

func TestOutage(t *testing.T) {
	s := open(t, fault.Config{LateAfter: 1000})
	wantErr(t, "set", set(t, s, "k", "old"), nil)
	reading, writing, idle := begin(t, s), begin(t, s), begin(t, s)
	writing.Set([]byte("k"), []byte("new"))
	s.BeginOutage()

	_, err := s.Begin(t.Context())
	wantErr(t, "begin", err, store.ErrProcessBehind)
	_, err = s.Watch(t.Context(), []byte("k"))
	wantErr(t, "watch", err, store.ErrProcessBehind)
	_, err = reading.Get(t.Context(), []byte("k"))
	wantErr(t, "get", err, store.ErrProcessBehind)
	if err := writing.Commit(t.Context()); !store.Retryable(err) {
		t.Errorf("commit: got %v, want something retryable", err)
	}

	s.EndOutage()
	_, err = reading.Get(t.Context(), []byte("k"))
	wantErr(t, "get of one begun before", err, store.ErrProcessBehind)
	_, err = idle.Get(t.Context(), []byte("k"))
	wantErr(t, "first get of one begun before", err, store.ErrTooOld)
	wantErr(t, "set", set(t, s, "k", "newest"), nil)
	if got := get(t, s, "k"); got != "newest" {
		t.Errorf("got %q, want %q", got, "newest")
	}
}

// TestRecover dooms what is under way, to both ends that a recovery has.
func TestRecover(t *testing.T) {
	s := open(t, fault.Config{})
	ends := make(map[string]int)
	for i := range 100 {
		key := fmt.Sprint(i)
		tx := begin(t, s)
		tx.Set([]byte(key), []byte("done"))
		s.Recover()
		err := tx.Commit(t.Context())
		done := get(t, s, key)
		switch {
		case errors.Is(err, store.ErrTooOld) && done == "":
			ends["too old"]++
		case errors.Is(err, store.ErrUnknownResult):
			ends["unknown "+done]++
		default:
			t.Errorf("commit: got %v, value %q", err, done)
		}
	}
	for _, end := range []string{"too old", "unknown ", "unknown done"} {
		if ends[end] == 0 {
			t.Errorf("no transaction ended as %q: %v", end, ends)
		}
	}
	if got := s.Count(fault.Doomed); got != 100 {
		t.Errorf("doomed: got %d, want 100", got)
	}
}

func TestHeal(t *testing.T) {
	s := open(t, fault.Config{Rates: fault.Rates{fault.Conflict: 1}})
	wantErr(t, "set", set(t, s, "k", "1"), store.ErrConflict)
	s.FailNext(fault.TooOld)
	s.BeginOutage()
	s.Heal()
	wantErr(t, "set after healing", set(t, s, "k", "2"), nil)
	s.SetRates(fault.Rates{fault.TooOld: 1})
	wantErr(t, "set", set(t, s, "k", "3"), store.ErrTooOld)
	if got := get(t, s, "k"); got != "2" {
		t.Errorf("got %q, want %q", got, "2")
	}
}

func TestSpuriousWatch(t *testing.T) {
	s := open(t, fault.Config{})
	s.FailNext(fault.SpuriousWatch)
	fired, err := s.Watch(t.Context(), []byte("k"))
	wantErr(t, "watch", err, nil)
	<-fired
	fired, err = s.Watch(t.Context(), []byte("k"))
	wantErr(t, "watch", err, nil)
	select {
	case <-fired:
		t.Error("the second watch fired as well")
	default:
	}
	wantErr(t, "set", set(t, s, "k", "1"), nil)
	<-fired
}

func TestPause(t *testing.T) {
	pauses := 0
	s := open(t, fault.Config{Pause: func(context.Context) { pauses++ }})
	s.FailNext(fault.SlowCommit, fault.SlowRead)
	wantErr(t, "set", set(t, s, "k", "1"), nil)
	get(t, s, "k")
	get(t, s, "k")
	if pauses != 2 {
		t.Errorf("got %d pauses, want 2", pauses)
	}
}

// TestScriptOrder: kinds wait for an operation that they can strike.
func TestScriptOrder(t *testing.T) {
	s := open(t, fault.Config{})
	s.FailNext(fault.Conflict, fault.ReadTooOld, fault.UnknownLost)
	_, err := begin(t, s).Get(t.Context(), []byte("k"))
	wantErr(t, "get", err, store.ErrTooOld)
	wantErr(t, "first set", set(t, s, "k", "1"), store.ErrConflict)
	wantErr(t, "second set", set(t, s, "k", "1"), store.ErrUnknownResult)
	wantErr(t, "third set", set(t, s, "k", "1"), nil)
}

// TestDeterminism runs the same work twice under each seed.
func TestDeterminism(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(10) {
		first, second := trace(t, seed), trace(t, seed)
		if d := cmp.Diff(first, second); d != "" {
			t.Errorf("seed %d gave two traces:\n%s", seed, d)
		}
		seen[fmt.Sprint(first)] = true
	}
	if len(seen) < 5 {
		t.Errorf("ten seeds gave %d traces", len(seen))
	}
}

// trace works for a while, and returns what every step came to.
func trace(t *testing.T, seed uint64) []string {
	s := open(t, fault.Config{Seed: seed, Rates: fault.Retryable(0.05)})
	random := rand.New(rand.NewPCG(1, 1))
	var steps []string
	for i := range 100 {
		key := []byte(fmt.Sprint(random.IntN(3)))
		tx := begin(t, s)
		value, err := tx.Get(t.Context(), key)
		steps = append(steps, fmt.Sprintf("%d get %s: %q, %v", i, key, value, err))
		tx.Set(key, []byte(fmt.Sprint(i)))
		steps = append(steps, fmt.Sprintf("%d set %s: %v", i, key, tx.Commit(t.Context())))
	}
	return steps
}

// TestSometimes: rates reach every kind.
func TestSometimes(t *testing.T) {
	s := open(t, fault.Config{Rates: fault.Retryable(0.05)})
	db := store.NewDB(s, store.Config{MaxBackoff: 1})
	for i := range 500 {
		err := db.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.Get(t.Context(), []byte("k"))
			tx.Set([]byte("k"), []byte(fmt.Sprint(i)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Watch(t.Context(), []byte("k")); err != nil {
			t.Fatal(err)
		}
	}
	for kind := range fault.Retryable(1) {
		if s.Count(kind) == 0 {
			t.Errorf("%v never happened", kind)
		}
	}
}

// TestForgetsOnlyWhatMayBe: an error that trying again does not mend is not
// hidden behind an unknown result, which would be tried for ever.
func TestForgetsOnlyWhatMayBe(t *testing.T) {
	s := open(t, fault.Config{})
	s.FailNext(fault.UnknownCommitted)
	err := set(t, s, "k", string(make([]byte, store.MaxValueSize+1)))
	wantErr(t, "commit", err, store.ErrValueTooLarge)
}

func TestRatesString(t *testing.T) {
	rates := fault.Rates{fault.SlowRead: 0.25, fault.Conflict: 0.5, fault.TooOld: 0}
	if got, want := rates.String(), "conflict: 0.5, slow read: 0.25"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := fault.Kind(-1).String(), "fault.Kind(-1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
