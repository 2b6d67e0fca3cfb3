package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// A flaky store fails operations as a script says, and does them on a real
// store otherwise.
type flaky struct {
	store.Store
	begins  []error // of the next calls of Begin; nil lets it through
	commits []error // of the next calls of Commit
	after   bool    // whether a commit that fails is done all the same
}

// next takes an error off a script.
func next(script *[]error) error {
	if len(*script) == 0 {
		return nil
	}
	err := (*script)[0]
	*script = (*script)[1:]
	return err
}

func (f *flaky) Begin(ctx context.Context) (store.Tx, error) {
	if err := next(&f.begins); err != nil {
		return nil, err
	}
	tx, err := f.Store.Begin(ctx)
	return flakyTx{tx, f}, err
}

type flakyTx struct {
	store.Tx
	store *flaky
}

func (t flakyTx) Commit(ctx context.Context) error {
	fail := next(&t.store.commits)
	if fail != nil && !t.store.after {
		return fail
	}
	if err := t.Tx.Commit(ctx); err != nil {
		return err
	}
	return fail
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	s, err := pebble.Open("data", pebble.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &flaky{Store: s}
}

// stats is what a test compares of store.Stats.
type stats struct{ Commits, Reads, Conflicts, TooOld, Unknown int64 }

func statsOf(db *store.DB) stats {
	s := db.Stats()
	return stats{s.Commits.Load(), s.Reads.Load(), s.Conflicts.Load(), s.TooOld.Load(), s.Unknown.Load()}
}

func repeat(err error, n int) (script []error) {
	for range n {
		script = append(script, err)
	}
	return script
}

func TestUpdateTriesAgain(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("driver: %w", err) }
	unheard := errors.New("unheard of")
	tests := []struct {
		name    string
		begins  []error
		commits []error
		want    error
		runs    int // of the function
		stats   stats
	}{
		{name: "at once", runs: 1, stats: stats{Commits: 1}},
		{
			name: "conflicts", commits: repeat(wrapped(store.ErrConflict), 3),
			runs: 4, stats: stats{Commits: 1, Conflicts: 3},
		},
		{
			name: "one of each", commits: []error{store.ErrTooOld, store.ErrProcessBehind, store.ErrUnknownResult, store.ErrTimedOut},
			runs: 5, stats: stats{Commits: 1, TooOld: 2, Unknown: 2},
		},
		{
			name: "begin fails", begins: []error{store.ErrProcessBehind},
			runs: 1, stats: stats{Commits: 1, TooOld: 1},
		},
		{name: "no use", commits: []error{store.ErrTxTooLarge}, want: store.ErrTxTooLarge, runs: 1},
		{name: "closed", begins: []error{store.ErrClosed}, want: store.ErrClosed},
		{name: "not known", commits: []error{unheard}, want: unheard, runs: 1},
		{
			name: "gives up", commits: repeat(store.ErrConflict, 10),
			want: store.ErrConflict, runs: 5, stats: stats{Conflicts: 5},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFlaky(t)
			s.begins, s.commits = tt.begins, tt.commits
			db := store.NewDB(s, store.Config{MaxAttempts: 5, MinBackoff: 1, MaxBackoff: 1})
			runs := 0
			err := db.Update(t.Context(), func(tx store.Tx) error {
				runs++
				tx.Set([]byte("k"), nil)
				return nil
			})
			if !errors.Is(err, tt.want) || runs != tt.runs {
				t.Errorf("Update = %v after %d runs, want %v after %d", err, runs, tt.want, tt.runs)
			}
			if d := cmp.Diff(tt.stats, statsOf(db)); d != "" {
				t.Errorf("stats (-want +got):\n%s", d)
			}
		})
	}
}

// A function that recognises its own success is safe to run again after an
// unknown result, whatever that was.
func TestUpdateAfterAnUnknownResult(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(fmt.Sprint("committed=", committed), func(t *testing.T) {
			s := newFlaky(t)
			s.commits, s.after = []error{store.ErrUnknownResult}, committed
			db := store.NewDB(s, store.Config{})
			err := db.Update(t.Context(), func(tx store.Tx) error {
				done, err := tx.Get(t.Context(), []byte("id"))
				if err != nil || done != nil {
					return err
				}
				tx.Set([]byte("id"), nil)
				tx.Add([]byte("sum"), 1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var sum []byte
			err = db.View(t.Context(), func(tx store.Tx) (err error) {
				sum, err = tx.Get(t.Context(), []byte("sum"))
				return err
			})
			if d := cmp.Diff([]byte{1, 0, 0, 0, 0, 0, 0, 0}, sum); d != "" || err != nil {
				t.Errorf("%v, the sum (-want +got):\n%s", err, d)
			}
		})
	}
}

func TestErrorsOfTheFunction(t *testing.T) {
	mine := errors.New("mine")
	db := store.NewDB(newFlaky(t), store.Config{})
	err := db.Update(t.Context(), func(tx store.Tx) error {
		tx.Set([]byte("k"), nil)
		return mine
	})
	if err != mine {
		t.Errorf("Update = %v, want the function's own error as it is", err)
	}
	runs := 0
	err = db.View(t.Context(), func(tx store.Tx) error {
		if runs++; runs < 3 {
			return fmt.Errorf("read: %w", store.ErrTooOld)
		}
		v, err := tx.Get(t.Context(), []byte("k"))
		if v != nil {
			t.Error("the write of a function that failed was committed")
		}
		return err
	})
	if err != nil || runs != 3 {
		t.Errorf("View = %v after %d runs, want success after 3", err, runs)
	}
	if d := cmp.Diff(stats{Reads: 1, TooOld: 2}, statsOf(db)); d != "" {
		t.Errorf("stats (-want +got):\n%s", d)
	}
}

func TestViewDoesNotCommit(t *testing.T) {
	s := newFlaky(t)
	s.commits = []error{errors.New("committed")}
	db := store.NewDB(s, store.Config{})
	if err := db.View(t.Context(), func(store.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestUpdateStopsWhenTheContextEnds(t *testing.T) {
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := newFlaky(t)
	s.commits = repeat(store.ErrTimedOut, 100)
	db := store.NewDB(s, store.Config{})
	runs := 0
	err := db.Update(ctx, func(tx store.Tx) error {
		if runs++; runs == 3 {
			cancel(reason)
		}
		tx.Set([]byte("k"), nil)
		return nil
	})
	if !errors.Is(err, reason) || !store.MaybeCommitted(err) || runs != 3 {
		t.Errorf("Update = %v after %d runs, want %v, and that it may have committed, after 3", err, runs, reason)
	}
}

// Once a run may have committed, a failure of later ones leaves that open.
func TestDoubtIsKept(t *testing.T) {
	s := newFlaky(t)
	s.commits = []error{store.ErrUnknownResult, store.ErrConflict, store.ErrConflict}
	db := store.NewDB(s, store.Config{MaxAttempts: 3})
	err := db.Update(t.Context(), func(tx store.Tx) error {
		tx.Set([]byte("k"), nil)
		return nil
	})
	if !store.MaybeCommitted(err) || !errors.Is(err, store.ErrConflict) {
		t.Errorf("Update = %v, want the conflict, and that it may have committed", err)
	}
}

// refusing is a store without transactions, for tests in a bubble of time,
// where those of others may not go on.
type refusing struct {
	store.Store
	begins *[]time.Time
	err    error
}

func (r refusing) Begin(context.Context) (store.Tx, error) {
	*r.begins = append(*r.begins, time.Now())
	return nil, r.err
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const minimum, maximum = time.Second, 8 * time.Second
		var begins []time.Time
		db := store.NewDB(refusing{begins: &begins, err: store.ErrConflict}, store.Config{
			MaxAttempts: 200, MinBackoff: minimum, MaxBackoff: maximum,
		})
		if err := db.Update(t.Context(), nil); !errors.Is(err, store.ErrConflict) {
			t.Fatal(err)
		}
		var longest time.Duration
		for i := range len(begins) - 1 {
			pause := begins[i+1].Sub(begins[i])
			if bound := minimum << min(i, 3); pause < 0 || pause > bound {
				t.Errorf("pause %d is %v, want at most %v", i, pause, bound)
			}
			longest = max(longest, pause)
		}
		if len(begins) != 200 || longest < maximum/2 {
			t.Errorf("%d attempts, the longest pause %v: want 200 and nearly %v", len(begins), longest, maximum)
		}
	})
}

func TestBackoffEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		db := store.NewDB(refusing{begins: new([]time.Time), err: store.ErrTimedOut}, store.Config{
			MaxAttempts: 1 << 30, MinBackoff: time.Hour, MaxBackoff: time.Hour,
		})
		err := db.Update(ctx, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !store.MaybeCommitted(err) || time.Since(begun) != time.Minute {
			t.Errorf("Update = %v after %v, want it to end with the context, and to say that it may have committed",
				err, time.Since(begun))
		}
	})
}
