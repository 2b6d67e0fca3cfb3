package ingest

import (
	"context"
	"reflect"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// While workers parse some documents of a job, those that are text can be mapped, so that
// no call of a model waits for the slowest parser. This holds where each document has
// units of its own, and it is known which stage gets them: a unit of several documents,
// and a choice between stages by the size of the input, need all documents as text. A
// static tree is known as a whole before anything is mapped, so it waits as well.

// mapsEarly reports whether documents of a job may be mapped while others are parsed. The
// units of both then run with one spec, so the stage may not change it.
func mapsEarly(spec *mapreduce.JobSpec, g *plan.Graph, bundle *directInput) bool {
	cuts := g.Cuts()
	if cuts < 0 || bundle != nil || g.Gathers() {
		return false
	}
	stage := g.Pipeline().Stages[cuts]
	return stage.When == "" && len(stage.Tools) == 0 && reflect.DeepEqual(jobspec.ForStage(*spec, stage), *spec)
}

// earlyJobs notes up to where the documents of jobs that are parsed and mapped at once have
// units.
type earlyJobs struct {
	mu   sync.Mutex // guards the map; a job's entry is used by the one goroutine that advances the job
	jobs map[mapreduce.JobID]*lifecycle.Inserted
}

// maxEarlyJobs bounds the jobs that are remembered. Of others more is read.
const maxEarlyJobs = 256

// of returns how far a job is.
func (e *earlyJobs) of(id mapreduce.JobID) *lifecycle.Inserted {
	e.mu.Lock()
	defer e.mu.Unlock()

	p := e.jobs[id]
	if p == nil {
		if e.jobs == nil || len(e.jobs) >= maxEarlyJobs {
			e.jobs = make(map[mapreduce.JobID]*lifecycle.Inserted)
		}
		p = new(lifecycle.Inserted)
		e.jobs[id] = p
	}
	return p
}

// forget drops a job whose documents all have units.
func (e *earlyJobs) forget(id mapreduce.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.jobs, id)
}

// InsertEarly adds the units of the documents that workers have parsed by now, of a job that
// still parses others, and returns where they wait. One goroutine at a time does so for a
// job.
func (in *Intake) InsertEarly(ctx context.Context, id mapreduce.JobID, epoch int64) ([]records.Candidate, error) {
	compiled, err := in.specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	return in.jobs.Levels.InsertReady(ctx, id, epoch, in.early.of(id), in.parsedUnits(id, compiled.Spec, compiled.Graph, nil))
}
