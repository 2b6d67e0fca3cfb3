// Package batches is where the calls of parked units become batches at vendors, which workers make:
// orchestrators have no keys. A worker asks now and then which batches it is to see to. It is told those
// that its session has, and any that no living session has; while it asks, lines that wait are put
// together in new ones. What it says of a batch is stored, and units whose calls were answered go on.
//
// All that matters is on the store, where package store/jobs/batches says what always holds; here is only
// since when lines wait, by this node's own clock. It talks to no vendor.
package batches

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/orchestrator/transfer"
	"github.com/coditect/mapreduce/store/jobs"
	kept "github.com/coditect/mapreduce/store/jobs/batches"
)

// A Config says how Batches work. All of it must be set, but for Metrics.
type Config struct {
	Linger  time.Duration    // that no line has come, before a batch is made that is not full
	Most    time.Duration    // that lines wait at most, once nothing else of their job is to be done
	NewMark func() string    // draws the mark of a batch
	Metrics *observe.Metrics // may be nil
}

// Batches are the batches of all jobs. Its methods are safe for concurrent use.
type Batches struct {
	config     Config
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	specs      *jobspec.Finder
	signals    *cluster.Signals
	supervisor *cluster.Supervisor

	mu    sync.Mutex // guards the variable below
	lines map[mapreduce.JobID]sighting
}

// New returns the batches of the jobs in j.
func New(j *jobs.Jobs, scheduler *schedule.Scheduler, grants *grant.Manager, specs *jobspec.Finder, signals *cluster.Signals, s *cluster.Supervisor, c Config) *Batches {
	return &Batches{
		config: c, jobs: j, scheduler: scheduler, grants: grants, specs: specs, signals: signals, supervisor: s,
		lines: make(map[mapreduce.JobID]sighting),
	}
}

// Get passes on a blob that is of batches, as mapreduce.Blobs.GetBlob does, but always all of it: it may be
// another one when it is asked for again.
func (b *Batches) Get(ctx context.Context, session *workers.Session, q *mapreduce.BlobRequest, take func([]byte) error) error {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	if q.Blob.Kind == mapreduce.BlobBatches {
		orders, err := b.orders(ctx, session)
		if err == nil {
			err = enc.Encode(orders)
		}
		if err != nil {
			return err
		}
	} else if err := b.jobs.Batches.Lines(ctx, q.Job, int64(q.Blob.FirstEntry), session.ID, func(l mapreduce.BatchLine) error { return enc.Encode(l) }); err != nil {
		return err
	}

	for part := range slices.Chunk(data.Bytes(), mapreduce.PartSize) {
		if err := take(part); err != nil {
			return err
		}
	}
	return nil
}

// Put takes what a worker says of a batch, as mapreduce.Blobs.PutBlob does.
func (b *Batches) Put(ctx context.Context, session *workers.Session, q *mapreduce.BlobRequest, next func() ([]byte, error)) (*mapreduce.BlobStored, error) {
	if q.Blob.Kind != mapreduce.BlobBatchReport {
		return nil, errs.Field("blob.kind", "a blob of kind %d cannot be put", q.Blob.Kind)
	}

	data, err := transfer.CollectPut(&q.Blob, mapreduce.MaxBatchReport, "a report of a batch", next)
	if err != nil {
		return nil, err
	}
	var r mapreduce.BatchReport
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, errs.Field("blob", "is no report of a batch: %v", err)
	}
	if err := bound(&r); err != nil {
		return nil, err
	}

	err = b.supervisor.RetryStoreCall(ctx, "storing what became of a batch", func() error {
		res, err := b.jobs.Batches.Report(ctx, q.Job, int64(q.Blob.FirstEntry), session.ID, &r)
		b.apply(ctx, q.Job, res)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &mapreduce.BlobStored{Length: q.Blob.Length, SHA256: q.Blob.SHA256}, nil
}

// maxSpent bounds what one call may be said to have taken: tokens, and millionths of a dollar.
const maxSpent = 1 << 34

// bound refuses a report that no honest worker makes: sums of what it says stay numbers.
func bound(r *mapreduce.BatchReport) error {
	for i := range r.Replies {
		one := &r.Replies[i]
		for _, n := range []int64{one.Tokens.In, one.Tokens.Out, one.CostMicros, one.Unpriced, one.Savings.CacheWrite, one.Savings.CacheRead} {
			if n < 0 || n > maxSpent {
				return errs.Field("blob", "reply %d says that the call took %d", i, n)
			}
		}
		if s := one.Savings.PromptMicros; s < -maxSpent || s > maxSpent {
			return errs.Field("blob", "reply %d says that a cache saved %d", i, s)
		}
	}
	return nil
}

// apply has units go on that a step has woken, and tokens granted that it has freed.
func (b *Batches) apply(ctx context.Context, id mapreduce.JobID, res *kept.Result) {
	if res == nil {
		return
	}
	b.config.Metrics.Charges(ctx, "", res.Charges)
	if e := res.Ended; e != nil {
		b.config.Metrics.BatchEnded(ctx, e.Model, e.Took)
	}
	if len(res.Woken) > 0 {
		b.scheduler.Enqueue(id, res.Woken)
	}
	if res.Settled {
		b.supervisor.LogFailure(ctx, "reading what a job was granted", b.grants.Refresh(ctx, id), "job", id)
		b.signals.MarkDue(id)
	}
}

// orders returns the batches that a session is to see to.
func (b *Batches) orders(ctx context.Context, session *workers.Session) ([]mapreduce.BatchOrder, error) {
	ids, err := b.jobs.Batches.Batching(ctx)
	if err != nil {
		return nil, err
	}
	b.forgetBut(ids)

	orders := []mapreduce.BatchOrder{}
	for _, id := range ids {
		some, err := b.ordersOf(ctx, session, id)
		if errs.KindOf(err) == errs.NotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		orders = append(orders, some...)
	}
	return orders, nil
}

// ordersOf returns those of a job, and makes new ones of lines that have waited long enough.
func (b *Batches) ordersOf(ctx context.Context, session *workers.Session, id mapreduce.JobID) ([]mapreduce.BatchOrder, error) {
	s, err := b.jobs.Batches.Look(ctx, id)
	if err != nil || session.Tenant != "" && session.Tenant != s.Tenant {
		return nil, err
	}

	planned, err := b.plan(ctx, id, s)
	if err != nil {
		return nil, err
	}
	if planned {
		if s, err = b.jobs.Batches.Look(ctx, id); err != nil {
			return nil, err
		}
	}

	var orders []mapreduce.BatchOrder
	for i := range s.Batches {
		one := &s.Batches[i]
		begun := one.State != mapreduce.BatchPlanned
		cancelled := s.State == mapreduce.JobCancelled
		if !slices.Contains(session.Batches(), one.Provider) || !begun && !s.State.Running() && !cancelled {
			continue // what was not begun is not paid for yet
		}

		// Only those that nobody sees to take a transaction: each worker asks, and a job may have many.
		now, taken := one.Batch, one.Session == session.ID
		if one.Session == "" {
			if now, taken, err = b.jobs.Batches.Take(ctx, id, one.Number, session.ID, session.Epoch); err != nil {
				return nil, err
			}
		}
		if taken {
			orders = append(orders, mapreduce.BatchOrder{Batch: now, Cancel: cancelled})
		}
	}
	if len(orders) == 0 {
		return nil, nil
	}

	job, err := b.specs.Job(ctx, id)
	for i := range orders {
		for _, other := range s.Batches {
			if orders[i].State != mapreduce.BatchCreating {
				break // it is not looked for
			}
			if other.Vendor != "" && other.Number != orders[i].Number {
				orders[i].Others = append(orders[i].Others, other.Vendor)
			}
		}
		if err == nil {
			orders[i].Vars, orders[i].Own = job.Spec.Vars, orders[i].Provider == job.Spec.Provider
		}
	}
	return orders, err
}

// maxPlans bounds the batches that are made of the lines of a job while one worker asks.
const maxPlans = 32

// plan makes batches of lines of a job that are due, and reports whether it made any.
func (b *Batches) plan(ctx context.Context, id mapreduce.JobID, s *kept.Standing) (planned bool, err error) {
	if !s.State.Running() {
		return false, nil
	}
	hurry := b.see(id, s.Waiting, s.Coming, time.Now())
	if s.Waiting == 0 {
		return false, nil
	}

	for range maxPlans {
		mark := b.config.NewMark()
		var res *kept.Result
		err := b.supervisor.RetryStoreCall(ctx, "making a batch", func() (err error) {
			res, err = b.jobs.Batches.Plan(ctx, id, mark, hurry)
			return err
		})
		if err != nil || !res.Changed {
			return planned, err
		}
		b.apply(ctx, id, res)
		planned = true
	}
	return planned, nil
}
