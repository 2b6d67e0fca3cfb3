package protocol_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// TestImpossibleNumbersAreRefusedByName has a sound report with one number that cannot be.
func TestImpossibleNumbersAreRefusedByName(t *testing.T) {
	sound := func() *protocol.Report {
		return &protocol.Report{
			Job: "mr_20260101_abcdef", Unit: "a.txt", Attempt: 1, Outcome: protocol.Done, Output: []byte("x"), Confidence: 0.5,
			Tokens: mapreduce.Tokens{In: 1000, Out: 50}, CostMicros: 300, Calls: 2, Latency: time.Second, Tools: 1,
			ToolTime: time.Second, Prompt: 4000, Elapsed: 3 * time.Second,
			Savings: mapreduce.Savings{Answers: 1, AnswerMicros: 20, CacheWrite: 100, CacheRead: 900, PromptMicros: -300},
		}
	}
	const year = 366 * 24 * time.Hour
	tests := []struct {
		field  string // "" is taken
		change func(*protocol.Report)
	}{
		{"", func(*protocol.Report) {}},
		{"", func(r *protocol.Report) { r.Savings.PromptMicros = 1 << 30 }},
		{"", func(r *protocol.Report) { r.RetryAfter = year }},
		{"tokens.input", func(r *protocol.Report) { r.Tokens.In = 1<<34 + 1 }},
		{"tokens.input", func(r *protocol.Report) { r.Tokens.In = -1 }},
		{"tokens.output", func(r *protocol.Report) { r.Tokens.Out = math.MaxInt64 }},
		{"cost_micros", func(r *protocol.Report) { r.CostMicros = -1 }},
		{"cost_micros", func(r *protocol.Report) { r.CostMicros = math.MaxInt64 }},
		{"call_latency", func(r *protocol.Report) { r.Latency = year }},
		{"tool_time", func(r *protocol.Report) { r.ToolTime = year }},
		{"elapsed", func(r *protocol.Report) { r.Elapsed = -time.Second }},
		{"elapsed", func(r *protocol.Report) { r.Elapsed = math.MaxInt64 }},
		{"largest_prompt_bytes", func(r *protocol.Report) { r.Prompt = 1 << 40 }},
		{"savings.answer_count", func(r *protocol.Report) { r.Savings.Answers = 1 << 40 }},
		{"savings.answer_cost_micros", func(r *protocol.Report) { r.Savings.Answers = 0 }},
		{"savings.cache_write_tokens", func(r *protocol.Report) { r.Savings.CacheWrite = 1001 }},
		{"savings.cache_read_tokens", func(r *protocol.Report) { r.Savings.CacheRead = 901 }},
		{"savings.cache_read_tokens", func(r *protocol.Report) { r.Savings.CacheRead = math.MaxInt64 }},
		{"savings.prompt_cost_micros", func(r *protocol.Report) { r.Savings.PromptMicros = -301 }},
		{"savings.prompt_cost_micros", func(r *protocol.Report) { r.Savings.PromptMicros = math.MaxInt64 }},
		{"savings.prompt_cost_micros", func(r *protocol.Report) { r.Savings.CacheRead, r.Savings.CacheWrite = 0, 0 }},
	}
	for _, test := range tests {
		rep := sound()
		test.change(rep)
		err := rep.Check()
		if test.field == "" && err != nil || test.field != "" && (err == nil || !strings.HasPrefix(err.Error(), test.field+" ")) {
			t.Errorf("want a refusal of %q, got %v", test.field, err)
		}
	}
}
