package reviewfile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/reviewfile"
	"github.com/coditect/mapreduce/api/schema"
)

const exampleSchema = `{"type": "object", "properties": {"total": {"type": "number"}, "shop": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}}`

// A shelf is a service with a result and texts.
type shelf struct {
	mapreduce.Client
	parts []*mapreduce.ResultPart
	texts map[mapreduce.DocumentID]string
}

func (s *shelf) GetResult(_ context.Context, _ mapreduce.JobID, _ bool, sink func(*mapreduce.ResultPart) error) error {
	for _, p := range s.parts {
		if err := sink(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) ReadText(_ context.Context, _ mapreduce.JobID, _ mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	text, found := s.texts[document]
	if !found {
		return errs.New(errs.NotFound, "no text of %s", document)
	}
	for part := range strings.SplitAfterSeq(text, "\n") {
		if err := sink([]byte(part)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a record of a document, with a citation for each quote that is named by a reference of it.
func (s *shelf) add(document, text, record string, quotes ...string) {
	s.texts[mapreduce.DocumentID(document)] = text
	s.parts = append(s.parts, &mapreduce.ResultPart{RecordID: "0.0", Record: []byte(record)})
	for i, quote := range quotes {
		at := int64(strings.Index(text, quote))
		s.parts = append(s.parts, &mapreduce.ResultPart{Citation: &mapreduce.Citation{
			Ref: fmt.Sprint("R", i), Document: mapreduce.DocumentID(document), Unit: mapreduce.UnitID(document), ByteStart: at, ByteEnd: at + int64(len(quote)), Quote: quote,
		}})
	}
}

// shelfOf returns a job with documents of all kinds: two are examples, and each of the others lacks something.
func shelfOf() (*shelf, *mapreduce.Job) {
	s := &shelf{texts: make(map[mapreduce.DocumentID]string)}
	const all = `"_reviewed": {"total": {"verdict": "correct"}, "shop": {"verdict": "accept"}, "tags": {"verdict": "accept"}}`
	s.add("whole", "SHOP: Bär & Söhne\n  TOTAL: 12.50 (paid)\nred, blue", `{"total": 12.5, "shop": "Bär & Söhne", "tags": ["blue", "red"], "_sources": ["whole"], "_citations": {"total": ["R0"], "shop": ["R1"], "tags": ["R2", "R3"]}, `+all+`}`,
		"12.50", "Bär & Söhne", "red", "blue")
	s.add("absent", "SHOP: =\"quoted\"\r\nTOTAL: 3\t\n\n", `{"total": 3, "shop": "=\"quoted\"", "tags": null, "_sources": ["absent"], "_citations": {"total": ["R0"]}, "_reviewed": {"total": {"verdict": "accept"}, "shop": {"verdict": "correct"}, "tags": {"verdict": "absent"}}}`, "3")
	s.add("undecided", "TOTAL: 4", `{"total": 4, "_sources": ["undecided"], "_citations": {"total": ["R0"]}, "_reviewed": {"total": {"verdict": "accept"}}}`, "4")
	s.add("typed", "nothing of it", `{"total": 5, "shop": "S", "tags": null, "_sources": ["typed"], "_reviewed": {"total": {"verdict": "correct"}, "shop": {"verdict": "correct"}, "tags": {"verdict": "absent"}}}`)
	s.add("wrong", "TOTAL: 6", `{"total": null, "_sources": ["wrong"], "_reviewed": {"total": {"verdict": "reject"}}}`)
	s.add("large", strings.Repeat("TOTAL: 7\n", 4096), `{"total": 7, "shop": null, "_sources": ["large"], "_citations": {"total": ["R0"]}, "_reviewed": {"total": {"verdict": "accept"}, "shop": {"verdict": "absent"}, "tags": {"verdict": "absent"}}}`, "7")
	s.add("two", "TOTAL: 8", `{"total": 8, "_sources": ["two"], `+all+`}`)
	s.add("two", "TOTAL: 8", `{"total": 9, "_sources": ["two"]}`)
	s.add("nobody", "TOTAL: 10", `{"total": 10, "_sources": ["nobody"]}`)
	return s, &mapreduce.Job{ID: "mr_20260131_1a2b3c", Spec: mapreduce.JobSpec{Schema: []byte(exampleSchema)}}
}

// Documents of which every field is decided are examples that a pipeline takes; what keeps the others from
// being some is said.
func TestWriteExamples(t *testing.T) {
	s, j := shelfOf()
	var out bytes.Buffer
	made, err := reviewfile.WriteExamples(t.Context(), &out, s, j)
	if err != nil {
		t.Fatal(err)
	}
	const want = "examples: 2; left out: 1, larger than 16 KiB; left out: 1, with a value of total without a passage; left out: 1, with a value that is wrong and has no right one; left out: 1, with records that nobody has decided about; left out: 1, without a decision about shop"
	if made.String() != want {
		t.Errorf("made %s\nwant %s", made, want)
	}

	// Below a stage they are what a pipeline reads, letter by letter.
	file := "name: p\nstages:\n- name: map\n  from: documents\n  each: document\n  output: records" +
		strings.ReplaceAll("\n"+out.String(), "\n", "\n  ") + "\n- {name: last, from: map, each: group, output: records}\n"
	p, err := pipeline.Parse("p.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	parsed, err := schema.Parse("schema", []byte(exampleSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckExamples(parsed); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	got := p.Stages[0].Examples
	if len(got) != 2 || got[0].Document != s.texts["whole"] || got[1].Document != s.texts["absent"] {
		t.Fatalf("examples %+v", got)
	}
	for field, want := range map[string]string{"total": "[{12.5 12.50}]", "shop": "[{Bär & Söhne Bär & Söhne}]", "tags": "[{blue blue} {red red}]"} {
		if found := fmt.Sprint(got[0].Records[0][field]); found != want {
			t.Errorf("%s of the first: %s, want %s", field, found, want)
		}
	}
	if _, found := got[1].Records[0]["tags"]; found || len(got[1].Records[0]["shop"]) != 1 {
		t.Errorf("the second: %+v", got[1].Records)
	}
}

// Where nothing is an example, nothing is written, and the error says why.
func TestNoExamples(t *testing.T) {
	s, j := shelfOf()
	s.parts = s.parts[7:8] // the one that is not decided
	var out bytes.Buffer
	if _, err := reviewfile.WriteExamples(t.Context(), &out, s, j); errs.KindOf(err) != errs.Precondition || out.Len() > 0 || !strings.Contains(err.Error(), "left out: ") {
		t.Errorf("wrote %q: %v", out.String(), err)
	}
	j.Spec.Schema = nil
	if _, err := reviewfile.WriteExamples(t.Context(), &out, s, j); errs.KindOf(err) != errs.Precondition {
		t.Errorf("of a job without a schema: %v", err)
	}
}

// A truth has what was decided to be right, and nothing else.
func TestWriteTruth(t *testing.T) {
	s, j := shelfOf()
	parsed, err := schema.Parse("schema", j.Spec.Schema)
	if err != nil {
		t.Fatal(err)
	}
	read := resultfile.Reader(func(sink func(*mapreduce.ResultPart) error) error { return s.GetResult(t.Context(), j.ID, false, sink) })
	var out bytes.Buffer
	if err := reviewfile.WriteTruth(&out, parsed, read); err != nil {
		t.Fatal(err)
	}
	const want = `{"document":"whole","shop":"Bär \u0026 Söhne","tags":["blue","red"],"total":12.5}
{"document":"absent","shop":"=\"quoted\"","tags":null,"total":3}
{"document":"undecided","total":4}
{"document":"typed","shop":"S","tags":null,"total":5}
{"document":"large","shop":null,"tags":null,"total":7}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}

	out.Reset()
	s.parts = s.parts[len(s.parts)-1:]
	if err := reviewfile.WriteTruth(&out, parsed, read); errs.KindOf(err) != errs.Precondition || out.Len() > 0 {
		t.Errorf("of nothing: %q, %v", out.String(), err)
	}
}
