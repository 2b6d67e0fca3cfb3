package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// D8: the report has a file of its own, whose name follows from what it says: written again it
// is the same file, and beside the report of another comparison it is another one.
func TestD8TheReportHasAFileOfItsOwn(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	site := newNewsSite(t, readKinds)
	s := newStudio(t, fakellm.Config{})
	s.write("sources.jsonl", site.sources(7))
	compare := func(most int) { s.compare("out", most, append(site.hosts(), "--tool", "fetch")...) }
	reports := func(want int) []string {
		t.Helper()
		found, err := filepath.Glob(s.path("out/report_?????.md"))
		if err != nil || len(found) != want {
			t.Fatalf("%v: reports %v, want %d", err, found, want)
		}
		return found
	}
	compare(6)
	first := reports(1)[0]
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"# vote on the tidal barrier", newsHeadline(3), "Country 3", "## References"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %q:\n%s", first, part, text)
		}
	}
	if strings.Contains(string(text), "mr_") {
		t.Errorf("%s names its job, and is different each time", first)
	}
	if o := s.try(nil, "result", "last", "--output", s.path("out")); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if o := s.try(nil, append([]string{"replay", "last", "--tool", "fetch"}, site.hosts()...)...); o.code != 2 || !strings.Contains(o.stderr, "called tools without a model, and would call them again") {
		t.Errorf("a job that would fetch pages again is repeated: %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	compare(6) // another job of the same sources
	reports(1)
	compare(7)
	reports(2)
	if again, err := os.ReadFile(first); err != nil || string(again) != string(text) {
		t.Errorf("the first report has changed: %v", err)
	}
}

// D9: with fewer than three sources the direct way is suggested, before the run and by it.
func TestD9FewSourcesAreBetterReadDirectly(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	site := newNewsSite(t, readKinds)
	s := newStudio(t, fakellm.Config{})
	for _, count := range []int{2, 3} {
		s.write("sources.jsonl", site.sources(count))
		args := []string{"--input", s.path("sources.jsonl"), "--pipeline", "compare", "--question", "vote on the tidal barrier"}
		run := append(site.hosts(), "--output", s.path(fmt.Sprint("out", count)), "--tool", "fetch")
		for command, more := range map[string][]string{"plan": nil, "run": run} {
			o := s.try(nil, append(append([]string{command}, args...), more...)...)
			suggested := strings.Contains(o.stdout+o.stderr, "fewer than three sources leave little to compare: ask about them directly")
			if o.code != 0 || suggested != (count < 3) {
				t.Errorf("%s of %d sources: exit code %d, the direct way is suggested: %t\n%s%s", command, count, o.code, suggested, o.stdout, o.stderr)
			}
		}
	}
}

// checkSizes checks what a comparison by a model says of its contexts (D6): of 50 sources the
// planner is given at most 10 KiB, a reader of one source 50 and the editor 30, and no context
// has 100.
func (s *studio) checkSizes(output string) {
	s.t.Helper()
	var m struct {
		Job struct {
			Prompt int64 `json:"largest_prompt_bytes"`
		}
		Levels []struct {
			Stage  string
			Prompt int64 `json:"largest_prompt_bytes"`
		}
	}
	data, err := os.ReadFile(s.path(filepath.Join(output, "metrics.json")))
	if err != nil {
		s.t.Fatal(err)
	}
	s.decode(string(data), &m)
	most, seen, peak := map[string]int64{"plan": 10 << 10, "coverage": 50 << 10, "table": 30 << 10}, 0, int64(0)
	for _, l := range m.Levels {
		if bound := most[l.Stage]; bound > 0 {
			seen++
			if l.Prompt < 1000 || l.Prompt > bound {
				s.t.Errorf("D6: a context of the stage %s has %d bytes, want at most %d", l.Stage, l.Prompt, bound)
			}
		}
		peak = max(peak, l.Prompt)
	}
	if seen != 3 || m.Job.Prompt != peak || peak >= 100_000 {
		s.t.Errorf("D6: %d stages are measured, and the largest context has %d bytes, %d of them all", seen, m.Job.Prompt, peak)
	}
	s.t.Logf("D6: contexts in bytes: %+v", m.Levels)
}

// checkThree checks that a comparison reads three sources at a time (D3).
func (s *studio) checkThree(output string) {
	s.t.Helper()
	var trace struct {
		Tasks []struct {
			Stage          string
			Started, Ended time.Time
		}
	}
	data, err := os.ReadFile(s.path(filepath.Join(output, "trace.json")))
	if err != nil {
		s.t.Fatal(err)
	}
	s.decode(string(data), &trace)
	most := 0
	for _, one := range trace.Tasks {
		if one.Stage != "coverage" {
			continue
		}
		together := 0
		for _, other := range trace.Tasks {
			if other.Stage == "coverage" && !other.Started.After(one.Started) && other.Ended.After(one.Started) {
				together++
			}
		}
		most = max(most, together)
	}
	if most < 2 || most > 3 {
		s.t.Errorf("D3: %d sources were read at a time, want 3", most)
	}
	s.t.Logf("D3: %d sources were read at a time", most)
}
