package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// D8: the report has a file of its own, whose name follows from what it says: written again it
// is the same file, and beside the report of another comparison it is another one.
func TestD8TheReportHasAFileOfItsOwn(t *testing.T) {
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
