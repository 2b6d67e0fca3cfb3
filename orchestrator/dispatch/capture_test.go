package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// A talker finds what the rules find, after so many calls of a model that says
// much.
type talker struct {
	agent.Agent
	calls, bytes int
}

func (a *talker) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	for i := range a.calls {
		if err := calls.Call(ctx, "vendor/model", func(context.Context) error { return nil }); err != nil {
			return nil, err
		}
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 10, Out: 3}, CostMicros: 5})
		calls.Record(mapreduce.Call{
			Name: "vendor/model", Latency: time.Microsecond, Tokens: mapreduce.Tokens{In: 10, Out: 3}, CostMicros: 5,
			Prompt: fmt.Sprintf("%d %s", i, strings.Repeat("é", a.bytes/2)), Answer: "\xff",
		})
	}
	return a.Agent.Run(ctx, task, calls)
}

// B19: the journal of a unit has all its calls; what is captured of these is
// what the job asks for, and bounded. Reduces are not given it.
func TestCapture(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	a := &talker{Agent: enginetest.ByRules()}
	c.WorkerFor("rules", a, worker.Config{Slots: 1}, n)
	for _, tt := range []struct {
		capture      mapreduce.Capture
		calls, bytes int
		want, texts  int // captured calls, and of these with their texts
		cut          bool
	}{
		{mapreduce.CaptureOff, 3, 10, 0, 0, false},
		{mapreduce.CaptureStandard, 3, 10, 3, 0, false},
		{mapreduce.CaptureFull, 3, 10, 3, 3, false},
		{mapreduce.CaptureFull, 1, 100 << 10, 1, 1, true},
		{mapreduce.CaptureFull, 20, 60 << 10, 20, 9, true},
		{mapreduce.CaptureFull, 500, 10, 200, 200, false},
	} {
		t.Run(fmt.Sprintf("%d of %d calls with %d bytes", tt.capture, tt.calls, tt.bytes), func(t *testing.T) {
			a.calls, a.bytes = tt.calls, tt.bytes
			spec := enginetest.Extracting(t, enginetest.Orders)
			spec.Capture = tt.capture
			id, result := n.Run(spec, enginetest.Texts(map[string]string{"a": "ORDER: A-1"}, "a"))
			if len(result.Records) != 1 || result.Records[0]["order"] != "A-1" {
				t.Errorf("records: %v", result.Records)
			}
			page, err := n.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: id, Outputs: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range page.Units {
				checkCaptured(t, u, tt.want, tt.texts, tt.cut)
				if u.CallSums.Calls != int64(tt.calls) || u.Tokens.In != int64(10*tt.calls) {
					t.Errorf("%s: calls %+v, %d tokens in", u.ID, u.CallSums, u.Tokens.In)
				}
			}
		})
	}
}

func checkCaptured(t *testing.T, u *mapreduce.Unit, want, texts int, cut bool) {
	t.Helper()
	calls, err := payload.CallsOf(u.Output)
	if err != nil {
		t.Fatal(err)
	}
	withText, anyCut := 0, false
	for _, c := range calls {
		if c.Prompt != "" {
			withText++
		}
		anyCut = anyCut || c.Cut
		if c.Name != "vendor/model" || c.Tokens.In != 10 || c.CostMicros != 5 || c.At < 0 {
			t.Errorf("%s: call %+v", u.ID, c)
		}
	}
	if len(calls) != want || withText != texts || anyCut != cut || len(u.Output) > 600<<10 {
		t.Errorf("%s: %d calls, %d with their prompts, cut %v, in %d bytes; want %d, %d, %v", u.ID, len(calls), withText, anyCut, len(u.Output), want, texts, cut)
	}
}
