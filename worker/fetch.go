package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/library"
	"github.com/coditect/mapreduce/worker/report"
	"github.com/coditect/mapreduce/worker/transfer"
)

// maxReferred is how much memory is set aside for the records that the inputs of a
// reduce name, in bytes.
const maxReferred = 32 << 20

// fetchLarge waits for memory and then gets the blobs of the assignment. It reports
// whether there were any.
func (a *attempt) fetchLarge() (fetched bool, err error) {
	need := min(bytesToFetch(a.task), int64(a.session.cfg.MaxInput)+maxReferred)
	if need > 0 {
		if err := a.session.memory.Acquire(a.ctx, need); err != nil {
			return true, context.Cause(a.ctx)
		}
		a.memory = need
	}

	for _, b := range a.task.Blobs {
		fetched = true
		if err := a.fetchBlob(b); err != nil {
			return true, err
		}
	}

	// A reduce of reduces may be given inputs that name records of levels below, which the
	// orchestrator resolves. One request brings all that any input names.
	if a.task.Level < 2 || !mergesRecords(a.task) {
		return fetched, nil
	}
	for _, in := range a.task.Inputs { // of a reduce of reduces
		if payload.NamesRecords(in.Data) {
			return true, a.fetchInputs(protocol.Blob{Kind: protocol.BlobReferred})
		}
	}
	return fetched, nil
}

// mergesRecords reports whether a unit merges the records of its inputs. Only then does it
// have to ask for records that these name.
func mergesRecords(t *agent.Task) bool {
	return t.StageSpec == nil || t.StageSpec.Group && t.MakesRecords()
}

// bytesToFetch returns how much memory the blobs of an assignment may need.
func bytesToFetch(t *agent.Task) (n int64) {
	for _, b := range t.Blobs {
		switch {
		case b.End > 0:
			n += b.End - b.Start
		default:
			n += b.Length
		}
		if b.Kind == protocol.BlobInputs && t.Level > 1 && mergesRecords(t) {
			n += maxReferred
		}
	}
	return n
}

func (a *attempt) fetchBlob(b protocol.Blob) (err error) {
	switch {
	case b.Kind == protocol.BlobInputs:
		return a.fetchInputs(b)
	case b.Kind == protocol.BlobJournal:
		a.task.Journal, err = a.session.transfers.Collect(a.ctx, a.held, b)
	case b.Kind == protocol.BlobEvidenceList:
		a.evidence, err = a.session.transfers.Collect(a.ctx, a.held, b)
	case b.Kind == protocol.BlobWakeAnswer && a.task.WakeCall != nil:
		call := *a.task.WakeCall
		call.Answer, err = a.session.transfers.Collect(a.ctx, a.held, b)
		a.task.WakeCall = &call
	case b.Kind == protocol.BlobText && a.task.Text != nil:
		text := *a.task.Text
		text.Content, err = a.session.transfers.Collect(a.ctx, a.held, b)
		a.task.Text = &text
	default:
		err = errs.New(errs.Unavailable, "this version of the worker knows no blob of kind %d", b.Kind)
	}
	return err
}

// fetchInputs adds the inputs that a blob holds.
func (a *attempt) fetchInputs(b protocol.Blob) error {
	d := payload.InputDecoder{Most: a.session.cfg.MaxInput}
	if err := a.session.transfers.Get(a.ctx, a.held, b, d.Add); err != nil {
		return err
	}
	inputs, err := d.Inputs()
	a.task.Inputs = append(a.task.Inputs, inputs...)
	return err
}

// unfetchedReport is the report of an attempt that did not get what it needs. That costs
// the unit an attempt only if the unit may be at fault.
func (a *attempt) unfetchedReport(err error) *protocol.Report {
	var late *report.LateError
	switch cause := a.reports.InterruptCause(); {
	case errors.As(cause, &late):
		return a.reports.Returned(fmt.Sprintf("what the unit needs did not come within %v", late.After))
	case cause != nil:
		return a.reports.Failed(cause)
	case errors.Is(err, payload.ErrInputsTooLarge):
		return a.reports.Failed(agent.Permanent(err))
	case transfer.IsTransient(err) && errs.KindOf(err) != errs.Internal, errors.Is(err, errs.Precondition):
		return a.reports.Returned(err.Error())
	}
	return a.reports.Failed(fmt.Errorf("input of the unit: %w", err))
}

// wholeText returns what the agent gets as Task.Whole, nil for a unit that has all of its
// document.
func (c *calls) wholeText(t *protocol.Text) func(context.Context, func(*ground.Text)) error {
	if t == nil || t.Chunks < 2 || t.Length == 0 {
		return nil
	}
	return func(ctx context.Context, use func(*ground.Text)) error {
		if t.Length > protocol.MaxWholeText {
			return fmt.Errorf("%w: its text has %d bytes; at most %d are looked through", agent.ErrTooLong, t.Length, protocol.MaxWholeText)
		}

		ctx, stop := c.attemptContext(ctx)
		defer stop()

		load := func(ctx context.Context) (string, error) {
			data, err := c.session.transfers.Collect(ctx, c.held, protocol.Blob{Kind: protocol.BlobText, SHA256: t.SHA256, Length: t.Length})
			return string(data), err
		}

		// Units of one document on this worker share one text.
		if err := c.session.library.Lend(ctx, library.Key{Job: c.held.Job, SHA256: string(t.SHA256)}, t.Length, load, use); err != nil {
			return fmt.Errorf("text of %s: %w", t.Document, err)
		}
		return nil
	}
}
