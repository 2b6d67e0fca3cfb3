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
}

// New returns the records kept under space, as written by node. The clock is
// for display alone: no decision rests on it.
func New(space *keys.Space, node mapreduce.NodeID, now func() time.Time) *Records {
	rec := &Records{Keys: space, Node: node, now: now}
	rec.Tenants = &Tenants{records: rec}
	return rec
}

// NowMicros returns the time for display, in microseconds since 1970.
func (rec *Records) NowMicros() int64 { return rec.now().UnixMicro() }
