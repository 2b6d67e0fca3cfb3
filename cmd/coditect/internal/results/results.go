// Package results writes the files of a job's result: result.json, report.md,
// report.html, units.jsonl, metrics.json, trace.json, dag.json,
// dag.svg and audit.jsonl. docs/results.md says what is in them.
//
// Everything streams from the service to files, so that results larger than
// memory can be written. The files appear whole or not at all.
package results

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Service is what results are read from; a mapreduce.Service is one.
type Service interface {
	GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error)
	GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error
	ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error)
	ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error)
}

var _ Service = mapreduce.Service(nil)

// Config says what to write.
type Config struct {
	// Dir receives the files; it is made if need be. Needed.
	Dir string
	// Job is whose result it is. Needed.
	Job mapreduce.JobID
	// As, if it is not nil, is the job that Job repeats: result.json is as that
	// has it, with its id and what it spent.
	As *mapreduce.Job
	// Partial takes what there is of a job that is not complete.
	Partial bool
	// ReportRecords is how many records the reports show; the others are in
	// result.json alone. Defaults to 1000.
	ReportRecords int
}

func (c Config) withDefaults() Config {
	if c.ReportRecords == 0 {
		c.ReportRecords = 1000
	}
	return c
}

// Write writes the files of a job's result and returns the job as it was then.
func Write(ctx context.Context, s Service, c Config) (job *mapreduce.Job, err error) {
	c = c.withDefaults()
	if job, err = s.GetJob(ctx, c.Job); err != nil {
		return nil, err
	}
	dir, err := newFolder(c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.discard()) }()
	w := &writer{service: s, config: c, dir: dir, job: job}
	if err := w.all(ctx); err != nil {
		return nil, err
	}
	return job, dir.commit()
}

// A step writes a file, and maybe others on the way.
type step struct {
	file string
	do   func(context.Context) error
}

// all writes all files, in two goroutines: one reads the result, the other the
// units, and each makes of it what depends on it.
func (w *writer) all(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var steps sync.WaitGroup
	for _, chain := range [][]step{
		{{"result.json", w.result}, {"report.md", w.markdown}, {"report.html", w.html}},
		{{"audit.jsonl", w.audit}, {"units.jsonl", w.units}, {"metrics.json", w.metrics}},
	} {
		steps.Go(func() {
			for _, s := range chain {
				if ctx.Err() != nil {
					return
				}
				if err := s.do(ctx); err != nil {
					stop(fmt.Errorf("%s: %w", s.file, err)) // the first stays
				}
			}
		})
	}
	steps.Wait()
	return context.Cause(ctx)
}

// A writer is one Write. Its steps pass on what later ones need.
type writer struct {
	service Service
	config  Config
	dir     *folder
	job     *mapreduce.Job
	report  report  // set by result
	ended   endings // set by audit
	tally   tally   // set by units
}
