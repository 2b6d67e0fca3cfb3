package main

import (
	"fmt"
	"math"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// waitingUnits are the units of the job that wait, as the store has them.
type waitingUnits struct {
	base  int64           // sequence number of the first unit
	taken []time.Duration // when each unit was claimed; unclaimed if it waits
	next  []int32         // from each unit a way to the first one at or behind it that waits
}

const unclaimed = time.Duration(math.MaxInt64)

func newWaitingUnits(units int) *waitingUnits {
	q := &waitingUnits{base: keys.Seq(0, 0), taken: make([]time.Duration, units), next: make([]int32, units+1)}
	for i := range q.taken {
		q.taken[i] = unclaimed
	}
	for i := range q.next {
		q.next[i] = int32(i)
	}
	return q
}

// firstFrom returns the first unit at or behind i that waits, or the number of units.
func (q *waitingUnits) firstFrom(i int64) int64 {
	at := int32(i)
	for q.next[at] != at {
		q.next[at] = q.next[q.next[at]]
		at = q.next[at]
	}
	return int64(at)
}

// index returns the place of a sequence number, within the units.
func (q *waitingUnits) index(seq int64) int64 { return min(max(0, seq-q.base), int64(len(q.taken))) }

// scan returns up to limit units that wait in [from, to), and whether there are more.
func (q *waitingUnits) scan(from, to int64, limit int) (found []records.Candidate, more bool) {
	end := q.index(to)
	for i := q.firstFrom(q.index(from)); i < end; i = q.firstFrom(i + 1) {
		if len(found) == limit {
			return found, true
		}
		found = append(found, records.Candidate{Unit: mapreduce.UnitID(fmt.Sprintf("u%07d", i)), Class: keys.ClassNew, Seq: q.base + i})
	}
	return found, false
}

// last returns the sequence number of the last unit that waits in [from, to), or -1.
func (q *waitingUnits) last(from, to int64) int64 {
	for i := q.index(to) - 1; i >= q.index(from); i-- {
		if q.taken[i] == unclaimed {
			return q.base + i
		}
	}
	return -1
}

func (q *waitingUnits) isWaiting(seq int64) bool { return q.taken[seq-q.base] == unclaimed }

// take claims a unit.
func (q *waitingUnits) take(seq int64, now time.Duration) {
	i := seq - q.base
	q.taken[i], q.next[i] = now, int32(i+1)
}

// conflicts reports whether a unit that waited when a transaction read it was claimed by
// another one since.
func (q *waitingUnits) conflicts(all []records.Candidate, read time.Duration) bool {
	for _, c := range all {
		if at := q.taken[c.Seq-q.base]; at != unclaimed && at > read {
			return true
		}
	}
	return false
}
