package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/agent/unit"
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
func (p *program) prepareShort() (err error) {
	if p.short, err = p.form.Short(); err != nil {
		return err
	}
	p.places, err = llm.NewSchema("places", []byte(placesSchema))
	return err
}

// What short answers come to, on receipts: a value with its passage and confidence has so many tokens
// more than by itself, and so many of a hundred documents are read once more.
const (
	tokensOfPassage = 20
	askedAgain      = 67
)

// isShort reports whether an answer about a passage is to have values alone: if what that is likely to
// save of the answer costs more than to read the passage once more. How long a list of records is nobody
// knows before. Pages that are shown are read once.
func (s *session) isShort(text prompt.Passage, shown pages) bool {
	if s.short == nil || len(shown.parts) > 0 {
		return false
	}
	count := s.agent.count
	return int64(count.Count(text.Before)+count.Count(text.Core)+count.Count(text.After)) <= s.mostShort()
}

// mostShort returns how many tokens the longest passage has that is answered with values alone.
func (p *program) mostShort() int64 {
	if p.form.Many() {
		return math.MaxInt64
	}

	in, out := int64(1), int64(5) // as most models cost
	if t, ok := p.prices.Tariff(p.Provider, p.Model); ok && t.Input > 0 {
		in, out = int64(t.Input), int64(t.Output)
	}
	saved := tokensOfPassage * int64(len(p.form.Fields)) * out
	return max(0, saved*100-1)/(in*askedAgain) - questionTokens
}

// questionTokens is how long a call is that asks where values stand, beside the document.
const questionTokens = 100

// read takes an answer about a passage. Of one with values alone it finds where these stand, and asks,
// once for all, where those stand whose place is not clear.
func (s *session) read(ctx context.Context, req *llm.Request, res *llm.Response, r *answerReading) error {
	if !r.short {
		r.tokens = writtenOf(res)
		return r.readAnswer(ctx, res.Answer)
	}

	answers, none, err := s.form.ReadShort(res.Answer)
	if err != nil {
		return err
	}
	r.reason, r.tokens = found.Line(none), writtenOf(res)

	text := found.NewText(r.aligner.Chunk)
	if open := text.Settle(s.form, answers); len(open) > 0 {
		if err := s.askPlaces(ctx, req, res, r, text, answers, open); err != nil {
			return err
		}
	}
	return r.place(ctx, answers)
}

// place looks for the quotes of an answer.
func (r *answerReading) place(ctx context.Context, answers []form.Record) error {
	places, note, err := unit.Find(ctx, r.task, r.aligner, found.Quotes(r.form, answers))
	if err != nil {
		return err
	}
	r.note = note

	// Where pages were shown the text was recognised, and may differ from what the model reads.
	if len(r.shown) > 0 {
		unit.Resemble(r.task.Text, r.aligner, found.Quotes(r.form, answers), places)
	}
	shown := found.Pages{Document: string(r.task.Text.Document), Shown: r.shown, Line: r.lineOf}
	r.records, r.faults = found.SeenRecords(r.form, answers, places, shown)
	return nil
}

// mostOpen bounds the values that are asked about in one call. What is beyond it stays without a place.
const mostOpen = 500

// askPlaces asks where values stand, and gives these the passages. Values of which the model says
// nothing stay without. If it cannot be asked, or does not answer in the form, the others remain.
func (s *session) askPlaces(ctx context.Context, req *llm.Request, res *llm.Response, r *answerReading, text found.Text, answers []form.Record, open []found.Open) error {
	asked := open[:min(len(open), mostOpen)]
	next := followUp(req, res.Answer, placesQuestion(s.form, answers, asked))
	next.Schema = s.places
	more, err := s.completeRequest(ctx, next)
	if err != nil {
		if !isTooLarge(err) {
			err = s.dropGleanError(ctx, err)
		}
		return err
	}
	if more, n := writtenOf(more), r.tokens; more >= 0 && n >= 0 {
		r.tokens = n + more
	}

	var told struct {
		Places []struct {
			Number   int `json:"number"`
			Passages []struct{ Begin, End string }
		} `json:"places"`
	}
	if err := json.Unmarshal(more.Answer, &told); err != nil {
		return err
	}
	for _, one := range told.Places {
		if one.Number < 1 || one.Number > len(asked) {
			continue
		}
		of := asked[one.Number-1]
		to := &answers[of.Record].Fields[of.Field.Key][of.Finding]
		for _, p := range one.Passages {
			if q := text.Between(p.Begin, p.End); q != "" && !slices.Contains(to.Quotes, q) {
				to.Quotes = append(to.Quotes, q)
			}
		}
	}
	return nil
}

// maxShown bounds what is repeated of a value that is asked about, in characters.
const maxShown = 120

// placesQuestion asks where values stand.
func placesQuestion(f *form.Form, answers []form.Record, open []found.Open) string {
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
