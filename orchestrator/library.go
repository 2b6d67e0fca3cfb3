package orchestrator

import (
	"context"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/worker/ground"
)

const (
	maxSchemas = 64
	maxBooks   = 4 // of at most mapreduce.MaxWholeText each
)

// A library keeps what outputs are checked against and what many of a job have in
// common: its schema, and texts of documents that units cite outside of what they
// read. Its zero value is empty.
type library struct {
	mu      sync.Mutex // guards the variables below
	schemas map[mapreduce.JobID]*schema.Schema
	books   []book // the latest last
}

// A book is the text of a document of a job.
type book struct {
	job  mapreduce.JobID
	sha  string
	text *ground.Text
}

// schemaOf returns the schema of a job, which never changes.
func (o *Orchestrator) schemaOf(ctx context.Context, id mapreduce.JobID) (*schema.Schema, error) {
	l := &o.library
	l.mu.Lock()
	s := l.schemas[id]
	l.mu.Unlock()
	if s != nil {
		return s, nil
	}
	rec, err := o.jobs.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	if s, err = schema.Parse("schema", rec.Config.Schema); err != nil {
		return nil, errs.New(errs.DataLoss, "schema of the job: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.schemas == nil || len(l.schemas) >= maxSchemas {
		l.schemas = make(map[mapreduce.JobID]*schema.Schema)
	}
	l.schemas[id] = s
	return s, nil
}

// whole returns the text of the document that a unit is a chunk of; nil if that is
// too long to be handed to units, which then can cite no more than their chunks.
func (l *library) whole(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID, src *storagev1.Source) (*ground.Text, error) {
	if src.Length > mapreduce.MaxWholeText {
		return nil, nil
	}
	is := func(b book) bool { return b.job == id && b.sha == string(src.Sha256) }
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
	b := book{id, string(src.Sha256), ground.New(string(data))}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.books = append(l.books, b); len(l.books) > maxBooks {
		l.books = slices.Delete(l.books, 0, 1)
	}
	return b.text, nil
}
