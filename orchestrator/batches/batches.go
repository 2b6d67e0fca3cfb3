// Package batches is where the calls of parked units become batches at vendors, which workers make:
// orchestrators have no keys. A worker asks now and then which batches it is to see to. It is told those
// that its session has, and any that no living session has; while it asks, lines that wait are put
// together in new ones. What it says of a batch is stored, and units whose calls were answered go on.
//
// However many workers ask, a job is looked at once in a while for all of them (looks.go); only what a
// worker is given is read for it alone, so that no worker begins with a state that is not so any more.
//
// A batch is begun only if its account has room for it (room.go): what its vendor may have of all jobs is on the
// store, which has the last word; here those that wait are told so before they read what they would ask.
//
// All that matters is on the store, where package store/jobs/batches says what always holds; here is only
// since when lines wait, by this node's own clock. It talks to no vendor.
package batches

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/internal/plan"
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

// A Config says how Batches work. All of it must be set, but for Metrics and Room.
type Config struct {
	Linger  time.Duration    // that no line has come, before a batch is made that is not full
	Most    time.Duration    // that lines wait at most, once nothing else of their job is to be done
	Fresh   time.Duration    // that what was seen of jobs serves all workers that ask
	NewMark func() string    // draws the mark of a batch
	Metrics *observe.Metrics // may be nil

	// Room returns what an account at a provider may have of batches of a model. Nil knows no limits.
	Room func(provider, model string) protocol.BatchRoom
	// Address returns where a provider is unless a job says otherwise, "" if that is not known.
	Address func(provider string) string

	// Of jobs with a deadline.
	MaxCalls int                                               // units that ask models at once over the whole fleet
	Rates    func(spec *mapreduce.JobSpec) plan.Rates          // what a plan assumes of a job's calls
	Offer    func(spec *mapreduce.JobSpec) placement.Offer     // which tiers the models of a job have
	Estimate func(spec *mapreduce.JobSpec, tokens int64) int64 // what of its budget a call may spend at worst that reads so many
}

// Batches are the batches of all jobs. Its methods are safe for concurrent use.
type Batches struct {
	config     Config
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	forecasts  *forecasts
	grants     *grant.Manager
	specs      *jobspec.Finder
	signals    *cluster.Signals
	supervisor *cluster.Supervisor

	asking  chan struct{} // full while a worker is told its batches: guards the variables below
	looked  time.Time     // when jobs were last looked for
	freed   time.Time     // when rooms were last given back that no batch takes
	seen    map[mapreduce.JobID]*look
	orphans []kept.Orphan

	mu    sync.Mutex // guards the variable below
	lines map[mapreduce.JobID]sighting
}

// New returns the batches of the jobs in j.
func New(j *jobs.Jobs, scheduler *schedule.Scheduler, grants *grant.Manager, specs *jobspec.Finder, signals *cluster.Signals, s *cluster.Supervisor, c Config) *Batches {
	return &Batches{
		config: c, jobs: j, scheduler: scheduler, grants: grants, specs: specs, signals: signals, supervisor: s,
		forecasts: &forecasts{config: c, jobs: j, scheduler: scheduler, specs: specs, standings: make(map[mapreduce.JobID]*standing)},
		asking:    make(chan struct{}, 1), seen: make(map[mapreduce.JobID]*look), lines: make(map[mapreduce.JobID]sighting),
	}
}

// Get passes on a blob that is of batches, as protocol.Blobs.GetBlob does, but always all of it: it may be
// another one when it is asked for again. The lines of a batch are passed on as they are read.
func (b *Batches) Get(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, take func([]byte) error) error {
	out := bufio.NewWriterSize(takeWriter(take), protocol.PartSize)
	enc := json.NewEncoder(out)

	if q.Blob.Kind == protocol.BlobBatches {
		orders, err := b.orders(ctx, session)
		if err == nil {
			err = enc.Encode(orders)
		}
		if err != nil {
			return err
		}
	} else if err := b.jobs.Batches.Lines(ctx, q.Job, int64(q.Blob.FirstEntry), session.ID, func(l protocol.BatchLine) error { return enc.Encode(l) }); err != nil {
		return err
	}

	return out.Flush()
}

// takeWriter hands on what is written, in parts.
type takeWriter func([]byte) error

// Write implements io.Writer.
func (take takeWriter) Write(p []byte) (int, error) {
	for part := range slices.Chunk(bytes.Clone(p), protocol.PartSize) {
		if err := take(part); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Put takes what a worker says of a batch, as protocol.Blobs.PutBlob does.
func (b *Batches) Put(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	if q.Blob.Kind != protocol.BlobBatchReport {
		return nil, errs.Field("blob.kind", "a blob of kind %d cannot be put", q.Blob.Kind)
	}

	data, err := transfer.CollectPut(&q.Blob, protocol.MaxBatchReport, "a report of a batch", next)
	if err != nil {
		return nil, err
	}
	var r protocol.BatchReport
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, errs.Field("blob", "is no report of a batch: %v", err)
	}
	if err := bound(&r); err != nil {
		return nil, err
	}

	err = b.supervisor.RetryStoreCall(ctx, "storing what became of a batch", func() error {
		account, err := b.accountOf(ctx, q.Job, int64(q.Blob.FirstEntry), session.Tenant, &r)
		if err != nil {
			return err
		}
		res, err := b.jobs.Batches.Report(ctx, q.Job, int64(q.Blob.FirstEntry), session.ID, account, &r)
		b.apply(ctx, q.Job, res)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &protocol.BlobStored{Length: q.Blob.Length, SHA256: q.Blob.SHA256}, nil
}

// maxSpent bounds what one call may be said to have taken: tokens, and millionths of a dollar.
const maxSpent = 1 << 34

// bound refuses a report that no honest worker makes: sums of what it says stay numbers.
func bound(r *protocol.BatchReport) error {
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

	b.config.Metrics.Charges(ctx, res.Tenant, "", res.Charges)
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
