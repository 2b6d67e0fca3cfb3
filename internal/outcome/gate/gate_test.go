package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
)

const bill = `
type: object
required: [number, due]
x-coditect: {key: [number]}
properties:
  number: {type: string}
  total: {type: number, maximum: 1000}
  due: {type: string}
  items: {type: array, items: {type: string}}
`

func parsed(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(bill))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// found returns an output of one record: a number, two totals, an item without a citation and one with a fuzzy
// one.
func found(s *schema.Schema) *output.Output {
	o := new(output.Output)
	cite := func(quote, grade string) []merge.Citation {
		c := output.Citation{ID: refs.New(refs.DocumentHash{1}, len(o.Citations), len(o.Citations)+len(quote), quote), Document: "d", Unit: "u", Quote: quote, Grade: grade}
		if grade == "fuzzy" {
			c.Coverage, c.Density = 1, 1
		}
		return []merge.Citation{o.Cite(c)}
	}
	order := merge.Order{Unit: 3}
	o.Entries = []output.Entry{{Members: []output.Member{{Unit: 3}}, Accumulator: merge.Accumulate(s, merge.Record{
		Document: "d", Order: order,
		Values: []merge.Value{
			{Field: "number", Value: "A-1", Confidence: 0.9, Citations: cite("A-1", "exact")},
			{Field: "total", Value: num("12.5"), Confidence: 0.9, Citations: cite("12.50", "exact")},
			{Field: "total", Value: num("13"), Confidence: 0.5, Citations: cite("13", "exact")},
			{Field: "items", Value: "pen", Confidence: 0.9, Citations: cite("pem", "fuzzy")},
			{Field: "items", Value: "ink"},
		},
	})}}
	return o
}

func TestAsks(t *testing.T) {
	s := parsed(t)
	for _, tt := range []struct {
		when []string
		want string
	}{
		{nil, ""},
		{[]string{"conflict"}, "total conflict"},
		{[]string{"fuzzy"}, "items fuzzy"},
		{[]string{"missing"}, "due missing"},
		{[]string{"confidence < 0.01"}, ""},
		{[]string{"confidence < 1", "conflict"}, "number doubtful, total conflict, items doubtful"},
		{[]string{"all"}, "number all, total all, due all, items all"},
		{[]string{"sample 100%", "missing"}, "number sample, total sample, due missing, items sample"},
	} {
		reasons, err := waiting.ParseReasons(tt.when)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range gate.Asks(s, reasons, 1, found(s)) {
			if a.Record != "3.0" {
				t.Errorf("%v: record %s", tt.when, a.Record)
			}
			got = append(got, a.Field+" "+a.Why)
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%v: %s, want %s", tt.when, text, tt.want)
		}
	}
}

// Chance chooses about the share that is asked for, the same each time, and other values for another seed.
func TestSample(t *testing.T) {
	s := parsed(t)
	one := found(s)
	o := &output.Output{Citations: one.Citations}
	for i := range 500 {
		e := one.Entries[0]
		e.Members = []output.Member{{Unit: int64(i)}}
		o.Entries = append(o.Entries, e)
	}

	why := waiting.Reasons{Sample: 0.1}
	a, again, b := gate.Asks(s, why, 1, o), gate.Asks(s, why, 1, o), gate.Asks(s, why, 2, o)
	if len(a) < 140 || len(a) > 260 || !cmp.Equal(a, again) || cmp.Equal(a, b) {
		t.Errorf("%d of 2000 values, then %d, with another seed %d", len(a), len(again), len(b))
	}
}

func TestApply(t *testing.T) {
	s := parsed(t)
	decided := func(field string, v mapreduce.ReviewVerdict, value string) gate.Decided {
		return gate.Decided{Record: "3.0", Field: field, Verdict: v, Value: []byte(value)}
	}
	for name, tt := range map[string]struct {
		decided gate.Decided
		want    string // number, total, due and items as they are resolved
		entity  string
	}{
		"accepted":           {decided("total", mapreduce.ReviewAccept, "12.5"), "A-1 12.5 <nil> [pen]", "a-1"},
		"the other accepted": {decided("total", mapreduce.ReviewAccept, "13"), "A-1 13 <nil> [pen]", "a-1"},
		"typed":              {decided("total", mapreduce.ReviewCorrect, "7"), "A-1 7 <nil> [pen]", "a-1"},
		"what was missing":   {decided("due", mapreduce.ReviewCorrect, `"soon"`), "A-1 12.5 soon [pen]", "a-1"},
		"a list":             {decided("items", mapreduce.ReviewAccept, `["pen","ink"]`), "A-1 12.5 <nil> [pen ink]", "a-1"},
		"an empty list":      {decided("items", mapreduce.ReviewCorrect, `[]`), "A-1 12.5 <nil> <nil>", "a-1"},
		"rejected":           {decided("total", mapreduce.ReviewReject, ""), "A-1 <nil> <nil> [pen]", "a-1"},
		"absent":             {decided("items", mapreduce.ReviewAbsent, ""), "A-1 12.5 <nil> <nil>", "a-1"},
		"another key":        {decided("number", mapreduce.ReviewCorrect, `"B-2"`), "B-2 12.5 <nil> [pen]", "b-2"},
		"no key":             {decided("number", mapreduce.ReviewReject, ""), "<nil> 12.5 <nil> [pen]", "d:d"},
	} {
		o := found(s)
		before, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := gate.Apply(s, o, []gate.Decided{tt.decided})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		after, err := o.Encode()
		if err != nil || string(after) != string(before) {
			t.Errorf("%s: what was found has changed: %v", name, err)
		}

		// It survives its encoding, as reports have it.
		data, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err = output.Decode(data); err != nil {
			t.Fatal(err)
		}
		r := merge.Resolve(s, output.Believed(s, got.Entries[0].Accumulator, got.Citations))
		if text := fmt.Sprint(r.Values["number"], " ", r.Values["total"], " ", r.Values["due"], " ", r.Values["items"]); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
		if entity := merge.Rekey(s, []merge.Accumulator{got.Entries[0].Accumulator})[0].Entity; !strings.Contains(entity, tt.entity) {
			t.Errorf("%s: the record is of %s, want %s", name, entity, tt.entity)
		}
	}
}

// A decision goes before any number of values about which nobody has decided.
func TestDecisionsWin(t *testing.T) {
	s := parsed(t)
	one, err := gate.Apply(s, found(s), []gate.Decided{{Record: "3.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("7")}})
	if err != nil {
		t.Fatal(err)
	}
	sum := one.Entries[0].Accumulator
	for i := range 5 {
		other := found(s).Entries[0].Accumulator
		other.Sources = []merge.Source{{Document: fmt.Sprint("e", i)}}
		sum = merge.Merge(sum, other)
	}
	r := merge.Resolve(s, sum)
	if fmt.Sprint(r.Values["total"]) != "7" || len(r.Conflicts) != 1 || !strings.Contains(r.Conflicts[0].Rationale, "a person has decided so") {
		t.Errorf("total %v, conflicts %+v", r.Values["total"], r.Conflicts)
	}
}

// What was found is kept and read again, byte by byte, and what is no such thing is refused.
func TestHeld(t *testing.T) {
	h := gate.Held{Output: []byte("output"), Errors: []string{"a", "b"}, Confidence: 0.5}
	data, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := gate.DecodeHeld(data)
	if err != nil || !cmp.Equal(h, *got) {
		t.Errorf("%+v: %v", got, err)
	}
	for _, bad := range []string{"", "\xff", "\x05ab", "\x02no output"} {
		if _, err := gate.DecodeHeld([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if handle := gate.Handle(h.Output); !gate.IsHandle(handle) || gate.Handle([]byte("another")) == handle || len(handle) > mapreduce.MaxHandle {
		t.Errorf("handle %q", handle)
	}
	if _, err := gate.DecodeAnswer([]byte("yes")); err == nil {
		t.Error("an answer that is none was read")
	}
}

func num(text string) json.Number { return json.Number(text) }
