package output_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
)

// FuzzCheckMap takes any bytes for what a map unit reports. An output that is taken quotes
// its text and nothing else, fits the schema, and can be reduced beside an honest one by
// rules that take the result.
func FuzzCheckMap(f *testing.F) {
	s := orders(f)
	text, honest, other := both(f, s)
	for _, o := range []*output.Output{honest, other, {Reason: "nothing"}} {
		data, err := o.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := output.Decode(data)
		if err != nil || check.Map(text, nil, o) != nil || check.Values(s, o) != nil || check.Entities(s, o) != nil {
			return
		}
		checkQuoted(t, text, o)
		for _, last := range []bool{false, true} {
			inputs := []*output.Output{o, other}
			reduced := output.Reduce(s, inputs, nil, last)
			stored, err := reduced.Encode()
			if err != nil {
				t.Fatalf("what was taken is reduced to what cannot be stored: %v", err)
			}
			again, err := output.Decode(stored)
			if err != nil {
				t.Fatalf("what was taken is reduced to what cannot be read: %v", err)
			}
			if err := check.Reduce(inputs, again); err != nil {
				t.Errorf("the reduce of what was taken is refused: %v", err)
			}
		}
	})
}

// checkQuoted checks that what values cite is the text, and that numbers are possible.
func checkQuoted(t *testing.T, text check.Text, o *output.Output) {
	t.Helper()
	dates := int64(len(text.Content))
	if o.Dates.DayFirst < 0 || o.Dates.MonthFirst < 0 || o.Dates.DayFirst > dates || o.Dates.MonthFirst > dates {
		t.Errorf("%+v dates in %d bytes", o.Dates, dates)
	}
	whole := before + string(text.Content)
	for i := range o.Entries {
		e := &o.Entries[i]
		for _, m := range e.Members {
			if m.Unit != text.Index {
				t.Errorf("record %+v is another unit's", m)
			}
		}
		e.Cited(func(id merge.Citation) {
			c, ok := o.Citations[id]
			if !ok || c.ByteStart < text.ByteOffset || c.ByteEnd > int64(len(whole)) || whole[c.ByteStart:c.ByteEnd] != c.Quote ||
				string([]rune(whole)[c.Start:c.End]) != c.Quote || c.Document != text.Document {
				t.Errorf("%+v is taken for a quote", c)
			}
		})
	}
}
