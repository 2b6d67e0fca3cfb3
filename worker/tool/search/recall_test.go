package search_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/tool/search"
	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// topN is how many passages of an answer count.
const topN = 10

// recall is the mean share of the right passages that are among the first, of at most topN.
type recall struct {
	sum float64
	n   int
}

func (r *recall) add(got, right int) {
	r.sum += float64(got) / float64(min(right, topN))
	r.n++
}

func (r *recall) value() float64 { return r.sum / float64(r.n) }

func testData(t *testing.T, parts ...string) string {
	t.Helper()
	root := os.Getenv("CODITECT_TESTDATA")
	if root == "" {
		t.Skip("CODITECT_TESTDATA names no folder of real documents")
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Logf("%s: a line that is no JSON: %v", filepath.Base(path), err) // the data has a few
			continue
		}
		all = append(all, v)
	}
	return all
}

// TestRecallOfAnswers: of the passages that experts cited for a question, the index finds as
// many as a scan of all passages does.
func TestRecallOfAnswers(t *testing.T) {
	folder := testData(t, "answers")
	dir := t.TempDir()
	questions := readLines[struct{ ID, Question string }](t, filepath.Join(folder, "questions.jsonl"))
	type citation struct {
		ID      string `json:"document_id"`
		Title   string
		Passage string
	}
	var scan passage.Scan
	var names []string
	right := make(map[string]map[string]bool)
	for _, q := range questions {
		data, err := os.ReadFile(filepath.Join(folder, q.ID+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, q.ID+".jsonl"), string(data))
		right[q.ID] = make(map[string]bool)
		for _, c := range readLines[citation](t, filepath.Join(folder, q.ID+".jsonl")) {
			name := q.ID + ".jsonl#" + c.ID
			if strings.TrimSpace(c.Passage) == "" {
				continue
			}
			right[q.ID][name] = true
			for _, s := range passage.Cut(c.Passage, passage.DefaultLength) {
				scan.Add(passage.TermsOf(c.Title + "\n" + s.In(c.Passage)))
				names = append(names, name)
			}
		}
	}
	kit := newKit(t, search.Config{Stores: []search.Store{{Name: "answers", Dir: dir}}})
	var ours, scanned recall
	for _, q := range questions {
		want := right[q.ID]
		var got, found []string
		for _, h := range hits(t, kit, search.Query{Text: q.Question, TopK: search.MaxTopK}) {
			got = append(got, h.Document)
		}
		for _, r := range scan.Search(passage.QueryOf(q.Question), search.MaxTopK) {
			found = append(found, names[r.Number])
		}
		ours.add(countRight(got, want), len(want))
		scanned.add(countRight(found, want), len(want))
	}
	t.Logf("answers: %d questions, %d passages: recall@%d %.4f by the index, %.4f by a scan", len(questions), len(names), topN, ours.value(), scanned.value())
	if ours.value() < scanned.value()-1e-9 || ours.value() < 0.6 {
		t.Error("the index finds less than the scan, or than 60%")
	}
}

// countRight returns how many of the right documents are among the first topN different ones.
func countRight(got []string, right map[string]bool) int {
	n := 0
	var seen []string
	for _, name := range got {
		if slices.Contains(seen, name) || len(seen) == topN {
			continue
		}
		seen = append(seen, name)
		if right[name] {
			n++
		}
	}
	return n
}

// TestRecallOfRelations: of the passages of news in which people found a relation between two
// names, the index finds as many as a scan does, by the two names.
func TestRecallOfRelations(t *testing.T) {
	root := testData(t, "re3d")
	type text struct {
		ID   string `json:"_id"`
		Text string
	}
	type relation struct {
		Document       string `json:"documentId"`
		Begin, End     int
		SourceBegin    int
		TargetBegin    int
		Source, Target string
	}
	dir := t.TempDir()
	var scan passage.Scan
	type place struct {
		document   string
		start, end int // characters
	}
	var places []place
	texts := make(map[string][]rune)
	questions := make(map[string][]place) // by the two names
	for _, source := range []string{"centcom", "uk-government", "us-state-department"} {
		for _, d := range readLines[text](t, filepath.Join(root, source, "documents.json")) {
			write(t, filepath.Join(dir, d.ID+".txt"), d.Text)
			texts[d.ID] = []rune(d.Text)
			for _, s := range passage.Cut(d.Text, passage.DefaultLength) {
				scan.Add(passage.TermsOf(d.ID + ".txt\n" + s.In(d.Text)))
				places = append(places, place{d.ID + ".txt", len([]rune(d.Text[:s.Start])), len([]rune(d.Text[:s.End]))})
			}
		}
		for _, r := range readLines[relation](t, filepath.Join(root, source, "relations.json")) {
			all := texts[r.Document]
			if r.Source == r.Target || r.SourceBegin < 0 || r.SourceBegin+len([]rune(r.Source)) > len(all) || string(all[r.SourceBegin:r.SourceBegin+len([]rune(r.Source))]) != r.Source {
				continue // the data has spans that are wrong
			}
			names := []string{r.Source, r.Target}
			slices.Sort(names)
			key := strings.Join(names, " ")
			questions[key] = append(questions[key], place{r.Document + ".txt", r.SourceBegin, r.TargetBegin})
		}
	}
	kit := newKit(t, search.Config{Stores: []search.Store{{Name: "news", Dir: dir}}})
	var ours, scanned recall
	for key, pairs := range questions {
		right := make(map[place]bool)
		for _, p := range places {
			for _, r := range pairs {
				if r.document == p.document && p.start <= r.start && r.start < p.end && p.start <= r.end && r.end < p.end {
					right[p] = true
				}
			}
		}
		if len(right) == 0 || len(right) > topN || len(passage.QueryOf(key).Words) < 2 {
			continue
		}
		n := 0
		for _, h := range hits(t, kit, search.Query{Text: key, TopK: topN}) {
			if right[place{h.Document, h.CharStart, h.CharEnd}] {
				n++
			}
		}
		ours.add(n, len(right))
		n = 0
		for _, r := range scan.Search(passage.QueryOf(key), topN) {
			if right[places[r.Number]] {
				n++
			}
		}
		scanned.add(n, len(right))
	}
	t.Logf("re3d: %d pairs of names, %d passages: recall@%d %.4f by the index, %.4f by a scan", ours.n, len(places), topN, ours.value(), scanned.value())
	if ours.value() < scanned.value()-0.002 || ours.value() < 0.9 { // equal ranks are in another order
		t.Error("the index finds less than the scan, or than 90%")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
