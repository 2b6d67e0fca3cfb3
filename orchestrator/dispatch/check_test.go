package dispatch_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/dispatch"
)

// TestRefusedReportsKeepWhatWasSpent has reports refused for what they say of their output,
// and for numbers.
func TestRefusedReportsKeepWhatWasSpent(t *testing.T) {
	spent := mapreduce.Tokens{In: 700, Out: 30}
	tests := []struct {
		name       string
		tokens     mapreduce.Tokens
		elapsed    time.Duration
		want       mapreduce.Tokens
		unmeasured bool // what was reserved is charged
	}{
		{"a false quote", spent, time.Second, spent, false},
		{"an impossible time", spent, math.MaxInt64, spent, false},
		{"impossible tokens", mapreduce.Tokens{In: 1 << 40}, time.Second, mapreduce.Tokens{}, true},
	}
	for _, test := range tests {
		rep := &protocol.Report{Outcome: protocol.Done, Tokens: test.tokens, Elapsed: test.elapsed, CostMicros: 5}
		dispatch.RefuseReport("s", rep, errors.New("refused"))
		if diff := cmp.Diff(test.want, rep.Tokens); diff != "" || rep.Unmeasured != test.unmeasured || rep.Outcome != protocol.Errored {
			t.Errorf("%s: unmeasured %v, outcome %v; tokens (-want +got):\n%s", test.name, rep.Unmeasured, rep.Outcome, diff)
		}
	}
}
