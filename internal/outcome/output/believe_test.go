package output_test

import (
	"encoding/json"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// TestConfidencesAreNotBelieved has a worker state 0.99 for values that their quotes support,
// contradict or are not there for, and less for one that they support.
func TestConfidencesAreNotBelieved(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(`{type: object, properties: {total: {type: number}, shop: {type: string}}}`))
	if err != nil {
		t.Fatal(err)
	}
	of := func(field string, value any, quote string, grade ground.Grade) float64 {
		return confidence.Of(confidence.Evidence{Property: s.Field(field), Value: value, Quote: quote, Grade: grade})
	}
	tests := []struct {
		name, field string
		value       any
		quote       string
		grade       ground.Grade
		said, want  float64
	}{
		{"supported", "total", json.Number("60.3"), "60.30", ground.Exact, 0.99, of("total", json.Number("60.3"), "60.30", ground.Exact)},
		{"of a fuzzy quote", "total", json.Number("60.3"), "60.30", ground.Fuzzy, 0.99, of("total", json.Number("60.3"), "60.30", ground.Fuzzy)},
		{"contradicted", "total", json.Number("999"), "60.30", ground.Exact, 0.99, of("total", json.Number("999"), "60.30", ground.Exact)},
		{"of another shop", "shop", "Evil Corp", "ACME Ltd", ground.Exact, 0.99, of("shop", "Evil Corp", "ACME Ltd", ground.Exact)},
		{"without a quote", "total", json.Number("1"), "", "", 0.99, 0},
		{"stated lower", "total", json.Number("60.3"), "60.30", ground.Exact, 0.4, 0.4},
	}
	for _, test := range tests {
		o := &output.Output{}
		var cited []merge.Citation
		if test.quote != "" {
			cited = append(cited, o.Cite(output.Citation{ID: refs.ID{1}, Quote: test.quote, Grade: string(test.grade)}))
		}
		m := merge.NewMention(cited, test.said, 0.99)
		a := merge.Accumulator{Fields: []merge.Field{{Path: test.field, Candidates: []merge.Candidate{{Key: "k", Value: test.value, Mentions: []merge.Mention{m}}}}}}
		o.Entries = []output.Entry{{Accumulator: a}}

		got := output.Believed(s, a, o.Citations).Fields[0].Candidates[0].Mentions[0]
		want := merge.NewMention(cited, test.want, 0.99)
		if got.Confidence > want.Confidence || test.name != "contradicted" && test.name != "of another shop" && got.Confidence != want.Confidence || got.Said != want.Said {
			t.Errorf("%s: a confidence of %d millionths, want %d", test.name, got.Confidence, want.Confidence)
		}
		if a.Fields[0].Candidates[0].Mentions[0].Confidence != m.Confidence {
			t.Errorf("%s: the output itself was changed", test.name)
		}
		if most := o.MostConfidence(s); most > 0.5 && test.want < 0.3 {
			t.Errorf("%s: the unit may have a confidence of %v", test.name, most)
		}
	}
}
