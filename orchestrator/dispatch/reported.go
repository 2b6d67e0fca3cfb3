package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs"
)

// reports enters what workers report on the scheduler, once it was checked.
type reports struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	checker    *Checker
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	streams    *sync.WaitGroup // of workers, with what is checked beside them
	log        *slog.Logger
}

// maxChecking is how many outputs of one worker wait to be checked before its
// stream waits for that.
const maxChecking = 64

// hear enters a message on the scheduler, with those of its reports whose outputs
// were checked at once; the others follow once they were. It returns the units that have
// begun and may have brought a worker down before.
func (r *reports) hear(ctx context.Context, s *workerStream, m *protocol.FromWorker) ([]protocol.Held, error) {
	m.Bound()
	got := r.scheduler.Sessions.Receive(s.Session, m, r.signals.Feeds.Number)
	r.passNotes(got.Notes)

	if len(m.Reports) == 0 {
		return got.Suspects, nil
	}

	reported, err := r.answerGone(ctx, s, m, got.Reports)
	if err != nil {
		return nil, err
	}

	later, err := r.checkQuick(ctx, s, m, reported)
	if err != nil {
		return nil, err
	}

	r.scheduler.Sessions.EnterChecked(s.Session, m)
	return got.Suspects, r.checkLater(ctx, s, later)
}

// answerGone answers the reports of jobs that are not there, or not for this worker, and
// takes them off the message: workers could make up any number of jobs, and the scheduler
// would have to go through all of them. It returns what is known of the other reports, and
// notes how many of them wait for their verdicts.
func (r *reports) answerGone(ctx context.Context, s *workerStream, m *protocol.FromWorker, reported []schedule.Reported) ([]schedule.Reported, error) {
	gone, err := r.findGone(ctx, s, m.Reports, reported)
	if err != nil {
		return nil, err
	}

	if len(gone) > 0 { // which is seldom, and may have taken a while
		s.dropGone(m, gone)
		reported = r.scheduler.Sessions.Inspect(s.Session, m.Reports)
	}

	notHeld := 0
	for i := range reported {
		if !reported[i].Held {
			notHeld++
		}
	}
	s.out.noteReports(len(m.Reports), notHeld)
	return reported, nil
}

// findGone returns, of the jobs of reports that the scheduler does not know or that are
// another tenant's, whether they are gone as far as the worker is concerned. It may have held
// units of other tenants before it was bound to its own; to it there are no such jobs.
func (r *reports) findGone(ctx context.Context, s *workerStream, reports []protocol.Report, reported []schedule.Reported) (map[mapreduce.JobID]bool, error) {
	var gone map[mapreduce.JobID]bool
	for i := range reports {
		id := reports[i].Job
		if _, seen := gone[id]; seen || reported[i].Job == schedule.KnownJob {
			continue
		}
		if gone == nil {
			gone = make(map[mapreduce.JobID]bool)
		}

		if reported[i].Job == schedule.ForeignJob {
			gone[id] = true
			continue
		}

		ctl, err := r.lookUp(ctx, s, id)
		if err != nil {
			return nil, err
		}
		gone[id] = ctl == nil || s.Tenant != "" && s.Tenant != ctl.Tenant
	}
	return gone, nil
}

// dropGone takes the reports of jobs that are gone off a message, and answers them. They
// count as reports that have come, as each verdict counts as the answer to one.
func (s *workerStream) dropGone(m *protocol.FromWorker, gone map[mapreduce.JobID]bool) {
	answer := &protocol.ToWorker{}
	m.Reports = slices.DeleteFunc(slices.Clone(m.Reports), func(one protocol.Report) bool {
		if gone[one.Job] {
			answer.Verdicts = append(answer.Verdicts, protocol.VerdictOn{
				Held: protocol.Held{Job: one.Job, Unit: one.Unit, Attempt: one.Attempt}, Verdict: protocol.Gone,
			})
		}
		return gone[one.Job]
	})

	if len(answer.Verdicts) > 0 {
		s.out.noteReports(len(answer.Verdicts), 0)
		s.Send(answer)
	}
}

// checkQuick checks those reports of a message for which all that a check takes is at hand.
// It takes the others off the message, and returns them. No output goes to the store
// unchecked: what a report says of one that is refused becomes a failure.
func (r *reports) checkQuick(ctx context.Context, s *workerStream, m *protocol.FromWorker, reported []schedule.Reported) (later []protocol.Report, err error) {
	now := m.Reports[:0] // in place, as nearly all stay
	for i := range m.Reports {
		rep := &m.Reports[i]

		why := rep.Check()
		switch given := reported[i].Given; {
		case why != nil:
			r.refuseReport(s, rep, why)
		case rep.Outcome != protocol.Done:
		case !checksQuickly(rep, given):
			later = append(later, *rep)
			continue
		default:
			if err := r.checkDone(ctx, s, rep, given); err != nil {
				return nil, err
			}
		}

		now = append(now, *rep)
	}

	m.Reports = now
	return later, nil
}

// checksQuickly reports whether the output of a report can be checked without reading
// anything but, for a few, the document.
func checksQuickly(rep *protocol.Report, g workers.Given) bool {
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

// checkLater checks reports beside the stream, so that those behind them need not
// wait. What is not checked when the stream ends, the worker reports again.
func (r *reports) checkLater(ctx context.Context, s *workerStream, reports []protocol.Report) error {
	for _, rep := range reports {
		select {
		case s.checking <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}

		r.streams.Go(func() {
			defer func() { <-s.checking }()
			r.checkOne(ctx, s, &rep)
		})
	}
	return nil
}

// checkOne checks one report when it is its turn, and enters it on the scheduler.
func (r *reports) checkOne(ctx context.Context, s *workerStream, rep *protocol.Report) {
	leave, err := r.checker.WaitTurn(ctx)
	if err != nil {
		return
	}
	defer leave()

	// What it was given is not kept in the queue before: the scheduler bounds what is.
	reports := []protocol.Report{*rep}
	reported := r.scheduler.Sessions.Inspect(s.Session, reports)
	if err := r.checkDone(ctx, s, &reports[0], reported[0].Given); err != nil {
		if ctx.Err() == nil {
			s.stop(err) // as it would if the stream had waited
		}
		return
	}

	r.scheduler.Sessions.EnterChecked(s.Session, &protocol.FromWorker{Reports: reports})
}

// checkDone checks the output of a report, and makes one that is refused a failure
// of its attempt, which another worker may run. The error is that of the stream.
func (r *reports) checkDone(ctx context.Context, s *workerStream, rep *protocol.Report, g workers.Given) error {
	why, err := r.checker.CheckReported(ctx, s.ID, rep, g)
	if err == nil && why != nil {
		if cluster.IsDamage(why) {
			r.supervisor.LogFailure(ctx, "an output cannot be checked", why, "job", rep.Job, "unit", rep.Unit)
		}
		r.refuseReport(s, rep, why)
	}
	return err
}

// refuseReport makes a report one of a failure, and notes whose it was.
func (r *reports) refuseReport(s *workerStream, rep *protocol.Report, why error) {
	if RefuseReport(s.ID, rep, why) {
		r.log.Warn("output refused", "session", s.ID, "refused", r.scheduler.Sessions.CountRefused(s.Session),
			"job", rep.Job, "unit", rep.Unit, "attempt", rep.Attempt, "err", why)
	}
}

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
