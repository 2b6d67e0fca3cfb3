package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/llm"
)

// placesSchema is how a model says where values stand.
const placesSchema = `{"type":"object","properties":{
	"places":{"type":"array","description":"one for each number, in their order","items":{"type":"object","properties":{
		"number":{"type":"integer","description":"of the value"},
		"passages":{"type":"array","description":"those that show it; empty if the document does not","items":{"type":"object","properties":{
			"begin":{"type":"string","description":"the passage, letter by letter; of one of more than twelve words the first five"},
			"end":{"type":"string","description":"its last five words; empty if begin has all of it"}},
			"required":["begin","end"],"additionalProperties":false}}},
		"required":["number","passages"],"additionalProperties":false}}},
	"required":["places"],"additionalProperties":false}`

// prepareShort makes the forms of short answers ready.
func (p *Program) prepareShort() (err error) {
	if p.Short, err = p.Form.Short(); err != nil {
		return err
	}
	p.Places, err = llm.NewSchema("places", []byte(placesSchema))
	return err
}

// What short answers come to, on receipts: a value with its passage and confidence has so many tokens
// more than by itself, and so many of a hundred documents are read once more.
const (
	tokensOfPassage = 20
	askedAgain      = 67
)

// MostShort returns how many tokens the longest passage has that is answered with values alone.
func (p *Program) MostShort() int64 {
	if p.Form.Many() {
		return math.MaxInt64
	}

	in, out := int64(1), int64(5) // as most models cost
	if t, ok := p.prices.Tariff(p.Provider, p.Model); ok && t.Input > 0 {
		in, out = int64(t.Input), int64(t.Output)
	}
	saved := tokensOfPassage * int64(len(p.Form.Fields)) * out
	return max(0, saved*100-1)/(in*askedAgain) - questionTokens
}

// questionTokens is how long a call is that asks where values stand, beside the document.
const questionTokens = 100

// maxShown bounds what is repeated of a value that is asked about, in characters.
const maxShown = 120

// PlacesQuestion asks where values stand.
func PlacesQuestion(f *form.Form, answers []form.Record, open []found.Open) string {
	var b strings.Builder
	b.WriteString("Where in the document do these values of your answer stand? For each give the passages that show it, as exact quotes: letter by letter, nothing left out or put in, and so long that no other passage has the same words. " +
		"Of a passage of more than twelve words give the first five and the last five. A value that the document does not show has no passage.\n")

	for i, o := range open {
		fmt.Fprintf(&b, "%d. ", i+1)
		if f.Many() {
			fmt.Fprintf(&b, "record %d%s, ", o.Record+1, firstValue(f, answers[o.Record], o))
		}
		fmt.Fprintf(&b, "%s: %s\n", o.Field.Key, briefValue(o.Value))
	}
	return b.String()
}

// firstValue says which record is meant, by the first of its values that is not asked about.
func firstValue(f *form.Form, r form.Record, o found.Open) string {
	for _, field := range f.Fields {
		for _, one := range r.Fields[field.Key] {
			if len(one.Quotes) > 0 && field.Key != o.Field.Key {
				return " (" + field.Key + ": " + briefValue(one.Value) + ")"
			}
		}
	}
	return ""
}

func briefValue(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return shorten.Line(string(raw), maxShown)
}
