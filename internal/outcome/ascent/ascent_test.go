package ascent_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

const orders = `
title: order
type: object
properties:
  name: {type: string}
  total: {type: number}
  place: {type: object, properties: {city: {type: string}, code: {type: string}}}
  tags: {type: array, items: {type: string}}
`

func parse(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("schema.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outputOf returns an output with one record for each of the given, whose values have a
// confidence each, in hundredths: "total=5@90".
func outputOf(records ...[]string) *output.Output {
	out := &output.Output{}
	for i, values := range records {
		e := output.Entry{Members: []output.Member{{Record: int64(i)}}, Accumulator: merge.Accumulator{Entity: fmt.Sprint(i)}}
		for _, text := range values {
			field, rest, _ := strings.Cut(text, "=")
			value, sure, _ := strings.Cut(rest, "@")
			hundredths, err := strconv.ParseInt(sure, 10, 64)
			if err != nil {
				panic(err)
			}

			id := merge.Citation(strings.Repeat(string(rune('a'+i)), 32))
			out.Cite(output.Citation{ID: [32]byte([]byte(id)), Document: "d", Quote: value, Grade: "exact"})
			at := merge.Order{Record: int64(i)}
			e.Fields = append(e.Fields, merge.Field{Path: field, Candidates: []merge.Candidate{{
				Key: value, Value: value,
				Mentions: []merge.Mention{{Citations: []merge.Citation{id}, Confidence: hundredths * 10_000, First: at, Readings: []merge.Reading{{Found: 1, Of: 1}}}},
			}}})
		}
		out.Entries = append(out.Entries, e)
	}
	return out
}

func TestAlike(t *testing.T) {
	m, err := ascent.New(parse(t, orders), cascading.PerField)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"name", "total", "place", "tags"}; !slices.Equal(m.Names(), want) {
		t.Fatalf("measures %q, want %q", m.Names(), want)
	}
	whole, err := ascent.New(parse(t, orders), cascading.PerRecord)
	if err != nil {
		t.Fatal(err)
	}

	one := []string{"name=Anna Ltd@90", "place.city=Rome@80", "place.code=00100@40"}
	for _, tt := range []struct {
		name  string
		other [][]string
		alike []bool
	}{
		{"the same", [][]string{one}, []bool{true, true, true, true}},
		{"other case and blanks", [][]string{{"name=ANNA  LTD@60", "place.city=rome@60", "place.code=00100@60"}}, []bool{true, true, true, true}},
		{"another name", [][]string{{"name=Anna GmbH@90", "place.city=Rome@80", "place.code=00100@80"}}, []bool{false, true, true, true}},
		{"a member is missing", [][]string{{"name=Anna Ltd@90", "place.city=Rome@80"}}, []bool{true, true, false, true}},
		{"two records", [][]string{one, one}, []bool{false, false, false, false}},
		{"none", nil, []bool{false, false, false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := outputOf(one), outputOf(tt.other...)
			if diff := cmp.Diff(tt.alike, m.Alike(a, b)); diff != "" {
				t.Errorf("by field (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(m.Alike(a, b), m.Alike(b, a)); diff != "" {
				t.Errorf("the other way round (-want +got):\n%s", diff)
			}
			if got := whole.Alike(a, b); len(got) != 1 || got[0] != !slices.Contains(tt.alike, false) {
				t.Errorf("whole records: %v", got)
			}
		})
	}

	first, second := []string{"name=A@90"}, []string{"name=B@90"}
	if got := m.Alike(outputOf(first, second), outputOf(second, first)); slices.Contains(got, false) {
		t.Errorf("records in another order: %v", got)
	}
}

// A person who is asked about an answer judges it by what it is then.
func TestJudge(t *testing.T) {
	s := parse(t, orders)
	for per, want := range map[string][]bool{cascading.PerField: {false, true, true, true}, cascading.PerRecord: {false}} {
		m, err := ascent.New(s, per)
		if err != nil {
			t.Fatal(err)
		}
		found := outputOf([]string{"name=Anna@90", "place.city=Rome@90"})
		found.Ascent = new(output.Ascent)
		m.Ask(found)
		if err := ascent.Judge(s, found); err != nil || slices.Contains(found.Ascent.Alike, false) {
			t.Errorf("%s: what was found is judged %v, %v", per, found.Ascent.Alike, err)
		}

		decided := outputOf([]string{"name=Bert@90", "place.city=ROME@90"})
		decided.Ascent = found.Ascent
		if err := ascent.Judge(s, decided); err != nil || !slices.Equal(decided.Ascent.Alike, want) {
			t.Errorf("%s: what a person changed is judged %v, %v, want %v", per, decided.Ascent.Alike, err, want)
		}
	}

	nobody := outputOf([]string{"total=5@90"})
	nobody.Ascent = &output.Ascent{Alike: []bool{true}}
	if err := ascent.Judge(s, nobody); err != nil || !slices.Equal(nobody.Ascent.Alike, []bool{true}) {
		t.Errorf("an answer about which nobody was asked: %v, %v", nobody.Ascent.Alike, err)
	}
	nobody.Ascent.Found = []uint64{1, 2}
	if err := ascent.Judge(s, nobody); err == nil {
		t.Error("an answer of another schema was judged")
	}
}

func TestScores(t *testing.T) {
	m, err := ascent.New(parse(t, orders), cascading.PerField)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Scores(outputOf()); !slices.Equal(got, []uint32{0, 0, 0, 0}) {
		t.Errorf("an empty answer has the scores %v", got)
	}
	got := m.Scores(outputOf([]string{"name=A@90", "place.city=Rome@80", "place.code=00100@40"}))
	if got[0] == 0 || got[1] != 0 || got[2] > 400_000 || got[2] == 0 {
		t.Errorf("scores %v: a field has the least of its members, and none without a value", got)
	}
	// One record without a name makes the names of the unit unsure.
	if got := m.Scores(outputOf([]string{"name=A@90"}, []string{"place.city=Rome@80"})); got[0] != 0 {
		t.Errorf("scores %v", got)
	}
}

func TestRefused(t *testing.T) {
	var many strings.Builder
	many.WriteString("type: object\nproperties:\n")
	for i := range 65 {
		fmt.Fprintf(&many, "  f%d: {type: string}\n", i)
	}
	s := parse(t, many.String())
	if _, err := ascent.New(s, cascading.PerField); err == nil || !strings.Contains(err.Error(), "65 fields, and at most 64") {
		t.Errorf("65 fields: %v", err)
	}
	if m, err := ascent.New(s, cascading.PerRecord); err != nil || len(m.Names()) != 1 {
		t.Errorf("per record: %v", err)
	}
}

func TestHandles(t *testing.T) {
	for member := range 4 {
		if got, ok := ascent.MemberOf(ascent.Handle(member)); !ok || got != member {
			t.Errorf("member %d: %d, %t", member, got, ok)
		}
	}
	for _, other := range []string{"", "cascade/", "cascade/x", "cascade/-1", "person"} {
		if got, ok := ascent.MemberOf(other); ok {
			t.Errorf("%q is of member %d", other, got)
		}
	}
}
