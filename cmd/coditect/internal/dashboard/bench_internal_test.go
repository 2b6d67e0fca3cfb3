package dashboard

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
)

const receipt = `
type: object
properties:
  total: {type: number, minimum: 10, x-coditect: {labels: [Total]}}
  date: {type: string, format: date, x-coditect: {labels: [Date]}}
`

func tried(t *testing.T, sample *bench.Sample) *bench.Report {
	t.Helper()
	s, err := schema.Parse("schema", []byte(receipt))
	if err != nil {
		t.Fatal(err)
	}
	r, err := try(t.Context(), s, sample)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Of each field there is by what a value was found, what it breaks, or why there is none; true values say how
// much of it is right.
func TestTry(t *testing.T) {
	r := tried(t, &bench.Sample{
		Documents: []bench.Document{{Name: "a.txt", Text: "Total: 12.50\nDate: 25/12/2018\n"}, {Name: "b.txt", Text: "Total: 3\n"}},
		Truth:     `{"document": "a.txt", "total": 12.5, "date": "2018-12-24"}` + "\n" + `{"document": "b.txt", "total": 30}`,
	})
	a, b := r.Documents[0].Records[0].Fields, r.Documents[1].Records[0].Fields
	if v := a[0].Values[0]; v.Text != "12.5" || v.Quote != "12.50" || v.Start != 7 || v.Basis != "hint" || !a[0].Accepted {
		t.Errorf("the total of a is %+v", a[0])
	}
	if b[0].Accepted || !strings.Contains(b[0].Refused, "minimum") || b[1].Reason == "" {
		t.Errorf("b has %+v", b)
	}
	if f := r.Fields[0]; f.Found != 1 || f.Records != 2 || len(f.Reasons) != 1 || !strings.HasPrefix(f.Reasons[0], "1: ") {
		t.Errorf("the total was found %+v", f)
	}

	s := r.Score
	if s.Failed != "" || len(s.Fields) != 2 || s.Fields[0].Precision != 1 || s.Fields[0].Recall != 0.5 || s.Fields[1].F1 != 0 {
		t.Fatalf("compared: %+v", s)
	}
	if got := s.Fields[1].Wrong; len(got) != 1 || got[0] != "a.txt: 2018-12-25, not 2018-12-24" {
		t.Errorf("wrong is %q", got)
	}
}

// Fields within objects are true by their paths, and fields that a truth does not name are not judged.
func TestTruthByPath(t *testing.T) {
	s, err := schema.Parse("schema", []byte("type: object\nproperties:\n  total: {type: number}\n  shop: {type: object, properties: {name: {type: string}, city: {type: string}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := try(t.Context(), s, &bench.Sample{
		Documents: []bench.Document{{Name: "a", Text: "Total: 3\nName: Corner\nCity: Bern\n"}}, Truth: `{"document": "a", "shop.name": "Corner"}`,
	})
	if err != nil || r.Score.Failed != "" || len(r.Score.Fields) != 1 || r.Score.Fields[0].Field != "shop.name" || r.Score.All.F1 != 1 {
		t.Errorf("got %+v and %v", r.Score, err)
	}
}

// True values that cannot be compared with are said to be wrong, and what was found is shown all the same.
func TestTruthThatIsWrong(t *testing.T) {
	for truth, want := range map[string]string{
		`{"document": "a.txt"`:               "truth:1",
		`{"document": "z.txt", "total": 1}`:  "z.txt",
		`{"document": "a.txt", "totals": 1}`: "totals",
	} {
		r := tried(t, &bench.Sample{Documents: []bench.Document{{Name: "a.txt", Text: "Total: 12.50\n"}}, Truth: truth})
		if r.Score == nil || !strings.Contains(r.Score.Failed, want) || r.Fields[0].Found != 1 {
			t.Errorf("%s: got %+v", truth, r.Score)
		}
	}
}

// A trial ends with whoever waits for it.
func TestTryIsStopped(t *testing.T) {
	s, err := schema.Parse("schema", []byte(receipt))
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := try(ctx, s, &bench.Sample{Documents: []bench.Document{{Name: "a", Text: "Total: 12"}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Only a server with workers reads what is not plain text.
func TestFilesThatAreRead(t *testing.T) {
	var r runners.Runners
	formats, err := r.DocumentFormats()
	if err != nil {
		t.Fatal(err)
	}
	const page = "<!DOCTYPE html><html><body><p>Total: 12.50</p></body></html>"
	for name, tt := range map[string]struct {
		file, data string
		parses     bool
		want       string // text, or a part of why there is none
	}{
		"plain text":           {"a.txt", "Total: 12.50", false, "Total: 12.50"},
		"a page":               {"a.html", page, true, "Total: 12.50"},
		"a page, no workers":   {"a.html", page, false, "no worker"},
		"a PDF that broke off": {"a.pdf", "%PDF-1.7\n1 0 obj", true, "PDF"},
		"an archive":           {"a.zip", "PK\x05\x06" + strings.Repeat("\x00", 18), true, "zip"},
	} {
		d, err := readFile(t.Context(), formats, tt.parses, tt.file, []byte(tt.data))
		got := strings.TrimSpace(d.Text)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
