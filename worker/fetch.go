package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/library"
	"github.com/coditect/mapreduce/worker/transfer"
)

// maxReferred is how much memory is set aside for the records that the inputs of a
// reduce name, in bytes.
const maxReferred = 32 << 20

// fetchLarge waits for memory and then gets the blobs of the assignment. It reports
// whether there were any.
func (u *unit) fetchLarge() (fetched bool, err error) {
	need := min(bytesToFetch(u.task), int64(u.session.cfg.MaxInput)+maxReferred)
	if need > 0 {
		if err := u.session.memory.Acquire(u.ctx, need); err != nil {
			return true, context.Cause(u.ctx)
		}
		u.memory = need
	}

	for _, b := range u.task.Blobs {
		fetched = true
		if err := u.fetchBlob(b); err != nil {
			return true, err
		}
	}

	// A reduce of reduces may be given inputs that name records of levels below, which the
	// orchestrator resolves. One request brings all that any input names.
	if u.task.Level < 2 || !mergesRecords(u.task) {
		return fetched, nil
	}
	for _, in := range u.task.Inputs { // of a reduce of reduces
		if payload.NamesRecords(in.Data) {
			return true, u.fetchInputs(mapreduce.Blob{Kind: mapreduce.BlobReferred})
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
		if b.Kind == mapreduce.BlobInputs && t.Level > 1 && mergesRecords(t) {
			n += maxReferred
		}
	}
	return n
}

func (u *unit) fetchBlob(b mapreduce.Blob) (err error) {
	switch {
	case b.Kind == mapreduce.BlobInputs:
		return u.fetchInputs(b)
	case b.Kind == mapreduce.BlobJournal:
		u.task.Journal, err = u.session.transfers.Collect(u.ctx, u.attemptHeld(), b)
	case b.Kind == mapreduce.BlobEvidenceList:
		u.evidenceList, err = u.session.transfers.Collect(u.ctx, u.attemptHeld(), b)
	case b.Kind == mapreduce.BlobText && u.task.Text != nil:
		t := *u.task.Text
		t.Content, err = u.session.transfers.Collect(u.ctx, u.attemptHeld(), b)
		u.task.Text = &t
	default:
		err = errs.New(errs.Unavailable, "this version of the worker knows no blob of kind %d", b.Kind)
	}
	return err
}

// fetchInputs adds the inputs that a blob holds.
func (u *unit) fetchInputs(b mapreduce.Blob) error {
	d := payload.InputDecoder{Most: u.session.cfg.MaxInput}
	if err := u.session.transfers.Get(u.ctx, u.attemptHeld(), b, d.Add); err != nil {
		return err
	}
	inputs, err := d.Inputs()
	u.task.Inputs = append(u.task.Inputs, inputs...)
	return err
}

// unfetchedReport is the report of an attempt that did not get what it needs. That costs
// the unit an attempt only if the unit may be at fault.
func (u *unit) unfetchedReport(err error) *mapreduce.Report {
	var late *deadlineError
	switch cause := u.interruptCause(); {
	case errors.As(cause, &late):
		return u.returnedReport(fmt.Sprintf("what the unit needs did not come within %v", late.after))
	case cause != nil:
		return u.failedReport(cause)
	case errors.Is(err, payload.ErrInputsTooLarge):
		return u.failedReport(agent.Permanent(err))
	case transfer.IsTransient(err) && errs.KindOf(err) != errs.Internal, errors.Is(err, errs.Precondition):
		return u.returnedReport(err.Error())
	}
	return u.failedReport(fmt.Errorf("input of the unit: %w", err))
}

// wholeText returns what agents get as Task.Whole, nil for units that have all of
// their document.
func (u *unit) wholeText(t *mapreduce.Text) func(context.Context, func(*ground.Text)) error {
	if t == nil || t.Chunks < 2 || t.Length == 0 {
		return nil
	}
	return func(ctx context.Context, use func(*ground.Text)) error {
		if t.Length > mapreduce.MaxWholeText {
			return fmt.Errorf("%w: its text has %d bytes; at most %d are looked through", agent.ErrTooLong, t.Length, mapreduce.MaxWholeText)
		}

		ctx, stop := u.attemptContext(ctx)
		defer stop()

		load := func(ctx context.Context) (string, error) {
			data, err := u.session.transfers.Collect(ctx, u.attemptHeld(), mapreduce.Blob{Kind: mapreduce.BlobText, SHA256: t.SHA256, Length: t.Length})
			return string(data), err
		}

		// Units of one document on this worker share one text.
		if err := u.session.library.Lend(ctx, library.Key{Job: u.id.job, SHA256: string(t.SHA256)}, t.Length, load, use); err != nil {
			return fmt.Errorf("text of %s: %w", t.Document, err)
		}
		return nil
	}
}

// attemptContext returns a context that ends with ctx, or with the attempt.
func (u *unit) attemptContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(u.ctx, func() { cancel(context.Cause(u.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
