package queue

import (
	"context"
	"fmt"
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Changes are what one transaction changes of the units of a job. It writes units
// as they change, and their counters and the checkpoint of what ended at the end.
type Changes struct {
	*records.Records
	Tx     store.Tx
	Job    mapreduce.JobID
	Ctl    *storagev1.Ctl
	counts map[count]int64
	ended  storagev1.Checkpoint
	Told   []records.WaitRef // reduces of a tree an input of which has ended

	charges []mapreduce.Charge // what was settled of calls
}

// NewChanges returns the changes that tx makes to the units of a job that stands as
// ctl says, which may be nil if the job is gone.
func NewChanges(r *records.Records, tx store.Tx, job mapreduce.JobID, ctl *storagev1.Ctl) *Changes {
	return &Changes{Records: r, Tx: tx, Job: job, Ctl: ctl, counts: make(map[count]int64)}
}

type count struct {
	name  keys.Counter
	level int64
	node  mapreduce.NodeID
}

// Add adds n to a counter at a level, in this node's stripe.
func (changes *Changes) Add(c keys.Counter, level int64, n int64) {
	changes.AddFor(changes.Node, c, level, n)
}

// AddFor adds n to a counter at a level, in a node's stripe.
func (changes *Changes) AddFor(node mapreduce.NodeID, c keys.Counter, level int64, n int64) {
	if n != 0 {
		changes.counts[count{c, level, node}] += n
	}
}

// addWaiting adds n to the count of submitted units that have not ended, if u was
// submitted.
func (changes *Changes) addWaiting(u *storagev1.Unit, n int64) {
	if u.Submitted {
		changes.Add(keys.UnitsWaiting, 0, n)
	}
}

// CancelUnit makes a unit that has not ended cancelled. The caller writes it.
func (changes *Changes) CancelUnit(u *storagev1.Unit) {
	if !mapreduce.UnitState(u.Status).Ended() {
		changes.addWaiting(u, -1)
	}
	u.Status = uint32(mapreduce.UnitCancelled)
	changes.Units.ClearJournal(changes.Tx, changes.Job, u)
	changes.Units.ClearEvidence(changes.Tx, changes.Job, u)
	if u.Line.GetAnswered() {
		changes.clearLine(u)
	}
}

// RoomToRun returns how many more units of the job's tenant may run.
func (changes *Changes) RoomToRun(ctx context.Context) (int64, error) {
	tenant := mapreduce.TenantID(changes.Ctl.Tenant)
	limit := changes.Tenants.RuleOf(tenant).Quota.Calls
	if limit == 0 {
		return math.MaxInt64, nil
	}
	used, err := changes.Tenants.ReadUse(ctx, changes.Tx, tenant, keys.UsedCalls, 0)
	return limit - used - changes.Counted(keys.Running), err
}

// Counted returns by how much a counter of units is changed, over all levels.
func (changes *Changes) Counted(c keys.Counter) (n int64) {
	for at, more := range changes.counts {
		if at.name == c {
			n += more
		}
	}
	return n
}

// RecordFailure is Record for a job that has failed in the same transaction: one event says
// both, for a transaction adds at most one to a job.
func (changes *Changes) RecordFailure(ctx context.Context) error {
	changes.addCounts()
	changes.ended.Message = changes.Ctl.Error
	return changes.Jobs.WriteControlWith(ctx, changes.Tx, changes.Job, changes.Ctl, &changes.ended)
}

// Record writes the counters and the checkpoint of what was changed.
func (changes *Changes) Record() {
	changes.addCounts()
	if len(changes.ended.CompletedUnits)+len(changes.ended.FailedUnits)+len(changes.ended.ReopenedUnits) > 0 {
		changes.ended.Kind = uint32(mapreduce.EventFinished)
		if n := len(changes.ended.ReopenedUnits); n > 0 {
			changes.ended.Kind = uint32(mapreduce.EventRetried)
			changes.ended.Message = fmt.Sprintf("%d reduces wait for inputs that are tried again", n)
		}
		changes.ended.Level = changes.Ctl.Level
		changes.Jobs.AddCheckpoint(changes.Tx, changes.Job, &changes.ended)
	}
}

// addCounts writes the counters.
func (changes *Changes) addCounts() {
	for c, n := range changes.counts {
		if n != 0 {
			changes.Tx.Add(changes.Keys.Job(changes.Job).Counter(c.name, c.level, c.node), n)
		}
	}
	if changes.Ctl != nil {
		changes.Tenants.AddCharges(changes.Tx, changes.Ctl, changes.charges)
		tenant := mapreduce.TenantID(changes.Ctl.Tenant)
		changes.Tenants.AddUse(changes.Tx, tenant, keys.UsedCalls, 0, changes.Counted(keys.Running))
		changes.Tenants.AddUse(changes.Tx, tenant, keys.UsedUnits, 0, changes.Counted(keys.UnitsWaiting))
	}
}
