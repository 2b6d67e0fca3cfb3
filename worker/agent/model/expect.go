package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
)

// sampleRecords are so many that what stands around a list of records counts for little.
const sampleRecords = 10

// Expect returns what plans assume of the answers of a job's map units: the tokens that are written
// for each that a reduce reads, and how values are given alone; 0 and nil if that is not known.
func (a *Agent) Expect(spec *mapreduce.JobSpec) (written float64, short *plan.Short) {
	all, err := a.programsOf(spec)
	i := slices.IndexFunc(all, func(p *Program) bool { return p.Form != nil && len(p.Form.Fields) > 0 })
	if err != nil || i < 0 {
		return 0, nil // a job that is wrong is refused elsewhere
	}

	p := all[i]
	written, err = sampleYield(a.Count, p.Form, false)
	if err == nil && p.Short != nil {
		short, err = a.expectShort(p)
	}
	if err != nil {
		return 0, nil // texts are written as JSON without fail
	}
	return written, short
}

// sampleRead is how many tokens a reduce reads of a record, as plans reckon.
func sampleRead(count *token.Counter, f *form.Form) float64 {
	return float64(len(f.Fields) * count.Count(plan.SampleField))
}

// sampleYield returns the tokens of an answer for each that a reduce reads of it.
func sampleYield(count *token.Counter, f *form.Form, short bool) (float64, error) {
	raw, err := f.Sample(short, sampleRecords)
	read := sampleRead(count, f)
	if f.Many() {
		read *= sampleRecords
	}
	return float64(count.Count(string(raw))) / read, err
}

// How often it is asked where a value stands that was given alone, on receipts: a number seldom stands
// at one place only, other values mostly do.
const (
	numberAsked = 0.58
	otherAsked  = 0.07
)

// expectShort returns what plans assume of values that are given alone.
func (a *Agent) expectShort(p *Program) (*plan.Short, error) {
	first := p.PassageRequest(p.ShortSystem, p.Short, prompt.Passage{}, Pages{})
	next := FollowUp(first, nil, PlacesQuestion(p.Form, nil, nil))
	next.Schema = p.Places
	s := &plan.Short{Most: p.MostShort(), Prompt: a.WithForm(p, first).Prompt, Again: a.WithForm(p, next).Prompt}

	var err error
	if s.Written, err = sampleYield(a.Count, p.Form, true); err != nil {
		return nil, err
	}
	place, err := json.Marshal(map[string]any{"number": 1, "passages": []any{map[string]string{"begin": plan.SampleQuote, "end": ""}}})
	if err != nil {
		return nil, err
	}

	// Values are asked about independently of each other, as far as is known, and lists of records are
	// so long that there are always some.
	values, none, line := 0.0, 1.0, 0.0
	for _, f := range p.Form.Fields {
		chance := askedAbout(f.Property)
		values, none = values+chance, none*(1-chance)
		line += chance * float64(a.Count.Count(fmt.Sprintf("1. %s: %q\n", f.Key, plan.SampleValue)))
	}
	share := 1 - none
	if p.Form.Many() && values > 0 {
		share = 1
	}
	if share > 0 {
		s.Share = int64(math.Round(share * 100))
		s.Asked = line / share / sampleRead(a.Count, p.Form)
		s.Places = values * float64(a.Count.Count(string(place))) / share / sampleRead(a.Count, p.Form)
	}
	return s, nil
}

// askedAbout returns how often it is asked where a value of a property stands.
func askedAbout(p *schema.Property) float64 {
	switch {
	case p.Hints.Derived:
		return 0 // its quotes are always given
	case p.Type == schema.Number || p.Type == schema.Integer:
		return numberAsked
	}
	return otherAsked
}
