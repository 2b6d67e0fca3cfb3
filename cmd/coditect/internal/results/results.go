// Package results writes the files of a job's result: result.json, report.md,
// report.html, bibliography.json and bibliography.bib of a report, units.jsonl, metrics.json, trace.json, dag.json,
// dag.svg and audit.jsonl. docs/results.md describes them.
//
// Everything streams from the service to files, so that results may be larger than
// memory. The files appear completely or not at all.
package results

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/plan/render"
)

// A Service is the part of mapreduce.Client that results are read from.
type Service interface {
	GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error)
	ReadText(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error
	GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error
	ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error)
	ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error)
}

var _ Service = mapreduce.Client(nil)

// Config holds what to write, and where.
type Config struct {
	// Dir receives the files. It is created if necessary. Needed.
	Dir string
	// Job is the job whose result is written. Needed.
	Job mapreduce.JobID
	// As, if it is not nil, is the job that Job repeats. result.json then has
	// the id and the tokens of As.
	As *mapreduce.Job
	// Partial writes the result so far of a job that is not complete.
	Partial bool
	// Formats are those of package records in which the records are written as well, to
	// records.csv and so on.
	Formats []string
	// Citations adds to those records where each value stands.
	Citations bool
	// Print is a format of package records in which Written has the records as well, to be
	// printed; "" if they are not.
	Print string
	// NoReport leaves report.md and report.html out.
	NoReport bool
	// Pages draws the pages that citations are on, for report.html. If it is nil, they are
	// not drawn.
	Pages PageDrawer
	// Progress, if it is set, is called with the numbers of records and of units read so
	// far.
	Progress func(records, units int64)
	// ReportRecords bounds the records that report.md shows, and each of its other
	// lists. result.json has all. Defaults to 1000.
	ReportRecords int
	// PageRecords bounds the records that report.html shows. Defaults to 10,000.
	PageRecords int
	// UnitOutputs bounds the outputs that units.jsonl shows, in bytes of all together as they
	// are stored. Defaults to 4 MiB.
	UnitOutputs int
}

func (c Config) withDefaults() Config {
	if c.ReportRecords == 0 {
		c.ReportRecords = 1000
	}
	if c.PageRecords == 0 {
		c.PageRecords = 10_000
	}
	if c.UnitOutputs == 0 {
		c.UnitOutputs = 4 << 20
	}
	return c
}

// Written is what Write has written.
type Written struct {
	Job     *mapreduce.Job // as it was before
	Skipped []resultfile.SkippedDocument
	Failed  []resultfile.FailedUnit // the first of them
	Broken  []mapreduce.BrokenConstraint
	Print   io.ReadCloser // the records in the format of Config.Print; nil if there is none
}

// PrintTo copies the records that are to be printed to out, and closes them.
func (w *Written) PrintTo(out io.Writer) error {
	_, err := io.Copy(out, w.Print)
	return errors.Join(err, w.Print.Close())
}

// Write writes the files of a job's result.
func Write(ctx context.Context, s Service, c Config) (written *Written, err error) {
	c = c.withDefaults()
	job, err := s.GetJob(ctx, c.Job)
	if err != nil {
		return nil, err
	}

	dir, err := folder.New(c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Discard()) }()

	w := &writer{service: s, config: c, dir: dir, job: job, read: make(chan struct{})}
	err = w.writeAll(ctx)
	if err == nil {
		err = dir.Commit()
	}
	// The caller closes the records to print, but gets none with an error.
	if err != nil {
		return nil, errors.Join(err, w.closePrinted())
	}

	return &Written{
		Job: job, Skipped: resultfile.SkippedOf(w.report.summary.Skipped), Failed: w.report.failures, Broken: w.report.summary.Broken, Print: w.printed,
	}, nil
}

// closePrinted closes the records to print if Write fails.
func (w *writer) closePrinted() error {
	if w.printed == nil {
		return nil
	}
	return w.printed.Close()
}

// A step writes a file, and possibly others with it.
type step struct {
	file string
	do   func(context.Context) error
}

// writeAll writes all files in two goroutines. One reads the result, the other the
// units, and each writes the files that depend on its data.
func (w *writer) writeAll(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	var steps sync.WaitGroup
	for _, chain := range [][]step{
		w.resultSteps(),
		{{"audit.jsonl", w.writeAudit}, {"units.jsonl", w.writeUnits}, {"metrics.json", w.writeMetrics}},
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
	if err := context.Cause(ctx); err != nil {
		return err
	}

	if w.config.NoReport {
		return nil
	}
	if err := w.writePage(ctx); err != nil { // it shows what both have read
		return fmt.Errorf("report.html: %w", err)
	}
	return nil
}

// resultSteps are the steps that need the result.
func (w *writer) resultSteps() []step {
	steps := []step{{"result.json", w.writeResult}}
	if !w.config.NoReport {
		steps = append(steps, step{"report.md", w.writeMarkdown}, step{"the file of the report", w.writeReportFile})
	}
	return append(steps, step{"bibliography.json", w.writeBibliography})
}

// A writer is the state of one Write. Its steps pass data on to later steps.
type writer struct {
	service Service
	config  Config
	dir     *folder.Folder
	job     *mapreduce.Job
	records atomic.Int64 // read so far
	units   atomic.Int64
	report  report        // set by result
	read    chan struct{} // closed when report is set
	printed io.ReadCloser // the records to print; set by result
	tree    string        // the picture of the units as SVG, set by units; empty if it is large
	traced  render.Tally  // set by units
	ended   endTimes      // set by audit
	tally   *costs.Tally  // set by units
}

// progressEvery is how many records or units are read between two reports of progress.
const progressEvery = 1000

func (w *writer) countRecord() { w.reportProgress(w.records.Add(1), w.units.Load()) }

func (w *writer) countUnit() { w.reportProgress(w.records.Load(), w.units.Add(1)) }

func (w *writer) reportProgress(records, units int64) {
	if w.config.Progress != nil && (records+units)%progressEvery == 0 {
		w.config.Progress(records, units)
	}
}
