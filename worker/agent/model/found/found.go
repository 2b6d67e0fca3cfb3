// Package found has what an answer about records comes to once its quotes were looked for:
// records of values, each with the places in the document on which it rests, and what is
// wrong with the answer, for its author.
//
// It asks no model, and does not check where quotes stand: whoever reads an answer does.
package found

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/lookalike"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// A Record is a record of an answer whose quotes were looked for.
type Record struct {
	Values  []unit.Value
	Missing []merge.Missing // why the other fields have no value
}

// BeginsWithin reports whether the first place of a record is among the bytes
// [start,end) of the document. A record without places is wherever it was read;
// places that were not read count only if there are no others.
func (r Record) BeginsWithin(start, end int) bool {
	first, outside := -1, true
	for _, v := range r.Values {
		for _, at := range v.Places {
			if first < 0 || outside && !at.Outside || outside == at.Outside && at.ByteStart < first {
				first, outside = at.ByteStart, at.Outside
			}
		}
	}
	return first < 0 || first >= start && first < end
}

// Records returns the records of an answer. Places holds those of all its quotes, in the
// order of Quotes. The faults tell the author of the answer what is wrong with it.
func Records(f *form.Form, answers []form.Record, places []unit.Place) (records []Record, faults []string) {
	return SeenRecords(f, answers, places, Pages{})
}

// Pages are those that a model was shown of a document.
type Pages struct {
	Document string
	Shown    []int

	// Line returns the line of the text that a place is in. It is required where pages were shown.
	Line func(unit.Place) string
}

// SeenRecords is Records for an answer of a model that was shown pages. A value whose quotes do not
// stand in the text is seen if the model says on which of the pages, and its own quotes say it.
func SeenRecords(f *form.Form, answers []form.Record, places []unit.Place, shown Pages) (records []Record, faults []string) {
	r := &reading{form: f, shown: shown}

	next := 0
	for _, a := range answers {
		var rec Record
		r.unfit = make(map[string]string)
		// Places come in the same order as quotes, so each finding takes the next few.
		for _, field := range f.Fields {
			for _, finding := range a.Fields[field.Key] {
				rec.Values = append(rec.Values, r.placeFinding(field, finding, places[next:next+len(finding.Quotes)])...)
				next += len(finding.Quotes)
			}
		}

		rec.Missing = r.missingFields(a, rec.Values)
		records = append(records, rec)
	}
	return records, r.faults
}

// Nothing returns the record of a document that an answer passes over.
func Nothing(f *form.Form) Record {
	r := &reading{form: f}
	return Record{Missing: r.missingFields(form.Record{}, nil)}
}

// Quotes returns all quotes of an answer, in the order in which Records takes their places.
func Quotes(f *form.Form, answers []form.Record) []string {
	var quotes []string
	for _, a := range answers {
		for _, field := range f.Fields {
			for _, finding := range a.Fields[field.Key] {
				quotes = append(quotes, finding.Quotes...)
			}
		}
	}
	return quotes
}

// A reading is an answer that is being read.
type reading struct {
	form   *form.Form
	faults []string // what is wrong with the answer, for its author
	shown  Pages
	unfit  map[string]string // by field, why what was answered is no value of it
}

// placeFinding returns a finding with the places of its quotes; nothing, if it has no
// value. A value that is none of its field stays as the model gave it: the record will not
// have it, and shows it beside what it breaks.
func (r *reading) placeFinding(f form.Field, found form.Finding, places []unit.Place) []unit.Value {
	p := f.Property
	said := form.NaturalOf(p, found.Value)
	if p.Type == schema.Array && p.Items != nil {
		p = p.Items
	}

	value, err := p.Normalize(said)
	misfit := err != nil
	if misfit {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v", f.Key, err))
		value = unfitValue(p.NormalizeParts(said))
		if value == nil {
			r.unfit[f.Path] = err.Error()
		}
	}

	if value == nil || value == "" {
		if len(found.Quotes) > 0 && r.unfit[f.Path] == "" {
			r.unfit[f.Path] = "there is a quote, and no value"
		}
		return nil
	}

	v := unit.Value{Field: f.Path, Value: value, Said: shareOf(found.Confidence), Formula: formulaOf(found.Formula)}
	v.Seen = r.sightingOf(p, value, found, places)
	for i, at := range places {
		if !at.Verified() {
			if v.Seen != nil {
				continue
			}
			r.faults = append(r.faults, f.Key+": "+absentMessage(found.Quotes[i], at))
			continue
		}
		if !slices.ContainsFunc(v.Places, func(had unit.Place) bool { return had.Span == at.Span }) {
			v.Places = append(v.Places, at)
		}
	}

	if len(places) == 0 && v.Seen == nil {
		r.faults = append(r.faults, fmt.Sprintf("%s: the value %v has no quote", f.Key, value))
	}

	if p.Hints.Derived {
		if d := v.Derive(p); len(v.Places) > 0 && d.Fault != "" {
			r.faults = append(r.faults, fmt.Sprintf("%s: the value %v does not follow: %s", f.Key, value, d.Fault))
		}
		return []unit.Value{v} // what does not follow is refused with its quotes
	}

	if len(v.Places) > 0 && !misfit && isContradicted(p, value, v.Places) {
		r.faults = append(r.faults, fmt.Sprintf("%s: the value %v does not follow from %.120q", f.Key, value, v.Places[0].Quote))
		v.Places = nil
	}

	return []unit.Value{v}
}

// shareOf returns a share from 0 to 1, which some models write as a percentage.
func shareOf(said float64) float64 {
	if said > 1 && said <= 100 {
		said /= 100
	}
	return max(0, min(said, 1))
}

// maxFormula bounds what is kept of a formula, in bytes; a longer one cannot be read.
const maxFormula = 4096

func formulaOf(said string) string {
	said = strings.Join(strings.Fields(strings.ToValidUTF8(said, "")), " ")
	return strings.ToValidUTF8(said[:min(len(said), maxFormula)], "")
}

// maxUnfit bounds a text that is shown although it is no value of its field, in bytes.
const maxUnfit = 1000

// unfitValue returns a value that does not fit its field, or of which a part does not fit, as
// it can be shown: one that is too large, as a text of its beginning.
func unfitValue(found any) any {
	switch v := found.(type) {
	case string:
		return shorten.MarkedBytes(format.Text(v), maxUnfit)
	case json.Number:
		if len(v) <= 100 {
			return v
		}
	case bool:
		return v
	case []any, map[string]any:
		raw, err := json.Marshal(v)
		if err == nil && len(raw) <= 4*maxUnfit {
			return v
		}
		return unfitValue(string(raw))
	}
	return nil
}

// absentMessage says that a quote is not in the document, and shows the text at the
// place with most of its words.
func absentMessage(quote string, at unit.Place) string {
	s := fmt.Sprintf("the quote %.120q is not in the document", quote)
	if at.Found() {
		s += fmt.Sprintf(", in which these words stand: %.160q", at.Quote)
	}
	return s
}

// sightingOf returns where the model saw a value that does not stand in the text; nil if it does, or if
// the model was not shown the page that it names, or its own quotes say something else.
func (r *reading) sightingOf(p *schema.Property, value any, found form.Finding, places []unit.Place) *merge.Sighting {
	isVerified := func(at unit.Place) bool { return at.Verified() }
	if len(found.Quotes) == 0 || !slices.Contains(r.shown.Shown, found.Page) || slices.ContainsFunc(places, isVerified) || p.Hints.Derived {
		return nil
	}

	said := strings.Join(found.Quotes, "\n")
	if confidence.Refuted(p, value, said) {
		return nil
	}
	s := &merge.Sighting{Document: r.shown.Document, Page: found.Page, Quote: shorten.MarkedBytes(strings.ToValidUTF8(said, ""), merge.MaxSighting)}
	// What recognition read nearby helps whoever looks at the page.
	for _, at := range places {
		if at.Found() && s.Read == "" {
			s.Read = shorten.MarkedBytes(r.shown.Line(at), merge.MaxSighting)
		}
	}
	return s
}

// isContradicted reports whether the quotes of a value say that it is wrong: they are true,
// but have another number, another choice or another name.
func isContradicted(p *schema.Property, value any, places []unit.Place) bool {
	var all []string
	for _, at := range places {
		all = append(all, at.Quote)
	}
	if !confidence.Refuted(p, value, strings.Join(all, "\n")) {
		return false
	}

	// Letters that look like digits may be these, where words look like the quote and are not it.
	if !slices.ContainsFunc(places, func(at unit.Place) bool { return at.Grade == ground.Lookalike }) {
		return true
	}
	return confidence.Refuted(p, value, lookalike.Numbers(strings.Join(all, "\n")))
}

// missingFields says why fields have no value.
func (r *reading) missingFields(a form.Record, values []unit.Value) []merge.Missing {
	var out []merge.Missing
	for _, f := range r.form.Fields {
		if slices.ContainsFunc(values, func(v unit.Value) bool { return v.Field == f.Path }) {
			continue
		}

		reason := "the model found none"
		if why := r.unfit[f.Path]; why != "" {
			reason = "what the model answered is no value of the field: " + Line(why)
		}
		// A reason that the model gives goes before ours.
		for _, m := range a.NotFound {
			if m.Field == f.Key && strings.TrimSpace(m.Reason) != "" {
				reason = Line(m.Reason)
			}
		}

		if f.Must {
			r.faults = append(r.faults, f.Key+": nothing was found, although every document should have it")
		}

		out = append(out, merge.Missing{Field: f.Path, Reason: reason})
	}

	return out
}

// maxLine bounds what is repeated of the words of a model, in characters.
const maxLine = 300

// Line returns words of a model, such as its reason, on one line and not too long.
func Line(text string) string {
	return shorten.Line(text, maxLine)
}
