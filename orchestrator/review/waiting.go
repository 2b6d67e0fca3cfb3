package review

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/review"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/orchestrator/result"
	"github.com/coditect/mapreduce/store/jobs/records"
	stored "github.com/coditect/mapreduce/store/jobs/review"
)

// A waiting unit is one that waits for a person, with what it waits with.
type waiting struct {
	*records.Unit
	handle string
	stage  *pipeline.Stage
	schema *schema.Schema
	out    *output.Output
	asks   []mapreduce.WaitingValue
}

// pageBytes is how many bytes the records of a page of units have about, at most.
const pageBytes = 1 << 20

// maxUnitName is the most bytes that the name of a unit has: it is made of a document's.
const maxUnitName = mapreduce.MaxDocumentID + 64

// ListWaiting returns a page of the units of a job that wait for a person, with what they found.
func (r *Reviewer) ListWaiting(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	if q.PageSize == 0 {
		q.PageSize = 100
	}
	// A longer one would be no key.
	if len(q.PageToken) > maxUnitName {
		return nil, errs.Field("page_token", "is not one that a list returned")
	}

	ctl, err := r.jobs.View.Control(ctx, q.Job)
	if err != nil || ctl.State.Ended() {
		return &mapreduce.WaitingPage{}, err // what it has left in the queues waits for nobody
	}

	page, after, size := &mapreduce.WaitingPage{}, mapreduce.UnitID(q.PageToken), 0
	for {
		parked, more, err := r.jobs.Review.Parked(ctx, q.Job, after, 256)
		if err != nil {
			return nil, err
		}

		for _, p := range parked {
			if len(page.Units) == q.PageSize || size >= pageBytes {
				page.NextPageToken = string(after)
				return page, nil
			}
			after = p.Unit
			one, bytes, err := r.shown(ctx, q.Job, p)
			if err != nil {
				return nil, err
			}
			if one != nil {
				page.Units, size = append(page.Units, one), size+bytes
			}
		}
		if !more {
			return page, nil
		}
	}
}

// shown returns a parked unit as people see it, and how many bytes that has about; nil if it waits for
// nobody.
func (r *Reviewer) shown(ctx context.Context, id mapreduce.JobID, p stored.ParkedUnit) (*mapreduce.WaitingUnit, int, error) {
	if !gate.IsHandle(p.Handle) {
		return nil, 0, nil
	}
	u, err := r.jobs.View.Unit(ctx, id, p.Unit)
	if err != nil || u == nil {
		return nil, 0, err
	}
	w, err := r.waiting(ctx, id, u, p.Handle)
	if err != nil || w == nil {
		return nil, 0, err
	}

	size := 0
	one := &mapreduce.WaitingUnit{Unit: u.ID, Role: mapreduce.Role(w.stage.Review.Role()), Values: w.asks}
	err = result.Waiting(ctx, r.jobs.Reader(), id, w.schema, w.out, func(part *mapreduce.ResultPart) error {
		size += len(part.Record) + len(part.Conflict)
		if part.Citation != nil {
			size += len(part.Citation.Quote) + 256
		}
		one.Parts = append(one.Parts, part)
		return nil
	})
	return one, size, err
}

// waiting returns a unit with what it waits with under a handle. It is nil if the unit went on meanwhile,
// with its journal.
func (r *Reviewer) waiting(ctx context.Context, id mapreduce.JobID, u *records.Unit, handle string) (*waiting, error) {
	w := &waiting{Unit: u, handle: handle}
	compiled, err := r.sources.Specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	if w.stage, w.schema, err = r.sources.Specs.StageOf(ctx, id, u); err != nil {
		return nil, err
	}
	if w.stage == nil || !w.stage.Review.IsSet() {
		return nil, errs.New(errs.DataLoss, "unit %s of job %s waits for a person, and its stage has none decide", u.ID, id)
	}

	data, err := outputs.Held(ctx, r.jobs.Reader(), id, u, handle)
	if err != nil {
		now, e := r.jobs.View.Unit(ctx, id, u.ID)
		if e == nil && (now == nil || !now.Parked) {
			return nil, nil
		}
		return nil, err
	}

	// A worker has kept it there, and workers are not believed.
	why, err := r.sources.Verify(ctx, id, u, data)
	if err != nil {
		return nil, err
	}
	if why == nil {
		if w.out, why = output.Decode(data); why == nil {
			why = check.Unreviewed(string(u.ID), w.out)
		}
	}
	if why != nil {
		return nil, errs.New(errs.DataLoss, "what unit %s of job %s waits with cannot be shown: %v", u.ID, id, why)
	}

	w.asks = gate.Asks(w.schema, w.stage.Review.Reasons(), gate.Seed(id, compiled.Spec.Replay), w.out)
	return w, nil
}

// findWaiting returns the unit that made a record if it waits for a person; nil if it does not.
func (r *Reviewer) findWaiting(ctx context.Context, id mapreduce.JobID, record mapreduce.RecordID) (*waiting, error) {
	index, _, _ := record.Parse()
	units, err := r.jobs.View.UnitsFrom(ctx, id, 0, index, 1)
	if err != nil || len(units) == 0 || units[0].Index != index || !units[0].Parked {
		return nil, err
	}

	parked, err := r.jobs.View.Parkings(ctx, id, units)
	if err != nil {
		return nil, err
	}
	p := parked[units[0].ID]
	if p == nil || !gate.IsHandle(p.Handle) {
		return nil, nil
	}

	return r.waiting(ctx, id, units[0], p.Handle)
}

// decideWaiting keeps a decision about a value of a unit that waits for it, and lets the unit go on with
// the last of them.
func (r *Reviewer) decideWaiting(ctx context.Context, by mapreduce.Principal, w *waiting, d *mapreduce.NewDecision) (*mapreduce.Decision, error) {
	if role := mapreduce.Role(w.stage.Review.Role()); !by.Has(role) {
		return nil, errs.New(errs.Denied, "unit %s waits for somebody with the role %s, which %s does not have", w.ID, role, by.Name)
	}

	kept, err := r.settleWaiting(ctx, by, w, d)
	if err != nil {
		return nil, err
	}
	if kept.Request == "" {
		kept.Request = rand.Text() // so that it is not taken twice if its commit is in doubt
	}
	answered := stored.Waiting{Unit: w.ID, Index: w.Index, Handle: w.handle, Answer: w.answer}
	taken, woken, err := r.jobs.Review.DecideWaiting(ctx, d.Job, answered, kept)
	if err != nil {
		return nil, err
	}

	if woken != nil {
		r.sources.Enqueue(d.Job, []records.Candidate{*woken})
	}
	r.signals.NotifyWatchers(d.Job)
	return decisionOf(taken), nil
}

// readAtOnce is how many units whose time is over are read at once.
const readAtOnce = 8

// EndWaits lets units go on that have waited as long as their stage says, with what was decided until now: at most
// stored.MaxOverdue. It returns where they wait to be claimed then, of those that do. Of a unit that cannot be
// read failed has the error, in the place of the unit; err is one of all others.
func (r *Reviewer) EndWaits(ctx context.Context, id mapreduce.JobID, units []records.Sleeper) (woken []records.Candidate, failed []error, err error) {
	found, failed := make([]*waiting, len(units)), make([]error, len(units))
	var g errgroup.Group
	g.SetLimit(readAtOnce)
	for i, of := range units {
		g.Go(func() error {
			found[i], failed[i] = r.overdue(ctx, id, of)
			return nil
		})
	}
	_ = g.Wait() // errors are in failed

	var over []stored.Overdue
	for i, w := range found {
		if w == nil {
			continue
		}
		answer := func(all []*stored.Decision) ([]byte, error) {
			return encode(&gate.Answer{Decided: outputs.Standing(w.schema, w.out, all), Over: true})
		}
		over = append(over, stored.Overdue{Attempt: units[i].Attempt, Waiting: stored.Waiting{Unit: w.ID, Index: w.Index, Handle: w.handle, Answer: answer}})
	}

	if len(over) == 0 {
		return nil, failed, nil
	}
	if woken, err = r.jobs.Review.EndWaits(ctx, id, over); err == nil {
		r.signals.NotifyWatchers(id)
	}
	return woken, failed, err
}

// overdue returns a unit whose time to wait is over; nil if it waits no more.
func (r *Reviewer) overdue(ctx context.Context, id mapreduce.JobID, of records.Sleeper) (*waiting, error) {
	u, err := r.jobs.View.Unit(ctx, id, of.Unit)
	if err != nil || u == nil {
		return nil, err
	}
	return r.waiting(ctx, id, u, of.Handle)
}

// answer returns what wakes the unit, given all decisions about its records: nil while values wait.
func (w *waiting) answer(all []*stored.Decision) ([]byte, error) {
	standing := outputs.Standing(w.schema, w.out, all)
	if len(gate.Open(w.asks, standing)) > 0 {
		return nil, nil
	}
	return encode(&gate.Answer{Decided: standing})
}

// encode returns an answer as it is kept for the unit. What is too large for a call stays where it is stored, and the
// unit is told to ask for it: it could not go on otherwise, whatever else people decide.
func encode(a *gate.Answer) ([]byte, error) {
	data, err := a.Encode()
	if err == nil && len(data) > mapreduce.MaxWakeAnswer {
		apart := gate.Answer{Over: a.Over, Apart: true}
		data, err = apart.Encode()
	}
	return data, err
}

// checkRoom refuses a value that somebody has written, or a passage, if all that was decided about the unit would
// be too much for its output. Others are always taken: they are as large as what was found, so that every unit can go
// on.
func (w *waiting) checkRoom(all []*stored.Decision, d *stored.Decision) error {
	if mapreduce.ReviewVerdict(d.Verdict) != mapreduce.ReviewCorrect && d.Passage == nil {
		return nil
	}

	said := gate.Answer{Decided: outputs.Standing(w.schema, w.out, append(slices.Clone(all), d))}
	data, err := said.Encode()
	if err != nil {
		return err
	}
	if len(data) > mapreduce.MaxDecided {
		return errs.New(errs.Exhausted, "all that was decided about unit %s would have %d bytes, and at most %d are kept for it: "+
			"give a shorter value or passage, accept the value without a passage, or reject it", w.ID, len(data), mapreduce.MaxDecided)
	}
	return nil
}

// settleWaiting checks a decision about a value that waits, and returns it as it is to be kept.
func (r *Reviewer) settleWaiting(ctx context.Context, by mapreduce.Principal, w *waiting, d *mapreduce.NewDecision) (*stored.Decision, error) {
	found, err := r.findHeld(ctx, w, d)
	if err != nil {
		return nil, err
	}
	all, err := r.jobs.Review.OfUnit(ctx, d.Job, w.Index)
	if err != nil {
		return nil, err
	}
	var others []*mapreduce.Decision
	for _, one := range all {
		if one.Record == d.Record {
			others = append(others, decisionOf(one))
		}
	}

	taken := &mapreduce.Decision{Record: d.Record, Field: d.Field, Request: d.Request, Verdict: d.Verdict, Note: d.Note, By: by.Name, Waited: true}
	if taken.Value, taken.Model, err = review.Settle(w.schema, found.record, others, d); err != nil {
		return nil, err
	}
	var id *refs.ID
	if d.Passage != nil {
		if taken.Passage, id, err = r.citeHeld(ctx, by, w, d, found); err != nil {
			return nil, err
		}
	}

	out := storedDecision(by, taken)
	if id != nil {
		out.Passage.Citation.Id = id[:]
	}
	about, err := review.AboutOf(w.schema, found.record, d.Field)
	if err != nil {
		return nil, err
	}
	out.Waited, out.Unverified, out.Confidence = true, about.Unverified, about.Confidence
	for _, c := range found.citations {
		if slices.Contains(about.Citations, c.Ref) {
			one := *c
			one.Ref = refOf(&mapreduce.Passage{Document: c.Document, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd}, c.Quote)
			out.Found = append(out.Found, result.StoredCitation(&one))
		}
	}
	if err := w.checkRoom(all, out); err != nil {
		return nil, err
	}
	return out, w.applies(out)
}

// applies checks that what is to be kept can be applied to the output: the unit could not go on with it
// otherwise.
func (w *waiting) applies(d *stored.Decision) error {
	standing := outputs.Standing(w.schema, w.out, []*stored.Decision{d})
	if _, err := gate.Apply(w.schema, w.out, standing); err != nil {
		return errs.Field("value", "%s", strings.TrimPrefix(err.Error(), "gate: "))
	}
	return nil
}

// findHeld returns a record of the output that a unit waits with.
func (r *Reviewer) findHeld(ctx context.Context, w *waiting, d *mapreduce.NewDecision) (*foundRecord, error) {
	found := &foundRecord{}
	at := false
	err := result.Waiting(ctx, r.jobs.Reader(), d.Job, w.schema, w.out, func(p *mapreduce.ResultPart) error {
		switch {
		case p.Record != nil:
			if at = p.RecordID == d.Record; at {
				found.record = p.Record
			}
		case p.Citation != nil && at:
			found.citations = append(found.citations, p.Citation)
		}
		return nil
	})

	if err == nil && found.record == nil {
		err = &errs.Error{
			Kind: errs.NotFound, Reason: "RECORD_NOT_FOUND",
			Message: fmt.Sprintf("unit %s of job %s waits with no record %q", w.ID, d.Job, d.Record),
		}
	}
	return found, err
}

// citeHeld finds a marked passage in the document that a unit read, and returns it as a citation of that
// unit's output, with its id there.
func (r *Reviewer) citeHeld(ctx context.Context, by mapreduce.Principal, w *waiting, d *mapreduce.NewDecision, found *foundRecord) (*mapreduce.Citation, *refs.ID, error) {
	if d.Passage.Document != w.Document {
		return nil, nil, errs.Field("passage.document_id", "must be the document of the unit that waits, %q", w.Document)
	}
	marked, own := *d, *d.Passage
	own.Unit, marked.Passage = w.ID, &own
	c, err := r.cite(ctx, by, &marked, found)
	if err != nil {
		return nil, nil, err
	}

	c.Outside = c.ByteStart < w.Source.Start || c.ByteEnd > w.Source.End
	if c.Outside && w.Source.Length > protocol.MaxWholeText {
		return nil, nil, errs.Field("passage", "is outside of bytes %d to %d, which the unit read, and the document is too long to be looked through", w.Source.Start, w.Source.End)
	}
	id := refs.New(output.HashDocument(string(w.Document), w.Source.SHA256), int(c.ByteStart), int(c.ByteEnd), c.Quote)
	return c, &id, nil
}
