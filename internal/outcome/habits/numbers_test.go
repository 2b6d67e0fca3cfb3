package habits_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A number of an object is read as its document writes numbers, unless it is that of another
// member, or another quote of the object has it as it is.
func TestNumbersOfObjects(t *testing.T) {
	s, err := schema.Parse("s.json", []byte(`{"type":"object","properties":{"growth":{"type":"array","items":{"type":"object","properties":{
		"scale":{"type":["integer","null"]},"value":{"type":["number","string","null"]},"change":{"type":"number"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	number := func(n string) json.Number { return json.Number(n) }
	for name, tt := range map[string]struct {
		told, want map[string]any
		quotes     []string
	}{
		"of another member":      {map[string]any{"scale": number("1"), "value": number("-1")}, map[string]any{"scale": number("1"), "value": number("-1")}, []string{"(1)"}},
		"in another quote":       {map[string]any{"scale": number("1")}, map[string]any{"scale": number("1")}, []string{"(1)", "in units of 1"}},
		"in another quote first": {map[string]any{"scale": number("1")}, map[string]any{"scale": number("1")}, []string{"in units of 1", "(1)"}},
		"in brackets":            {map[string]any{"scale": number("1"), "change": number("5")}, map[string]any{"scale": number("1"), "change": number("-5")}, []string{"(5)"}},
	} {
		t.Run(name, func(t *testing.T) {
			cited := map[merge.Citation]output.Citation{}
			value := merge.Value{Field: "growth", Value: tt.told, Confidence: 1}
			for i, quote := range tt.quotes {
				id := refs.ID{byte(i + 1)}
				cited[merge.Citation(id[:])] = output.Citation{ID: id, Document: "d", Quote: quote}
				value.Citations = append(value.Citations, merge.Citation(id[:]))
			}
			var numbers habits.NumberStyles
			numbers.Add("d", format.NumberCount{Brackets: 5})

			a := merge.Accumulate(s, merge.Record{Document: "d", Values: []merge.Value{value}})
			r := merge.Resolve(s, numbers.Settle(s, a, cited))
			if diff := cmp.Diff(any([]any{tt.want}), r.Values["growth"]); diff != "" {
				t.Errorf("growth (-want +got):\n%s; refused %v", diff, r.Refused)
			}
		})
	}
}
