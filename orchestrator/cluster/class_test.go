package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store"
)

// TestEveryErrorHasAClass: every kind, and every error of the store's contract, is said to
// be of the moment or not.
func TestEveryErrorHasAClass(t *testing.T) {
	of := map[cluster.Class][]error{
		cluster.Passing: {
			errs.New(errs.Unavailable, "away"), errs.New(errs.Exhausted, "full"), errs.New(errs.Aborted, "slower"),
			errs.New(errs.Cancelled, "left"), errs.New(errs.Deadline, "late"), context.Canceled, context.DeadlineExceeded,
			store.ErrConflict, store.ErrTooOld, store.ErrProcessBehind, store.ErrUnknownResult, store.ErrTimedOut,
			store.ErrNoSpace, store.ErrClosed, fmt.Errorf("store: gave up: %w", store.ErrConflict),
		},
		cluster.Permanent: {
			errs.New(errs.Invalid, "no pipeline"), errs.New(errs.DataLoss, "damaged"), cluster.ErrPanic, store.ErrCorrupt,
			store.ErrValueTooLarge, store.ErrTxTooLarge, store.ErrKeyTooLarge, store.ErrReservedKey,
			errs.New(errs.Unavailable, "the store: %w", store.ErrCorrupt), errors.Join(store.ErrConflict, store.ErrCorrupt),
		},
		cluster.Unclear: {
			errors.New("input/output error"), errs.New(errs.Internal, "a mistake"), errs.New(errs.NotFound, "no unit"),
			errs.New(errs.Precondition, "not so"), errs.New(errs.Exists, "there"), errs.New(errs.Denied, "no"),
			errs.New(errs.Unauthenticated, "who"), store.ErrInUse, store.ErrNewer, store.ErrOlder, store.ErrForeign,
			store.ErrUnreadable, store.ErrUsed,
		},
	}
	for class, all := range of {
		for _, err := range all {
			if got := cluster.ClassOf(err); got != class {
				t.Errorf("%v is of class %d, want %d", err, got, class)
			}
		}
	}
}

// TestUnclearErrorsDoNotLastForEver: what fails for a job with an unclear error fails the
// job once it has done so for half a minute, unless it went well between.
func TestUnclearErrorsDoNotLastForEver(t *testing.T) {
	const job, second = "mr_20260101_aaaaaa", 1_000_000_000
	var troubles cluster.Troubles
	if troubles.HasLasted(job, 0) || troubles.HasLasted(job, 29*second) || troubles.HasLasted("mr_20260101_bbbbbb", 40*second) {
		t.Error("it is over before half a minute")
	}
	if !troubles.HasLasted(job, 30*second) {
		t.Error("it goes on after half a minute")
	}
	troubles.End(job)
	if troubles.HasLasted(job, 40*second) {
		t.Error("it is over, though it went well since")
	}
}
