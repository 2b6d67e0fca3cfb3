package output

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/hint"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
)

// errNoValues is why there is nothing to merge.
var errNoValues = errors.New("output: there is no value to merge")

// MergeValues merges the values of several units of one form, in order, as far as
// the form of JSON decides it:
//   - lists are united; of elements with equal canonical JSON the first stays;
//   - objects are merged by property;
//   - objects of a list that the form joins by a text are one if their texts are the
//     same but for case, spaces and punctuation, see Form;
//   - what is given, see Given, is that of the unit;
//   - of other values that differ the first stays, and the conflict is listed in
//     Decided with all of them. Null differs from nothing.
//
// What the inputs report as removed or decided is reported still.
func MergeValues(unit string, f *jsonvalue.Form, inputs []*Output) (*Output, error) {
	m := &valueMerger{unit: unit, form: f, out: &Output{}}

	var all []any
	for _, in := range inputs {
		v, err := jsonvalue.Decode(in.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		m.out.Removed = appendNew(m.out.Removed, in.Removed)
		m.out.Decided = append(m.out.Decided, in.Decided...)
	}

	if len(all) == 0 {
		return nil, errNoValues
	}

	merged, err := m.mergeAt("", all)
	if err != nil {
		return nil, err
	}

	// What is given is filled in before the value is encoded: the merge has skipped it.
	f.Fill(merged)
	if m.out.Value, err = jsonvalue.Encode(merged); err != nil {
		return nil, err
	}

	m.out.citeFrom(inputs)
	return m.out, nil
}

func appendNew(to, more []Removed) []Removed {
	for _, r := range more {
		if !slices.Contains(to, r) {
			to = append(to, r)
		}
	}
	return to
}

type valueMerger struct {
	unit string
	form *jsonvalue.Form
	out  *Output
}

// mergeAt merges the values that stand at one path, of which there is at least one.
func (m *valueMerger) mergeAt(path string, all []any) (any, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(v any) bool { return v == nil })
	if len(all) == 0 {
		return nil, nil
	}

	switch all[0].(type) {
	case []any:
		if lists, ok := allOf[[]any](all); ok {
			return uniteLists(lists)
		}
	case map[string]any:
		if objects, ok := allOf[map[string]any](all); ok {
			return m.mergeObjects(path, objects)
		}
	}

	return all[0], m.noteConflict(path, all)
}

// allOf returns values as those of a type, if they are.
func allOf[T any](all []any) ([]T, bool) {
	out := make([]T, len(all))
	for i, v := range all {
		one, ok := v.(T)
		if !ok {
			return nil, false
		}
		out[i] = one
	}
	return out, true
}

// uniteLists returns the elements of lists, each once.
func uniteLists(lists [][]any) ([]any, error) {
	seen := make(map[string]bool)
	united := []any{}
	for _, list := range lists {
		for _, item := range list {
			key, err := jsonvalue.Encode(item)
			if err != nil {
				return nil, err
			}
			if !seen[string(key)] {
				seen[string(key)] = true
				united = append(united, item)
			}
		}
	}

	return united, nil
}

// mergeObjects merges objects by property.
func (m *valueMerger) mergeObjects(path string, all []map[string]any) (any, error) {
	by := make(map[string][]any)
	for _, object := range all {
		for key, v := range object {
			by[key] = append(by[key], v)
		}
	}

	out := make(map[string]any, len(by))
	for _, key := range sortedKeys(by) {
		if path == "" && m.form.IsGiven(key) {
			out[key] = by[key][0] // it is filled in
			continue
		}

		if join, ok := m.form.JoinOf(path, key); ok {
			if lists, ok := allOf[[]any](by[key]); ok {
				joined, err := m.joinLists(join, lists)
				if err != nil {
					return nil, err
				}
				out[key] = joined
				continue
			}
		}

		v, err := m.mergeAt(strings.TrimPrefix(path+"."+key, "."), by[key])
		if err != nil {
			return nil, err
		}
		out[key] = v
	}

	return out, nil
}

// noteConflict lists values of which only the first stays, if they differ.
func (m *valueMerger) noteConflict(path string, all []any) error {
	if path == "" {
		path = wholeValue
	}

	d := Decided{Field: path, Unit: m.unit, Chosen: all[0], Rationale: "values that the form does not merge: the first one stays"}
	for _, v := range all {
		i := slices.IndexFunc(d.Candidates, func(c merge.Choice) bool { return reflect.DeepEqual(c.Value, v) })
		if i >= 0 {
			d.Candidates[i].Count++
			continue
		}

		raw, err := jsonvalue.Encode(v)
		if err != nil {
			return err
		}

		c := merge.Choice{Value: v, Count: 1}

		// The references that a value has are its citations.
		citesOf(raw, func(id merge.Citation) {
			if !slices.Contains(c.Citations, id) {
				c.Citations = append(c.Citations, id)
			}
		})
		d.Candidates = append(d.Candidates, c)
	}

	if len(d.Candidates) > 1 {
		m.out.Decided = append(m.out.Decided, d)
	}
	return nil
}

// Settle takes over what a typed merge reports, of whose value somebody made the
// output's by settling the conflicts that the merge by a unit left. These say then
// what stands in the value now, and why.
func (o *Output) Settle(typed *Output, unit, why string) error {
	v, err := jsonvalue.Decode(o.Value)
	if err != nil {
		return err
	}

	o.Removed = appendNew(slices.Clone(typed.Removed), o.Removed)
	for _, d := range typed.Decided {
		if now := valueAt(v, d.Field); d.Unit == unit {
			d.Chosen, d.Rationale = now, why
		}
		o.Decided = append(o.Decided, d)
	}

	o.citeFrom([]*Output{typed})
	return nil
}

// valueAt returns what stands at a path, nil if nothing does. A key may hold dots.
func valueAt(v any, path string) any {
	if path == wholeValue {
		if object, ok := v.(map[string]any); !ok || object[path] == nil {
			return v
		}
	}

	// A whole key wins over a path, as keys may have dots themselves.
	object, _ := v.(map[string]any)
	if inner, ok := object[path]; ok {
		return inner
	}

	for i, c := range path {
		if inner, ok := object[path[:i]]; ok && c == '.' {
			if found := valueAt(inner, path[i+1:]); found != nil {
				return found
			}
		}
	}
	return nil
}

// joinLists unites lists of objects, of which those are one whose texts are equal.
func (m *valueMerger) joinLists(j jsonvalue.Joining, lists [][]any) (any, error) {
	at := make(map[string]int)
	joined := []any{}
	for _, list := range lists {
		for _, item := range list {
			// An object without the text is one of its own.
			object, ok := item.(map[string]any)
			text, named := object[j.By].(string)
			key := equalText(text)
			if !ok || !named || key == "" {
				joined = append(joined, item)
				continue
			}

			i, seen := at[key]
			if !seen {
				at[key] = len(joined)
				joined = append(joined, object)
				continue
			}

			one, err := m.joinObjects(j, joined[i].(map[string]any), object)
			if err != nil {
				return nil, err
			}
			joined[i] = one
		}
	}

	return joined, nil
}

// equalText returns a text that is the same for texts which differ in case, spaces and
// punctuation alone.
func equalText(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
}

// joinObjects makes one object of two: lists are united, texts that the form has
// concatenated are, of two values of an enum the one stays that the enum has first, and of
// others that of the first object, with the conflict listed.
func (m *valueMerger) joinObjects(j jsonvalue.Joining, a, b map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(a))
	maps.Copy(out, a)

	for _, key := range sortedKeys(b) {
		first, both := out[key]
		if !both || first == nil {
			out[key] = b[key]
			continue
		}

		if key == j.By || reflect.DeepEqual(first, b[key]) {
			continue
		}

		// Both have another value, and the form says what becomes of them.
		one, err := m.joinParts(j, key, first, b[key])
		if err != nil {
			return nil, err
		}
		out[key] = one
	}
	return out, nil
}

func (m *valueMerger) joinParts(j jsonvalue.Joining, key string, a, b any) (any, error) {
	x, xText := a.(string)
	y, yText := b.(string)
	p := j.Parts[key]

	switch {
	case p == nil || !xText || !yText:
		return m.mergeAt(j.List+"."+key, []any{a, b})
	case len(p.Enum) > 0:
		// The value stays that the enum has first, whichever object has it.
		if slices.Index(p.Enum, any(y)) < slices.Index(p.Enum, any(x)) {
			return y, nil
		}
		return x, nil
	case p.Hints.Merge == hint.MergeConcat:
		if strings.Contains(x, y) {
			return x, nil
		}
		return x + " " + y, nil
	}
	return m.mergeAt(j.List+"."+key, []any{a, b})
}
