package orchestrator

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/verify"
)

// maxChecking is how many outputs of one worker wait to be checked before its
// stream waits for that.
const maxChecking = 64

// checkQuick checks the reports of a message as far as all that takes is at hand,
// and takes those off the message that take more. No output goes to the store
// unchecked: what a report says of one that is refused becomes a failure.
func (o *Orchestrator) checkQuick(ctx context.Context, s *session, m *mapreduce.FromWorker) ([]mapreduce.Report, error) {
	given := o.scheduler.assignedInputs(s, m.Reports)
	var now, later []mapreduce.Report
	for i, rep := range m.Reports {
		why := verify.CheckReport(&rep)
		switch g := given[i]; {
		case why != nil:
			o.refuseReport(s, &rep, why)
		case rep.Outcome != mapreduce.Done:
		case !g.ChecksQuickly(&rep):
			later = append(later, rep)
			continue
		default:
			if err := o.checkDone(ctx, s, &rep, g); err != nil {
				return nil, err
			}
		}
		now = append(now, rep)
	}
	m.Reports = now
	o.scheduler.noteArrivedReports(s, later)
	return later, nil
}

// assignedInputs returns what the units of reports were given.
func (b *scheduler) assignedInputs(s *session, reports []mapreduce.Report) []verify.Given {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]verify.Given, len(reports))
	for i, rep := range reports {
		if h := s.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			all[i] = verify.Given{Unit: h.unit, Text: h.text}
		}
	}
	return all
}

// noteArrivedReports notes that attempts have ended on their worker, so that what ends it now
// is not blamed on them. Their slots are free once their outputs were checked: then
// one turn takes the reports and fills the slots.
func (b *scheduler) noteArrivedReports(s *session, reports []mapreduce.Report) {
	if len(reports) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rep := range reports {
		if h := s.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			h.checking = true
		}
	}
}

// checkLater checks reports beside the stream, so that those behind them need not
// wait. What is not checked when the stream ends, the worker reports again.
func (o *Orchestrator) checkLater(ctx context.Context, s *session, reports []mapreduce.Report) error {
	for _, rep := range reports {
		select {
		case s.checking <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		o.streams.Go(func() {
			defer func() { <-s.checking }()
			o.checkOne(ctx, s, &rep)
		})
	}
	return nil
}

// checkOne checks one report when it is its turn, and enters it on the scheduler.
func (o *Orchestrator) checkOne(ctx context.Context, s *session, rep *mapreduce.Report) {
	leave, err := o.checker.WaitTurn(ctx)
	if err != nil {
		return
	}
	defer leave()
	if err := o.checkDone(ctx, s, rep, verify.Given{}); err != nil {
		if ctx.Err() == nil {
			s.stop(err) // as it would if the stream had waited
		}
		return
	}
	b := o.scheduler
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.enterReport(s, rep) {
		b.modelsChanged.Wake()
	}
	b.wake.Broadcast()
}

// refusedBy counts an output that was refused, and returns how many were of s.
func (b *scheduler) refusedBy(s *session) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.refused++
	return s.refused
}

// CheckReported checks the output of a report, and makes one that is refused a failure
// of its attempt, which another worker may run. The error is that of the stream.
func (o *Orchestrator) checkDone(ctx context.Context, s *session, rep *mapreduce.Report, g verify.Given) error {
	why, err := o.checker.CheckReported(ctx, s.id, rep, g)
	if err == nil && why != nil {
		o.refuseReport(s, rep, why)
	}
	return err
}

// RefuseReport makes a report one of a failure, and notes whose it was.
func (o *Orchestrator) refuseReport(s *session, rep *mapreduce.Report, why error) {
	if verify.RefuseReport(s.id, rep, why) {
		o.log.Warn("output refused", "session", s.id, "refused", o.scheduler.refusedBy(s),
			"job", rep.Job, "unit", rep.Unit, "attempt", rep.Attempt, "err", why)
	}
}
