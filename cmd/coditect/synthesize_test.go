package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A synthesised is the result of a job of the pipeline synthesize, as its files have it.
type synthesised struct {
	dir       string
	code      int
	output    string // of the program
	Status    string
	Citations map[string]struct {
		Document string `json:"document_id"`
		Start    int    `json:"byte_start"`
		End      int    `json:"byte_end"`
		Quote    string
		Label    string
	}
	Data   map[string]any `json:"aggregated_data"`
	Failed []struct {
		Unit string `json:"unit_id"`
	} `json:"failed_units"`
	Dropped []struct{ Ref, Reason string } `json:"dropped_citations"`
	Removed []struct {
		Name, Reason string
		Unit         string `json:"unit_id"`
	} `json:"removed_references"`
	Skipped []struct {
		Document string `json:"document_id"`
		Reason   string
	} `json:"skipped_documents"`
	Report *struct {
		Sections []struct {
			Name, Text, Source string
			Items              []string // of a section that is a list
		}
		References []struct {
			Number   int
			Ref      string
			Document string `json:"document_id"`
		}
		Claims []struct {
			Text, Grade string
			References  []struct{ Number int }
		}
		Measures struct {
			Claims, Cited, Supported, Contradicted int
			Recall                                 float64 `json:"citation_recall"`
			Precision                              float64 `json:"citation_precision"`
		}
	}
}

// synthesise runs a job over citations, a JSON value a line.
func synthesise(t *testing.T, citations string, flags ...string) *synthesised {
	t.Helper()
	dir := t.TempDir()
	input := filepath.Join(dir, "citations.jsonl")
	if err := os.WriteFile(input, []byte(citations), 0o600); err != nil {
		t.Fatal(err)
	}
	return synthesiseInput(t, dir, append([]string{"--input", input}, flags...)...)
}

func synthesiseInput(t *testing.T, dir string, flags ...string) *synthesised {
	t.Helper()
	s := &synthesised{dir: filepath.Join(dir, "out")}
	args := append([]string{
		"mapreduce", "run", "--data-dir", filepath.Join(dir, "data"), "--pipeline", "synthesize", "--output", s.dir, "--parallelism", "8",
	}, flags...)
	if !slices.Contains(flags, "--question") {
		args = append(args, "--question", "What do rivers carry?")
	}
	var out bytes.Buffer
	s.code, s.output = main.Run(t.Context(), args, &out), ""
	s.output = out.String()
	s.readResult(t)
	return s
}

// readResult reads result.json, if there is one.
func (s *synthesised) readResult(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "result.json"))
	if err != nil {
		return
	}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
}

// units returns how many units of each stage the job had.
func (s *synthesised) units(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "units.jsonl"))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.output)
	}
	stages := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		var u struct{ Stage string }
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			t.Fatal(err)
		}
		stages[u.Stage]++
	}
	return stages
}

func (s *synthesised) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.output)
	}
	return string(data)
}

// citations makes so many citations, with passages of so many characters.
func citations(n, characters int) string {
	var b strings.Builder
	for i := range n {
		passage := fmt.Sprintf("River number %d carries %d tonnes of sand to the sea each year.", i, 100+i)
		for len(passage) < characters {
			passage += strings.Repeat("s", characters-len(passage))
		}
		line, err := json.Marshal(map[string]any{
			"document_id": fmt.Sprintf("doc-%03d", i), "title": fmt.Sprintf("Sand %d", i), "passage": passage,
			"authors": []string{"Ada Byron", "Grace Hopper"}, "year": 1990 + i, "relevance": float64(n-i) / float64(n),
		})
		if err != nil {
			panic(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// checkReferences fails if a reference of the report is not what it says: every number is
// an entry, in the order of appearance, whose quote is its text; every id of the result is
// known; and whatever is not used is listed as dropped, with a reason.
func (s *synthesised) checkReferences(t *testing.T, text func(document string) string) {
	t.Helper()
	if s.Report == nil {
		t.Fatalf("no report (exit code %d):\n%s", s.code, s.output)
	}
	next := 1
	path := regexp.MustCompile(`[a-z_]\[[0-9]+\]`) // which the scripted model writes
	for _, section := range s.Report.Sections {
		text := path.ReplaceAllString(strings.Join(append(section.Items, section.Text), "\n"), "")
		for _, m := range regexp.MustCompile(`\[([0-9?]+(?:, [0-9?]+)*)\]`).FindAllStringSubmatch(text, -1) {
			for n := range strings.SplitSeq(m[1], ", ") {
				if n == "?" {
					continue
				}
				if n == fmt.Sprint(next) {
					next++
				}
				if !slices.ContainsFunc(s.Report.References, func(r struct {
					Number   int
					Ref      string
					Document string `json:"document_id"`
				},
				) bool {
					return fmt.Sprint(r.Number) == n
				}) {
					t.Errorf("[%s] stands in %s, and is no reference", n, section.Name)
				}
			}
		}
		for _, name := range refs.Mentioned(section.Source, func(string) bool { return false }) {
			if _, ok := s.Citations[name]; !ok {
				t.Errorf("%s has %s, which is no citation", section.Name, name)
			}
		}
	}
	if len(s.Report.References) != next-1 {
		t.Errorf("%d references, and the text has numbers up to %d", len(s.Report.References), next-1)
	}
	used := make(map[string]bool)
	for i, r := range s.Report.References {
		c, ok := s.Citations[r.Ref]
		if !ok || r.Number != i+1 || used[r.Ref] {
			t.Errorf("reference %d is %s, number %d, known %t", i+1, r.Ref, r.Number, ok)
		}
		used[r.Ref] = true
		if whole := text(c.Document); c.End > len(whole) || whole[c.Start:c.End] != c.Quote {
			t.Errorf("%s: the quote is not the text of %s", r.Ref, c.Document)
		}
	}
	for _, d := range s.Dropped {
		if used[d.Ref] || d.Reason == "" {
			t.Errorf("%s is dropped for %q, and used: %t", d.Ref, d.Reason, used[d.Ref])
		}
		used[d.Ref] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.Citations)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("citations (-), and those that are used or dropped (+):\n%s", diff)
	}
}

// passagesOf returns the passages of JSON lines by the id of their document.
func passagesOf(lines string) func(string) string {
	all := make(map[string]string)
	for line := range strings.Lines(lines) {
		var c struct {
			ID      string `json:"document_id"`
			Passage string
		}
		if json.Unmarshal([]byte(line), &c) == nil {
			all[c.ID] = c.Passage
		}
	}
	return func(document string) string { return all[document] }
}

// TestC2C3C9C15Shapes: which units a job has by the number and the size of its citations.
func TestC2C3C9C15Shapes(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	t.Parallel()
	// C1: title and passage, and 100 characters for each; the title has 6 characters.
	exactly := func(tokens int) string { // in two citations
		return citations(2, (4*tokens+3)/2-100-len("Sand 0"))
	}
	for _, tt := range []struct {
		name  string
		input string
		want  map[string]int
		flags []string
	}{
		{"C2 5 citations", citations(5, 80), map[string]int{"passages": 5, "direct": 1}, nil},
		{"C2 15 citations", citations(15, 80), map[string]int{"passages": 15, "direct": 1}, nil},
		{"C2 C9 16 citations", citations(16, 80), map[string]int{"passages": 16, "themes": 2, "joined": 1, "report": 1}, nil},
		{"C9 17 citations", citations(17, 80), map[string]int{"passages": 17, "themes": 3, "joined": 1, "report": 1}, nil},
		{"C3 6,000 tokens", exactly(6000), map[string]int{"passages": 2, "direct": 1}, nil},
		{"C3 6,001 tokens", exactly(6001), map[string]int{"passages": 2, "themes": 1, "joined": 1, "report": 1}, nil},
		{"C4 a broken configuration", citations(16, 80), map[string]int{"passages": 16, "themes": 2, "joined": 1, "report": 1}, []string{
			"--var", "map_reduce_citation_threshold=many", "--var", "map_batch_size=-3", "--var", "effective_context_limit=", "--var", "map_passage_max_length=0",
		}},
		{"C4 another configuration", citations(16, 80), map[string]int{"passages": 16, "themes": 4, "joined": 1, "report": 1}, []string{
			"--var", "map_reduce_citation_threshold=3", "--var", "map_batch_size=4",
		}},
		{"C15 batches adapt to passages", citations(16, 400), map[string]int{"passages": 16, "themes": 6, "joined": 1, "report": 1}, []string{
			"--var", "effective_context_limit=400",
		}},
		{"C15 100 citations", citations(100, 80), map[string]int{"passages": 100, "themes": 13, "joined": 1, "report": 1}, nil},
		{"C15 101 citations", citations(101, 80), map[string]int{"passages": 101, "themes": 13, "groups": 4, "report": 1}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := synthesise(t, tt.input, tt.flags...)
			if s.code != 0 || s.Status != "complete" {
				t.Fatalf("exit code %d:\n%s", s.code, s.output)
			}
			if diff := cmp.Diff(tt.want, s.units(t)); diff != "" {
				t.Error(diff)
			}
			s.checkReferences(t, passagesOf(tt.input))
			var metrics struct{ Warnings []string }
			if err := json.Unmarshal([]byte(s.file(t, "metrics.json")), &metrics); err != nil {
				t.Fatal(err)
			}
			if broken := strings.HasPrefix(tt.name, "C4 a broken"); broken != (len(metrics.Warnings) == 4) {
				t.Errorf("warnings %q", metrics.Warnings)
			}
		})
	}
}

// TestC1Estimate: a citation counts as the characters of its title, its summary and its
// passage, and 100 more, and all of them together as a fourth of that. As many tokens as
// that are not too many, and one less is too few.
func TestC1Estimate(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	for name, fields := range map[string][3]any{ // title, summary and passage
		"all fields":       {"Sand", "On the sand of rivers.", "Rivers carry sand to the sea each year."},
		"null fields":      {nil, nil, "Rivers carry sand to the sea each year."},
		"a title alone":    {"Sand", nil, "Rivers carry sand to the sea."},
		"a summary alone":  {nil, "On sand.", "Rivers carry sand to the sea."},
		"other characters": {"Flüsse", "Über Sand", "Flüsse führen – 千 – Sand ins Meer."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var input strings.Builder
			characters := 0
			for i := range 3 {
				line := map[string]any{"document_id": fmt.Sprint(i), "title": fields[0], "summary": fields[1], "passage": fmt.Sprint(fields[2], i)}
				one, err := json.Marshal(line)
				if err != nil {
					t.Fatal(err)
				}
				input.Write(append(one, '\n'))
				characters += 100
				for _, field := range []any{line["title"], line["summary"], line["passage"]} {
					if text, ok := field.(string); ok {
						characters += utf8.RuneCountInString(text)
					}
				}
			}
			for limit, stage := range map[int]string{characters / 4: "direct", characters/4 - 1: "report"} {
				s := synthesise(t, input.String(), "--var", fmt.Sprint("effective_context_limit=", limit))
				if s.code != 0 || s.units(t)[stage] != 1 {
					t.Errorf("%d tokens by the formula: with a limit of %d there is no unit %s (exit code %d):\n%s", characters/4, limit, stage, s.code, s.output)
				}
				s.checkReferences(t, passagesOf(input.String()))
				if page := s.file(t, "report.md"); strings.Contains(page, "null") {
					t.Errorf("a field that is null is shown:\n%s", page)
				}
			}
		})
	}
	if none := synthesise(t, ""); none.code == 0 || none.Report != nil {
		t.Errorf("no citations: exit code %d, report %v\n%s", none.code, none.Report, none.output)
	}
}

// TestC5C6C8C10C11C14Synthesis: ids, the documents behind them, numbers that can be turned
// back, evidence that is whole, and what the trail of the job says.
func TestC5C6C8C10C11C14Synthesis(t *testing.T) {
	t.Parallel()
	input := citations(20, 900)
	s := synthesise(t, input)
	s.checkReferences(t, passagesOf(input))
	for name, c := range s.Citations {
		if !regexp.MustCompile(`^REF_[0-9a-f]{8}$`).MatchString(name) || !strings.HasPrefix(c.Document, "doc-") {
			t.Errorf("%s is of %q", name, c.Document)
		}
		if len(c.Quote) != 900 {
			t.Errorf("%s: the evidence has %d characters, want all 900", name, len(c.Quote))
		}
		if !strings.HasPrefix(c.Label, "Byron and Hopper. Sand ") {
			t.Errorf("%s is described as %q", name, c.Label)
		}
	}
	numbers := make(map[string]string)
	for _, r := range s.Report.References {
		numbers[fmt.Sprint(r.Number)] = r.Ref
	}
	for _, section := range s.Report.Sections {
		back := regexp.MustCompile(`\[[0-9, ]+\]`).ReplaceAllStringFunc(section.Text, func(m string) string {
			return regexp.MustCompile(`[0-9]+`).ReplaceAllStringFunc(m, func(n string) string { return numbers[n] })
		})
		if back != section.Source {
			t.Errorf("%s: %q is not %q with numbers", section.Name, section.Text, section.Source)
		}
	}
	trail := s.file(t, "audit.jsonl")
	for _, want := range []string{"map_reduce_started", "map_phase_progress", "reduce_phase_started"} {
		if !strings.Contains(trail, want) {
			t.Errorf("the trail does not say %s", want)
		}
	}
	if s.Report.Measures.Claims == 0 || s.Report.Measures.Supported != s.Report.Measures.Claims {
		t.Errorf("%d of %d extracted sentences are supported", s.Report.Measures.Supported, s.Report.Measures.Claims)
	}
	for _, file := range []string{"report.md", "bibliography.json", "bibliography.bib"} {
		if text := s.file(t, file); !strings.Contains(text, "Byron") {
			t.Errorf("%s names no author:\n%s", file, text)
		}
	}
}

// TestC7InventedReferences: what nobody issued gets no number, is marked and reported.
func TestC7InventedReferences(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	input := citations(10, 80)
	s := synthesise(t, input, "--provider", "scripted", "--var", "script.invent_refs_rate=0.5")
	s.checkReferences(t, passagesOf(input))
	if len(s.Removed) == 0 || !strings.Contains(s.file(t, "report.md"), "[?]") {
		t.Errorf("removed are %v:\n%s", s.Removed, s.file(t, "report.md"))
	}
	for _, r := range s.Removed {
		if r.Reason == "" || r.Unit != "direct" || strings.Contains(s.file(t, "report.md"), "["+r.Name+"]") {
			t.Errorf("%+v", r)
		}
	}
}

// TestC12FailedBatches: a batch that fails is listed, with what is lost by it; without any
// batch there is no report.
func TestC12FailedBatches(t *testing.T) {
	testenv.Raced(t)

	t.Parallel()
	input := citations(17, 80)
	s := synthesise(t, input, "--provider", "scripted", "--var", "script.poison.themes_1=permanent")
	if s.code != 3 || len(s.Failed) != 1 || s.Failed[0].Unit != "themes_1" {
		t.Errorf("exit code %d, failed %v\n%s", s.code, s.Failed, s.output)
	}
	s.checkReferences(t, passagesOf(input))
	lost := 0
	for _, d := range s.Dropped {
		if strings.Contains(d.Reason, "the unit failed") {
			lost++
		}
	}
	if lost != 8 {
		t.Errorf("%d citations are listed as lost with the batch, want 8", lost)
	}
	none := synthesise(t, input, "--provider", "scripted", "--var", "script.poison.themes_0=permanent", "--var", "script.poison.themes_1=permanent", "--var", "script.poison.themes_2=permanent")
	if none.code != 1 || none.Report != nil || !strings.Contains(none.output, "3 of 3 units of level 1 failed") {
		t.Errorf("exit code %d, report %v\n%s", none.code, none.Report, none.output)
	}
}

// TestBadCitations: what is wrong with lines is said, and the rest is read.
func TestBadCitations(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	good := citations(2, 80)
	input := good + strings.SplitN(good, "\n", 2)[0] + "\n" +
		`{"document_id":"doc-000","passage":"Another passage of the same document says that rivers carry salt."}` + "\n" +
		`{"document_id":"none","passage":null}` + "\n" + `{"document_id":"number","passage":7}` + "\n" + `{"document_id":"blank","passage":" "}` + "\n" +
		`{"document_id":"ranked","passage":"Rivers carry gold at times.","relevance":"high"}` + "\n" + "{\n"
	s := synthesise(t, input)
	if s.code != 0 || len(s.Citations) != 4 {
		t.Fatalf("exit code %d, %d citations:\n%s", s.code, len(s.Citations), s.output)
	}
	var why []string
	for _, d := range s.Skipped {
		why = append(why, d.Reason)
	}
	for _, want := range []string{"the same passage of the same document", "passage is not a string", "passage is empty", "not JSON"} {
		if !strings.Contains(strings.Join(why, "\n"), want) {
			t.Errorf("nothing was skipped because %s: %q", want, why)
		}
	}
	if len(s.Skipped) != 5 || !strings.Contains(s.file(t, "metrics.json"), `has the relevance \"high\", which is no number`) {
		t.Errorf("skipped %q\n%s", why, s.file(t, "metrics.json"))
	}
	long := synthesise(t, good, "--question", strings.Repeat("why ", 1<<18))
	if long.code != 2 || !strings.Contains(long.output, "--question: has 1048576 bytes; at most") {
		t.Errorf("a question of 1 MB: exit code %d\n%.300s", long.code, long.output)
	}
	none := synthesise(t, good, "--question", "")
	if none.code != 2 || !strings.Contains(none.output, "question") {
		t.Errorf("no question: exit code %d\n%s", none.code, none.output)
	}
}

// TestAThousandCitations: all of many citations are read, and each is used or listed.
func TestAThousandCitations(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	t.Parallel()
	input := citations(1000, 80)
	s := synthesise(t, input)
	if s.code != 0 || len(s.Citations) != 1000 || len(s.Skipped) != 0 {
		t.Fatalf("exit code %d, %d citations, %d skipped:\n%s", s.code, len(s.Citations), len(s.Skipped), s.output)
	}
	if diff := cmp.Diff(map[string]int{"passages": 1000, "themes": 125, "groups": 31, "report": 1}, s.units(t)); diff != "" {
		t.Error(diff)
	}
	s.checkReferences(t, passagesOf(input))
}
