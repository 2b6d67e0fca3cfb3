package results_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/page"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/plan/plantest"
	"github.com/coditect/mapreduce/internal/plan/render"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A store is a service that holds one job's result.
type store struct {
	job    *mapreduce.Job
	parts  []*mapreduce.ResultPart
	units  []*mapreduce.Unit
	events []*mapreduce.Checkpoint
	seals  []*mapreduce.Seal
	fail   error // of GetResult, at its end
	page   int   // entries of a page
}

func (s *store) GetJob(context.Context, mapreduce.JobID) (*mapreduce.Job, error) { return s.job, nil }

func (s *store) GetResult(_ context.Context, _ mapreduce.JobID, _ bool, sink func(*mapreduce.ResultPart) error) error {
	for _, p := range append([]*mapreduce.ResultPart{{Job: s.job}}, s.parts...) {
		if err := sink(p); err != nil {
			return err
		}
	}
	return s.fail
}

func (s *store) ReadText(_ context.Context, _ mapreduce.JobID, _ mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	return sink([]byte("the text of " + document))
}

func (s *store) ListUnits(_ context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	some, next := paged(s.units, q.PageToken, s.page)
	return &mapreduce.UnitPage{Units: some, NextPageToken: next}, nil
}

func (s *store) ListEvents(_ context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	some, next := paged(s.events, q.PageToken, s.page)
	page := &mapreduce.EventPage{Checkpoints: some, NextPageToken: next}
	for _, seal := range s.seals {
		if slices.ContainsFunc(some, func(c *mapreduce.Checkpoint) bool { return c.ID == seal.Last }) {
			page.Seals = append(page.Seals, seal)
		}
	}
	return page, nil
}

// paged returns the entries of a page, and the token of the next.
func paged[T any](all []T, token string, size int) ([]T, string) {
	from := len(token)
	if size == 0 {
		size = len(all)
	}
	to := min(from+size, len(all))
	if to == len(all) {
		return all[from:], ""
	}
	return all[from:to], strings.Repeat("x", to)
}

const testSchema = `{"title": "shop <b>", "type": "object", "properties": {"name": {"type": "string"}, "total": {"type": "number"}}}`

func job() *mapreduce.Job {
	return &mapreduce.Job{
		ID: "mr_20260101_abcdef", State: mapreduce.JobComplete, Phase: mapreduce.JobComplete, Level: 1,
		Spec:    mapreduce.JobSpec{Schema: []byte(testSchema), Parallelism: 2, Provider: "rules"},
		Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Updated: time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC),
		TotalUnits: 4, CompletedUnits: 3, FailedUnits: 1, TotalTokens: mapreduce.Tokens{In: 90, Out: 10}, CostMicros: 5,
		Coverage: mapreduce.Coverage{
			Documents:  mapreduce.Ledger{Total: 3, Mapped: 1, Failed: 1, Skipped: 1},
			Characters: mapreduce.Ledger{Total: 20, Mapped: 10, Failed: 10},
		},
		AuditHead: "feed",
	}
}

func records(n int) []*mapreduce.ResultPart {
	var parts []*mapreduce.ResultPart
	for i := range n {
		parts = append(parts, &mapreduce.ResultPart{Record: fmt.Appendf(nil,
			`{"total": %d, "name": "<script>alert(1)</script> *x* | %d", "_sources": ["d%d"], "_citations": {"name": ["REF_%08x"]}, "_confidence": {"name": 0.5}, "_said": {"name": 0.9}, "_missing": {}, "_unverified": {}}`, i, i, i, i)})
	}
	for i := range n {
		parts = append(parts, &mapreduce.ResultPart{Citation: &mapreduce.Citation{
			Ref: fmt.Sprintf("REF_%08x", i), Document: "d", Unit: "d", End: 5, ByteEnd: 5, Quote: "<i>&", Grade: "exact", Before: "<before>", After: "after",
		}})
	}
	return parts
}

func complete(parts ...*mapreduce.ResultPart) *store {
	parts = append(parts,
		&mapreduce.ResultPart{Source: &mapreduce.Source{Unit: "d0"}},
		&mapreduce.ResultPart{Source: &mapreduce.Source{Unit: "d1", Errors: []string{"it <failed>"}}},
		&mapreduce.ResultPart{Conflict: []byte(`{"field": "total", "key": {"name": "x"}, "candidates": [{"value": 1}, {"value": 2}], "chosen": 2, "strategy": "max", "rationale": "the larger"}`)},
		&mapreduce.ResultPart{Dropped: []byte(`{"ref": "REF_00000002", "field": "name", "unit_id": "reduce_L1_0", "reason": "the <reducer> did not pass it on"}`)},
		&mapreduce.ResultPart{Removed: []byte(`{"name": "REF_<deadbeef>", "field": "name", "unit_id": "final", "reason": "the reference was never issued"}`)},
		&mapreduce.ResultPart{Summary: &mapreduce.Summary{
			Deduplication: []byte(`{"name": 2}`), Statistics: []byte(`{"total": {"count": 1, "null": 0, "distinct": 1}}`),
			Skipped: []mapreduce.SkippedDocument{{Document: "d2", Reason: "a PDF file, not text"}},
		}})
	return &store{job: job(), parts: parts}
}

func write(t *testing.T, s results.Service, c results.Config) string {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "out")
	}
	if _, err := results.Write(t.Context(), s, c); err != nil {
		t.Fatal(err)
	}
	return c.Dir
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func readJSON(t *testing.T, dir, name string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, dir, name)), &v); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, readFile(t, dir, name))
	}
	return v
}

func fileNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var allFiles = []string{"audit.jsonl", "dag.json", "dag.svg", "metrics.json", "report.html", "report.md", "result.json", "trace.json", "units.jsonl"}

func TestResult(t *testing.T) {
	parts := records(3)
	c := parts[5].Citation
	c.Grade, c.Outside, c.Others, c.Coverage, c.Density = "fuzzy", true, 2, 0.75, 0.5
	s := complete(append(parts, &mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: "REF_00000001"}})...)
	dir := write(t, s, results.Config{})
	if diff := cmp.Diff(allFiles, fileNames(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	got := readJSON(t, dir, "result.json")
	if n := len(got["aggregated_data"].([]any)); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	if n := len(got["citations"].(map[string]any)); n != 3 {
		t.Errorf("%d citations, want 3", n)
	}
	how := map[string]any{
		"document_id": "d", "unit_id": "d", "start": 0.0, "end": 5.0, "byte_start": 0.0, "byte_end": 5.0, "quote": "<i>&",
		"grade": "fuzzy", "outside": true, "other_places": 2.0, "coverage": 0.75, "density": 0.5,
	}
	if diff := cmp.Diff(how, got["citations"].(map[string]any)["REF_00000002"]); diff != "" {
		t.Errorf("citation (-want +got):\n%s", diff)
	}
	if n := strings.Count(readFile(t, dir, "result.json"), `"REF_00000001": {`); n != 1 {
		t.Errorf("a citation that two records share is there %d times", n)
	}
	want := map[string]any{
		"job_id": "mr_20260101_abcdef", "status": "complete", "total_tokens": 100.0, "warnings": []any{},
		"source_units":        []any{"d0"},
		"failed_units":        []any{map[string]any{"unit_id": "d1", "errors": []any{"it <failed>"}, "advice": "resume the job, which tries it again"}},
		"deduplication_stats": map[string]any{"name": 2.0},
		"dropped_citations":   []any{map[string]any{"ref": "REF_00000002", "field": "name", "unit_id": "reduce_L1_0", "reason": "the <reducer> did not pass it on"}},
		"removed_references":  []any{map[string]any{"name": "REF_<deadbeef>", "field": "name", "unit_id": "final", "reason": "the reference was never issued"}},
		"skipped_documents":   []any{map[string]any{"document_id": "d2", "reason": "a PDF file, not text", "advice": "convert it to text, or to another format that is read, and name that file"}},
		"statistics":          map[string]any{"total": map[string]any{"count": 1.0, "null": 0.0, "distinct": 1.0}},
		"coverage": map[string]any{
			"documents":    map[string]any{"total": 3.0, "mapped": 1.0, "failed": 1.0, "skipped": 1.0},
			"characters":   map[string]any{"total": 20.0, "mapped": 10.0, "failed": 10.0, "skipped": 0.0},
			"unread_bytes": map[string]any{"total": 0.0, "mapped": 0.0, "failed": 0.0, "skipped": 0.0},
		},
	}
	delete(got, "aggregated_data")
	delete(got, "citations")
	delete(got, "conflict_resolutions")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result.json (-want +got):\n%s", diff)
	}
}

func TestSingle(t *testing.T) {
	for n, want := range []string{`null`, `map[`} {
		s := complete(records(n)...)
		s.parts[len(s.parts)-1].Summary.Single = true
		got := readJSON(t, write(t, s, results.Config{}), "result.json")
		if text := fmt.Sprint(got["aggregated_data"]); !strings.HasPrefix(strings.Replace(text, "<nil>", "null", 1), want) {
			t.Errorf("%d records: aggregated_data is %s", n, text)
		}
	}
	s := complete(records(2)...)
	s.parts[len(s.parts)-1].Summary.Single = true
	if _, err := results.Write(t.Context(), s, results.Config{Dir: filepath.Join(t.TempDir(), "out")}); err == nil {
		t.Error("two records passed for one summary")
	}
}

func TestReports(t *testing.T) {
	dir := write(t, complete(records(5)...), results.Config{ReportRecords: 2})
	page, text := readFile(t, dir, "report.html"), readFile(t, dir, "report.md")
	_, markup, _ := strings.Cut(page, "</style>")
	markup = strings.Replace(markup, "\n<script>", "", 1) // the page's own
	for _, bad := range []string{"<script>", "<i>", "<before>", "<failed>", "shop <b>"} {
		if strings.Contains(markup, bad) || strings.Contains(text, bad) {
			t.Errorf("a report holds %q as it came from a document", bad)
		}
	}
	checkPage(t, pageData(t, dir))
	for _, want := range []string{
		`| name | &lt;script&gt;alert(1)&lt;/script&gt; \*x\* \| 0 | 0.50 (the extractor says 0.90) | “&lt;i&gt;&amp;” (d, 0–5, exact) |`,
		"## Dropped citations (1)", "| REF\\_00000002 | name | reduce\\_L1\\_0 |", "## Removed from answers (1)",
		"result.json has 3 more records", "## Records (5)", "it &lt;failed&gt;",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("report.md lacks %q:\n%s", want, text)
		}
	}
	if name, total := strings.Index(text, "| name |"), strings.Index(text, "| total | 0 |"); name > total {
		t.Error("fields are not in the order of the schema")
	}
}

// pageData returns the data of report.html.
func pageData(t *testing.T, dir string) (d page.Data) {
	t.Helper()
	_, after, _ := strings.Cut(readFile(t, dir, "report.html"), `<script type="application/json" id="data">`)
	block, _, _ := strings.Cut(after, "</script>")
	if err := json.Unmarshal([]byte(block), &d); err != nil {
		t.Fatalf("the data of report.html: %v", err)
	}
	return d
}

// checkPage checks the data of a page about five records, all of which are shown.
func checkPage(t *testing.T, d page.Data) {
	t.Helper()
	if len(d.Records) != 5 || d.More != 0 || !slices.Equal(d.Fields, []string{"name", "total"}) {
		t.Fatalf("%d records and %d more, fields %q", len(d.Records), d.More, d.Fields)
	}
	c := d.Citations[d.Records[0].Citations["name"][0]]
	want := page.Citation{Ref: c.Ref, Document: 5, Quote: "<i>&", Before: "<before>", After: "after", End: 5, Grade: "exact"}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("the first quote (-want +got):\n%s", diff)
	}
	if d.Records[0].Confidence["name"] != 0.5 || d.Records[0].Said["name"] != 0.9 {
		t.Errorf("confidence %v, said %v", d.Records[0].Confidence, d.Records[0].Said)
	}
	var lists strings.Builder
	for _, l := range d.Lists {
		fmt.Fprintln(&lists, l.ID, l.Rows)
	}
	for _, want := range []string{"dropped [[", "the <reducer> did not pass it on", "REF_<deadbeef>", "never issued", "it <failed>", "a PDF file, not text"} {
		if !strings.Contains(lists.String(), want) {
			t.Errorf("report.html lacks %q in %s", want, &lists)
		}
	}
	if len(d.Conflicts) != 1 || d.Conflicts[0].Rationale != "the larger" {
		t.Errorf("conflicts %+v", d.Conflicts)
	}
}

// unitOf returns a unit whose output cites its document.
func unitOf(t *testing.T, id string, index int64) *mapreduce.Unit {
	t.Helper()
	return quoting(t, id, index, "Shop")
}

// quoting is unitOf with the quote that stands at the front of the document.
func quoting(t *testing.T, id string, index int64, quote string) *mapreduce.Unit {
	t.Helper()
	end := len(quote)
	s, err := schema.Parse("schema", []byte(testSchema))
	if err != nil {
		t.Fatal(err)
	}
	out := &output.Output{}
	cite := out.Cite(output.Citation{
		ID: refs.New(refs.DocumentHash{}, 0, end, quote), Document: id, Unit: id, Quote: quote, Grade: "exact",
		End: int64(utf8.RuneCountInString(quote)), ByteEnd: int64(end),
	})
	rec := merge.Record{Document: id, Order: merge.Order{Unit: index}, Values: []merge.Value{
		{Field: "name", Value: "Shop", Confidence: 0.9, Citations: []merge.Citation{cite}},
	}}
	out.Entries = []output.Entry{{Members: []output.Member{{Unit: index}}, Accumulator: merge.Accumulate(s, rec)}}
	data, err := out.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &mapreduce.Unit{
		ID: mapreduce.UnitID(id), Document: mapreduce.DocumentID(id), Kind: mapreduce.KindMap, State: mapreduce.UnitComplete,
		Index: index, Attempts: 1, Chunks: 1, Output: data, Confidence: 0.9, Elapsed: 3 * time.Second, Tokens: mapreduce.Tokens{In: 40},
	}
}

// TestUnitsBeyondTheBound checks that a large job does not show the outputs of all of its
// units in units.jsonl, beside result.json: a line then says how large its output is.
func TestUnitsBeyondTheBound(t *testing.T) {
	s := complete(records(1)...)
	s.units = []*mapreduce.Unit{unitOf(t, "d0", 0), unitOf(t, "d1", 1), unitOf(t, "d2", 2)}
	both := len(s.units[0].Output) + len(s.units[1].Output)
	for _, tt := range []struct{ bound, shown int }{{0, 3}, {both, 2}, {both - 1, 1}, {1, 0}} {
		lines := strings.Split(strings.TrimSpace(readFile(t, write(t, s, results.Config{UnitOutputs: tt.bound}), "units.jsonl")), "\n")
		for i, line := range lines {
			size := len(s.units[i].Output)
			var unit struct {
				Citations []any
				Data      map[string]any `json:"extracted_data"`
				LeftOut   int            `json:"left_out_bytes"`
			}
			if err := json.Unmarshal([]byte(line), &unit); err != nil {
				t.Fatal(err)
			}
			switch shown := len(unit.Citations) > 0 && len(unit.Data) > 0; {
			case i < tt.shown && (!shown || unit.LeftOut != 0):
				t.Errorf("bound %d: line %d lacks the output: %s", tt.bound, i, line)
			case i >= tt.shown && (shown || unit.LeftOut != size):
				t.Errorf("bound %d: line %d does not say that %d bytes are left out: %s", tt.bound, i, size, line)
			}
		}
	}
}

func TestUnits(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, page := range []int{0, 1, 2} {
		s := complete(records(1)...)
		s.page = page
		failed := &mapreduce.Unit{
			ID: "d1", Document: "d1", Kind: mapreduce.KindMap, State: mapreduce.UnitFailed, Index: 1, Attempts: 3,
			Errors: []string{"no"}, Tokens: mapreduce.Tokens{In: 40}, Elapsed: time.Second,
		}
		parsed, err := (&payload.Parsed{Format: "html", Notes: []string{"a note"}, Text: bytes.Repeat([]byte("text "), 20_000)}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		s.units = []*mapreduce.Unit{
			{ID: "parse_d0", Document: "d0", Kind: mapreduce.KindParse, Level: -1, State: mapreduce.UnitComplete, Output: parsed},
			unitOf(t, "d0", 0), failed,
			{ID: "final", Kind: mapreduce.KindFinal, Level: 1, State: mapreduce.UnitComplete, DependsOn: []mapreduce.UnitID{"d0"}, Tokens: mapreduce.Tokens{In: 20}, Continues: true},
			{ID: "final", Kind: mapreduce.KindFinal, Level: 1, State: mapreduce.UnitComplete, DependsOn: []mapreduce.UnitID{"d1"}, Tokens: mapreduce.Tokens{In: 20}},
		}
		s.events = []*mapreduce.Checkpoint{
			{ID: "01", Time: start, Kind: mapreduce.EventSubmitted},
			{ID: "02", Time: start.Add(5 * time.Second), Kind: mapreduce.EventFinished, Completed: []mapreduce.UnitRef{{Unit: "d0", Attempt: 1}}},
		}
		s.seals = []*mapreduce.Seal{{Number: 1, Count: 2, Last: "02", Hash: []byte{0xab}}}
		dir := write(t, s, results.Config{})

		lines := strings.Split(strings.TrimSpace(readFile(t, dir, "units.jsonl")), "\n")
		if len(lines) != 4 {
			t.Fatalf("%d lines in units.jsonl, want 4", len(lines))
		}
		if !strings.Contains(lines[0], `"notes":["a note"]`) || strings.Contains(lines[1], `"notes"`) {
			t.Errorf("the notes of the document are not in the line of its parse unit:\n%s\n%s", lines[0], lines[1])
		}
		var unit map[string]any
		if err := json.Unmarshal([]byte(lines[1]), &unit); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"unit_id": "d0", "document_id": "d0", "kind": "map", "level": 0.0, "state": "complete", "attempts": 1.0,
			"tokens_used": 40.0, "elapsed_ms": 3000.0, "chunk_index": 0.0, "total_chunks": 1.0, "confidence_score": 0.9, "errors": []any{},
		}
		data, citations := unit["extracted_data"].(map[string]any), unit["citations"].([]any)
		delete(unit, "extracted_data")
		delete(unit, "citations")
		if diff := cmp.Diff(want, unit); diff != "" {
			t.Errorf("unit (-want +got):\n%s", diff)
		}
		ref := citations[0].(map[string]any)["ref"]
		if cited := data["_citations"].(map[string]any)["name"].([]any); data["name"] != "Shop" || cited[0] != ref {
			t.Errorf("extracted %v with citations %v", data, citations)
		}

		audit := strings.Split(strings.TrimSpace(readFile(t, dir, "audit.jsonl")), "\n")
		if len(audit) != 3 || !strings.HasPrefix(audit[2], `{"seal":1,"checkpoints":2,`) {
			t.Errorf("audit.jsonl is\n%s", strings.Join(audit, "\n"))
		}

		tasks := readJSON(t, dir, "dag.json")["tasks"].([]any)
		var deps []string
		for _, task := range tasks {
			m := task.(map[string]any)
			deps = append(deps, fmt.Sprintln(m["id"], m["nodeType"], m["mapReduceLevel"], m["dependsOn"], m["state"]))
		}
		if diff := cmp.Diff([]string{
			"parse_d0 <nil> <nil> [] complete\n", "d0 map 0 [parse_d0] complete\n", "d1 map 0 [] failed\n", "final final-reduce 1 [d0 d1] complete\n",
		}, deps); diff != "" {
			t.Errorf("tasks (-want +got):\n%s", diff)
		}

		trace := readJSON(t, dir, "trace.json")["tasks"].([]any)[1].(map[string]any)
		if trace["started"] != "2026-01-01T00:00:02.000000Z" || trace["ended"] != "2026-01-01T00:00:05.000000Z" {
			t.Errorf("d0 ran from %v to %v", trace["started"], trace["ended"])
		}

		checkTrace(t, dir)

		m := readJSON(t, dir, "metrics.json")
		for name, want := range map[string]float64{
			"documents_per_minute": 2, "agent_utilization": 0.0333, "failure_rate": 0.25, "tokens_per_document": 50, "multi_agent_multiplier": 1.25,
		} {
			if m[name] != want {
				t.Errorf("%s is %v, want %v", name, m[name], want)
			}
		}
		if n := len(m["calls"].([]any)); n != 3 {
			t.Errorf("%d units spent tokens, want 3", n)
		}
	}
}

// B19: the sums of a trace are those of the units.
func checkTrace(t *testing.T, dir string) {
	t.Helper()
	trace := readJSON(t, dir, "trace.json")
	delete(trace, "tasks")
	none := map[string]any{
		"totalLlmLatency_ms": 0.0, "totalToolExecutionTime_ms": 0.0, "totalCostEstimate": 0.0, "llmCallCount": 0.0, "toolCallCount": 0.0,
	}
	sums := func(in float64) map[string]any {
		m := map[string]any{"totalTokens": in, "totalInputTokens": in, "totalOutputTokens": 0.0}
		maps.Copy(m, none)
		return m
	}
	want := map[string]any{
		"id": "mr_20260101_abcdef", "workflow": nil, "pipeline": "",
		"started": "2026-01-01T00:00:02.000000Z", "ended": "2026-01-01T00:00:05.000000Z",
		"mapReduceLevels": []any{
			map[string]any{"level": 0.0, "workflow": "PARALLEL", "taskCount": 2.0, "duration_ms": 3000.0, "metrics": sums(80)},
			map[string]any{"level": 1.0, "workflow": "PARALLEL", "taskCount": 1.0, "duration_ms": 0.0, "metrics": sums(20)},
		},
		"superseded": []any{}, "metrics": sums(100),
	}
	if diff := cmp.Diff(want, trace); diff != "" {
		t.Errorf("trace.json (-want +got):\n%s", diff)
	}
}

// dag.json as it is streamed is the document that a DAG in memory is shown as,
// and the picture beside it likewise.
func TestDAG(t *testing.T) {
	s := complete(records(1)...)
	s.page = 7
	for i := range 60 {
		id := mapreduce.UnitID(fmt.Sprintf("d%02d", i))
		s.units = append(s.units, &mapreduce.Unit{ID: id, Kind: mapreduce.KindMap, State: mapreduce.UnitComplete, CostMicros: 10_000})
	}
	for i := range 12 {
		r := &mapreduce.Unit{ID: mapreduce.ReduceUnit(1, i), Kind: mapreduce.KindReduce, Level: 1, State: mapreduce.UnitComplete, CostMicros: 20_000}
		for j := range 5 {
			r.DependsOn = append(r.DependsOn, s.units[5*i+j].ID)
		}
		s.units = append(s.units, r)
	}
	final := &mapreduce.Unit{ID: "final", Kind: mapreduce.KindFinal, Level: 2, State: mapreduce.UnitFailed}
	for _, u := range s.units[60:] {
		final.DependsOn = append(final.DependsOn, u.ID)
	}
	s.units = append(s.units, final)

	d, err := plantest.Record("", s.units)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range render.Formats() {
		var got strings.Builder
		if err := results.WriteDAG(t.Context(), s, s.job, format, &got); err != nil {
			t.Fatal(err)
		}
		want, err := render.As(format, d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("%s (-in memory +streamed):\n%s", format, diff)
		}
	}

	dir := write(t, s, results.Config{})
	withCost, err := render.JSON(d)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`,\n *"cost": [0-9.]+`).ReplaceAllString(withCost, "")
	if diff := cmp.Diff(want, readFile(t, dir, "dag.json")); diff != "" {
		t.Errorf("dag.json (-want +got):\n%s", diff)
	}
	if svg := readFile(t, dir, "dag.svg"); !strings.Contains(svg, ">60 complete<") || !strings.Contains(svg, ">$0.60<") || strings.Count(svg, ">REDUCE L1<") != 12 {
		t.Errorf("dag.svg is\n%s", svg)
	}
}

// TestCostOfModelsThatWereNotAsked: a model without a price makes only that unknown which it may have
// answered. Of a unit that was tried again, the models of the latest attempt alone are known.
func TestCostOfModelsThatWereNotAsked(t *testing.T) {
	const priced, unpriced = "anthropic/claude-haiku-4-5", "groq/llama"
	for name, c := range map[string]struct {
		models   []string
		attempts int
		known    bool
	}{
		"the first answered":                  {[]string{priced}, 1, true},
		"the first answered by its own name":  {[]string{priced + " as claude-haiku-4-5-20251001"}, 1, true},
		"the other answered":                  {[]string{unpriced}, 1, false},
		"the other answered by its own name":  {[]string{unpriced + " as llama-3"}, 1, false},
		"both answered":                       {[]string{priced, unpriced}, 1, false},
		"the first answered the last attempt": {[]string{priced}, 2, false},
		"nobody knows which":                  {nil, 1, false},
	} {
		s := complete(records(1)...)
		spent := mapreduce.Tokens{In: 10}
		s.job.Spec.Provider, s.job.Spec.Model, s.job.Spec.Fallbacks = "anthropic", "claude-haiku-4-5", []string{unpriced}
		s.job.TotalTokens, s.job.CostMicros = spent, 2_000_000
		s.units = []*mapreduce.Unit{{
			ID: "d", Kind: mapreduce.KindMap, State: mapreduce.UnitComplete, Attempts: c.attempts, Models: c.models, Tokens: spent, CostMicros: 2_000_000,
		}}

		dir := write(t, s, results.Config{})
		metrics, trace := readJSON(t, dir, "metrics.json"), readJSON(t, dir, "trace.json")
		for where, got := range map[string]any{
			"the job":                metrics["job"].(map[string]any)["cost"],
			"the level":              metrics["levels"].([]any)[0].(map[string]any)["cost"],
			"the unit":               metrics["calls"].([]any)[0].(map[string]any)["cost"],
			"the task of the trace":  trace["tasks"].([]any)[0].(map[string]any)["cost"],
			"the sums of the trace":  trace["metrics"].(map[string]any)["totalCostEstimate"],
			"the level of the trace": trace["mapReduceLevels"].([]any)[0].(map[string]any)["metrics"].(map[string]any)["totalCostEstimate"],
		} {
			if (got != nil) != c.known || c.known && got != 2.0 {
				t.Errorf("%s: the cost of %s is %v, want it known: %v", name, where, got, c.known)
			}
		}
		var dag strings.Builder
		if err := results.WriteDAG(t.Context(), s, s.job, "json", &dag); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(dag.String(), `"cost"`) != c.known {
			t.Errorf("%s: the graph is %s", name, dag.String())
		}
	}
}

var errDisk = errors.New("disk on fire")

func TestWholeOrNotAtAll(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(*store)
	}{
		{"the service fails", func(s *store) { s.fail = errDisk }},
		{"the result ends early", func(s *store) { s.parts = s.parts[:len(s.parts)-1] }},
		{"a record is no JSON", func(s *store) { s.parts[0].Record = []byte("{") }},
		{"an output is damaged", func(s *store) {
			s.units = []*mapreduce.Unit{{ID: "d0", Kind: mapreduce.KindMap, State: mapreduce.UnitComplete, Output: []byte("\xff\xff")}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "out")
			write(t, complete(records(1)...), results.Config{Dir: dir})
			before := readFile(t, dir, "result.json")
			for _, name := range []string{"out", "new"} {
				s := complete(records(2)...)
				test.fail(s)
				if _, err := results.Write(t.Context(), s, results.Config{Dir: filepath.Join(above, name)}); err == nil {
					t.Fatal("no error")
				}
			}
			if diff := cmp.Diff([]string{"out"}, fileNames(t, above)); diff != "" {
				t.Errorf("folders (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(allFiles, fileNames(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if readFile(t, dir, "result.json") != before {
				t.Error("result.json has changed")
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDisk)
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := results.Write(ctx, complete(), results.Config{Dir: dir}); !errors.Is(err, errDisk) {
		t.Errorf("error %v, want the cause", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("there is a folder")
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dir string
		ok  bool
	}{
		{dir, true},
		{filepath.Join(dir, "new"), true},
		{filepath.Join(dir, "a", "b", "c"), true},
		{file, false},
		{filepath.Join(file, "below"), false},
	} {
		err := folder.Check(test.dir)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", test.dir, err)
		}
	}
	if diff := cmp.Diff([]string{"a", "file"}, fileNames(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
