package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

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

	dropImpossible(refused)
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

// CheckReport returns an error that says which count, time or length of a report is
// impossible.
func CheckReport(r *protocol.Report) error {
	inline := r.Length == 0 && len(r.SHA256) == 0 && len(r.Output) <= protocol.MaxInline
	put := len(r.Output) == 0 && r.Length > 0 && r.Length <= protocol.MaxOutput && len(r.SHA256) == sha256.Size

	switch {
	case r.Outcome == protocol.Done && !inline && !put:
		return fmt.Errorf("an output of %d bytes that was put, with a hash of %d bytes and %d bytes beside it", r.Length, len(r.SHA256), len(r.Output))
	case r.Size < 0 || r.Size > maxReportTokens:
		return fmt.Errorf("an output of %d tokens", r.Size)
	case !(r.Confidence >= 0 && r.Confidence <= 1):
		return fmt.Errorf("a confidence of %v", r.Confidence)
	}
	return cmp.Or(checkSpent(r), checkTimes(r), checkSavings(r))
}

// dropImpossible takes numbers that cannot be off a report. What an attempt spent is not
// known then, and what it had reserved is charged.
func dropImpossible(r *protocol.Report) {
	if checkSpent(r) != nil {
		r.Tokens, r.CostMicros, r.Charges, r.Unmeasured = mapreduce.Tokens{}, 0, nil, true
	}
	if checkSavings(r) != nil { // more than is charged cannot be saved of it
		r.Savings = mapreduce.Savings{}
	}
	if checkTimes(r) != nil {
		r.Latency, r.ToolTime, r.Elapsed, r.Calls, r.Tools, r.Prompt = 0, 0, 0, 0, 0, 0
	}
}

// checkSpent returns an error that names what an attempt cannot have spent.
func checkSpent(r *protocol.Report) error {
	switch {
	case !countsTokens(r.Tokens.In):
		return impossible("tokens.input", r.Tokens.In)
	case !countsTokens(r.Tokens.Out):
		return impossible("tokens.output", r.Tokens.Out)
	case r.CostMicros < 0 || r.CostMicros > maxReportMicros:
		return impossible("cost_micros", r.CostMicros)
	}

	// What is possible in each may be too much in all: see mapreduce.WholeCharges.
	for i, c := range r.Charges {
		if !c.IsPossible() || !countsTokens(c.Calls) || !countsTokens(c.Tokens.In) || !countsTokens(c.Tokens.Out) || c.CostMicros > maxReportMicros {
			return impossible(fmt.Sprintf("charges[%d]", i), c)
		}
	}
	return nil
}

// checkTimes returns an error that names the time or the count of calls that an attempt
// cannot have had.
func checkTimes(r *protocol.Report) error {
	times := []struct {
		name string
		took time.Duration
	}{{"call_latency", r.Latency}, {"tool_time", r.ToolTime}, {"elapsed", r.Elapsed}}
	for _, t := range times {
		if t.took < 0 || t.took > maxSpan {
			return impossible(t.name, t.took)
		}
	}

	switch {
	case r.Prompt < 0 || r.Prompt > maxPrompt:
		return impossible("largest_prompt_bytes", r.Prompt)
	case r.Calls < 0:
		return impossible("call_count", r.Calls)
	case r.Tools < 0:
		return impossible("tool_call_count", r.Tools)
	}
	return nil
}

// checkSavings returns an error that names what caches cannot have saved an attempt: more
// tokens than it was charged for, or money without tokens or answers.
func checkSavings(r *protocol.Report) error {
	s := &r.Savings
	cached := s.CacheRead + s.CacheWrite
	switch {
	case !countsTokens(s.Answers):
		return impossible("savings.answer_count", s.Answers)
	case s.AnswerMicros < 0 || s.AnswerMicros > maxReportMicros || s.Answers == 0 && s.AnswerMicros > 0:
		return impossible("savings.answer_cost_micros", s.AnswerMicros)
	case !countsTokens(s.CacheWrite) || s.CacheWrite > r.Tokens.In:
		return impossible("savings.cache_write_tokens", s.CacheWrite)
	case !countsTokens(s.CacheRead) || cached > r.Tokens.In:
		return impossible("savings.cache_read_tokens", s.CacheRead)
	case s.PromptMicros > maxReportMicros || s.PromptMicros < -r.CostMicros || cached == 0 && s.PromptMicros != 0:
		return impossible("savings.prompt_cost_micros", s.PromptMicros)
	}
	return nil
}

// impossible returns the error of a number that no attempt has.
func impossible(field string, value any) error {
	return fmt.Errorf("%s is %v, which no attempt has", field, value)
}

func countsTokens(tokens int64) bool { return tokens >= 0 && tokens <= maxReportTokens }
