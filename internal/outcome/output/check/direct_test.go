package check_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/refs"
)

var bundled = []payload.Document{
	{Document: "a.txt", Number: 0, Text: []byte("Größe: 1\n"), Metadata: map[string]string{"dish": "soup", "cuisine": "French"}},
	{Document: "b.txt", Number: 3, Text: []byte("Höhe: 2\n")},
}

// direct is the output of a direct unit that cites both documents.
func direct() *output.Output {
	o := new(output.Output)
	for i, d := range bundled {
		sum := sha256.Sum256(d.Text)
		at := strings.Index(string(d.Text), ":") + 2
		quote := string(d.Text[at : at+1])
		id := o.Cite(output.Citation{
			ID:       refs.New(output.HashDocument(d.Document, sum[:]), at, at+1, quote),
			Document: d.Document, Unit: "direct", Start: int64(at) - 1 - int64(1-i), End: int64(at) - int64(1-i),
			ByteStart: int64(at), ByteEnd: int64(at) + 1, Quote: quote, Grade: "exact",
		})
		o.Entries = append(o.Entries, output.Entry{
			Members: []output.Member{{Unit: 7, Record: int64(i)}},
			Accumulator: merge.Accumulator{
				Sources: []merge.Source{{Document: d.Document}},
				Fields: []merge.Field{{Path: "size", Candidates: []merge.Candidate{{
					Key: quote, Value: quote, Mentions: []merge.Mention{{Citations: []merge.Citation{id}}},
				}}}},
			},
		})
	}
	return o
}

// TestDirectUnitsMayNotMakeThingsUp: records are the unit's own, and of documents
// that it read.
func TestDirectUnitsMayNotMakeThingsUp(t *testing.T) {
	if err := check.Direct("direct", 7, bundled, nil, direct()); err != nil {
		t.Errorf("a true output: %v", err)
	}
	for _, tt := range []struct {
		name   string
		change func(o *output.Output)
		want   string
	}{
		{"another unit's record", func(o *output.Output) { o.Entries[0].Members[0].Unit = 8 }, "not its own"},
		{"a record twice", func(o *output.Output) { o.Entries[1].Members[0].Record = 0 }, "there twice"},
		{"a document that it did not read", func(o *output.Output) { o.Entries[0].Sources[0].Document = "c.txt" }, "which it did not read"},
		{"a quote of another document", func(o *output.Output) { cite(o, "1", func(c *output.Citation) { c.Document = "b.txt" }) }, "cites bytes 9 to 10, which it did not read"},
		{"a quote of a document that it did not read", func(o *output.Output) { cite(o, "1", func(c *output.Citation) { c.Document = "c.txt" }) }, "which it did not read"},
		{"another place", func(o *output.Output) { cite(o, "2", func(c *output.Citation) { c.Start, c.End = c.Start+1, c.End+1 }) }, "stands at characters"},
		{"another unit's citation", func(o *output.Output) { cite(o, "2", func(c *output.Citation) { c.Unit = "a.txt" }) }, "as found by"},
		{"more dates than the documents have room for", func(o *output.Output) { o.Dates.MonthFirst = 4 }, "dates in a text"},
		{"a page of another document", saw(merge.Sighting{Document: "c.txt", Page: 1}), "which it did not read"},
		{"no page", saw(merge.Sighting{Document: "a.txt"}), "saw page 0"},
		{"a long text of a page", saw(merge.Sighting{Document: "a.txt", Page: 1, Quote: strings.Repeat("x", 600)}), "a text of 600 bytes"},
		{"what it cites, as seen", func(o *output.Output) {
			o.Entries[0].Fields[0].Candidates[0].Mentions[0].Seen = &merge.Sighting{Document: "a.txt", Page: 1}
		}, "saw what it cites"},
		{"how sure it is of what was seen", func(o *output.Output) {
			saw(merge.Sighting{Document: "a.txt", Page: 1})(o)
			o.Entries[0].Fields[0].Candidates[1].Mentions[0].Confidence = 1
		}, "saw what it cites"},
		{"a name for later", func(o *output.Output) { o.Open = []output.Open{{Entity: "x"}} }, "only a reduce"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := direct()
			tt.change(o)
			err := check.Direct("direct", 7, bundled, nil, o)
			if !errors.Is(err, check.ErrBreach) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a breach: %s", err, tt.want)
			}
		})
	}
}

// saw adds a value that a model saw.
func saw(at merge.Sighting) func(*output.Output) {
	return func(o *output.Output) {
		f := &o.Entries[0].Fields[0]
		f.Candidates = append(f.Candidates, merge.Candidate{Key: "9", Value: "9", Mentions: []merge.Mention{{Seen: &at}}})
	}
}

// A reduce passes on what a model saw, and adds nothing to it.
func TestReducesSeeNothing(t *testing.T) {
	in, out := direct(), direct()
	saw(merge.Sighting{Document: "a.txt", Page: 1, Quote: "9"})(in)
	saw(merge.Sighting{Document: "a.txt", Page: 1, Quote: "9"})(out)
	if err := check.Reduce([]*output.Output{in}, out); err != nil {
		t.Errorf("what an input says: %v", err)
	}
	out.Entries[0].Fields[0].Candidates[1].Mentions[0].Seen = &merge.Sighting{Document: "a.txt", Page: 2, Quote: "9"}
	if err := check.Reduce([]*output.Output{in}, out); !errors.Is(err, check.ErrBreach) || !strings.Contains(err.Error(), "none of its inputs says") {
		t.Errorf("another page: %v", err)
	}
}

// cite changes the citation of a quote.
func cite(o *output.Output, quote string, change func(*output.Citation)) {
	for id, c := range o.Citations {
		if c.Quote == quote {
			change(&c)
			o.Citations[id] = c
		}
	}
}
