package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

func candidates(seqs ...int64) (all []records.Candidate) {
	for _, seq := range seqs {
		all = append(all, records.Candidate{Class: keys.ClassNew, Seq: seq})
	}
	return all
}

// What is read while turns claim may still show what they claim, also if a turn has ended
// since the read began. None of it may be claimed twice.
func TestUnitsThatAreClaimedAreNotSeenAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	var q Queue
	q.Open(1, 1, nil)
	q.ApplyScan(candidates(1, 2, 3, 4), []Cursor{{At: 5, To: 9}})
	running, ended := q.Claim(1, now), q.Claim(1, now)

	q.reading = true
	q.Release(ended)
	q.ApplyScan(candidates(1, 2, 3, 4, 5), []Cursor{{At: 9, To: 9}})
	if d := cmp.Diff(candidates(3, 4, 5), q.waiting); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if !q.drained || q.IsEmpty() {
		t.Error("the queue was read to its end, and units wait")
	}

	// A later read no longer shows what had ended before; what is put back was not claimed.
	q.Release(running)
	q.PutBack(running)
	q.reading = true
	q.ApplyScan(candidates(1, 2), []Cursor{{At: 9, To: 9}})
	if d := cmp.Diff(candidates(1, 3, 4, 5, 2), q.waiting); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A queue into which something was put while it was read is read from its beginning.
func TestAQueueThatGrewWhileItWasRead(t *testing.T) {
	var q Queue
	q.Open(2, 3, nil)
	q.reading = true
	q.Restart()
	q.ApplyScan(candidates(7), []Cursor{{At: 9, To: 9}})
	if q.drained || q.cursors != nil || q.reread {
		t.Errorf("%+v, want that it is read again", q)
	}

	q.reading = true
	q.ApplyScan(nil, []Cursor{{At: 9, To: 9}})
	if cursors, shards, level, crowded := q.Position(); !q.drained || len(cursors) != 1 || shards != 3 || level != 2 || crowded {
		t.Errorf("%+v, want that it was read to its end", q)
	}
}

// If most of what was to be claimed had gone, another orchestrator claims there: new units
// are looked for elsewhere, and others are kept.
func TestAnotherOrchestratorClaimsInTheSamePlace(t *testing.T) {
	woken := records.Candidate{Class: keys.ClassNew + 1, Seq: 3}
	for name, tt := range map[string]struct {
		candidates, gone int
		crowded          bool
	}{
		"none had gone":          {8, 0, false},
		"less than half":         {8, 3, false},
		"half":                   {8, 4, true},
		"one, which says little": {1, 1, false},
	} {
		var q Queue
		q.Open(1, 1, append(candidates(1, 2), woken))
		q.NoteCrowding(tt.candidates, tt.gone)
		if _, _, _, crowded := q.Position(); crowded != tt.crowded || q.drained == tt.crowded || len(q.waiting) == 1 != tt.crowded {
			t.Errorf("%s: crowded is %t, and %d units wait", name, crowded, len(q.waiting))
		}
		if _, _, _, again := q.Position(); again {
			t.Errorf("%s: it is said twice", name)
		}
	}
}

// Since when units wait is counted from the last claim.
func TestSinceWhenUnitsWait(t *testing.T) {
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	var q Queue
	q.Open(1, 1, candidates(1, 2))
	q.NoteWaiting(first)
	if q.NoteWaiting(later); !q.waitingSince.Equal(first) {
		t.Errorf("they wait since %v, want %v", q.waitingSince, first)
	}
	if q.Claim(1, later); !q.waitingSince.Equal(later) {
		t.Errorf("after a claim they wait since %v, want %v", q.waitingSince, later)
	}
	if q.Claim(1, later); !q.waitingSince.IsZero() || !q.IsEmpty() || q.MayHaveUnits() {
		t.Errorf("none waits, since %v", q.waitingSince)
	}
}
