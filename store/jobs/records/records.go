// Package records reads and writes the service's records: their keys, their form, and
// which records must be written together. Package jobs and the packages beside this one
// have the operations on them.
//
// Records works inside a transaction that its caller began; a DB begins transactions.
package records

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/keys"
)

// Records are how the service's records are kept: under which keys, by whom, and in
// what form. Its methods work inside a transaction that their caller began, and it
// has no means to begin one.
type Records struct {
	Keys    *keys.Space      // where each record is
	Node    mapreduce.NodeID // in whose name records are written
	Tenants *Tenants         // what tenants use
	now     func() time.Time
	began   int64 // when the node began, as NowMicros gives it
}

// New returns the records kept under space, as written by node, which begins now. No
// decision rests on the clock, except those that docs/store.md lists.
func New(space *keys.Space, node mapreduce.NodeID, now func() time.Time) *Records {
	rec := &Records{Keys: space, Node: node, now: now, began: now().UnixMicro()}
	rec.Tenants = &Tenants{records: rec}
	return rec
}

// NowMicros returns the time of the node's clock, in microseconds since 1970.
func (rec *Records) NowMicros() int64 { return rec.now().UnixMicro() }

// PauseEnd returns when a pause is over that begins now, as it is stored.
func (rec *Records) PauseEnd(d time.Duration) (micros int64) {
	return rec.NowMicros() + d.Microseconds()
}

// PauseLeft returns what is left of a pause that lasts d and is over at endMicros by the clock
// of the node that wrote it. A clock that is wrong can make a pause shorter, and never longer.
func (rec *Records) PauseLeft(d time.Duration, endMicros int64) time.Duration {
	if endMicros == 0 {
		return d // nothing says when it ends
	}
	return min(d, max(0, time.Duration(endMicros-rec.NowMicros())*time.Microsecond))
}

// SleepLeft returns how much longer a unit sleeps that this node sees for the first time,
// with a pause as PauseLeft takes it. If the pause began after this node, the node has seen
// it begin, and all of d is left. Otherwise the time that has passed is taken off: units
// would never go on where nodes go down more often than a pause lasts.
func (rec *Records) SleepLeft(d time.Duration, endMicros int64) time.Duration {
	if endMicros-d.Microseconds() >= rec.began {
		return d
	}
	return rec.PauseLeft(d, endMicros)
}
