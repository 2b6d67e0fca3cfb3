package main

import (
	"context"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// A found is a value or a word that was found in a picture.
type found struct {
	picture string
	field   string // of a value
	form    confidence.Form
	sure    float64 // recognition of the word of its quote that it was least sure of
	base    float64 // its confidence, were it no picture
	right   bool
}

// confidence returns that of the value under a factor.
func (f *found) confidence(factor float64) float64 { return f.base * factor }

// ofForm returns what has a form.
func ofForm(all []found, form confidence.Form) (of []found) {
	for _, f := range all {
		if f.form == form {
			of = append(of, f)
		}
	}
	return of
}

// judge compares what is found in pictures with what people read there.
func judge(ctx context.Context, s *schema.Schema, pages []*page) (*set, error) {
	program, err := rules.Compile(s)
	if err != nil {
		return nil, err
	}

	out := &set{pages: pages}
	for _, p := range pages {
		if p.text == "" {
			continue
		}
		if p.truth != nil {
			values, err := p.values(ctx, s, program)
			if err != nil {
				return nil, err
			}
			out.values = append(out.values, values...)
		}
		if p.Words != nil {
			out.words = append(out.words, p.wordsFound()...)
		}
	}
	return out, nil
}

// values returns what the rules find in a page.
func (p *page) values(ctx context.Context, s *schema.Schema, program *rules.Program) (all []found, err error) {
	extracted, err := program.Extract(rules.Document(p.text), ctx.Err)
	if err != nil {
		return nil, err
	}

	record, aligner := extracted.Records[0], ground.New(p.text)
	values := s.Nest(program.Values(&record))
	for _, f := range record.Found {
		span, ok := aligner.Find(f.Quote, f.Start)
		property := s.Field(f.Field)
		if !ok || p.truth[f.Field] == nil || values[f.Field] == nil { // of which nobody says what it is
			continue
		}

		one := found{
			picture: p.Name, field: f.Field, form: confidence.FormOf(property),
			base: confidence.Of(confidence.Evidence{
				Property: property, Value: f.Value, Quote: p.text[span.ByteStart:span.ByteEnd], Grade: span.Grade,
				Before: confidence.Before(p.text, span.ByteStart), Basis: confidence.Basis(f.Basis), Rivals: f.Rivals,
			}),
			right: eval.KeyOf(property, values[f.Field]) == eval.KeyOf(property, p.truth[f.Field]),
		}
		if at := p.layout.Locate(span.ByteStart, span.ByteEnd); at != nil {
			one.sure = at.Recognised
		}
		if one.sure > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}

// leastJoined is how many bytes a word has at least that is looked for in what others make together: shorter
// ones stand there by chance.
const leastJoined = 3

// wordsFound returns the words that were recognised. People cut words at other places, such as before a colon,
// and may write all of them in capitals: what stands in their words one after the other is right, too.
func (p *page) wordsFound() (all []found) {
	left, joined := make(map[string]int), strings.ToUpper(strings.Join(p.Words, ""))
	for _, w := range p.Words {
		left[strings.ToUpper(w)]++
	}

	for _, part := range p.layout {
		text := strings.ToUpper(p.text[part.Start:part.End])
		if !strings.ContainsFunc(text, isLetterOrDigit) || part.Location.Recognised <= 0 {
			continue
		}
		one := found{picture: p.Name, form: formOfWord(text), sure: part.Location.Recognised, base: 1}
		switch {
		case left[text] > 0:
			left[text]--
			one.right = true
		case len(text) >= leastJoined:
			one.right = strings.Contains(joined, text)
		}
		all = append(all, one)
	}
	return all
}

func isLetterOrDigit(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// Properties of which a word may be a value.
var (
	date   = &schema.Property{Name: "date", Type: schema.String, Format: schema.Date}
	number = &schema.Property{Name: "number", Type: schema.Number}
)

// formOfWord returns the form that a word has by itself.
func formOfWord(word string) confidence.Form {
	if v, err := date.Normalize(word); err == nil && v != nil && v != "" {
		return confidence.StrictForm
	}
	if v, err := number.Normalize(word); err == nil && v != nil {
		return confidence.NumberForm
	}
	return confidence.TextForm
}
