package output_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

const derivedSchema = `{type: object, properties: {
	total: {type: number, x-coditect: {derived: true}},
	rent: {type: number}}}`

// A worker that states how sure it is, and a formula, is believed in neither: a value that does
// not follow from its quotes is none, one that does is as sure as what was computed allows,
// whatever its worker states.
func TestFormulasAreComputedAgain(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(derivedSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, formula string
		value         json.Number
		quotes        []string
		refused       string // a part of the message
		most          float64
	}{
		{"true", "1200.50 + 300.25", "1500.75", []string{"1,200.50", "300.25"}, "", 0.85},
		{"another result", "1200.50 + 300.25", "9999", []string{"1,200.50", "300.25"}, "gives 1500.75, not 9999", 0.1},
		{"another quote", "1200.50 + 400.25", "1600.75", []string{"1,200.50", "300.25"}, "400.25, which stands in none", 0.1},
		{"no formula", "", "9999", []string{"1,200.50", "300.25"}, "no formula", 0.1},
		{"no formula, and true", "", "1500.75", []string{"1,200.50", "300.25"}, "", 0.85},
		{"no quotes", "1 + 2", "3", nil, "", 0},
	} {
		o, a := outputOf("total", tt.value, tt.formula, tt.quotes)
		believed := output.Believed(s, a, o.Citations)
		if got := believed.Fields[0].Candidates[0].Mentions[0].Confidence; got > int64(tt.most*1e6) {
			t.Errorf("%s: a confidence of %d millionths, at most %v", tt.name, got, tt.most)
		}

		encoded, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		stored, err := output.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		r := merge.Resolve(s, output.Derived(s, stored.Entries[0].Accumulator, stored.Citations))
		refusal := r.Refused["total"]
		if (refusal.Constraint == merge.DerivedFalsely) != (tt.refused != "") || !strings.Contains(refusal.Message, tt.refused) {
			t.Errorf("%s: refused: %+v", tt.name, refusal)
		}
		if _, isValue := r.Values["total"]; isValue != (tt.refused == "" && tt.quotes != nil) {
			t.Errorf("%s: values %v", tt.name, r.Values)
		}
		if tt.quotes == nil {
			if r.Unverified["total"] == nil {
				t.Errorf("%s: a value without quotes is not shown", tt.name)
			}
			continue
		}

		cited, derived := output.CitedOf(s, &r, refs.ID.Full)
		if _, isQuoted := cited["total"]; isQuoted {
			t.Errorf("%s: a derived value counts as quoted: %v", tt.name, cited)
		}
		if d, ok := derived["total"]; ok != (tt.refused == "") || ok && (*d.Computed != "1500.75" || len(d.Citations) != 2) {
			t.Errorf("%s: derived %v", tt.name, derived)
		}
	}
}

// outputOf returns an output with one value, of which its worker is very sure.
func outputOf(field string, value any, formula string, quotes []string) (*output.Output, merge.Accumulator) {
	o := &output.Output{}
	var cited []merge.Citation
	for i, q := range quotes {
		cited = append(cited, o.Cite(output.Citation{ID: refs.ID{byte(i + 1)}, Document: "d", Quote: q, Grade: string(ground.Exact)}))
	}
	m := merge.NewMention(cited, 0.99, 0.99)
	m.Formula = formula
	a := merge.Accumulator{
		Sources: []merge.Source{{Document: "d"}},
		Fields:  []merge.Field{{Path: field, Candidates: []merge.Candidate{{Key: "k", Value: value, Mentions: []merge.Mention{m}}}}},
	}
	o.Entries = []output.Entry{{Members: []output.Member{{}}, Accumulator: a}}
	return o, a
}

// How the numbers of a document are written decides what a formula may take from its quotes.
func TestFormulasOfDocumentsAsTheyAreWritten(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(derivedSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, formula, value, refused string }{
		{"thousands in Germany", "Preis 0,85 und 12,50", "1500 + 300", "1800", ""},
		{"decimals in Germany", "Preis 0,85 und 12,50", "1.5 + 300", "301.5", "1.5, which stands in none"},
		{"decimals in England", "Price 0.85 and 12.50", "1.5 + 300", "301.5", ""},
		{"nothing tells", "nothing", "1500 + 300", "1800", "nothing tells which is meant"},
	} {
		o, a := outputOf("total", json.Number(tt.value), tt.formula, []string{"1.500", "300"})
		var habits habits.Habits
		habits.AddText("d", calendar.CountOrders(tt.text), format.CountNumbers(tt.text))
		r := merge.Resolve(s, habits.Settle(s, a, o.Citations))
		if refusal := r.Refused["total"]; (refusal.Message == "") != (tt.refused == "") || !strings.Contains(refusal.Message, tt.refused) {
			t.Errorf("%s: %+v, values %v", tt.name, refusal, r.Values)
		}
	}
}

// Two units derive different values: the vote takes the one that follows, however often the
// other one was found. A reduce makes no value of its own.
func TestFalseDerivationsHaveNoVote(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(derivedSchema))
	if err != nil {
		t.Fatal(err)
	}
	o, _ := outputOf("total", json.Number("1500.75"), "1200.50 + 300.25", []string{"1,200.50", "300.25", "7.00"})
	mention := func(formula string, unit int64, ids ...byte) merge.Mention {
		var cited []merge.Citation
		for _, id := range ids {
			cited = append(cited, merge.Citation(append([]byte{id}, make([]byte, 31)...)))
		}
		m := merge.NewMention(cited, 0.9, 0)
		m.Formula, m.First = formula, merge.Order{Unit: unit}
		return m
	}
	a := merge.Accumulator{Sources: []merge.Source{{Document: "d"}}, Fields: []merge.Field{{Path: "total", Candidates: []merge.Candidate{
		{Key: "1500.75", Value: json.Number("1500.75"), Mentions: []merge.Mention{mention("1200.50 + 300.25", 1, 1, 2), mention("7 * 200", 2, 3)}},
		{Key: "8", Value: json.Number("8"), Mentions: []merge.Mention{mention("7 + 2", 2, 3), mention("1200.50", 3, 1), mention("300.25", 4, 2)}},
	}}}}
	r := merge.Resolve(s, output.Derived(s, a, o.Citations))
	if r.Values["total"] != json.Number("1500.75") || r.Derived["total"].Computed != "1500.75" || len(r.Citations["total"]) != 2 {
		t.Errorf("values %v, derived %+v, citations %d", r.Values, r.Derived, len(r.Citations["total"]))
	}
}
