package claims_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// FinanceBench is a public set of questions about filings of companies, with the passages
// that answer them, and with answers of models that people labelled as correct or incorrect.

// An answered question of FinanceBench.
type answered struct {
	ID     string `json:"financebench_id"`
	Answer any    `json:"model_answer"` // a text, or a number alone
	Label  string
}

// evidenceOf returns the passages of each question.
func evidenceOf(t *testing.T, file string) map[string][]claims.Source {
	t.Helper()
	sources := make(map[string][]claims.Source)
	eachLine(t, file, func(line []byte) {
		var q struct {
			ID       string `json:"financebench_id"`
			Company  string
			Doc      string `json:"doc_name"`
			Evidence []struct {
				Text string `json:"evidence_text"`
			}
		}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, e := range q.Evidence {
			about := q.Company + ", " + strings.ReplaceAll(q.Doc, "_", " ") + "."
			sources[q.ID] = append(sources[q.ID], claims.Source{Passage: e.Text, About: about})
		}
	})
	return sources
}

// gradeAnswer returns the worst grade of the sentences of an answer that claim something;
// "" if none does.
func gradeAnswer(answer string, sources []claims.Source) claims.Grade {
	order := claims.Grades()
	worst := -1
	for _, span := range prose.Sentences(answer) {
		sentence := span.In(answer)
		if !claims.Claims(sentence) {
			continue
		}
		grade := claims.CheckSources(sentence, sources...).Grade
		for i, g := range order {
			if g == grade {
				worst = max(worst, i)
			}
		}
	}
	if worst < 0 {
		return ""
	}
	return order[worst]
}

// TestFinanceBench prints how the answers of models are graded by the passages that people
// chose, and fails if wrong ones pass as supported more often than rarely. The folder that
// CODITECT_FINANCEBENCH names has the set's data/ and results/.
func TestFinanceBench(t *testing.T) {
	dir := os.Getenv("CODITECT_FINANCEBENCH")
	if dir == "" {
		t.Skip("CODITECT_FINANCEBENCH names no folder with FinanceBench")
	}
	sources := evidenceOf(t, filepath.Join(dir, "data", "financebench_open_source.jsonl"))
	files, err := filepath.Glob(filepath.Join(dir, "results", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no results: %v", dir, err)
	}

	graded := make(map[string]map[claims.Grade]int) // by label
	for _, file := range files {
		eachLine(t, file, func(line []byte) {
			var a answered
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if graded[a.Label] == nil {
				graded[a.Label] = make(map[claims.Grade]int)
			}
			grade := gradeAnswer(fmt.Sprint(a.Answer), sources[a.ID])
			graded[a.Label][grade]++
			if grade == claims.Supported && a.Label == "Incorrect Answer" {
				t.Logf("wrong and supported: %s: %.300s", a.ID, fmt.Sprint(a.Answer))
			}
		})
	}

	total := 0
	for _, label := range sortedKeys(graded) {
		all := 0
		for _, n := range graded[label] {
			all += n
		}
		total += all
		t.Logf("%-18s %4d: %v", label, all, graded[label])
	}
	const most = 0.1 // of the wrong answers
	wrong := graded["Incorrect Answer"]
	all := 0
	for _, n := range wrong {
		all += n
	}
	if all == 0 || float64(wrong[claims.Supported]) > most*float64(all) {
		t.Errorf("of %d answers %d are wrong, of which %d are graded supported, want at most %.0f %%", total, all, wrong[claims.Supported], 100*most)
	}
}
