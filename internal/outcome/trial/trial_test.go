package trial_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/trial"
)

func parsed(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("schema", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func never() error { return nil }

// How a date is to be read follows from all documents, also from later ones; what the schema
// refuses is not counted as found.
func TestValuesAreJudgedByAllDocuments(t *testing.T) {
	tried, err := trial.New(parsed(t, `
type: object
properties:
  date: {type: string, format: date, x-coditect: {labels: [Date]}}
  total: {type: number, minimum: 10, x-coditect: {labels: [Total]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []trial.Document{
		{Name: "a", Text: "Date: 03/04/2020\nTotal: 12.50\n"}, {Name: "b", Text: "Date: 25/04/2020\nTotal: 3\n"}, {Name: "c", Skip: "a picture"},
	} {
		if err := tried.Add(d, never); err != nil {
			t.Fatal(err)
		}
	}

	r, err := tried.Report(never)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Documents) != 3 || r.Documents[2].Skipped != "a picture" {
		t.Fatalf("got %+v", r.Documents)
	}
	a, b := r.Documents[0].Records[0], r.Documents[1].Records[0]
	if got := a[0].Values[0]; got.Value != "2020-04-03" || got.Quote != "03/04/2020" || got.Start != 6 || !a[0].Accepted {
		t.Errorf("the date of a is %+v", got)
	}
	if b[1].Accepted || b[1].Refused == "" {
		t.Errorf("the total of b is %+v", b[1])
	}
	want := []trial.FieldCount{{Field: "date", Found: 2, Records: 2, Reasons: map[string]int{}}, {Field: "total", Found: 1, Records: 2, Reasons: map[string]int{b[1].Refused: 1}}}
	if d := cmp.Diff(want, r.Fields); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if len(r.Results) != 2 || r.Results[0].Documents[0] != "a" || r.Results[0].Values["date"] != "2020-04-03" || r.Results[1].Values["total"] != nil {
		t.Errorf("the records are %+v", r.Results)
	}
}

// Whoever does not want to wait any longer is told so.
func TestATrialIsStopped(t *testing.T) {
	tried, err := trial.New(parsed(t, "type: object\nproperties:\n  a: {type: string}\n"))
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := tried.Add(trial.Document{Name: "a", Text: "a: b"}, func() error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}

	if err := tried.Add(trial.Document{Name: "a", Text: "a: b"}, never); err != nil {
		t.Fatal(err)
	}
	if _, err := tried.Report(func() error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v of the report", err)
	}
}
