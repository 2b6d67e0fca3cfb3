package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A savings is what status and metrics.json say that caches saved.
type savings struct {
	Answers     int64    `json:"answers"`
	AnswersCost *float64 `json:"answers_cost"`
	CacheWrite  int64    `json:"cache_write_tokens"`
	CacheRead   int64    `json:"cache_read_tokens"`
	PromptsCost *float64 `json:"prompts_cost"`
}

// A spending is what status says of money.
type spending struct {
	JobID   string   `json:"job_id"`
	Cost    *float64 `json:"cost"`
	Tokens  int64    `json:"total_tokens"`
	Savings savings  `json:"savings"`
}

// spent is what run, or status, printed.
func (s *studio) spent(o outcome) spending {
	s.t.Helper()
	if o.code != 0 {
		s.t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var p spending
	s.decode(o.stdout, &p)
	return p
}

// metrics reads metrics.json.
func (s *studio) metrics(output string) (m struct {
	Job     struct{ Cost *float64 } `json:"job"`
	Savings savings                 `json:"savings"`
},
) {
	s.t.Helper()
	data, err := os.ReadFile(s.path(output + "/metrics.json"))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// A job costs what the prices say that it was given, in all that shows it, be it
// a command that knows nothing of them, or a price of nothing.
func TestCostByThePricesOfTheJob(t *testing.T) {
	for name, tt := range map[string]struct {
		prices string
		cost   func(in, out int64) float64
	}{
		"of a model of one's own": {"anthropic: {house-1: {input: 1, output: 3}}", func(in, out int64) float64 { return float64(in+3*out) / 1e6 }},
		"which is free":           {"anthropic: {house-1: {input: 0, output: 0}}", func(int64, int64) float64 { return 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, fakellm.Config{Model: obedient})
			s.write("docs/1.txt", shopText(1))
			s.write("prices.yaml", tt.prices)
			job := s.spent(s.ask("out", "--model", "house-1", "--prices", s.path("prices.yaml"), "-o", "json"))
			e := s.fake.Entries()[0]
			want := tt.cost(e.In(), e.Output)
			status := s.spent(s.try(nil, "status", "--job-id", job.JobID, "-o", "json"))
			for place, cost := range map[string]*float64{"run": job.Cost, "status": status.Cost, "metrics.json": s.metrics("out").Job.Cost} {
				if cost == nil || fmt.Sprintf("%.6f", *cost) != fmt.Sprintf("%.6f", want) {
					t.Errorf("%s says that it cost %v, want %v", place, show(cost), want)
				}
			}
		})
	}
}

func show(cost *float64) string {
	if cost == nil {
		return "null"
	}
	return fmt.Sprint(*cost)
}
