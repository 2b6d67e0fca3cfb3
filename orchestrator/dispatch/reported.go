package dispatch

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
)

// maxChecking is how many outputs of one worker wait to be checked before its
// stream waits for that.
const maxChecking = 64

// checkQuick brings a message within bounds and checks those of its reports for which all
// that a check takes is at hand. It takes the others off the message, and returns them. No
// output goes to the store unchecked: what a report says of one that is refused becomes a
// failure.
func (f *Fleet) checkQuick(ctx context.Context, s *workerStream, m *mapreduce.FromWorker) ([]mapreduce.Report, error) {
	BoundMessage(m)
	given := f.scheduler.Sessions.AssignedInputs(s.Session, m.Reports)

	var later []mapreduce.Report
	now := m.Reports[:0] // in place, as nearly all stay
	for i := range m.Reports {
		rep := &m.Reports[i]

		why := CheckReport(rep)
		switch g := Given(given[i]); {
		case why != nil:
			f.refuseReport(s, rep, why)
		case rep.Outcome != mapreduce.Done:
		case !g.ChecksQuickly(rep):
			later = append(later, *rep)
			continue
		default:
			if err := f.checkDone(ctx, s, rep, g); err != nil {
				return nil, err
			}
		}

		now = append(now, *rep)
	}

	m.Reports = now
	f.scheduler.Sessions.NoteArrived(s.Session, later)
	return later, nil
}

// checkLater checks reports beside the stream, so that those behind them need not
// wait. What is not checked when the stream ends, the worker reports again.
func (f *Fleet) checkLater(ctx context.Context, s *workerStream, reports []mapreduce.Report) error {
	for _, rep := range reports {
		select {
		case s.checking <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}

		f.admission.streams.Go(func() {
			defer func() { <-s.checking }()
			f.checkOne(ctx, s, &rep)
		})
	}
	return nil
}

// checkOne checks one report when it is its turn, and enters it on the scheduler.
func (f *Fleet) checkOne(ctx context.Context, s *workerStream, rep *mapreduce.Report) {
	leave, err := f.checker.WaitTurn(ctx)
	if err != nil {
		return
	}
	defer leave()

	given := f.scheduler.Sessions.AssignedInputs(s.Session, []mapreduce.Report{*rep})
	if err := f.checkDone(ctx, s, rep, Given(given[0])); err != nil {
		if ctx.Err() == nil {
			s.stop(err) // as it would if the stream had waited
		}
		return
	}

	f.scheduler.Sessions.EnterChecked(s.Session, rep)
}

// checkDone checks the output of a report, and makes one that is refused a failure
// of its attempt, which another worker may run. The error is that of the stream.
func (f *Fleet) checkDone(ctx context.Context, s *workerStream, rep *mapreduce.Report, g Given) error {
	why, err := f.checker.CheckReported(ctx, s.ID, rep, g)
	if err == nil && why != nil {
		if cluster.IsDamage(why) {
			f.supervisor.LogFailure(ctx, "an output cannot be checked", why, "job", rep.Job, "unit", rep.Unit)
		}
		f.refuseReport(s, rep, why)
	}
	return err
}

// refuseReport makes a report one of a failure, and notes whose it was.
func (f *Fleet) refuseReport(s *workerStream, rep *mapreduce.Report, why error) {
	if RefuseReport(s.ID, rep, why) {
		f.config.Logger.Warn("output refused", "session", s.ID, "refused", f.scheduler.Sessions.CountRefused(s.Session),
			"job", rep.Job, "unit", rep.Unit, "attempt", rep.Attempt, "err", why)
	}
}
