// Package review applies what people have decided about values to the records of a result.
//
// It keeps to these:
//   - what the job found is never lost: each record that has a decided value says under _reviewed what
//     stood there, with its citations and its confidence;
//   - of several decisions about a value the last one counts, and one that was withdrawn counts not;
//   - a decision that does not fit is counted, and changes nothing: its record is gone, the value that
//     was accepted or rejected is another by now, or the schema refuses what was decided;
//   - a value that stands in a record is one that the schema allows, whoever it is from.
//
// It is pure: it rests on the vocabulary and on package merge.
package review

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/judge"
	"github.com/coditect/mapreduce/internal/outcome/gate"
)

// What a record says of a field without a value that somebody has decided about.
const (
	WhyRejected = gate.WhyRejected
	WhyAbsent   = gate.WhyAbsent
)

// Settle checks that a decision about a value of a record fits, given the decisions about other values
// of it, and returns what is to be stored of it: the right value, nil if there is none, and the one
// that was decided about. It returns errs.Invalid, with the field of d that is wrong, or
// errs.Precondition, if the value is not the one that d names.
func Settle(s *schema.Schema, record []byte, others []*mapreduce.Decision, d *mapreduce.NewDecision) (value, model []byte, err error) {
	if s.Field(d.Field) == nil {
		return nil, nil, errs.Field("field", "%q is no field of the schema; it has %s", d.Field, fieldNames(s))
	}
	v, err := newView(s, record)
	if err != nil {
		return nil, nil, errs.New(errs.DataLoss, "record %s cannot be read: %v", d.Record, err)
	}

	model, _ = v.found(d.Field)
	if err := checkVerdict(d, model); err != nil {
		return nil, nil, err
	}
	if len(model) > mapreduce.MaxReviewedValue {
		return nil, nil, errs.Field("field", "the value has %d bytes; of values above %d none is decided about", len(model), mapreduce.MaxReviewedValue)
	}

	if d.Verdict == mapreduce.ReviewCorrect {
		if value, err = normalised(s, d.Field, d.Value); err != nil {
			return nil, nil, err
		}
	}

	if d.Verdict == mapreduce.ReviewWithdraw {
		return nil, model, nil // whatever that leaves, it was there before
	}

	// The others may be what makes the value fit, or not.
	one := &mapreduce.Decision{Record: d.Record, Field: d.Field, Verdict: d.Verdict, Value: value, Model: model}
	others = slices.DeleteFunc(slices.Clone(others), func(o *mapreduce.Decision) bool { return o.Field == d.Field })
	_, refused, err := apply(s, record, append(latest(others), one))
	if err != nil {
		return nil, nil, errs.New(errs.DataLoss, "record %s cannot be read: %v", d.Record, err)
	}
	if why, ok := refused[d.Field]; ok {
		return nil, nil, errs.Field("value", "%s", why)
	}
	return value, model, nil
}

// checkVerdict checks that a verdict goes with what it is about and what comes with it.
func checkVerdict(d *mapreduce.NewDecision, model []byte) error {
	none := string(model) == "null"
	switch {
	case d.Verdict < mapreduce.ReviewAccept || d.Verdict > mapreduce.ReviewWithdraw:
		return errs.Field("verdict", "must be accept, correct, reject, absent or withdraw")
	case none && d.Verdict == mapreduce.ReviewAccept:
		return errs.Field("verdict", "%s has no value to accept: give the right one, or say that it is absent", d.Field)
	case none && d.Verdict == mapreduce.ReviewReject:
		return errs.Field("verdict", "%s has no value to reject: give the right one, or say that it is absent", d.Field)
	case d.Verdict == mapreduce.ReviewCorrect && len(d.Value) == 0:
		return errs.Field("value", "is missing: a correction needs the right value")
	case d.Verdict != mapreduce.ReviewCorrect && (len(d.Value) > 0 || d.Passage != nil):
		return errs.Field("value", "and passage go with the verdict correct alone")
	case len(d.Value) > mapreduce.MaxReviewedValue:
		return errs.Field("value", "has %d bytes; at most %d are taken", len(d.Value), mapreduce.MaxReviewedValue)
	}

	if len(d.Model) == 0 {
		return nil
	}
	seen, err := decode(d.Model)
	if err != nil {
		return errs.Field("model_value", "is no JSON: %v", err)
	}
	if !bytes.Equal(encode(seen), model) {
		return &errs.Error{
			Kind: errs.Precondition, Reason: "VALUE_CHANGED",
			Message: fmt.Sprintf("%s of record %s is another value by now; look at it again", d.Field, d.Record),
		}
	}
	return nil
}

// normalised returns a value of a field in the form that the schema asks for.
func normalised(s *schema.Schema, field string, raw []byte) ([]byte, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, errs.Field("value", "is no JSON: %v", err)
	}
	if v == nil {
		return nil, errs.Field("value", "is null: the verdict for a value that the document does not have is absent")
	}

	if v, err = s.Field(field).Normalize(v); err != nil {
		return nil, errs.Field("value", "%v", err)
	}
	return encode(v), nil
}

// fieldNames lists the fields of a schema for a message.
func fieldNames(s *schema.Schema) string {
	const most = 20
	var names []string
	for _, f := range s.Fields() {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, f.Path)
	}
	return strings.Join(names, ", ")
}

// latest returns the decisions that count, one a field, in order of their fields.
func latest(all []*mapreduce.Decision) []*mapreduce.Decision {
	last := make(map[string]*mapreduce.Decision)
	for _, d := range all {
		if had := last[d.Field]; had == nil || had.Number < d.Number {
			last[d.Field] = d
		}
	}

	var counts []*mapreduce.Decision
	for _, d := range last {
		if d.Verdict != mapreduce.ReviewWithdraw {
			counts = append(counts, d)
		}
	}
	slices.SortFunc(counts, func(a, b *mapreduce.Decision) int { return strings.Compare(a.Field, b.Field) })
	return counts
}

// apply applies decisions, one a field, to a record. It returns why those do not fit that are not in
// the record then, by field.
func apply(s *schema.Schema, record []byte, decisions []*mapreduce.Decision) (v *view, refused map[string]string, err error) {
	refused = make(map[string]string)
	for {
		if v, err = newView(s, record); err != nil {
			return nil, nil, err
		}

		for _, d := range decisions {
			if _, known := refused[d.Field]; !known {
				if why := v.decide(d); why != "" {
					refused[d.Field] = why
				}
			}
		}

		// What the schema refuses is left out, and the rest is tried again without it.
		field, why := v.refusal(decisions, refused)
		if field == "" {
			return v, refused, nil
		}
		refused[field] = why
	}
}

// refusal returns a decided field with whose value the schema does not allow the record, and why; "" if
// there is none.
func (v *view) refusal(decisions []*mapreduce.Decision, refused map[string]string) (field, why string) {
	if len(v.reviewed) == 0 {
		return "", ""
	}

	j := v.judge()
	var breaches []judge.Breach
	for _, path := range slices.Sorted(maps.Keys(j.Refused)) {
		breaches = append(breaches, j.Refused[path])
	}
	for _, part := range j.Parts {
		breaches = append(breaches, part.Breach)
	}
	if len(breaches) == 0 {
		return "", ""
	}

	for _, b := range breaches {
		if _, decided := v.reviewed[b.Field]; decided {
			return b.Field, b.Error()
		}
	}
	// The schema refuses a value that nobody has decided about, beside one that somebody has.
	for _, d := range slices.Backward(decisions) {
		if _, left := refused[d.Field]; !left {
			return d.Field, "with it, " + breaches[0].Error()
		}
	}
	return "", ""
}

// decide applies a decision. It returns why it does not fit, or "".
func (v *view) decide(d *mapreduce.Decision) string {
	property := v.schema.Field(d.Field)
	if property == nil {
		return "the schema has no such field"
	}

	model, unverified := v.found(d.Field)
	e := EntryOf(d)
	e.Model, e.Unverified = model, unverified
	if (d.Verdict == mapreduce.ReviewAccept || d.Verdict == mapreduce.ReviewReject) && !bytes.Equal(model, d.Model) {
		return "the value is another by now"
	}

	switch d.Verdict {
	case mapreduce.ReviewAccept:
		if unverified {
			return v.put(d, model, &e)
		}
		v.reviewed[d.Field] = e
	case mapreduce.ReviewCorrect:
		return v.put(d, d.Value, &e)
	case mapreduce.ReviewReject:
		v.forget(d.Field, &e)
		v.missing(d.Field, WhyRejected)
		v.reviewed[d.Field] = e
	case mapreduce.ReviewAbsent:
		v.forget(d.Field, &e)
		v.missing(d.Field, WhyAbsent)
		v.reviewed[d.Field] = e
	default:
		return "no verdict is known by that number"
	}
	return ""
}

// EntryOf returns what a record says of a decision about a field, but for what stood there before.
func EntryOf(d *mapreduce.Decision) Entry {
	return Entry{Verdict: d.Verdict.String(), By: d.By, At: d.Time.UTC().Format(time.RFC3339), Note: d.Note}
}

// put makes a value the record's. It returns why it is no value of its field, or "".
func (v *view) put(d *mapreduce.Decision, raw []byte, e *Entry) string {
	value, err := decode(raw)
	if err == nil {
		value, err = v.schema.Field(d.Field).Normalize(value)
	}
	if err != nil {
		return err.Error()
	}

	v.forget(d.Field, e)
	v.values[d.Field] = value
	if d.Passage != nil {
		v.set("_citations", d.Field, encode([]string{d.Passage.Ref}))
	}
	v.reviewed[d.Field] = *e
	return ""
}
