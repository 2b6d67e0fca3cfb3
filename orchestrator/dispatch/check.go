package dispatch

import (
	"context"
	"errors"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// CheckReported returns the reason to refuse the output of a report. It returns an error,
// which ends the stream, if it cannot read the data to check against at the moment. That
// it cannot be read at all is a reason too, as the stream would come back with the same
// report. It trusts nothing in the report but its unit and attempt.
func (c *Checker) CheckReported(ctx context.Context, session mapreduce.SessionID, rep *protocol.Report, g workers.Given) (why, err error) {
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
func (c *Checker) examineOutput(ctx context.Context, session mapreduce.SessionID, rep *protocol.Report, g workers.Given) (why, err error) {
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
