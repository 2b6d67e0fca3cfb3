package lifecycle

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs"
)

// endings is which jobs this orchestrator may have ended, so that it says so of each once,
// and of no job that another has ended.
type endings struct {
	jobs       *jobs.Jobs
	supervisor *cluster.Supervisor
	call       func(context.Context, *mapreduce.Job) // nil if nobody asks

	mu  sync.Mutex               // guards the variable below
	ids map[mapreduce.JobID]bool // that were not looked at since
}

// mark notes that this orchestrator may have ended a job.
func (e *endings) mark(id mapreduce.JobID) {
	if e.call == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids[id] = true
}

// clear notes that a job has not ended.
func (e *endings) clear(id mapreduce.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ids, id)
}

// note makes the call for a job that has ended, if this orchestrator has ended it.
func (e *endings) note(ctx context.Context, id mapreduce.JobID, state mapreduce.JobState) {
	if e.call == nil {
		return
	}

	e.mu.Lock()
	here := e.ids[id]
	delete(e.ids, id)
	e.mu.Unlock()

	if !here || state == mapreduce.JobPaused {
		return
	}

	job, err := e.jobs.View.Job(ctx, id)
	if err != nil {
		e.supervisor.LogFailure(ctx, "reading a job that has ended", err, "job", id)
		return
	}
	e.call(ctx, job)
}
