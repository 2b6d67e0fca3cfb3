package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
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
		why := checkReport(&rep)
		switch g := given[i]; {
		case why != nil:
			o.refuseReport(s, &rep, why)
		case rep.Outcome != mapreduce.Done:
		case !g.checksQuickly(&rep):
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

// An assignedInput is what a unit was given, as far as it is kept.
type assignedInput struct {
	unit *storagev1.Unit
	text []byte
}

// checksQuickly reports whether the output of a report can be checked without reading
// anything but, for a few, the document.
func (g assignedInput) checksQuickly(rep *mapreduce.Report) bool {
	if g.unit == nil || rep.Length > 0 {
		return false
	}
	kind := mapreduce.UnitKind(g.unit.Kind)
	return kind == mapreduce.KindParse || kind == mapreduce.KindMap && g.text != nil
}

// assignedInputs returns what the units of reports were given.
func (b *scheduler) assignedInputs(s *session, reports []mapreduce.Report) []assignedInput {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]assignedInput, len(reports))
	for i, rep := range reports {
		if h := s.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			all[i] = assignedInput{h.unit, h.text}
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
	select {
	case o.checkSlots <- struct{}{}:
		defer func() { <-o.checkSlots }()
	case <-ctx.Done():
		return
	}
	if err := o.checkDone(ctx, s, rep, assignedInput{}); err != nil {
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

// checkDone checks the output of a report, and makes one that is refused a failure
// of its attempt, which another worker may run. The error is that of the stream.
func (o *Orchestrator) checkDone(ctx context.Context, s *session, rep *mapreduce.Report, g assignedInput) error {
	var why error
	err := o.supervisor.RetryStoreCall(ctx, "reading what an output is checked against", func() error {
		return o.supervisor.ContainPanic(ctx, "checking an output", func() (err error) {
			why, err = o.examineOutput(ctx, s, rep, g)
			return err
		}, "job", rep.Job, "unit", rep.Unit)
	})
	switch {
	case err == nil && why == nil:
		return nil
	case err == nil:
	case errs.KindOf(err) == errs.NotFound: // the job was deleted
		why = errNotIts
	case supervise.IsPermanent(err):
		why = err
	default:
		return err
	}
	o.refuseReport(s, rep, why)
	return nil
}

// examineOutput says why the output of a report is refused. It believes of the report no
// more than whose it is: one for an attempt that is not the session's is refused
// unread, which changes nothing, unless the attempt should become its own.
func (o *Orchestrator) examineOutput(ctx context.Context, s *session, rep *mapreduce.Report, g assignedInput) (why, err error) {
	u := g.unit
	if u == nil {
		if u, err = o.jobs.Unit(ctx, rep.Job, rep.Unit); err != nil {
			return nil, err
		}
		if u == nil || u.Attempt != int64(rep.Attempt) || u.Session != string(s.id) {
			return errNotIts, nil
		}
		if rep.Length > 0 && !jobs.Whole(u.Put, rep) { // what is whole does not change any more
			return errNotPut, nil
		}
	}
	data, err := o.jobs.Reported(ctx, rep)
	if err != nil {
		return nil, err
	}
	return o.verifyText(ctx, rep.Job, u, g.text, data)
}

// errNotPut is what a report is refused with whose output was not put before.
var errNotPut = errors.New("it is not stored: an output has to be put whole before its report")

// errNotIts is why a report is not looked at.
var errNotIts = errors.New("the attempt is not this worker's")

// refuseReport makes a report one of a failure. Its worker is noted, for one that does so
// again and again is broken, or hostile.
func (o *Orchestrator) refuseReport(s *session, rep *mapreduce.Report, why error) {
	refused := &mapreduce.Report{
		Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt, Outcome: mapreduce.Errored, Class: mapreduce.Retryable,
		Errors: slices.Concat(rep.Errors, []string{fmt.Sprintf("the output that worker %s reported was refused: %v", s.id, why)}),
		Tokens: rep.Tokens, CostMicros: rep.CostMicros, Calls: rep.Calls, Latency: rep.Latency, Tools: rep.Tools,
		ToolTime: rep.ToolTime, Elapsed: rep.Elapsed, Savings: rep.Savings,
	}
	if !countsTokens(rep.Tokens.In) || !countsTokens(rep.Tokens.Out) || rep.CostMicros < 0 || rep.CostMicros > maxReportMicros {
		refused.Tokens, refused.CostMicros = mapreduce.Tokens{}, 0
	}
	*rep = *refused
	if errors.Is(why, errNotIts) {
		rep.Outcome, rep.Errors = mapreduce.Returned, nil // says nothing of anything
		return
	}
	o.log.Warn("output refused", "session", s.id, "refused", o.scheduler.refusedBy(s),
		"job", rep.Job, "unit", rep.Unit, "attempt", rep.Attempt, "err", why)
}

// refusedBy counts an output that was refused, and returns how many were of s.
func (b *scheduler) refusedBy(s *session) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.refused++
	return s.refused
}
