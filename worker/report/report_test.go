package report_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/report"
)

// TestReporterOfFailures: how an attempt is reported that failed follows from its error and from
// why its context ended, in this order: what is permanent, the deadline, another interruption, an
// open breaker, the budget.
func TestReporterOfFailures(t *testing.T) {
	var (
		late      = &report.LateError{After: time.Minute}
		open      = &agent.BreakerError{Name: "p/m", OpenFor: time.Second}
		noRoom    = &agent.BreakerError{Name: "p/m", OpenFor: time.Second, NoRoom: true}
		permanent = agent.Permanent(errors.New("no such field"))
		odd       = errors.New("odd")
		draining  = errors.New("the worker is draining")
	)
	for _, tt := range []struct {
		name    string
		err     error
		cause   error // why the context ended; nil if it has not
		skips   bool  // units of models whose breaker is open
		outcome protocol.Outcome
		class   protocol.FailureClass
		breaker string
	}{
		{"an error", odd, nil, false, protocol.Errored, protocol.Retryable, ""},
		{"a permanent one", permanent, nil, false, protocol.Errored, protocol.PermanentUnit, ""},
		{"a permanent one, interrupted", permanent, draining, false, protocol.Errored, protocol.PermanentUnit, ""},
		{"late", odd, late, false, protocol.Errored, protocol.Retryable, ""},
		{"interrupted", odd, draining, false, protocol.Returned, 0, ""},
		{"interrupted, while a breaker is open", open, draining, false, protocol.Returned, 0, ""},
		{"a breaker is open", fmt.Errorf("call: %w", open), nil, false, protocol.Returned, 0, "p/m"},
		{"a breaker is open, of a job that skips", open, nil, true, protocol.Errored, protocol.PermanentUnit, ""},
		{"no room, of a job that skips", noRoom, nil, true, protocol.Returned, 0, ""},
		{"no budget", fmt.Errorf("call: %w", agent.ErrBudget), nil, false, protocol.Returned, 0, ""},
		{"parked", agent.Park("ticket 7", time.Hour, "waits"), nil, false, protocol.Parked, 0, ""},
		{"parked, interrupted", agent.Park("ticket 7", time.Hour, "waits"), draining, false, protocol.Parked, 0, ""},
		{"parked without a handle", agent.Park("", time.Hour, ""), nil, false, protocol.Errored, protocol.PermanentUnit, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if tt.cause != nil {
				end(tt.cause)
			}
			spec := &mapreduce.JobSpec{}
			if tt.skips {
				spec.OnBreaker = mapreduce.BreakerSkip
			}
			held := protocol.Held{Job: "j", Unit: "u", Attempt: 2}
			spent := new(report.Account)
			spent.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 5, Out: 2}})

			r := report.Reporter{Held: held, Spec: spec, Context: ctx, Account: spent}.Failed(tt.err)
			if r.Outcome != tt.outcome || r.Class != tt.class || r.Breaker != tt.breaker {
				t.Errorf("outcome %v, class %v, breaker %q; want %v, %v, %q", r.Outcome, r.Class, r.Breaker, tt.outcome, tt.class, tt.breaker)
			}
			if r.Job != "j" || r.Unit != "u" || r.Attempt != 2 || r.Tokens != spent.SoFar().Tokens {
				t.Errorf("the report is of attempt %d at %s of %s, with %v; want 2, u, j and what was spent", r.Attempt, r.Unit, r.Job, r.Tokens)
			}
		})
	}
}
