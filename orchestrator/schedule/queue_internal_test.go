package schedule

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
	var q queueView
	q.open(1, 1, nil)
	q.applyScan(candidates(1, 2, 3, 4), []Cursor{{At: 5, To: 9}})
	running, ended := q.claim(1, now), q.claim(1, now)

	q.reading = true
	q.release(ended)
	q.applyScan(candidates(1, 2, 3, 4, 5), []Cursor{{At: 9, To: 9}})
	if d := cmp.Diff(candidates(3, 4, 5), q.waiting); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if !q.drained || q.isEmpty() {
		t.Error("the queue was read to its end, and units wait")
	}

	// A later read no longer shows what had ended before; what is put back was not claimed.
	q.release(running)
	q.putBack(running)
	q.reading = true
	q.applyScan(candidates(1, 2), []Cursor{{At: 9, To: 9}})
	if d := cmp.Diff(candidates(1, 3, 4, 5, 2), q.waiting); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A queue into which something was put while it was read is read from its beginning.
func TestAQueueThatGrewWhileItWasRead(t *testing.T) {
	var q queueView
	q.open(2, 3, nil)
	q.reading = true
	q.restart()
	q.applyScan(candidates(7), []Cursor{{At: 9, To: 9}})
	if q.drained || q.cursors != nil || q.reread {
		t.Errorf("%+v, want that it is read again", q)
	}

	q.reading = true
	q.applyScan(nil, []Cursor{{At: 9, To: 9}})
	if cursors, shards, level, crowded := q.position(); !q.drained || len(cursors) != 1 || shards != 3 || level != 2 || crowded {
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
		var q queueView
		q.open(1, 1, append(candidates(1, 2), woken))
		q.noteCrowding(tt.candidates, tt.gone)
		if _, _, _, crowded := q.position(); crowded != tt.crowded || q.drained == tt.crowded || len(q.waiting) == 1 != tt.crowded {
			t.Errorf("%s: crowded is %t, and %d units wait", name, crowded, len(q.waiting))
		}
		if _, _, _, again := q.position(); again {
			t.Errorf("%s: it is said twice", name)
		}
	}
}

// Since when units wait is counted from the last claim.
func TestSinceWhenUnitsWait(t *testing.T) {
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	var q queueView
	q.open(1, 1, candidates(1, 2))
	q.noteWaiting(first)
	if q.noteWaiting(later); !q.waitingSince.Equal(first) {
		t.Errorf("they wait since %v, want %v", q.waitingSince, first)
	}
	if q.claim(1, later); !q.waitingSince.Equal(later) {
		t.Errorf("after a claim they wait since %v, want %v", q.waitingSince, later)
	}
	if q.claim(1, later); !q.waitingSince.IsZero() || !q.isEmpty() || q.mayHaveUnits() {
		t.Errorf("none waits, since %v", q.waitingSince)
	}
}
