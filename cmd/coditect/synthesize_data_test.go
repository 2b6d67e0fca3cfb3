package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// TestReferencesThatGoWrong: over passages of real documents, three levels deep, with a fifth
// of the references left out, made up, exchanged and rewritten at each level: each that is
// shown is a passage, none that was made up stays, and each that is gone is listed.
func TestReferencesThatGoWrong(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA names no folder with data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "re3d", "*", "documents.json"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no documents of re3d: ", err)
	}
	var lines strings.Builder
	n := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var d struct {
				ID   string `json:"_id"`
				Text string
			}
			if json.Unmarshal([]byte(line), &d) != nil {
				continue
			}
			for i, paragraph := range strings.SplitN(d.Text, ". ", 3) {
				one, err := json.Marshal(map[string]any{"document_id": d.ID + "/" + string(rune('a'+i)), "passage": strings.TrimSpace(paragraph)})
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(one, '\n'))
				n++
			}
		}
	}
	s := synthesise(t, lines.String(), "--provider", "scripted", "--var", "script.drop_refs_rate=0.2",
		"--var", "script.invent_refs_rate=0.2", "--var", "script.mix_refs_rate=0.2", "--var", "script.rewrite_refs_rate=0.2")
	s.checkReferences(t, passagesOf(lines.String()))
	stages := s.units(t)
	if stages["groups"] < 6 || stages["report"] != 1 {
		t.Errorf("the job had %v", stages)
	}
	if len(s.Citations) != n || len(s.Removed) < 10 || len(s.Dropped) < 10 || len(s.Report.References) < 10 {
		t.Errorf("%d citations of %d, %d removed, %d dropped, %d used", len(s.Citations), n, len(s.Removed), len(s.Dropped), len(s.Report.References))
	}
	for _, r := range s.Removed {
		if _, ok := s.Citations[r.Name]; ok {
			t.Errorf("%s was removed, and is a citation", r.Name)
		}
	}
	t.Logf("%d citations, %d used, %d dropped, %d removed, units %v", n, len(s.Report.References), len(s.Dropped), len(s.Removed), stages)
}

// A tally counts the sentences of reports that claim something.
type tally struct {
	claims, cited, supported, contradicted int
	outOfRange                             int // references that name no passage
}

func (y *tally) String() string {
	return fmt.Sprintf("%d claims, %d with references, %d supported (%.0f %%), %d contradicted, %d references to nothing",
		y.claims, y.cited, y.supported, 100*float64(y.supported)/float64(max(1, y.claims)), y.contradicted, y.outOfRange)
}

// addExpert counts the claims of an expert's answer, whose marks are numbers of passages
// from 0, as the check of reports grades them.
func (y *tally) addExpert(answer string, passages []claims.Source) {
	mark := regexp.MustCompile(`\[([0-9]+)\]`)
	for _, span := range prose.Sentences(answer) {
		sentence := span.In(answer)
		if !claims.Claims(sentence) {
			continue
		}
		y.claims++
		var cited []claims.Source
		for _, m := range mark.FindAllStringSubmatch(sentence, -1) {
			if n, err := strconv.Atoi(m[1]); err != nil || n >= len(passages) || passages[n].Passage == "" {
				y.outOfRange++
			} else {
				cited = append(cited, passages[n])
			}
		}
		if len(cited) == 0 {
			continue
		}
		y.cited++
		switch claims.CheckSources(mark.ReplaceAllString(sentence, ""), cited...).Grade {
		case claims.Supported:
			y.supported++
		case claims.Contradicted:
			y.contradicted++
		}
	}
}

func (y *tally) addReport(s *synthesised) {
	m := s.Report.Measures
	y.claims, y.cited, y.supported, y.contradicted = y.claims+m.Claims, y.cited+m.Cited, y.supported+m.Supported, y.contradicted+m.Contradicted
}

// TestReportsBesideExperts: to questions that experts have answered with references, our
// reports end, each of their references is a passage, and they are supported at least as
// far as the experts' own answers are by the same check. As many questions are asked as
// there are trials, and at most all.
func TestReportsBesideExperts(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	t.Parallel()
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA names no folder with data")
	}
	data, err := os.ReadFile(filepath.Join(dir, "answers", "questions.jsonl"))
	if err != nil {
		t.Skip("there are no answers of experts: ", err)
	}
	questions := strings.Split(strings.TrimSpace(string(data)), "\n")
	n := min(trials(t), len(questions))
	var experts, rules, scripted tally
	for i := range n {
		var q struct{ ID, Question, Answer string }
		if err := json.Unmarshal([]byte(questions[i*len(questions)/n]), &q); err != nil {
			t.Fatal(err)
		}
		input, err := os.ReadFile(filepath.Join(dir, "answers", q.ID+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var passages []claims.Source
		for line := range strings.Lines(string(input)) {
			var c struct {
				Passage, Title string
				Authors        []string
				Year           json.Number
			}
			if json.Unmarshal([]byte(line), &c) != nil {
				c.Passage = ""
			}
			passages = append(passages, claims.Source{Passage: c.Passage, About: c.Title + ". " + strings.Join(c.Authors, ", ") + ", " + c.Year.String() + "."})
		}
		experts.addExpert(q.Answer, passages)
		for provider, y := range map[string]*tally{"rules": &rules, "scripted": &scripted} {
			s := synthesise(t, string(input), "--question", q.Question, "--provider", provider)
			if s.checkReferences(t, passagesOf(string(input))); s.code != 0 {
				t.Errorf("question %s with %s: exit code %d\n%s", q.ID, provider, s.code, s.output)
			}
			y.addReport(s)
		}
	}
	t.Logf("of %d questions:\nexperts:  %s\nrules:    %s\nscripted: %s", n, &experts, &rules, &scripted)
	if rules.supported*experts.claims < experts.supported*rules.claims || rules.claims == 0 || experts.cited == 0 {
		t.Errorf("reports of rules are supported less than the experts' answers: %s, and %s", &rules, &experts)
	}
}
