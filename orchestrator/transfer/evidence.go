package transfer

import (
	"context"
	"encoding/json"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// putEvidence adds an item to the evidence of the unit whose attempt a session holds: the
// store's transaction sees to it that it does. Whatever follows from the text is computed
// here, and nothing of it is believed. Only units of stages with tools have evidence.
func (t *Transfers) putEvidence(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	if !t.scheduler.Sessions.HoldsAttempt(session, q.Held) {
		return nil, notHeld(q)
	}

	u, err := t.jobs.View.Unit(ctx, q.Job, q.Unit)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, notHeld(q)
	}

	stage, _, err := t.specs.StageOf(ctx, q.Job, u)
	switch {
	case err != nil:
		return nil, err
	case stage == nil || len(stage.Tools) == 0:
		return nil, errs.Field("blob.kind", "unit %s may use no tools, so that it has no evidence", q.Unit)
	case q.Blob.Evidence == nil:
		return nil, errs.Field("blob.evidence", "is missing: it says where the text is from")
	}

	// The length is the worker's word, so that no more than the most is held for it.
	release, err := memory.HoldFor(ctx, min(max(q.Blob.Length, 0), mapreduce.MaxEvidenceText))
	if err != nil {
		return nil, err
	}
	defer release()

	text, err := CollectPut(&q.Blob, mapreduce.MaxEvidenceText, "a text of evidence that is put", next)
	if err != nil {
		return nil, err
	}

	p := &content.EvidencePut{Held: q.Held, Session: session.ID, Number: q.Blob.FirstEntry, Item: *q.Blob.Evidence}
	if err := checkEvidence(&p.Item, text); err != nil {
		return nil, err
	}

	err = t.supervisor.RetryStoreCall(ctx, "storing evidence of a unit", func() error { return t.jobs.Content.PutEvidence(ctx, p, text) })
	if err != nil {
		return nil, err
	}

	return &protocol.BlobStored{Length: q.Blob.Length, SHA256: q.Blob.SHA256}, nil
}

// checkEvidence refuses evidence that is out of bounds, or says of its text what is not so.
func checkEvidence(e *mapreduce.Evidence, text []byte) error {
	if err := e.CheckText(text); err != nil {
		return err
	}

	// The facts that follow from the text are computed here, and compared with what the
	// worker says.
	said := *e
	e.DescribeText(text)
	if err := e.Check(); err != nil {
		return err
	}

	if said.Document != e.Document || said.Bytes != e.Bytes || said.Characters != e.Characters || string(said.SHA256) != string(e.SHA256) {
		return errs.Field("blob.evidence", "says that it is %.80q, of %d bytes and %d characters, and the text is %s, of %d and %d",
			said.Document, said.Bytes, said.Characters, e.Document, e.Bytes, e.Characters)
	}
	return nil
}

// repeatedUnit returns the unit of another job that a unit repeats; nil if it repeats none.
func (t *Transfers) repeatedUnit(ctx context.Context, spec *mapreduce.JobSpec, u *records.Unit) (*records.Unit, error) {
	if spec.Replay == "" || u.Level < 0 {
		return nil, nil
	}
	return t.jobs.View.Unit(ctx, spec.Replay, u.ID)
}

// evidenceOf returns the evidence that an attempt at a unit goes on from, as it is sent, and
// how many items of it are the unit's own. In a job that repeats another the other unit's
// items come first. It is nil if there is none.
func (t *Transfers) evidenceOf(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, u *records.Unit) (data []byte, own int, err error) {
	was, err := t.repeatedUnit(ctx, spec, u)
	if err != nil {
		return nil, 0, err
	}

	all, err := t.jobs.Content.Evidence(ctx, spec.Replay, was)
	if err != nil {
		return nil, 0, err
	}
	items, err := t.jobs.Content.Evidence(ctx, id, u)
	if err != nil || len(all)+len(items) == 0 {
		return nil, 0, err
	}

	data, err = json.Marshal(append(all, items...))
	return data, len(items), err
}

// sendEvidenceList writes the list of the evidence that an attempt goes on from.
func (t *Transfers) sendEvidenceList(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, u *records.Unit, w *rangeWriter) error {
	spec, err := t.specOfHeld(ctx, session, q)
	if err != nil {
		return err
	}

	data, _, err := t.evidenceOf(ctx, q.Job, spec, u)
	if err != nil {
		return err
	}

	if len(data) == 0 {
		return errs.New(errs.NotFound, "unit %s has no evidence", q.Unit)
	}
	return w.write(data)
}

// sendEvidence writes the text of evidence of the unit, or of the unit of another job that
// it repeats.
func (t *Transfers) sendEvidence(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, u *records.Unit, w *rangeWriter) error {
	if q.Blob.Evidence == nil {
		return errs.Field("blob.evidence", "is missing: it names the document")
	}

	spec, err := t.specOfHeld(ctx, session, q)
	if err != nil {
		return err
	}

	release, err := memory.HoldFor(ctx, mapreduce.MaxEvidenceText)
	if err != nil {
		return err
	}
	defer release()

	was, err := t.repeatedUnit(ctx, spec, u)
	if err != nil {
		return err
	}

	for _, of := range []struct {
		job  mapreduce.JobID
		unit *records.Unit
	}{{q.Job, u}, {spec.Replay, was}} {
		e, text, err := outputs.EvidenceOf(ctx, t.jobs.Reader(), of.job, of.unit, q.Blob.Evidence.Document)
		if err != nil {
			return err
		}
		if e != nil {
			return w.write(text)
		}
	}

	return outputs.WithoutEvidence(q.Unit, q.Blob.Evidence.Document)
}

// specOfHeld returns the spec of the job of the unit whose attempt a session holds.
func (t *Transfers) specOfHeld(ctx context.Context, session *workers.Session, q *protocol.BlobRequest) (*mapreduce.JobSpec, error) {
	held, j := t.scheduler.Sessions.FindUnit(session, q.Held)
	if held == nil {
		return nil, notHeld(q)
	}
	return t.grants.SpecOf(ctx, j)
}
