package transfer

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// wakeAnswer returns what people have decided about values of a unit, as its attempt is told by the call that
// woke it: nil if the call has all of it itself. It is made of the decisions that are stored, to which none
// comes while the unit does not wait.
func (t *Transfers) wakeAnswer(ctx context.Context, id mapreduce.JobID, u *records.Unit, call *protocol.WakeCall) ([]byte, error) {
	if call == nil || !gate.IsHandle(call.Handle) {
		return nil, nil
	}
	said, err := gate.DecodeAnswer(call.Answer)
	if err != nil || !said.Apart {
		return nil, nil //nolint:nilerr // what is no answer says nothing: the attempt sees to it
	}

	_, schema, err := t.specs.StageOf(ctx, id, u)
	if err != nil {
		return nil, err
	}
	held, err := outputs.Held(ctx, t.jobs.Reader(), id, u, call.Handle)
	if err != nil {
		return nil, err
	}
	out, err := output.Decode(held)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "what unit %s of job %s waited with cannot be read: %w", u.ID, id, err)
	}

	decided, err := t.jobs.Review.OfUnit(ctx, id, u.Index)
	if err != nil {
		return nil, err
	}
	answer := gate.Answer{Decided: outputs.Standing(schema, out, decided), Over: said.Over}
	return answer.Encode()
}

// sendWakeAnswer writes what the call that woke a unit said, where that is too large for an assignment.
func (t *Transfers) sendWakeAnswer(ctx context.Context, q *protocol.BlobRequest, u *records.Unit, w *rangeWriter) error {
	call, err := t.jobs.View.WakeCall(ctx, q.Job, u.ID)
	if err != nil {
		return err
	}

	answer, err := t.wakeAnswer(ctx, q.Job, u, call)
	if err != nil {
		return err
	}
	if answer == nil {
		return errs.New(errs.NotFound, "unit %s was woken by no call of which more is known than its assignment says", q.Unit)
	}
	return w.write(answer)
}
