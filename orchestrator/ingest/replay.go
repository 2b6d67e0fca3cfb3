package ingest

import (
	"context"
	"iter"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// replayInput returns the spec and the documents of a job that repeats another: they are
// the other's, and so is what each unit is answered. It spends nothing, so it has
// no budget, and nothing of it is captured.
func (in *Intake) replayInput(ctx context.Context, asked mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (mapreduce.JobSpec, iter.Seq2[*mapreduce.Document, error], error) {
	// The first document is enough to refuse them.
	for _, err := range docs {
		if err == nil {
			err = errs.Field("documents", "none are taken with replay_job_id: they are those of job %s", asked.Replay)
		}
		return asked, nil, err
	}

	job, err := in.jobs.View.Job(ctx, asked.Replay)
	if err != nil {
		return asked, nil, err
	}
	if err := in.config.checkReplayable(job, asked.Tenant); err != nil {
		return asked, nil, err
	}

	spec := job.Spec
	spec.Tenant, spec.RequestID, spec.Replay = asked.Tenant, asked.RequestID, job.ID
	spec.Name, spec.Labels = asked.Name, asked.Labels
	spec.Budget, spec.BudgetIn, spec.Cache, spec.Capture = 0, mapreduce.InTokens, false, mapreduce.CaptureOff
	spec.Deadline = time.Time{} // it asks nobody
	return spec, replayDocuments(ctx, in.jobs, job.ID), nil
}

// checkReplayable refuses to repeat a job that cannot be.
func (c *Config) checkReplayable(job *mapreduce.Job, t mapreduce.TenantID) error {
	refused := func(format string, args ...any) error { return errs.New(errs.Precondition, format, args...) }

	switch {
	case job.Spec.Tenant != t:
		return errs.New(errs.NotFound, "tenant %q has no job with the id %q", t, job.ID)
	case job.Spec.Replay != "":
		return refused("job %s repeats job %s: repeat that", job.ID, job.Spec.Replay)
	case job.State != mapreduce.JobComplete:
		return refused("job %s is %s: only a complete job can be repeated", job.ID, job.State)
	case c.Rules.AsksModels(&job.Spec) && job.Spec.Capture != mapreduce.CaptureFull:
		return refused("job %s ran without `--capture full`: the answers that its units got were not kept", job.ID)
	case c.Rules.CallsToolsAlone(&job.Spec):
		return refused("job %s called tools without a model, and would call them again: their results may differ by now", job.ID)
	}
	return nil
}

// replayDocuments yields the documents of a job in their order, as they were submitted. What
// cannot be read ends them with an error.
func replayDocuments(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID) iter.Seq2[*mapreduce.Document, error] {
	r := &replayReader{jobs: j, job: id}
	return func(yield func(*mapreduce.Document, error) bool) {
		next := [...]func() (*records.Unit, error){r.unitsOf(ctx, -1), r.unitsOf(ctx, 0)}

		rec, err := j.View.Record(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}

		bundles, err := r.findBundles(ctx)
		if err != nil {
			yield(nil, err)
			return
		}

		var at [len(next)]*records.Unit
		for n := range rec.Documents {
			var found *records.Unit
			// Units of both levels come in the order of documents: each level is read up to
			// the n-th.
			for i := range next {
				for at[i] == nil || keys.Document(at[i].Index) < n {
					if at[i], err = next[i](); err != nil {
						yield(nil, err)
						return
					}
					if at[i] == nil {
						break
					}
				}
				if found == nil && at[i] != nil && keys.Document(at[i].Index) == n && !outputs.IsBundle(at[i]) {
					found = at[i] // of a document that was parsed, the unit that parsed it
				}
			}

			d, err := bundles.document(ctx, n)
			if err == nil && d == nil || found != nil && found.Level < 0 { // parsed: as it was before
				d, err = r.documentOf(ctx, n, found)
			}

			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// A replayReader reads the units of a job.
type replayReader struct {
	jobs *jobs.Jobs
	job  mapreduce.JobID
}

// A bundleReader returns documents that units take together with others. It keeps
// those of the unit that it read last.
type bundleReader struct {
	*replayReader
	unit map[int64]mapreduce.UnitID // by the number of a document, a unit that has it
	read mapreduce.UnitID
	docs map[int64]*mapreduce.Document
}

// findBundles finds the documents that units of the job take together with others.
func (r *replayReader) findBundles(ctx context.Context) (*bundleReader, error) {
	b := &bundleReader{replayReader: r, unit: make(map[int64]mapreduce.UnitID)}
	for next := r.unitsOf(ctx, 0); ; {
		u, err := next()
		if err != nil || u == nil {
			return b, err
		}

		if !outputs.IsBundle(u) {
			continue
		}
		if err := b.open(ctx, u); err != nil {
			return nil, err
		}
		for n := range b.docs {
			b.unit[n] = u.ID
		}
	}
}

// open reads the documents of a unit.
func (r *bundleReader) open(ctx context.Context, u *records.Unit) error {
	docs, err := outputs.Documents(ctx, r.jobs.Reader(), r.job, u)
	if err != nil {
		return err
	}

	r.read, r.docs = u.ID, make(map[int64]*mapreduce.Document, len(docs))
	for _, d := range docs {
		r.docs[d.Number] = &mapreduce.Document{
			ID: mapreduce.DocumentID(d.Document), MediaType: "text/plain", Metadata: d.Metadata, Content: d.Text,
		}
	}
	return nil
}

// document returns the n-th document of the job; nil if no unit takes it together with
// others.
func (r *bundleReader) document(ctx context.Context, n int64) (*mapreduce.Document, error) {
	unit, ok := r.unit[n]
	if !ok {
		return nil, nil
	}

	if r.read != unit {
		u, err := r.jobs.View.Unit(ctx, r.job, unit)
		if err == nil {
			err = r.open(ctx, u)
		}
		if err != nil {
			return nil, err
		}
	}

	return r.docs[n], nil
}

// unitsOf returns a function that returns the units of a level, one after the
// other, and nil after the last.
func (r *replayReader) unitsOf(ctx context.Context, level int64) func() (*records.Unit, error) {
	var page []*records.Unit
	from, ended := int64(0), false
	return func() (*records.Unit, error) {
		if len(page) == 0 && !ended {
			var err error
			if page, err = r.jobs.View.UnitsFrom(ctx, r.job, level, from, 256); err != nil {
				return nil, err
			}
			ended = len(page) == 0
		}

		if ended {
			return nil, nil
		}

		u := page[0]
		page, from = page[1:], u.Index+1
		return u, nil
	}
}

// textBytes is how much of a text is read at a time.
const textBytes = 4 << 20

// documentOf returns the n-th document of the job, by a unit of it; without one it
// was skipped.
func (r *replayReader) documentOf(ctx context.Context, n int64, u *records.Unit) (*mapreduce.Document, error) {
	if u == nil {
		page, err := r.jobs.View.Skipped(ctx, r.job, n, 1)
		if err == nil && (len(page) == 0 || page[0].N != n) {
			err = errs.New(errs.DataLoss, "document %d of job %s is neither there nor skipped", n+1, r.job)
		}
		if err != nil {
			return nil, err
		}
		return &mapreduce.Document{ID: page[0].Document, Skip: page[0].Reason}, nil
	}

	src := u.Source
	d := &mapreduce.Document{ID: u.Document, MediaType: src.MediaType, Metadata: src.Metadata}
	for at := int64(0); at < src.Length; at += textBytes {
		part, err := r.jobs.Content.Text(ctx, r.job, src.SHA256, at, min(at+textBytes, src.Length))
		if err != nil {
			return nil, err
		}
		d.Content = append(d.Content, part...)
	}
	return d, nil
}
