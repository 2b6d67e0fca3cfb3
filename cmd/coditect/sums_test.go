package main_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// An expense is what was spent, as trace.json has it of a task or in a sum.
type expense struct {
	in, out, calls, micros int64 // tokens, calls of models, millionths of a US dollar
}

func (s expense) add(o expense) expense {
	return expense{s.in + o.in, s.out + o.out, s.calls + o.calls, s.micros + o.micros}
}

// A summed is a sum in trace.json.
type summed struct {
	In    int64   `json:"totalInputTokens"`
	Out   int64   `json:"totalOutputTokens"`
	Calls int64   `json:"llmCallCount"`
	Cost  float64 `json:"totalCostEstimate"`
}

func (s summed) expense() expense { return expense{s.In, s.Out, s.Calls, micros(s.Cost)} }

func micros(dollars float64) int64 { return int64(math.Round(dollars * 1e6)) }

// A levelSum is the sum of a level.
type levelSum struct {
	Level   int    `json:"level"`
	Metrics summed `json:"metrics"`
}

// sums are what the tests of sums look at of trace.json.
type sums struct {
	Tasks []struct {
		In    int64   `json:"tokens_in"`
		Out   int64   `json:"tokens_out"`
		Calls int64   `json:"llmCallCount"`
		Cost  float64 `json:"cost"`
		Level *int    `json:"mapReduceLevel"`
	} `json:"tasks"`
	Levels     []levelSum `json:"mapReduceLevels"`
	Superseded []levelSum `json:"superseded"`
	Metrics    summed     `json:"metrics"`
}

// file decodes a file of the result.
func (h *house) file(name string, to any) {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.path("out"), name))
	if err != nil {
		h.t.Fatal(err)
	}
	h.decode(string(b), to)
}

// addsUp checks that the trace adds up, however often its units were begun: the sums
// over its tasks, over its levels, and what the job has spent. It returns what had
// been spent on units that are no more.
func (h *house) addsUp() (superseded expense) {
	h.t.Helper()
	var trace sums
	var metrics struct {
		Job struct {
			In   int64    `json:"tokens_in"`
			Out  int64    `json:"tokens_out"`
			Cost *float64 `json:"cost"` // null if it is not known
		} `json:"job"`
	}
	h.file("trace.json", &trace)
	h.file("metrics.json", &metrics)
	all, levels := expense{}, make(map[int]expense)
	for _, one := range trace.Tasks {
		s := expense{one.In, one.Out, one.Calls, micros(one.Cost)}
		all = all.add(s)
		if one.Level != nil {
			levels[*one.Level] = levels[*one.Level].add(s)
		}
	}
	for _, l := range trace.Levels {
		if l.Metrics.expense() != levels[l.Level] {
			h.t.Errorf("trace: level %d has %+v, its tasks %+v", l.Level, l.Metrics, levels[l.Level])
		}
		delete(levels, l.Level)
	}
	if len(levels) > 0 {
		h.t.Errorf("trace: levels without a summary: %v", levels)
	}
	for _, l := range trace.Superseded {
		superseded = superseded.add(l.Metrics.expense())
	}
	all = all.add(superseded)
	job := expense{in: metrics.Job.In, out: metrics.Job.Out, calls: all.calls, micros: all.micros}
	if metrics.Job.Cost != nil {
		job.micros = micros(*metrics.Job.Cost)
	}
	if all != trace.Metrics.expense() || all != job {
		h.t.Errorf("trace: all tasks and what is superseded come to %+v, its metrics to %+v; the job has spent %+v", all, trace.Metrics, job)
	}
	return superseded
}

// Reduces that a resume drops and plans anew were paid: sums over levels show it,
// and come to what the job has spent, over several resumes.
func TestSumsAfterResumes(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	c := newCorpus(t, program(t), 9, "--var", "script.poison.004.txt=permanent",
		"--var", "script.tokens_in=900", "--var", "script.tokens_out=70", "--var", "script.cost=1100")
	for name, of := range map[string]*corpus{
		"batches": c, "bins": c.reduced("--target-token-budget", "200"), "tree": c.reduced("--chunk-size", "3"),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, of)
			h.want(3, of.run("--output", "out")...)
			if gone := h.addsUp(); gone != (expense{}) {
				t.Errorf("%+v are superseded before any resume", gone)
			}
			job, _ := h.job()
			before := int64(0)
			for range 2 {
				h.want(3, "resume", "--job-id", job.JobID, "--output", "out")
				gone := h.addsUp()
				if stays := name == "tree"; stays != (gone == (expense{})) || !stays && gone.in <= before {
					t.Errorf("%+v are superseded, %d tokens before", gone, before)
				}
				before = gone.in
			}
			h.healthy()
		})
	}
}
