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
// what form. The methods of its parts work inside a transaction that their caller began,
// and have no means to begin one.
type Records struct {
	Keys    *keys.Space      // where each record is
	Node    mapreduce.NodeID // in whose name records are written
	Units   *UnitRecords     // units, and the queues in which they wait
	Jobs    *JobRecords      // how jobs stand, their counters and their events
	Tenants *Tenants         // what tenants use
	*Clock
}

// New returns the records kept under space, as written by node, which begins now. No
// decision rests on the clock, except those that docs/store.md lists.
func New(space *keys.Space, node mapreduce.NodeID, now func() time.Time) *Records {
	clock := &Clock{now: now, began: now().UnixMicro()}
	tenants := &Tenants{keys: space, node: node, clock: clock}
	jobs := &JobRecords{keys: space, node: node, clock: clock, tenants: tenants}
	tenants.jobs = jobs // a job that ends uses less, and what it used is counted with the job

	units := &UnitRecords{keys: space, node: node, jobs: jobs}
	return &Records{Keys: space, Node: node, Units: units, Jobs: jobs, Tenants: tenants, Clock: clock}
}
