package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// quoting returns an output that cites n quotes, and nothing else.
func quoting(n int) (*output.Output, []refs.ID) {
	o := &output.Output{}
	var ids []refs.ID
	for i := range n {
		quote := fmt.Sprintf("quote %d", i)
		id := refs.New(refs.DocumentHash{1}, i, i+len(quote), quote)
		o.Cite(output.Citation{ID: id, Document: "d", Unit: "d", Start: int64(i), End: int64(i + len(quote)), ByteStart: int64(i), ByteEnd: int64(i + len(quote)), Quote: quote, Grade: "exact"})
		ids = append(ids, id)
	}
	return o, ids
}

func form(t fatal, doc string) *jsonvalue.Form {
	t.Helper()
	f, err := jsonvalue.NewForm([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

type fatal interface {
	Helper()
	Fatal(args ...any)
}

// short is the spelling that a writer is given.
func short(in *output.Output, id refs.ID) string {
	return output.IssueAll([]*output.Output{in}).Name(merge.Citation(id[:]))
}

func TestNewValue(t *testing.T) {
	in, ids := quoting(3)
	a, b := short(in, ids[0]), short(in, ids[1])
	const unknown = "REF_0123456789"
	anything := `{}`
	for _, tt := range []struct {
		name, form, raw, want string
		cites                 []refs.ID
		removed               []string
	}{
		{"no reference", anything, `{"b":1, "a":"<x>"}`, `{"a":"<x>","b":1}`, nil, nil},
		{"in prose", anything, `"so it is [` + a + `, ` + b + `]"`, `"so it is [` + ids[0].Full() + `, ` + ids[1].Full() + `]"`, ids[:2], nil},
		{"in lower case", anything, `["` + strings.ToLower(a) + `"]`, `["` + ids[0].Full() + `"]`, ids[:1], nil},
		{"alone", anything, `{"refs":["` + a + `"," ` + b + ` "]}`, `{"refs":["` + ids[0].Full() + `","` + ids[1].Full() + `"]}`, ids[:2], nil},
		{"in full", anything, `"` + ids[2].Full() + `"`, `"` + ids[2].Full() + `"`, ids[2:], nil},
		{"in full, in code", anything, "\"`" + ids[2].Full() + "`\"", "\"`" + ids[2].Full() + "`\"", ids[2:], nil},
		{"a key", anything, `{"` + a + `":1}`, `{"` + ids[0].Full() + `":1}`, ids[:1], nil},
		{"made up, in a list", anything, `["` + a + `","` + unknown + `"]`, `["` + ids[0].Full() + `"]`, ids[:1], []string{unknown}},
		{"made up, in a list that must not be shorter", `{"minItems":2}`, `["` + a + `","` + unknown + `"]`, `["` + ids[0].Full() + `","?"]`, ids[:1], []string{unknown}},
		{"made up, in a field", anything, `{"ref":"` + unknown + `"}`, `{"ref":"?"}`, nil, []string{unknown}},
		{"made up, in prose", anything, `"so [` + unknown + `] and [` + a + `]"`, `"so [?] and [` + ids[0].Full() + `]"`, ids[:1], []string{unknown}},
		{"made up, in full, in code", anything, "\"`" + refs.ID{7}.Full() + "`\"", "\"`?`\"", nil, []string{refs.ID{7}.Full()}},
		{"a word", anything, `["REF_COUNT","see REF_COUNT"]`, `["REF_COUNT","see REF_COUNT"]`, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inputs := []*output.Output{in}
			o, err := output.NewValue("u", []byte(tt.raw), form(t, tt.form), output.IssueAll(inputs), inputs)
			if err != nil {
				t.Fatal(err)
			}
			if string(o.Value) != tt.want {
				t.Errorf("value %s, want %s", o.Value, tt.want)
			}
			var removed []string
			for _, r := range o.Removed {
				removed = append(removed, r.Name)
			}
			if diff := cmp.Diff(tt.removed, removed); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if len(o.Citations) != len(tt.cites) {
				t.Errorf("carries %d citations, want %d", len(o.Citations), len(tt.cites))
			}
			if err := check.Value(inputs, nil, form(t, tt.form), again(t, o)); err != nil {
				t.Error(err)
			}
		})
	}
}

// again encodes and decodes an output.
func again(t *testing.T, o *output.Output) *output.Output {
	t.Helper()
	data, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := output.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Value, o.Value) {
		t.Errorf("value %s came back as %s", o.Value, back.Value)
	}
	return back
}

func TestValuesThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, form, raw string }{
		{"no JSON", `{}`, `{"a":`},
		{"two values", `{}`, `1 2`},
		{"another type", `{"type":"object"}`, `[]`},
		{"nothing left", `{"items":{"minLength":5},"minItems":1}`, `["REF_0123456789"]`},
		{"too large", `{}`, `"` + strings.Repeat("x", jsonvalue.MaxValue) + `"`},
		{"a number beyond floats", `{}`, `1e999999999`},
		{"a bad date", `{"format":"date"}`, `"2024-13-01"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := output.NewValue("u", []byte(tt.raw), form(t, tt.form), output.IssueAll(nil), nil)
			if !errors.Is(err, jsonvalue.ErrForm) {
				t.Errorf("error %v, want one about the form", err)
			}
		})
	}
	if _, err := jsonvalue.NewForm([]byte(`{"$ref":"file:///etc/passwd"}`)); err == nil {
		t.Error("a schema may refer to files")
	}
}

// TestCheckValue: what is not as NewValue makes it is refused.
func TestCheckValue(t *testing.T) {
	in, ids := quoting(2)
	for _, tt := range []struct {
		name  string
		spoil func(*output.Output)
		want  error
	}{
		{"as it is", func(*output.Output) {}, nil},
		{"another quote", func(o *output.Output) {
			c := o.Citations[merge.Citation(ids[0][:])]
			c.Quote = "other"
			o.Citations[c.Key()] = c
		}, check.ErrBreach},
		{"a citation of nobody", func(o *output.Output) {
			o.Cite(output.Citation{ID: refs.ID{9}, Quote: "new"})
			o.Value = []byte(`{"a":"` + refs.ID{9}.Full() + `","b":"` + ids[0].Full() + `"}`)
		}, check.ErrBreach},
		{"one too many", func(o *output.Output) { o.Cite(in.Citations[merge.Citation(ids[1][:])]) }, check.ErrBreach},
		{"not canonical", func(o *output.Output) { o.Value = append(o.Value, ' ') }, jsonvalue.ErrForm},
		{"nothing", func(o *output.Output) { o.Value, o.Citations = nil, nil }, jsonvalue.ErrForm},
		{"another form", func(o *output.Output) { o.Value, o.Citations = []byte("1"), nil }, jsonvalue.ErrForm},
		{"records", func(o *output.Output) { o.Entries = []output.Entry{{}} }, check.ErrBreach},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inputs, f := []*output.Output{in}, form(t, `{"type":"object"}`)
			o, err := output.NewValue("u", []byte(`{"a":"`+ids[0].Full()+`"}`), f, output.IssueAll(inputs), inputs)
			if err != nil {
				t.Fatal(err)
			}
			tt.spoil(o)
			if err := check.Value(inputs, nil, f, o); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestUncitedValueIsNotEncoded(t *testing.T) {
	o := &output.Output{Value: []byte(`"` + refs.ID{9}.Full() + `"`)}
	if _, err := o.Encode(); err == nil {
		t.Error("a value was encoded that refers to a citation which the output lacks")
	}
}

// TestAnyAnswerMakesACheckedValue: whatever a writer says, what is kept passes the
// check, and what it was not given is not in it.
func TestAnyAnswerMakesACheckedValue(t *testing.T) {
	in, ids := quoting(3)
	inputs := []*output.Output{in}
	parts := []string{"REF_", "[", "]", "`", "```\n", " ", "x", "https://a/", refs.ID{5}.Full(), "REF_deadbeef", "?", "\"", "\n"}
	for _, id := range ids {
		parts = append(parts, short(in, id), id.Full())
	}
	f := form(t, `{}`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "parts"), "")
		})
		value := map[string]any{"text": text.Draw(t, "text"), text.Draw(t, "key"): rapid.SliceOf(text).Draw(t, "list")}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		o, err := output.NewValue("u", raw, f, output.IssueAll(inputs), inputs)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Value(inputs, nil, f, o); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(o.Value, []byte(refs.ID{5}.Full())) {
			t.Fatalf("made up, and kept: %s", o.Value)
		}
	})
}

func values(t *testing.T, in *output.Output, all ...string) []*output.Output {
	t.Helper()
	var out []*output.Output
	for _, raw := range all {
		o, err := output.NewValue("u", []byte(raw), form(t, `{}`), output.IssueAll([]*output.Output{in}), []*output.Output{in})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func TestMergeValues(t *testing.T) {
	in, ids := quoting(2)
	a, b := ids[0].Full(), ids[1].Full()
	for _, tt := range []struct {
		name      string
		given     []string
		want      string
		conflicts string // paths
	}{
		{"one", []string{`{"a":[1,1]}`}, `{"a":[1]}`, ""},
		{"lists in order", []string{`[3,1]`, `[2,1]`}, `[3,1,2]`, ""},
		{"elements that differ in the order of keys", []string{`[{"x":1,"y":2}]`, `[{"y":2,"x":1},{"x":1}]`}, `[{"x":1,"y":2},{"x":1}]`, ""},
		{"objects", []string{`{"a":{"b":[1]},"c":1}`, `{"a":{"b":[2],"d":"x"}}`}, `{"a":{"b":[1,2],"d":"x"},"c":1}`, ""},
		{"null is nothing", []string{`{"a":null}`, `{"a":2}`, `{"a":null}`}, `{"a":2}`, ""},
		{"scalars that differ", []string{`{"a":{"n":1},"t":"x"}`, `{"a":{"n":2},"t":"x"}`, `{"a":{"n":1}}`}, `{"a":{"n":1},"t":"x"}`, "a.n"},
		{"types that differ", []string{`{"a":[1]}`, `{"a":{"b":1}}`}, `{"a":[1]}`, "a"},
		{"whole values", []string{`1`, `2`}, `1`, "value"},
		{"with citations", []string{`{"t":"x [` + a + `]"}`, `{"t":"y [` + b + `]"}`}, `{"t":"x [` + a + `]"}`, "t"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inputs := values(t, in, tt.given...)
			o, err := output.MergeValues("m", nil, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if string(o.Value) != tt.want {
				t.Errorf("value %s, want %s", o.Value, tt.want)
			}
			var paths []string
			for _, d := range o.Decided {
				paths = append(paths, d.Field)
			}
			if got := strings.Join(paths, " "); got != tt.conflicts {
				t.Errorf("conflicts at %q, want %q", got, tt.conflicts)
			}
			if err := check.Value(inputs, nil, form(t, `{}`), again(t, o)); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := output.MergeValues("m", nil, nil); err == nil {
		t.Error("nothing was merged")
	}
}

// TestMergeValuesByLevels: in which groups lists are united makes no difference, and
// conflicts and what was removed below are still reported.
func TestMergeValuesByLevels(t *testing.T) {
	in, ids := quoting(1)
	all := values(t, in, `{"l":[1,2],"s":"a"}`, `{"l":[2,3],"s":"b"}`, `{"l":["`+ids[0].Full()+`","REF_0123456789"],"s":"a"}`)
	flat, err := output.MergeValues("m", nil, all)
	if err != nil {
		t.Fatal(err)
	}
	below, err := output.MergeValues("m1", nil, all[:2])
	if err != nil {
		t.Fatal(err)
	}
	above, err := output.MergeValues("m2", nil, []*output.Output{below, all[2]})
	if err != nil {
		t.Fatal(err)
	}
	if string(flat.Value) != string(above.Value) {
		t.Errorf("at once %s, by levels %s", flat.Value, above.Value)
	}
	if len(above.Decided) != 1 || above.Decided[0].Unit != "m1" || len(above.Removed) != 1 {
		t.Errorf("reports %+v and %+v, want the conflict below and the reference that was removed", above.Decided, above.Removed)
	}
	settled := values(t, in, `{"l":[1,2,3],"s":"b"}`)[0]
	if err := settled.Settle(below, "m1", "a model chose"); err != nil {
		t.Fatal(err)
	}
	if len(settled.Decided) != 1 || settled.Decided[0].Chosen != "b" || settled.Decided[0].Rationale != "a model chose" {
		t.Errorf("decided %+v, want b by the model", settled.Decided)
	}
}

func TestRead(t *testing.T) {
	s, err := schema.Parse("s.json", []byte(`{"properties":{"name":{"type":"string"},"place":{"type":"object","properties":{"city":{"type":"string"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	other, err := schema.Parse("s.json", []byte(`{"properties":{"x":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	in, ids := quoting(1)
	record := merge.Record{Document: "d", Values: []merge.Value{
		{Field: "place.city", Value: "Bonn", Citations: []merge.Citation{merge.Citation(ids[0][:])}, Confidence: 1},
	}}
	in.Entries = []output.Entry{{Members: []output.Member{{}}, Accumulator: merge.Accumulate(s, record)}}
	got, err := in.Read(other, s)
	want := `{"records":[{"_citations":{"place.city":["` + ids[0].Full() + `"]},"_sources":["d"],"name":null,"place":{"city":"Bonn"}}]}`
	if err != nil || string(got) != want {
		t.Errorf("read %s and error %v, want %s", got, err, want)
	}
	if _, err := in.Read(other); err == nil {
		t.Error("records were read by another schema")
	}
	if got, err := (&output.Output{}).Read(s); err != nil || string(got) != `{"records":[]}` {
		t.Errorf("of no records %s, error %v", got, err)
	}
	if got, err := (&output.Output{Value: []byte(`[1]`)}).Read(); err != nil || string(got) != `[1]` {
		t.Errorf("of a value %s, error %v", got, err)
	}
	spelled := output.Respelled(got, func(refs.ID) string { return "[1]" })
	if !bytes.Contains(spelled, []byte(`"place.city":["[1]"]`)) {
		t.Errorf("spelled %s", spelled)
	}
}

// TestComplete: what a tree of reduces leaves, with the outputs below it, is what
// one merge of all of them holds.
func TestComplete(t *testing.T) {
	s, err := schema.Parse("s.json", []byte(`{"type":"array","items":{"properties":{"k":{"type":"string"},"v":{"type":"string"}}},"x-coditect":{"key":["k"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var parts []*output.Output
		for u := range rapid.IntRange(1, 5).Draw(t, "units") {
			o := &output.Output{}
			for n := range rapid.IntRange(0, 3).Draw(t, "records") {
				quote := fmt.Sprintf("quote %d.%d", u, n)
				id := refs.New(refs.DocumentHash{byte(u)}, n, n+1, quote)
				key := o.Cite(output.Citation{ID: id, Document: fmt.Sprint(u), Unit: fmt.Sprint(u), Quote: quote, Grade: "exact"})
				cited := []merge.Citation{key}
				rec := merge.Record{Document: fmt.Sprint(u), Order: merge.Order{Unit: int64(u), Record: int64(n)}, Values: []merge.Value{
					{Field: "k", Value: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), Citations: cited, Confidence: 1},
					{Field: "v", Value: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value"), Citations: cited, Confidence: 1},
				}}
				o.Entries = append(o.Entries, output.Entry{Members: []output.Member{{Unit: int64(u), Record: int64(n)}}, Accumulator: merge.Accumulate(s, rec)})
			}
			parts = append(parts, o)
		}
		room := rapid.SampledFrom([]int{0, 1}).Draw(t, "room") // 1 has every entity left to its names
		last, err := output.Reduction{Schema: s, Last: true, Room: room}.Of(parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := output.Whole(s, parts).Read(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := last.Complete(parts).Read(s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("complete %s, want %s", got, want)
		}
	})
}
