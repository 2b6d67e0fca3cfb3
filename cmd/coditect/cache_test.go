package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
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
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
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

// Jobs that share answers pay for what is new: another document, another
// instruction, another model; and for nothing else.
func TestJobsShareAnswers(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newStudio(t, fakellm.Config{Model: obedient, Key: modelKey})
	for i := range 4 {
		s.write(fmt.Sprintf("docs/%d.txt", i), shopText(i))
	}
	calls := 0
	run := func(name string, fresh int, more ...string) spending {
		t.Helper()
		o := s.ask(name, append(more, "-o", "json")...)
		p := s.spent(o)
		if n := len(s.fake.Entries()) - calls; n != fresh {
			t.Errorf("%s: %d calls, want %d", name, n, fresh)
		}
		calls = len(s.fake.Entries())
		s.nowhere(o)
		return p
	}
	same := func(a, b string) {
		t.Helper()
		if one, other := s.result(a), s.result(b); !reflect.DeepEqual(one, other) {
			t.Errorf("%s and %s differ:\n%+v\n%+v", a, b, one, other)
		}
	}
	run("alone", 4)
	first := run("first", 4, "--cache") // what was asked before was not kept
	again := run("again", 0, "--cache")
	same("first", "again")
	same("alone", "again")
	if again.Tokens != 0 || again.Cost == nil || *again.Cost != 0 {
		t.Errorf("answers that were known cost %d tokens and %s", again.Tokens, show(again.Cost))
	}
	if got := again.Savings; got.Answers != 4 || got.AnswersCost == nil || *got.AnswersCost != *first.Cost {
		t.Errorf("saved %d answers and %s, want 4 and %s", got.Answers, show(got.AnswersCost), show(first.Cost))
	}
	if got := s.metrics("again").Savings; got.Answers != 4 || show(got.AnswersCost) != show(again.Savings.AnswersCost) {
		t.Errorf("metrics.json has %+v", got)
	}
	if o := s.try(nil, "status", "--job-id", again.JobID); !strings.Contains(o.stdout, "4 answers came from other jobs") {
		t.Errorf("status says nothing of it:\n%s", o.stdout)
	}

	s.write("docs/2.txt", shopText(2)+"THANK YOU\n")
	run("other document", 1, "--cache")
	s.write("schema.yaml", strings.Replace(receiptSchema, "Amount paid", "What was paid", 1))
	if p := run("other prompt", 4, "--cache"); p.Savings.Answers != 0 {
		t.Errorf("answers to other questions were taken: %+v", p.Savings)
	}
	run("other model", 4, "--cache", "--model", "claude-sonnet-4-5")
	run("other bound", 4, "--cache", "--model", "claude-sonnet-4-5", "--max-answer", "4000")
	run("not shared", 4)
	s.want(0, "doctor")

	var kept struct{ Answers, Bytes int64 }
	s.decode(s.want(0, "cache", "-o", "json"), &kept)
	if kept.Answers != 4+1+4+4+4 || kept.Bytes == 0 {
		t.Errorf("%+v is kept, want 17 answers", kept)
	}
	s.want(0, "cache", "--clear")
	run("forgotten", 4, "--cache")
}

// What is no whole answer is asked for again by the next job.
func TestOnlyWholeAnswersAreShared(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	for _, fault := range []fakellm.Fault{fakellm.Refusal, fakellm.Truncated, fakellm.WrongShape, fakellm.Prose} {
		t.Run(string(fault), func(t *testing.T) {
			bad := true
			var mu sync.Mutex
			s := newStudio(t, fakellm.Config{Model: obedient, Fault: func(fakellm.Call) fakellm.Fault {
				mu.Lock()
				defer mu.Unlock()
				if bad {
					return fault
				}
				return ""
			}})
			s.write("docs/1.txt", shopText(1))
			if o := s.ask("bad", "--cache", "--max-attempts", "1"); o.code != 1 {
				t.Fatalf("exit code %d, want 1\n%s%s", o.code, o.stdout, o.stderr)
			}
			mu.Lock()
			bad = false
			mu.Unlock()
			before := len(s.fake.Entries())
			if p := s.spent(s.ask("good", "--cache", "-o", "json")); p.Savings.Answers != 0 || len(s.fake.Entries()) != before+1 {
				t.Errorf("%d calls more, and %+v", len(s.fake.Entries())-before, p.Savings)
			}
		})
	}
}

// Where the beginning of prompts is long enough to be kept, the first unit pays for
// writing it, and all others read it.
func TestTheFirstUnitWarmsTheCache(t *testing.T) {
	testenv.Raced(t)

	s := newStudio(t, fakellm.Config{Model: obedient, Latency: func(fakellm.Call) time.Duration { return 100 * time.Millisecond }})
	for i := range 20 {
		s.write(fmt.Sprintf("docs/%d.txt", i), shopText(i))
	}
	s.write("schema.yaml", strings.Replace(receiptSchema, "Amount paid", strings.Repeat("Amount that was paid. ", 300), 1))
	p := s.spent(s.ask("out", "--model", "claude-sonnet-4-5", "--parallelism", "10", "-o", "json"))
	writers, reads := 0, int64(0)
	for _, e := range s.fake.Entries() {
		if e.CacheWrite > 0 {
			writers++
		}
		if e.N > 1 && e.CacheRead == 0 || e.N == 1 && e.CacheRead > 0 {
			t.Errorf("call %d read %d tokens and wrote %d", e.N, e.CacheRead, e.CacheWrite)
		}
		if !strings.Contains(e.System, "EXTRACTION SCHEMA") || strings.Contains(e.System, documentOf(e.Call)) {
			t.Errorf("call %d: the document stands in what is kept", e.N)
		}
		reads += e.CacheRead
	}
	if got := p.Savings; writers != 1 || got.CacheRead != reads || got.CacheWrite == 0 || got.PromptsCost == nil || *got.PromptsCost <= 0 {
		t.Errorf("%d calls wrote to the cache, %d tokens were read; status says %+v", writers, reads, got)
	}
}
