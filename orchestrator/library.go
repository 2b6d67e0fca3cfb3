package orchestrator

import (
	"context"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/worker/ground"
)

const (
	maxJobs  = 64
	maxBooks = 4 // of at most mapreduce.MaxWholeText each
)

// A textCache keeps what outputs are checked against and what many of a job have in
// common: its stages, and texts of documents that units cite outside of what they
// read. Its zero value is empty.
type textCache struct {
	mu     sync.Mutex // guards the variables below
	stages map[mapreduce.JobID]*jobspec.Compiled
	books  []cacheEntry // the latest last
}

// A cacheEntry is the text of a document of a job.
type cacheEntry struct {
	job  mapreduce.JobID
	sha  string
	text *ground.Text
}

// stagesFor returns the stages of a job.
func (o *Orchestrator) stagesFor(ctx context.Context, id mapreduce.JobID) (*jobspec.Compiled, error) {
	l := &o.textCache
	l.mu.Lock()
	s := l.stages[id]
	l.mu.Unlock()
	if s != nil {
		return s, nil
	}
	rec, err := o.jobs.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	spec := jobs.SpecOf(rec.Config)
	if s, err = jobspec.Compile(&spec); err != nil {
		return nil, errs.New(errs.DataLoss, "pipeline of job %s: %v", id, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stages == nil || len(l.stages) >= maxJobs {
		l.stages = make(map[mapreduce.JobID]*jobspec.Compiled)
	}
	l.stages[id] = s
	return s, nil
}

// stageOf returns the stage of a unit, and the schema of the records that it makes,
// if it makes any. A unit that parses a document has no stage.
func (o *Orchestrator) stageOf(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit) (*pipeline.Stage, *schema.Schema, error) {
	if u.Level < 0 {
		return nil, nil, nil
	}
	s, err := o.stagesFor(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if u.Stage < 0 || u.Stage >= int64(len(s.Schemas)) {
		return nil, nil, errs.New(errs.DataLoss, "unit %s is of stage %d, and the pipeline has %d", u.UnitId, u.Stage, len(s.Schemas))
	}
	return s.Pipeline.Stages[u.Stage], s.Schemas[u.Stage], nil
}

// wholeText returns the text of the document that a unit is a chunk of; nil if that is
// too long to be handed to units, which then can cite no more than their chunks.
func (l *textCache) wholeText(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID, src *storagev1.Source) (*ground.Text, error) {
	if src.Length > mapreduce.MaxWholeText {
		return nil, nil
	}
	is := func(b cacheEntry) bool { return b.job == id && b.sha == string(src.Sha256) }
	l.mu.Lock()
	if i := slices.IndexFunc(l.books, is); i >= 0 {
		b := l.books[i]
		l.books = append(slices.Delete(l.books, i, i+1), b)
		l.mu.Unlock()
		return b.text, nil
	}
	l.mu.Unlock()
	data, err := j.Text(ctx, id, src.Sha256, 0, src.Length)
	if err != nil {
		return nil, err
	}
	b := cacheEntry{id, string(src.Sha256), ground.New(string(data))}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.books = append(l.books, b); len(l.books) > maxBooks {
		l.books = slices.Delete(l.books, 0, 1)
	}
	return b.text, nil
}
