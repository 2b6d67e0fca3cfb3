package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A value that is none of its field costs the record neither its other values nor the
// unit: after the model could not mend it, it is shown beside the constraint that it
// breaks, whichever provider asked.
func TestValuesThatDoNotFitAreShown(t *testing.T) {
	const order = `{"title":"order","type":"object","properties":{
		"company":{"type":"string"},"colour":{"type":"string","enum":["red","blue"]},
		"pieces":{"type":"integer"},"date":{"type":"string","format":"date"},"paid":{"type":"boolean"},
		"sizes":{"type":"array","items":{"type":"number"}}}}`
	const text = "ACME LTD\nColour: purple\nPieces: a dozen or so\nDate: soon\nPaid: in part\nSizes: 4, wide\n"
	said := answer(map[string]any{
		"company": say("ACME LTD", "ACME LTD"), "colour": say("purple", "Colour: purple"), "pieces": say("a dozen or so", "a dozen or so"),
		"date": say("soon", "Date: soon"), "paid": say("in part", "Paid: in part"),
		"sizes": append(say(4, "Sizes: 4"), say("wide", "wide")...),
	})
	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, fakellm.Config{Model: always(said), Key: testKey})
			r.spec.Schema = canonical(t, order)
			out, _, err := r.run(t, text)
			if err != nil {
				t.Fatal(err)
			}
			got := r.resolved(t, out)
			want := map[string]any{"company": "ACME LTD", "sizes": []any{json.Number("4")}}
			if diff := cmp.Diff(want, got.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			constraints := make(map[string]string)
			for path, refusal := range got.Refused {
				constraints[path] = refusal.Constraint
				if len(refusal.Citations) == 0 || !strings.Contains(got.Missing[path], refusal.Constraint) && path != "sizes" {
					t.Errorf("%s: %+v, missing as %q", path, refusal, got.Missing[path])
				}
			}
			if diff := cmp.Diff(map[string]string{"colour": "enum", "pieces": "type", "date": "format", "paid": "type", "sizes": "type"}, constraints); diff != "" {
				t.Errorf("constraints that are broken (-want +got):\n%s", diff)
			}
			if n := len(r.fake.Entries()); n != 2 {
				t.Errorf("the model was asked %d times, want once and once more to mend it", n)
			}
		})
	}
}

// What does not fit elsewhere in an answer makes it of no use, as before.
func TestAnswersOfAnotherFormAreNotSalvaged(t *testing.T) {
	r := newRig(t, "openai", fakellm.Config{Model: always(`{"fields":{"company":"ACME LTD"},"not_found":[]}`), Key: testKey})
	if _, _, err := r.run(t, document); err == nil || !strings.Contains(err.Error(), "does not fit the schema") {
		t.Errorf("got %v, want the answer to be refused", err)
	}
}
