package servertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// jobs are the records of the jobs of a Service. The zero jobs has none.
type jobs struct {
	mu      sync.Mutex // guards the variables below, and what records point to
	records []*record  // in order of submission
	changed chan struct{}
}

type record struct {
	job    mapreduce.Job
	docs   []*mapreduce.Document
	units  []*mapreduce.Unit
	events []*mapreduce.Checkpoint

	decisions []*mapreduce.Decision
	claims    []mapreduce.RecordClaim
}

// epoch is when the first job is created; each later one is a second later.
var epoch = time.Date(2026, 7, 4, 0, 0, 0, 0, time.UTC)

func (j *jobs) earlier(spec mapreduce.JobSpec) *mapreduce.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.records {
		if spec.RequestID != "" && r.job.Spec.RequestID == spec.RequestID && r.job.Spec.Tenant == spec.Tenant {
			return copyOf(&r.job)
		}
	}
	return nil
}

func newRecord(n int, spec mapreduce.JobSpec, docs []*mapreduce.Document) *record {
	at := epoch.Add(time.Duration(n) * time.Second)
	r := &record{docs: docs, job: mapreduce.Job{
		ID:      mapreduce.NewJobID(at, func(most int) int { return n % most }),
		Spec:    spec,
		State:   mapreduce.Mapping,
		Phase:   mapreduce.Mapping,
		Created: at,
		Updated: at,
	}}

	for i, doc := range docs {
		r.job.Coverage.Documents.Total++
		if doc.Skip != "" {
			r.job.Coverage.Documents.Skipped++
			continue
		}
		r.units = append(r.units, &mapreduce.Unit{
			ID: mapreduce.MapUnit(doc.ID), Job: r.job.ID, Document: doc.ID, Kind: mapreduce.KindMap,
			Index: int64(i), State: mapreduce.Pending, Chunks: 1, End: int64(len(doc.Content)),
		})
	}

	r.job.TotalUnits = int64(len(r.units))
	return r
}

// recordChange records a change, and wakes who watches. The caller holds j.mu.
func (j *jobs) recordChange(r *record, kind mapreduce.EventKind) {
	r.job.Epoch++
	r.events = append(r.events, &mapreduce.Checkpoint{
		ID: fmt.Sprintf("%020x", r.job.Epoch), Time: r.job.Updated, Kind: kind, Node: "memory", State: r.job.State,
	})
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// changeState moves a job, if it may.
func (j *jobs) changeState(id mapreduce.JobID, to mapreduce.JobState, do func(*record)) (*mapreduce.Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()

	r, err := j.find(id)
	if err != nil {
		return nil, err
	}

	if !r.job.State.CanBecome(to) {
		e := errs.New(errs.Precondition, "job %s is %v, and cannot become %v", id, r.job.State, to)
		e.Reason = "STATE"
		return nil, e
	}

	r.job.State = to
	if do != nil {
		do(r)
	}
	j.recordChange(r, mapreduce.EventState)
	return copyOf(&r.job), nil
}

// find returns a job's record. The caller holds j.mu.
func (j *jobs) find(id mapreduce.JobID) (*record, error) {
	for _, r := range j.records {
		if r.job.ID == id {
			return r, nil
		}
	}
	return nil, errs.New(errs.NotFound, "there is no job %s", id)
}

func (j *jobs) withChange(id mapreduce.JobID) (*mapreduce.Job, <-chan struct{}, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, err := j.find(id)
	if err != nil {
		return nil, nil, err
	}
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return copyOf(&r.job), j.changed, nil
}

// findUnit returns a unit's record. The caller holds j.mu.
func (j *jobs) findUnit(job mapreduce.JobID, name mapreduce.UnitID) (*mapreduce.Unit, error) {
	r, err := j.find(job)
	if err != nil {
		return nil, err
	}
	for _, u := range r.units {
		if u.ID == name {
			return u, nil
		}
	}
	return nil, errs.New(errs.NotFound, "job %s has no unit %s", job, name)
}
