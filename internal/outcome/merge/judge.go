package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/judge"
)

// A refusedOption is an option that the schema does not allow.
type refusedOption struct {
	option
	breach judge.Breach
}

// judgeOptions separates what a field may hold from what the schema refuses wherever it
// stands. The only value of a field is left to the judgement of the record, unless it
// is no value of its type, which no strategy could compare.
func judgeOptions(s *schema.Schema, sf schema.Field, all []option) (allowed []option, refused []refusedOption) {
	for _, o := range all {
		var breach *judge.Breach
		// The only value of a field is judged with the whole record.
		switch {
		case o.reviewed && !hasParts(sf.Property) && sf.Property.Fits(o.Value) == nil: // the record as a whole is judged
		case len(o.readings) > 0 && !o.reviewed:
			breach = openReading(sf)
		case o.derived != nil && o.derived.Fault != "" && !o.reviewed:
			breach = &judge.Breach{Field: sf.Path, Constraint: DerivedFalsely, Message: o.derived.Fault}
		case len(all) > 1 || hasParts(sf.Property) || sf.Property.Fits(o.Value) != nil:
			breach = judge.Value(s, sf.Path, o.Value)
		}

		if breach != nil {
			refused = append(refused, refusedOption{o, *breach})
			continue
		}
		allowed = append(allowed, o)
	}
	return allowed, refused
}

// splitDoubtful separates options from those that are wrong nine times out of ten wherever they were read.
func splitDoubtful(all []option) (likely []option, doubtful []refusedOption) {
	for _, o := range all {
		if o.Best > mostDoubtful || o.reviewed {
			likely = append(likely, o)
			continue
		}

		why := fmt.Sprintf("a guess with a confidence of %.2f", float64(o.Best)/1e6)
		doubtful = append(doubtful, refusedOption{o, judge.Breach{Constraint: mapreduce.LeastConfidence, Message: why}})
	}
	return likely, doubtful
}

// openReading is the breach of a value of which nothing tells how it is to be read.
func openReading(sf schema.Field) *judge.Breach {
	p := sf.Property

	if p.Type == schema.Array {
		p = p.Items
	}
	if p.HasDates() {
		return &judge.Breach{Field: sf.Path, Constraint: DateOrder, Message: "nothing tells whether the day or the month comes first"}
	}
	return &judge.Breach{
		Field: sf.Path, Constraint: NumberForm,
		Message: "nothing in the documents tells how the number is to be read; if it is written as in some country, state the locale, such as de-DE",
	}
}

// refuseOptions moves options of a field out of the record: of a list all of them, of
// another field that with the most weight, unless an allowed value stands in their place.
// The citations of all are listed as dropped.
func (r *Result) refuseOptions(sf schema.Field, refused []refusedOption, stands bool) {
	if len(refused) == 0 {
		return
	}

	slices.SortFunc(refused, func(a, b refusedOption) int {
		if hasParts(sf.Property) {
			return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Key, b.Key))
		}
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Key, b.Key))
	})

	one := refused[0]
	refusal := Refusal{
		Value: one.Value, Constraint: one.breach.Constraint, Message: one.breach.Message,
		Readings: one.readings, Citations: one.Citations,
	}

	_, isList := one.Value.([]any)
	// Of a list or a map every part that was refused is shown, in the order of the input.
	if hasParts(sf.Property) && (!isList || sf.Property.IsElement(one.Value)) {
		list := []any{}
		for _, o := range refused {
			list = append(list, o.Value)
			refusal.Citations = append(slices.Clip(refusal.Citations), o.Citations...)
		}
		refusal.Value, refusal.Citations = list, sortedUnique(refusal.Citations)
	}

	if !stands || hasParts(sf.Property) {
		r.addRefusal(sf.Path, refusal)
	}

	for _, o := range refused {
		r.dropRefused(sf.Path, o.Value, o.Citations, &o.breach)
	}
}

// hasParts reports whether each candidate of a field is a part of its value: an element of a
// list or an entry of a map.
func hasParts(p *schema.Property) bool { return p.Type == schema.Array || p.Type == schema.Map }

func (r *Result) addRefusal(path string, refusal Refusal) {
	r.Refused[path] = refusal
	if _, ok := r.Values[path]; !ok {
		r.Missing[path] = "what was found " + mapreduce.FaultText(refusal.Constraint, refusal.Message)
	}
}

// dropRefused lists the citations of a value that was refused.
func (r *Result) dropRefused(path string, value any, citations []Citation, why *judge.Breach) {
	for _, id := range citations {
		r.Dropped = append(r.Dropped, Dropped{
			Field: path, Citation: id, Reason: "value " + displayValue(value) + " " + mapreduce.FaultText(why.Constraint, why.Message),
		})
	}
}

// judgeRecord refuses the values with which the record breaks the schema, and notes what
// the record lacks.
func (r *Result) judgeRecord(s *schema.Schema) {
	j := judge.Record(s, r.Values)
	r.Lacking = j.Missing
	r.takeParts(s, &j)

	for _, path := range slices.Sorted(maps.Keys(j.Refused)) {
		breach, citations, value := j.Refused[path], r.Citations[path], r.Values[path]

		// The value leaves the record, with all that was said of it.
		for _, of := range []map[string]float64{r.Confidence, r.Said} {
			delete(of, path)
		}
		delete(r.Citations, path)
		delete(r.Derived, path)
		delete(r.Values, path)

		refusal := Refusal{Value: value, Constraint: breach.Constraint, Message: breach.Message, Citations: sortedUnique(citations)}
		// Elements of the list may have been refused before, each for itself. They stay
		// listed.
		had, before := r.Refused[path]
		some, isList := value.([]any)
		others, areElements := had.Value.([]any)
		if before && isList && areElements { // elements that were refused by themselves
			refusal.Value = slices.Concat(some, others)
			refusal.Citations = sortedUnique(slices.Concat(citations, had.Citations))
		}

		r.addRefusal(path, refusal)
		r.dropRefused(path, value, citations, &breach)

		r.Conflicts = slices.DeleteFunc(r.Conflicts, func(c Conflict) bool { return c.Field == path })
	}
}

// takeParts takes out of values the parts with which they break the schema. Elements of a
// list stand under _unverified with the others that were refused, other parts by their path.
func (r *Result) takeParts(s *schema.Schema, j *judge.Judgement) {
	for _, part := range j.Parts {
		r.Values[part.Field] = j.Kept[part.Field]
		citations := sortedUnique(r.Citations[part.Field])
		refusal := Refusal{Value: part.Value, Constraint: part.Breach.Constraint, Message: part.Breach.Message, Citations: citations}

		// Elements that were taken out of a list stand together, with those refused before.
		path := part.Path()

		if len(part.At) == 1 && s.Field(part.Field).Type == schema.Array {
			path, refusal.Value = part.Field, []any{part.Value}
			if had, ok := r.Refused[path]; ok {
				others, _ := had.Value.([]any)
				refusal.Value = slices.Concat([]any{part.Value}, others)
				refusal.Citations = sortedUnique(slices.Concat(citations, had.Citations))
			}
		}

		r.addRefusal(path, refusal)
	}
}

// listDropsOnce takes out of Dropped what a value carries after all, as its quote holds a refused value too,
// and what stands there twice.
func (r *Result) listDropsOnce() {
	type dropped struct {
		field    string
		citation Citation
	}
	listed := make(map[dropped]bool)
	for field, all := range r.Citations {
		for _, id := range all {
			listed[dropped{field, id}] = true
		}
	}

	r.Dropped = slices.DeleteFunc(r.Dropped, func(d Dropped) bool {
		one := dropped{d.Field, d.Citation}
		had := listed[one]
		listed[one] = true
		return had
	})
}

// Warnings says what the record lacks that the schema asks for.
func (r *Result) Warnings() []string {
	all := make([]string, len(r.Lacking))
	for i := range r.Lacking {
		all[i] = r.Warning(&r.Lacking[i])
	}
	return slices.Compact(all)
}

// Warning says what one of Lacking is, with the reason if the record has one.
func (r *Result) Warning(b *judge.Breach) string {
	text := b.Error()
	if b.Constraint == mapreduce.Required {
		text = b.Field + " is required and has no value"
	}
	if why := r.Missing[b.Field]; why != "" {
		text += " (" + why + ")"
	}
	return text
}
