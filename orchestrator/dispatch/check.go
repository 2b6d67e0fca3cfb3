package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Given is what a unit was given, as far as it is kept.
type Given struct {
	Unit   *records.Unit   // nil if it has to be read again
	Text   []byte          // what a map unit reads; nil if it has to be read again
	Inputs []*records.Unit // that it takes, with their outputs; nil if they have to be read again
}

// ChecksQuickly reports whether the output of a report can be checked without reading
// anything but, for a few, the document.
func (g Given) ChecksQuickly(rep *protocol.Report) bool {
	if g.Unit == nil || rep.Length > 0 || gate.IsHandle(g.Unit.Woken) {
		return false // of what people have decided the decisions are read
	}
	switch kind := g.Unit.Kind; {
	case kind == mapreduce.KindParse, kind == mapreduce.KindMap && g.Text != nil:
		return true
	default: // outputs of higher levels may name records, which are read
		return g.Inputs != nil && g.Unit.Takes().Level == 0
	}
}

// CheckReported returns the reason to refuse the output of a report. It returns an error,
// which ends the stream, if it cannot read the data to check against at the moment. That
// it cannot be read at all is a reason too, as the stream would come back with the same
// report. It trusts nothing in the report but its unit and attempt.
func (c *Checker) CheckReported(ctx context.Context, session mapreduce.SessionID, rep *protocol.Report, g Given) (why, err error) {
	err = c.supervisor.RetryStoreCall(ctx, "reading what an output is checked against", func() error {
		return c.supervisor.ContainPanic(ctx, "checking an output", func() (err error) {
			why, err = c.examineOutput(ctx, session, rep, g)
			return err
		}, "job", rep.Job, "unit", rep.Unit)
	})
	switch {
	case err == nil:
		return why, nil
	case errs.KindOf(err) == errs.NotFound: // the job was deleted
		return errNotIts, nil
	case cluster.ClassOf(err) != cluster.Passing:
		return err, nil
	}
	return nil, err
}

// examineOutput says why the output of a report is refused. It believes of the report no
// more than whose it is: one for an attempt that is not the session's is refused
// unread, which changes nothing, unless the attempt should become its own.
func (c *Checker) examineOutput(ctx context.Context, session mapreduce.SessionID, rep *protocol.Report, g Given) (why, err error) {
	u := g.Unit
	if u == nil || rep.Length > 0 { // what was put of its output is told by the record as it is now
		if u, err = c.jobs.View.Unit(ctx, rep.Job, rep.Unit); err != nil {
			return nil, err
		}
		if u == nil || u.Attempt != int64(rep.Attempt) || u.Session != session {
			return errNotIts, nil
		}
		if rep.Length > 0 && !u.Holds(rep) { // what is whole does not change any more
			return errNotPut, nil
		}
	}

	data, err := c.jobs.Content.Reported(ctx, rep)
	if err != nil {
		return nil, err
	}

	s, err := c.subjectOf(ctx, rep.Job, u, g)
	if err != nil {
		return nil, err
	}
	if why, err = s.verify(ctx, data, &rep.Confidence); why != nil || err != nil {
		return why, err
	}
	return s.verifyDecided(ctx, data)
}

// errNotPut is what a report is refused with whose output was not put before.
var errNotPut = errors.New("it is not stored: an output has to be put whole before its report")

// errNotIts is why a report is not looked at.
var errNotIts = errors.New("the attempt is not this worker's")

// RefuseReport makes a report one of a failure of its attempt, which another worker may
// run, and reports whether its worker is to blame: one that does so again and again is
// broken, or hostile. Where what an output is checked against is damaged, no attempt can
// do better, and no worker is to blame.
func RefuseReport(session mapreduce.SessionID, rep *protocol.Report, why error) (blamed bool) {
	refused := &protocol.Report{
		Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt, Outcome: protocol.Errored, Class: protocol.Retryable,
		Errors: slices.Concat(rep.Errors, []string{fmt.Sprintf("the output that worker %s reported was refused: %v", nameOf(session), why)}),
		Tokens: rep.Tokens, CostMicros: rep.CostMicros, Charges: rep.Charges, Calls: rep.Calls, Latency: rep.Latency, Tools: rep.Tools,
		ToolTime: rep.ToolTime, Prompt: rep.Prompt, Elapsed: rep.Elapsed, Savings: rep.Savings,
	}

	refused.DropImpossible()
	*rep = *refused

	switch {
	case errors.Is(why, errNotIts):
		rep.Outcome, rep.Errors = protocol.Returned, nil // says nothing of anything
		return false
	case cluster.IsDamage(why):
		rep.Class = protocol.PermanentUnit
		rep.Errors[len(rep.Errors)-1] = fmt.Sprintf("what the output is checked against cannot be read: %v", why)
		return false
	}
	return true
}

// nameOf returns enough of a session's id to tell workers apart in a log. With the whole id
// the session could be taken up by anybody, and clients read errors of units.
func nameOf(s mapreduce.SessionID) mapreduce.SessionID {
	const shown = 8
	if len(s) <= shown {
		return s
	}
	return s[:shown] + "…"
}
