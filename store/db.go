package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/clock"
)

// A DB runs transactions on a Store until they commit. The zero value is not
// usable; see NewDB.
type DB struct {
	Store
	config Config
	stats  Stats
}

// Config says how a DB tries again. The zero value works.
type Config struct {
	// MaxAttempts bounds the runs of one transaction. Defaults to 100.
	MaxAttempts int
	// MinBackoff bounds the first pause after a failed run, or what that run
	// took if it is more: those that conflict spread over the time that each
	// needs. Pauses are drawn with full jitter, from a bound that doubles up
	// to MaxBackoff. Defaults to 1 ms.
	MinBackoff time.Duration
	// MaxBackoff bounds a pause. Defaults to 1 s.
	MaxBackoff time.Duration
	// Observe is called with each run of a transaction once it has ended. It must not wait.
	// Defaults to nobody.
	Observe func(context.Context, Run)
}

// A Run is one run of a transaction, as Config.Observe gets it.
type Run struct {
	Write   bool // it was to be committed
	Begun   time.Time
	Took    time.Duration
	Outcome Outcome
}

// An Outcome is what a run of a transaction came to.
type Outcome string

// The outcomes. Only those of Conflict, TooOld and Unknown are followed by another run.
const (
	Succeeded Outcome = ""         // it was committed, or only read
	Conflict  Outcome = "conflict" // another has written what it read
	TooOld    Outcome = "too_old"  // it took too long, or the store was behind
	Unknown   Outcome = "unknown"  // it may have been committed
	Failed    Outcome = "failed"   // for good: an error of the store, or of what was to be done
)

// Stats counts the outcomes of a DB's transactions.
type Stats struct {
	Commits   atomic.Int64 // transactions that wrote and committed
	Reads     atomic.Int64 // transactions that only read
	Conflicts atomic.Int64 // runs that failed with ErrConflict
	TooOld    atomic.Int64 // runs that failed with ErrTooOld or ErrProcessBehind
	Unknown   atomic.Int64 // runs whose outcome was unknown
}

// NewDB returns a DB over s.
func NewDB(s Store, c Config) *DB {
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 100
	}
	if c.MinBackoff == 0 {
		c.MinBackoff = time.Millisecond
	}
	if c.MaxBackoff == 0 {
		c.MaxBackoff = time.Second
	}
	return &DB{Store: s, config: c}
}

// Stats returns the counters of db, which go on counting.
func (db *DB) Stats() *Stats { return &db.stats }

// Update runs fn in a transaction and commits it, again and again until it
// commits, fails for good, or ctx ends.
//
// fn may be called many times, also after an earlier call's writes committed
// (an unknown commit result). So it must set its results afresh at each call,
// must make no identifiers of its own, and must recognise its own earlier
// success in what it reads. An error of fn itself ends the transaction without
// a commit and is returned as it is, unless it is retryable.
func (db *DB) Update(ctx context.Context, fn func(tx Tx) error) error {
	err := db.run(ctx, fn, true)
	if err == nil {
		db.stats.Commits.Add(1)
	}
	return err
}

// View runs fn in a transaction that is not committed; fn must not write.
// Its reads are all of one version.
func (db *DB) View(ctx context.Context, fn func(r Tx) error) error {
	err := db.run(ctx, fn, false)
	if err == nil {
		db.stats.Reads.Add(1)
	}
	return err
}

// run returns an error for which MaybeCommitted holds if any of its runs may
// have committed and no later one, which would have found out, succeeded.
func (db *DB) run(ctx context.Context, fn func(tx Tx) error, commit bool) error {
	var doubt error
	for attempt := 1; ; attempt++ {
		start := time.Now()
		err := db.try(ctx, fn, commit)

		if db.config.Observe != nil {
			db.config.Observe(ctx, Run{Write: commit, Begun: start, Took: time.Since(start), Outcome: outcomeOf(err)})
		}

		if err == nil || !Retryable(err) {
			return err
		}

		db.count(err)

		// A later run that fails does not settle whether an earlier one has committed.
		if MaybeCommitted(err) {
			doubt = err
		} else if doubt != nil {
			err = errors.Join(err, doubt)
		}

		if attempt >= db.config.MaxAttempts {
			return fmt.Errorf("store: gave up after %d attempts: %w", attempt, err)
		}

		if cause := clock.Sleep(ctx, db.backoff(attempt, time.Since(start))); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

func (db *DB) try(ctx context.Context, fn func(tx Tx) error, commit bool) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Discard()
	if err := fn(tx); err != nil || !commit {
		return err
	}
	return tx.Commit(ctx)
}

func (db *DB) count(err error) {
	switch outcomeOf(err) {
	case Conflict:
		db.stats.Conflicts.Add(1)
	case Unknown:
		db.stats.Unknown.Add(1)
	default:
		db.stats.TooOld.Add(1)
	}
}

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, ErrConflict):
		return Conflict
	case MaybeCommitted(err):
		return Unknown
	case Retryable(err):
		return TooOld
	}
	return Failed
}

// backoff draws a pause with full jitter: uniform between zero and a bound that
// doubles with each attempt.
func (db *DB) backoff(attempt int, took time.Duration) time.Duration {
	bound := db.config.MaxBackoff
	if shift := attempt - 1; shift < 20 {
		bound = min(bound, max(db.config.MinBackoff, min(took, bound))<<shift)
	}
	return rand.N(bound + 1) //nolint:gosec // a pause is no secret
}
