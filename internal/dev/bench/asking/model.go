package asking

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// A modelOrder makes a process a model that answers over HTTP.
type modelOrder struct {
	Mean   time.Duration // of its latencies, which are log-normal
	Faults float64       // share of calls that go wrong
	Rates  meter.Rates
	Agents bool // it leads agents with tools, see ofTurn for its latencies
}

// Sigma is the deviation of the logarithm of latencies, and their seed.
const (
	latencySigma = .8
	latencySeed  = 5
)

func (o *modelOrder) latencyFunc() func(fakellm.Call) time.Duration {
	return fakellm.LogNormal(latencySeed, o.Mean, latencySigma)
}

// serveModel serves until ctx ends.
func (o *modelOrder) serveModel(ctx context.Context, out *json.Encoder) error {
	config := fakellm.Config{
		Model: readReceipt, Latency: o.latencyFunc(), Rates: o.Rates, Fault: fakellm.Mix(latencySeed, o.Faults, passingFaults()...),
	}
	if o.Agents {
		config = fakellm.Config{Model: runAgent, Latency: func(c fakellm.Call) time.Duration { return o.ofTurn(c.Unit, turnsTaken(c)) }}
	}
	return rig.ServeModel(ctx, config, out)
}

// passingFaults are the faults after which a job goes on.
func passingFaults() []fakellm.Fault {
	return slices.DeleteFunc(fakellm.Faults(), func(f fakellm.Fault) bool {
		switch f {
		case fakellm.Unauthorized, fakellm.NoMoney, fakellm.SpendLimit, fakellm.UnknownModel, fakellm.WebPage, fakellm.Redirect:
			return true
		}
		return false
	})
}

var totalLine = regexp.MustCompile(`TOTAL RM (\d+\.50)`)

// readReceipt is a model that reads receipts.
func readReceipt(c fakellm.Call) fakellm.Reply {
	total := []any{}
	if m := totalLine.FindStringSubmatch(c.Turns[0].Text); m != nil {
		total = append(total, map[string]any{"value": json.Number(m[1]), "quotes": []string{m[0]}, "confidence": .9})
	}
	raw, err := json.Marshal(map[string]any{"fields": map[string]any{"total": total}, "not_found": []any{}})
	if err != nil {
		panic(err) // texts and numbers
	}
	return fakellm.Reply{Text: string(raw)}
}
