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

// cite changes the citation of a quote.
func cite(o *output.Output, quote string, change func(*output.Citation)) {
	for id, c := range o.Citations {
		if c.Quote == quote {
			change(&c)
			o.Citations[id] = c
		}
	}
}
