package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// An author is a model that finds themes in batches and writes a report. Each batch has the
// theme "Sand", spelled in several ways, and one of its own. For each it cites references of
// its batch, one of the batch before and one that nobody issued; and it says that it is
// another batch, with an id that nobody issued.
type author struct {
	lacks string // the section that its reports do not have; "" for none

	mu   sync.Mutex
	refs [][]string // of each batch, in order
	read []string   // the inputs of the report, as JSON
}

var (
	shownReference = regexp.MustCompile(`\[(REF_[0-9a-f]{8})\] `)
	inputForm      = regexp.MustCompile(`(?s)<input \d+ [^>]+>\n(.*?)\n</input `)
)

func (a *author) answer(c fakellm.Call) fakellm.Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch form := string(c.Schema); {
	case strings.Contains(form, "supporting_refs"):
		return replyOf(a.themesOf(c))
	case strings.Contains(form, "evidence_discussion"):
		return replyOf(a.reportOn(c))
	case strings.Contains(form, "verdicts"):
		return replyOf(map[string]any{"verdicts": []any{}})
	}
	return fakellm.Reply{Text: "{}"}
}

func replyOf(v any) fakellm.Reply {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and lists
	}
	return fakellm.Reply{Text: string(raw)}
}

// themesOf answers for a batch.
func (a *author) themesOf(c fakellm.Call) map[string]any {
	n := len(a.refs)
	var own []string
	for _, m := range shownReference.FindAllStringSubmatch(c.Prompt(), -1) {
		if !slices.Contains(own, m[1]) {
			own = append(own, m[1])
		}
	}
	cited := append(slices.Clone(own), "REF_0badc0de")
	if n > 0 {
		cited = append(cited, a.refs[n-1][0])
	}
	a.refs = append(a.refs, own)
	theme := func(name string, refs []string) map[string]any {
		return map[string]any{
			"theme": name, "key_finding": fmt.Sprintf("Batch %d finds sand [%s].", n, own[0]), "supporting_refs": refs, "evidence_strength": "strong",
		}
	}
	return map[string]any{
		"themes":         []any{theme([]string{"Sand", "sand.", "  SAND "}[n%3], cited), theme(fmt.Sprintf("Matter %d", n), own[:1])},
		"contradictions": []string{}, "batch_relevance": "high", "batch_number": 77, "citation_count": 99, "ref_ids": []string{"REF_0badc0de"},
	}
}

// reportOn answers for the report, and keeps what that is written from.
func (a *author) reportOn(c fakellm.Call) map[string]any {
	a.read = nil
	for _, m := range inputForm.FindAllStringSubmatch(c.Turns[0].Text, -1) {
		a.read = append(a.read, m[1])
	}
	text := "Rivers carry sand to the sea"
	if len(a.refs) > 0 {
		text += " [" + a.refs[0][0] + "]"
	}
	said := map[string]any{
		"introduction": text + ".", "evidence_discussion": text + " each year.", "conclusion": text + " in tonnes.", "themes_integrated": []string{"Sand"},
	}
	if a.lacks != "" {
		said[a.lacks] = " "
	}
	return said
}

// A batchOutput is what comes of a batch, or of several that are joined.
type batchOutput struct {
	Themes []struct {
		Theme    string   `json:"theme"`
		Finding  string   `json:"key_finding"`
		Refs     []string `json:"supporting_refs"`
		Strength string   `json:"evidence_strength"`
	} `json:"themes"`
	Contradictions []string `json:"contradictions"`
	Relevance      string   `json:"batch_relevance"`
	Number         int      `json:"batch_number"`
	Count          int      `json:"citation_count"`
	RefIDs         []string `json:"ref_ids"`
}

// newAuthorship is a folder with 17 citations, and a model that an author speaks for.
func newAuthorship(t *testing.T, a *author) *studio {
	t.Helper()
	s := newStudio(t, fakellm.Config{Model: a.answer, Key: modelKey})
	s.write("citations.jsonl", citations(17, 80))
	return s
}

// author runs a command of mapreduce with the model of an author.
func (s *studio) author(args ...string) outcome {
	s.t.Helper()
	return s.try([]string{"ANTHROPIC_API_KEY=" + modelKey, "CODITECT_LLM_TRACE=1"}, append(args, "--output", s.path("out"))...)
}

// synthesis are the arguments of a run that writes a report by a model.
func (s *studio) synthesis(pipeline string) []string {
	return []string{
		"run", "--input", s.path("citations.jsonl"), "--pipeline", pipeline, "--question", "What do rivers carry?", "--parallelism", "1",
		"--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", s.url,
	}
}

// inputs returns what the report was written from.
func (a *author) inputs(t *testing.T) (all []batchOutput) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range a.read {
		var one batchOutput
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, one)
	}
	return all
}

// TestC11BatchIDs: a batch cites references of its own alone, whatever its model cites, and
// its number, its citations and their ids are those that it was given.
func TestC11BatchIDs(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	a := &author{}
	s := newAuthorship(t, a)
	s.write("unjoined.yaml", unjoined(t, s.want(0, "pipelines", "show", "synthesize")))
	if o := s.author(s.synthesis(s.path("unjoined.yaml"))...); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	batches := a.inputs(t)
	if len(batches) != 3 || len(a.refs) != 3 {
		t.Fatalf("the report was written from %d outputs of %d batches, want 3", len(batches), len(a.refs))
	}
	for i, b := range batches {
		if b.Number != i+1 || b.Count != []int{8, 8, 1}[i] || len(b.Themes) != 2 || b.Relevance != "high" {
			t.Errorf("batch %d is number %d of %d citations, with %d themes", i, b.Number, b.Count, len(b.Themes))
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(a.refs[i])), slices.Sorted(slices.Values(b.RefIDs))); diff != "" {
			t.Errorf("batch %d has other ids than it was given:\n%s", i, diff)
		}
		if diff := cmp.Diff(a.refs[i], b.Themes[0].Refs); diff != "" {
			t.Errorf("batch %d does not cite what is its own of what its model cites:\n%s", i, diff)
		}
	}
	r := &synthesised{dir: s.path("out")}
	r.readResult(t)
	r.checkReferences(t, passagesOf(citations(17, 80)))
	// One of each batch: what stands in ref_ids, which is not asked, is not read.
	removed := make(map[string]int)
	for _, m := range r.Removed {
		removed[m.Name]++
	}
	if want := map[string]int{"REF_0badc0de": 3, a.refs[0][0]: 1, a.refs[1][0]: 1}; !maps.Equal(want, removed) {
		t.Errorf("removed were %v, want %v", removed, want)
	}
}

// unjoined returns the pipeline with a report that reads batches as they are.
func unjoined(t *testing.T, source string) string {
	t.Helper()
	from, to := strings.Index(source, "  - name: joined\n"), strings.Index(source, "  - name: report\n")
	if from < 0 || to < from {
		t.Fatalf("the pipeline has no stages joined and report:\n%s", source)
	}
	source = source[:from] + source[to:]
	return strings.NewReplacer("name: synthesize\n", "name: unjoined\n", "from: joined or groups\n", "from: themes\n").Replace(source)
}

// TestC15JoinedThemes: themes of several batches that are spelled alike come to the report
// as one, with the findings and the references of all.
func TestC15JoinedThemes(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	a := &author{}
	s := newAuthorship(t, a)
	if o := s.author(s.synthesis("synthesize")...); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	read := a.inputs(t)
	if len(read) != 1 {
		t.Fatalf("the report was written from %d outputs, want one", len(read))
	}
	var names []string
	for _, theme := range read[0].Themes {
		names = append(names, theme.Theme)
	}
	if diff := cmp.Diff([]string{"Sand", "Matter 0", "Matter 1", "Matter 2"}, names); diff != "" {
		t.Fatal(diff)
	}
	sand := read[0].Themes[0]
	if all := slices.Concat(a.refs...); !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(sand.Refs))) || len(all) != 17 {
		t.Errorf("sand rests on %q, want %q", sand.Refs, all)
	}
	for n := range 3 {
		if !strings.Contains(sand.Finding, fmt.Sprintf("Batch %d finds sand", n)) {
			t.Errorf("the finding of batch %d is not in %q", n, sand.Finding)
		}
	}
}

// TestC13ReportWithoutSection: a report without its introduction or its evidence is a
// failure that says what is missing. What came before it is kept: a resume writes the report
// alone.
func TestC13ReportWithoutSection(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	for _, section := range []string{"introduction", "evidence_discussion"} {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			a := &author{lacks: section}
			s := newAuthorship(t, a)
			o := s.author(s.synthesis("synthesize")...)
			if o.code != 1 || !strings.Contains(o.stdout+o.stderr, section) {
				t.Errorf("exit code %d, want 1 and %s\n%s%s", o.code, section, o.stdout, o.stderr)
			}
			if data, err := os.ReadFile(s.path(filepath.Join("out", "report.md"))); err == nil && strings.Contains(string(data), "Rivers carry sand") {
				t.Errorf("there is a report:\n%s", data)
			}
			before := len(a.refs)
			a.mu.Lock()
			a.lacks = ""
			a.mu.Unlock()
			job, _ := s.job()
			if o := s.author("resume", "--job-id", job.JobID); o.code != 0 {
				t.Fatalf("resumed: exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}
			if len(a.refs) != before || before != 3 {
				t.Errorf("%d batches were read before, and %d in all, want 3", before, len(a.refs))
			}
			r := &synthesised{dir: s.path("out")}
			r.readResult(t)
			r.checkReferences(t, passagesOf(citations(17, 80)))
			if r.Status != "complete" || len(r.Failed) != 0 || len(r.Report.References) != 1 {
				t.Errorf("status %s, failed %v, %d references", r.Status, r.Failed, len(r.Report.References))
			}
		})
	}
}
