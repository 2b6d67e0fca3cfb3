package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

func TestClassify(t *testing.T) {
	cause := errors.New("cause")
	for name, tc := range map[string]struct {
		err   error
		class protocol.FailureClass
		after time.Duration
	}{
		"unknown":         {cause, protocol.Retryable, 0},
		"deadline":        {context.DeadlineExceeded, protocol.Retryable, 0},
		"retry":           {agent.Retry(cause, time.Second), protocol.Retryable, time.Second},
		"permanent":       {agent.Permanent(cause), protocol.PermanentUnit, 0},
		"job":             {agent.PermanentJob(cause), protocol.PermanentJob, 0},
		"wrapped":         {fmt.Errorf("page 3: %w", agent.Permanent(cause)), protocol.PermanentUnit, 0},
		"outermost wins":  {agent.Retry(agent.Permanent(cause), time.Minute), protocol.Retryable, time.Minute},
		"joined":          {errors.Join(cause, agent.PermanentJob(cause)), protocol.PermanentJob, 0},
		"budget":          {fmt.Errorf("call 2: %w", agent.ErrBudget), protocol.Retryable, 0},
		"breaker is open": {&agent.BreakerError{Name: "a/b", OpenFor: time.Second}, protocol.Retryable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			class, after := agent.Classify(tc.err)
			if class != tc.class || after != tc.after {
				t.Errorf("Classify = %v, %v; want %v, %v", class, after, tc.class, tc.after)
			}
		})
	}
	if err := agent.Permanent(cause); !errors.Is(err, cause) || err.Error() != "cause" {
		t.Errorf("a class hides its cause: %v", err)
	}
}
