package output_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// Two documents about one order. Characters and bytes differ.
const before, textA, textB = "vorher: ", "Köln K-1 total 5.50 by van", "Köln K-1 total 7.50 by lorry, tomorrow"

func hashOf(document string) refs.DocumentHash {
	return output.HashDocument(document, []byte(document))
}

// unit makes the output of a map unit that read text behind before.
func unit(t testing.TB, s *schema.Schema, index int64, document, text string, values map[string]string) (check.Text, *output.Output) {
	t.Helper()
	out := &output.Output{}
	r := merge.Record{Document: document, Order: merge.Order{Unit: index}}
	for _, f := range s.Fields() {
		quote, ok := values[f.Path]
		if !ok {
			continue
		}
		at := strings.Index(text, quote)
		from, start := len(before)+at, len([]rune(before+text[:at]))
		v, err := f.Property.Normalize(quote)
		if err != nil || at < 0 {
			t.Fatalf("%q: %v", quote, err)
		}
		r.Values = append(r.Values, merge.Value{Field: f.Path, Value: v, Confidence: 0.9, Citations: []merge.Citation{out.Cite(output.Citation{
			ID: refs.New(hashOf(document), from, from+len(quote), quote), Document: document, Unit: document,
			Start: int64(start), End: int64(start + len([]rune(quote))), ByteStart: int64(from), ByteEnd: int64(from + len(quote)),
			Quote: quote, Grade: "exact",
		})}})
	}
	out.Entries = []output.Entry{{Members: []output.Member{{Unit: index}}, Accumulator: merge.Accumulate(s, r), Chunks: 1}}
	return check.Text{
		Document: document, Unit: document, Hash: hashOf(document), Content: []byte(text),
		ByteOffset: int64(len(before)), CharOffset: int64(len([]rune(before))),
	}, out
}

func orders(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte("properties: {order: {}, city: {}, total: {type: number}, note: {}}\nx-coditect: {key: [order]}"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func both(t testing.TB, s *schema.Schema) (text check.Text, a, b *output.Output) {
	t.Helper()
	text, a = unit(t, s, 0, "a", textA, map[string]string{"order": "K-1", "city": "Köln", "total": "5.50", "note": "van"})
	_, b = unit(t, s, 1, "b", textB, map[string]string{"order": "K-1", "city": "Köln", "total": "7.50", "note": "lorry, tomorrow"})
	return text, a, b
}

// TestDatesOfATextThatIsLeftOut: a text of which nothing is cited is not read to check
// an output, and what the output says of it is bounded all the same.
func TestDatesOfATextThatIsLeftOut(t *testing.T) {
	text := check.Text{Document: "a", Unit: "a", Length: 60}
	out := new(output.Output)
	for _, tt := range []struct {
		days int64
		want string
	}{{10, ""}, {11, "dates in a text"}, {math.MaxInt64, "dates in a text"}} {
		out.Dates.DayFirst = tt.days
		wantError(t, check.Map(text, nil, out), tt.want)
	}
}

// change changes the citation of a quote.
func change(o *output.Output, quote string, by func(*output.Citation)) {
	for id, c := range o.Citations {
		if c.Quote == quote {
			by(&c)
			o.Citations[id] = c
		}
	}
}

func TestCheckMap(t *testing.T) {
	s := orders(t)
	for _, tt := range []struct {
		name  string
		spoil func(*output.Output)
		want  string // in the error; none: it is right
	}{
		{"as it is", func(*output.Output) {}, ""},
		{"another quote", func(o *output.Output) { change(o, "Köln", func(c *output.Citation) { c.Quote = "Bonn!" }) }, "is not the text"},
		{"other bytes", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.ByteStart--; c.ByteEnd-- }) }, "is not the text"},
		{"other characters", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.Start++; c.End++ }) }, "stands at characters"},
		{"an end of its own", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.End++ }) }, "stands at characters"},
		{"text it did not read", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.ByteStart, c.ByteEnd = 0, 3 }) }, "did not read"},
		{"nothing", func(o *output.Output) {
			change(o, "van", func(c *output.Citation) { c.ByteEnd, c.Quote = c.ByteStart, "" })
		}, "did not read"},
		{"another document", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.Document = "b" }) }, "as found by"},
		{"another id", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.ID[0]++ }) }, "of another citation"},
		{"no grade", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.Grade = "perfect" }) }, "has the grade"},
		{"a grade that is never shown", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.Grade = "near" }) }, "has the grade"},
		{"more dates than the text has room for", func(o *output.Output) { o.Dates.DayFirst = 9 }, "dates in a text"},
		{"dates whose sum is negative", func(o *output.Output) { o.Dates.DayFirst, o.Dates.MonthFirst = math.MaxInt64, math.MaxInt64 }, "dates in a text"},
		{"what only reduces report", func(o *output.Output) { o.Removed = []output.Removed{{Name: "x"}} }, "only a reduce"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, a, _ := both(t, s)
			tt.spoil(a)
			wantError(t, check.Map(text, nil, a), tt.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if !errors.Is(err, check.ErrBreach) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want a breach: %s", err, want)
	}
}

func TestCheckReduce(t *testing.T) {
	s := orders(t)
	field := func(o *output.Output, path string) *merge.Field {
		for i := range o.Entries[0].Fields {
			if o.Entries[0].Fields[i].Path == path {
				return &o.Entries[0].Fields[i]
			}
		}
		t.Fatalf("no field %s", path)
		return nil
	}
	for _, tt := range []struct {
		name  string
		spoil func(*output.Output)
		want  string
	}{
		{"as it is", func(*output.Output) {}, ""},
		{"a changed quote", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.Quote = "bus" }) }, "changed the citation"},
		{"a better grade", func(o *output.Output) { change(o, "van", func(c *output.Citation) { c.Grade = "fuzzy" }) }, "changed the citation"},
		{"one more", func(o *output.Output) {
			m := &field(o, "note").Candidates[0].Mentions[0]
			m.Citations = append(m.Citations, o.Cite(output.Citation{ID: refs.New(hashOf("c"), 0, 1, "x"), Quote: "x"}))
		}, "was not given"},
		{"another field's", func(o *output.Output) {
			field(o, "note").Candidates[0].Mentions[0].Citations = field(o, "total").Candidates[0].Mentions[0].Citations
		}, "another field or record"},
		{"one less", func(o *output.Output) { f := field(o, "note"); f.Candidates = f.Candidates[:1] }, "neither passed on nor listed"},
		{"one listed without a reason", func(o *output.Output) {
			f := field(o, "note")
			o.Dropped = append(o.Dropped, output.Dropped{Citation: f.Candidates[1].Mentions[0].Citations[0], Field: "note", Reason: " "})
			f.Candidates = f.Candidates[:1]
		}, "without a reason"},
		{"one listed with a reason", func(o *output.Output) {
			f := field(o, "note")
			o.Dropped = append(o.Dropped, output.Dropped{Citation: f.Candidates[1].Mentions[0].Citations[0], Field: "note", Reason: "shorter"})
			f.Candidates = f.Candidates[:1]
		}, ""},
		{"a source less", func(o *output.Output) { o.Entries[0].Sources = o.Entries[0].Sources[:1] }, "lost the source"},
		{"a source more", func(o *output.Output) {
			o.Entries[0].Sources = append(o.Entries[0].Sources, merge.Source{Document: "c"})
		}, "which is none"},
		{"a record more", func(o *output.Output) { o.Entries[0].Members = append(o.Entries[0].Members, output.Member{Unit: 9}) }, "was not given it"},
		{"a record twice", func(o *output.Output) { o.Entries = append(o.Entries, o.Entries[0]) }, "twice"},
		{"dates", func(o *output.Output) { o.Dates.DayFirst = 1 }, "dates in a text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, a, b := both(t, s)
			reduced := output.Reduce(s, []*output.Output{a, b}, nil, true)
			data, err := reduced.Encode()
			if err != nil {
				t.Fatal(err)
			}
			out, err := output.Decode(data) // shares nothing with its inputs
			if err != nil {
				t.Fatal(err)
			}
			tt.spoil(out)
			wantError(t, check.Reduce([]*output.Output{a, b}, out), tt.want)
		})
	}
}

// TestRecordsWithoutRoomGoUp: what a reduce has no room to merge it names, and so
// does whoever reduces that, all of it.
func TestRecordsWithoutRoomGoUp(t *testing.T) {
	s := orders(t)
	reduce := func(inputs ...*output.Output) *output.Output {
		out, err := output.Reduction{Schema: s, Room: 1}.Of(inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, check.Reduce(inputs, out), "")
		return out
	}
	_, a, b := both(t, s)
	merged := output.Reduce(s, []*output.Output{a, b}, nil, false)
	for _, in := range [][]*output.Output{{a, b}, {merged}} {
		if out := reduce(in...); len(out.Entries) != 0 || len(out.Open) != 2 || len(out.Citations) != 0 || out.Unmerged() != 1 {
			t.Fatalf("without room: %d entries, %d names, %d citations; want the names of two records alone", len(out.Entries), len(out.Open), len(out.Citations))
		}
	}
	named := reduce(a, b)
	if wanted := output.Wanted(s, []*output.Output{named, named}, true); len(wanted) > 0 {
		t.Errorf("%d records wanted for which there was no room", len(wanted))
	}
	for _, tt := range []struct {
		name  string
		in    []*output.Output
		spoil func(*output.Output)
		want  string
	}{
		{"one of a merged entity less", []*output.Output{merged}, func(o *output.Output) { o.Open = o.Open[:1] }, "lost 1 of the 2 records"},
		{"another entity's", []*output.Output{merged}, func(o *output.Output) { o.Open[1].Entity = "k:other" }, "lost 1 of the 2 records"},
		{"one that was named less", []*output.Output{named}, func(o *output.Output) { o.Open = o.Open[1:] }, "yet to be merged"},
		{"one twice", []*output.Output{named}, func(o *output.Output) { o.Open = append(o.Open, o.Open[0]) }, "twice"},
		{"one more", []*output.Output{named}, func(o *output.Output) {
			o.Open = append(o.Open, output.Open{Entity: o.Open[0].Entity, Member: output.Member{Unit: 99}})
		}, "was not given it"},
		{"one that is held too", []*output.Output{merged}, func(o *output.Output) { o.Entries, o.Citations = merged.Entries, merged.Citations }, "twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := reduce(tt.in...)
			tt.spoil(out)
			wantError(t, check.Reduce(tt.in, out), tt.want)
		})
	}
}

// TestReportsGoUp: what a level dropped and removed, the next may not forget,
// nor may it lose what a level has joined.
func TestReportsGoUp(t *testing.T) {
	s := orders(t)
	_, a, b := both(t, s)
	one := output.Reduce(s, []*output.Output{a, b}, nil, false)
	issued := one.Issue()
	one.Decide(s, "reduce_L1_0", issued, []output.Decision{{Entry: 0, Field: "note", Value: "van", Refs: []string{"REF_00000000", issued.Names()[0]}}})
	if len(one.Dropped) != 1 || len(one.Removed) == 0 {
		t.Fatalf("dropped %v, removed %v", one.Dropped, one.Removed)
	}
	two := output.Reduce(s, []*output.Output{one}, nil, true)
	wantError(t, check.Reduce([]*output.Output{one}, two), "")
	if diff := cmp.Diff(one.Dropped, two.Dropped); diff != "" {
		t.Errorf("dropped (-first +second):\n%s", diff)
	}
	kept := *two
	two.Dropped = nil
	wantError(t, check.Reduce([]*output.Output{one}, two), "not listed any more")
	*two = kept
	two.Removed = nil
	wantError(t, check.Reduce([]*output.Output{one}, two), "not listed any more")
	*two = kept
	two.Entries = nil
	wantError(t, check.Reduce([]*output.Output{one}, two), "lost 2 of the 2 records")
}

func TestDecide(t *testing.T) {
	s := orders(t)
	_, a, b := both(t, s)
	names := map[string]string{} // by quote and document
	issued := output.Reduce(s, []*output.Output{a, b}, nil, true).Issue()
	for _, o := range []*output.Output{a, b} {
		for id, c := range o.Citations {
			names[c.Document+" "+c.Quote] = issued.Name(id)
		}
	}
	van, lorry, five, seven := names["a van"], names["b lorry, tomorrow"], names["a 5.50"], names["b 7.50"]
	for _, tt := range []struct {
		name     string
		decision output.Decision
		want     any      // the value afterwards
		cites    []string // quotes
		dropped  []string // quotes
		removed  []string // names
	}{
		{"chooses", output.Decision{Field: "note", Value: "van", Refs: []string{van}}, "van", []string{"van"}, []string{"lorry, tomorrow"}, nil},
		{"chooses without citing", output.Decision{Field: "note", Value: "VAN"}, "van", []string{"van"}, []string{"lorry, tomorrow"}, nil},
		{"C7 invents", output.Decision{Field: "note", Value: "van", Refs: []string{van, "REF_deadbeef", "7"}}, "van", []string{"van"}, []string{"lorry, tomorrow"}, []string{"REF_deadbeef", "7"}},
		{"mixes", output.Decision{Field: "note", Value: "van", Refs: []string{van, five}}, "van", []string{"van"}, []string{"lorry, tomorrow"}, []string{five}},
		{"lists", output.Decision{Field: "note", Value: "van lorry, tomorrow", Refs: []string{strings.ToUpper(van) + ", " + lorry}}, "van lorry, tomorrow", []string{"van", "lorry, tomorrow"}, nil, nil},
		{"rewrites freely", output.Decision{Field: "note", Value: "by aeroplane at midnight", Refs: []string{van}}, "lorry, tomorrow", []string{"lorry, tomorrow"}, nil, []string{"by aeroplane at midnight"}},
		{"rewrites a number", output.Decision{Field: "total", Value: json.Number("8"), Refs: []string{five, seven}}, json.Number("5.5"), []string{"5.50"}, nil, []string{"8"}},
		{"says what is no number", output.Decision{Field: "total", Value: "much", Refs: []string{five}}, json.Number("5.5"), []string{"5.50"}, nil, []string{"much"}},
		{"says nothing", output.Decision{Field: "total"}, nil, nil, []string{"5.50", "7.50"}, nil},
		{"a field there is not", output.Decision{Field: "colour", Value: "red"}, nil, nil, nil, []string{"red"}},
		{"a record there is not", output.Decision{Entry: 7, Field: "note", Value: "van"}, "lorry, tomorrow", []string{"lorry, tomorrow"}, nil, []string{"van"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := output.Reduce(s, []*output.Output{a, b}, nil, true)
			out.Decide(s, "final", issued, []output.Decision{tt.decision})
			wantError(t, check.Reduce([]*output.Output{a, b}, out), "")
			got := merge.Resolve(s, out.Entries[0].Accumulator)
			if diff := cmp.Diff(tt.want, got.Values[tt.decision.Field]); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			var cites, dropped, removed []string
			for _, id := range got.Citations[tt.decision.Field] {
				c := out.Citations[id]
				cites = append(cites, c.Quote)
				if c.Document != "a" && c.Document != "b" {
					t.Errorf("C6: citation %q is of document %q", c.Quote, c.Document)
				}
			}
			for _, d := range out.Dropped {
				dropped = append(dropped, out.Citations[d.Citation].Quote)
			}
			for _, r := range out.Removed {
				removed = append(removed, r.Name)
			}
			sorted := cmp.Transformer("set", func(in []string) map[string]int {
				set := map[string]int{}
				for _, s := range in {
					set[s]++
				}
				return set
			})
			if tt.want != nil && len(tt.cites) != len(cites) {
				t.Errorf("cites %q, want %q", cites, tt.cites)
			}
			if diff := cmp.Diff(tt.dropped, dropped, sorted); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.removed, removed, sorted); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProse: ids in a reducer's text are in full inside, and as others spell
// them where they are shown.
func TestProse(t *testing.T) {
	s := orders(t)
	_, a, b := both(t, s)
	out := output.Reduce(s, []*output.Output{a, b}, nil, true)
	issued := out.Issue()
	var names []string
	for _, f := range out.Entries[0].Fields {
		if f.Path == "note" {
			for _, c := range f.Candidates {
				names = append(names, issued.Name(c.Mentions[0].Citations[0]))
			}
		}
	}
	said := fmt.Sprintf("van [%s] or lorry [%s, REF_deadbeef]", names[0], strings.ToUpper(names[1]))
	out.Decide(s, "final", issued, []output.Decision{{Field: "note", Value: said}})
	wantError(t, check.Reduce([]*output.Output{a, b}, out), "")
	got := merge.Resolve(s, out.Entries[0].Accumulator)
	want := fmt.Sprintf("van [%s] or lorry [%s, ?]", names[0], names[1])
	shown := output.Spelled(got.Values["note"], got.Citations["note"], func(id refs.ID) string { return id.Full()[:len(names[0])] })
	if diff := cmp.Diff(any(want), shown); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if text := issued.Show(got.Values["note"].(string)); text != want {
		t.Errorf("the next reducer reads %q, want %q", text, want)
	}
	if len(got.Citations["note"]) != 2 || len(out.Removed) != 1 {
		t.Errorf("cites %d, removed %v", len(got.Citations["note"]), out.Removed)
	}
}

// TestAnyAnswerIsSurvived: whatever a reducer says, the output passes the check.
func TestAnyAnswerIsSurvived(t *testing.T) {
	s := orders(t)
	_, a, b := both(t, s)
	issued := output.Reduce(s, []*output.Output{a, b}, nil, true).Issue()
	name := rapid.SampledFrom(append(issued.Names(), "REF_deadbeef", "[3]", "", "REF_", "x"))
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(name, rapid.SampledFrom([]string{"van", "lorry", "5.50", "K-1", "[", "]", ", ", "`", "\n"})), 0, 6).Draw(t, "parts"), rapid.SampledFrom([]string{" ", ", ", ""}).Draw(t, "between"))
	})
	decision := rapid.Custom(func(t *rapid.T) output.Decision {
		d := output.Decision{
			Entry: rapid.IntRange(-1, 1).Draw(t, "entry"), Field: rapid.SampledFrom([]string{"order", "city", "total", "note", "x"}).Draw(t, "field"),
			Refs: rapid.SliceOf(text).Draw(t, "refs"), Said: rapid.Float64().Draw(t, "said"),
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
		case 1:
			d.Value = json.Number(rapid.SampledFrom([]string{"5.5", "7.50", "9"}).Draw(t, "number"))
		case 2:
			d.Value = []any{text.Draw(t, "text"), true}
		default:
			d.Value = text.Draw(t, "text")
		}
		return d
	})
	rapid.Check(t, func(t *rapid.T) {
		out := output.Reduce(s, []*output.Output{a, b}, nil, true)
		out.Decide(s, "final", issued, rapid.SliceOf(decision).Draw(t, "decisions"))
		if err := check.Reduce([]*output.Output{a, b}, stored(t, out)); err != nil {
			t.Fatal(err)
		}
	})
}

// A conflict that a reducer decides is listed, with every value that it compared
// and what speaks for each, through every level above, and cannot get lost there.
func TestDecidedConflictsAreListed(t *testing.T) {
	s := orders(t)
	_, a, b := both(t, s)
	inputs := []*output.Output{a, b}
	decided := func(d output.Decision) *output.Output {
		out := output.Reduce(s, inputs, nil, true)
		out.Decide(s, "final", out.Issue(), []output.Decision{d})
		wantError(t, check.Reduce(inputs, out), "")
		return out
	}
	if out := decided(output.Decision{Field: "note", Value: "by aeroplane at midnight", Why: "it is fast"}); len(out.Decided) > 0 || len(out.Removed) == 0 {
		t.Errorf("a value that none of the inputs had: decided %+v, removed %+v", out.Decided, out.Removed)
	}
	out := decided(output.Decision{Field: "note", Value: "van", Why: "REF_deadbeef says so"})
	raw, err := out.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = output.Decode(raw); err != nil {
		t.Fatal(err)
	}
	wantError(t, check.Reduce(inputs, out), "")
	above := output.Reduce(s, []*output.Output{out}, nil, true)
	wantError(t, check.Reduce([]*output.Output{out}, above), "")
	if len(above.Decided) != 1 {
		t.Fatalf("decided: %+v, want one conflict", above.Decided)
	}
	d := above.Decided[0]
	quotes := make(map[any]string)
	for _, c := range d.Candidates {
		for _, id := range c.Citations {
			quotes[c.Value] += above.Citations[id].Quote
		}
	}
	if diff := cmp.Diff(map[any]string{"van": "van", "lorry, tomorrow": "lorry, tomorrow"}, quotes); diff != "" {
		t.Errorf("values and quotes (-want +got):\n%s", diff)
	}
	if d.Field != "note" || d.Unit != "final" || d.Chosen != "van" || d.Rationale != "a model chose: says so" {
		t.Errorf("decided: %+v", d)
	}
	above.Decided = nil
	wantError(t, check.Reduce([]*output.Output{out}, above), "decided below is not listed any more")
	out.Decided[0].Rationale = " "
	wantError(t, check.Reduce(inputs, out), "without a reason")
}
