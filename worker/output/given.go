package output

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/refs"
)

// A Given is what the program knows of a unit, and fills in where the schema of a value
// asks for it with the hint given.
type Given struct {
	Number     int64     // of the unit in its level, from 1 on
	References []refs.ID // that the unit was given, in a fixed order
}

// GivenOf returns what is known of the unit of an index that was given the citations of
// some outputs.
func GivenOf(index int64, outputs []*Output) Given {
	g := Given{Number: index + 1}
	for _, o := range outputs {
		for id := range o.Citations {
			g.References = append(g.References, refs.ID([]byte(id)))
		}
	}
	slices.SortFunc(g.References, refs.Compare)
	g.References = slices.Compact(g.References)
	return g
}

// formHints are the hints at the top of a form: what is given by the name of a property,
// and how the objects of lists are joined.
type formHints struct {
	given map[string]schema.Given
	joins map[string]joining
}

// A joining says how objects of a list become one.
type joining struct {
	list  string                      // the property that is the list
	by    string                      // objects are joined whose texts under this name are equal
	parts map[string]*schema.Property // of the objects
}

// hintsOf reads the hints of a schema. Of one that has other properties than records may
// have there are none.
func hintsOf(source []byte) formHints {
	h := formHints{given: make(map[string]schema.Given), joins: make(map[string]joining)}
	s, err := schema.Parse("schema", source)
	if err != nil || s.Kind != schema.KindRecord {
		return h
	}
	for i := range s.Properties {
		p := &s.Properties[i]
		if p.Hints.Given != "" {
			h.given[p.Name] = p.Hints.Given
		}
		if p.Hints.Join != "" {
			j := joining{list: p.Name, by: p.Hints.Join, parts: make(map[string]*schema.Property)}
			for k := range p.Items.Properties {
				j.parts[p.Items.Properties[k].Name] = &p.Items.Properties[k]
			}
			h.joins[p.Name] = j
		}
	}
	return h
}

// NeedsGiven reports whether something is to be filled in.
func (f *Form) NeedsGiven() bool { return len(f.hints.given) > 0 }

// With returns the form of the values of a unit of which this is known.
func (f *Form) With(g Given) *Form {
	of := *f
	of.given = &g
	return &of
}

func (f *Form) isGiven(name string) bool {
	return f != nil && f.given != nil && f.hints.given[name] != ""
}

func (f *Form) joinOf(path, name string) (joining, bool) {
	if f == nil || path != "" {
		return joining{}, false
	}
	j, ok := f.hints.joins[name]
	return j, ok
}

// valueOf returns what is given, as JSON is decoded.
func (g *Given) valueOf(what schema.Given) any {
	switch what {
	case schema.GivenNumber:
		return json.Number(fmt.Sprint(g.Number))
	case schema.GivenCount:
		return json.Number(fmt.Sprint(len(g.References)))
	}
	list := make([]any, len(g.References))
	for i, id := range g.References {
		list[i] = id.Full()
	}
	return list
}

// fillGiven puts into an object what is given, in place of whatever stands there.
func (f *Form) fillGiven(v any) {
	object, ok := v.(map[string]any)
	if !ok || f == nil || f.given == nil {
		return
	}
	for name, what := range f.hints.given {
		object[name] = f.given.valueOf(what)
	}
}

// checkGiven refuses an object in which something else stands in place of what is given.
func (f *Form) checkGiven(v any) error {
	object, ok := v.(map[string]any)
	if !ok || f.given == nil {
		return nil
	}
	for _, name := range sortedKeys(f.hints.given) {
		if !reflect.DeepEqual(object[name], f.given.valueOf(f.hints.given[name])) {
			return fmt.Errorf("%w: %s is not what is given there", ErrForm, name)
		}
	}
	return nil
}

// Uses returns the references that the value of an output rests on: all that it has but
// for those that are given whatever the value says.
func (f *Form) Uses(o *Output) (map[refs.ID]bool, error) {
	v, err := decodeValue(o.Value)
	if err != nil {
		return nil, err
	}
	if object, ok := v.(map[string]any); ok {
		for name, what := range f.hints.given {
			if what == schema.GivenReferences {
				delete(object, name)
			}
		}
	}
	raw, err := encodeValue(v)
	if err != nil {
		return nil, err
	}
	used := make(map[refs.ID]bool)
	for _, name := range inFull.FindAll(raw, -1) {
		id, _ := refs.Parse(string(name)) // it has the form
		used[id] = true
	}
	return used, nil
}

// joinLists unites lists of objects, of which those are one whose texts are equal.
func (m *valueMerger) joinLists(j joining, lists [][]any) (any, error) {
	at := make(map[string]int)
	joined := []any{}
	for _, list := range lists {
		for _, item := range list {
			object, ok := item.(map[string]any)
			text, named := object[j.by].(string)
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
func (m *valueMerger) joinObjects(j joining, a, b map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(a))
	maps.Copy(out, a)
	for _, key := range sortedKeys(b) {
		first, both := out[key]
		if !both || first == nil {
			out[key] = b[key]
			continue
		}
		if key == j.by || reflect.DeepEqual(first, b[key]) {
			continue
		}
		one, err := m.joinParts(j, key, first, b[key])
		if err != nil {
			return nil, err
		}
		out[key] = one
	}
	return out, nil
}

func (m *valueMerger) joinParts(j joining, key string, a, b any) (any, error) {
	x, xText := a.(string)
	y, yText := b.(string)
	p := j.parts[key]
	switch {
	case p == nil || !xText || !yText:
		return m.mergeAt(j.list+"."+key, []any{a, b})
	case len(p.Enum) > 0:
		if slices.Index(p.Enum, any(y)) < slices.Index(p.Enum, any(x)) {
			return y, nil
		}
		return x, nil
	case p.Hints.Merge == schema.MergeConcat:
		if strings.Contains(x, y) {
			return x, nil
		}
		return x + " " + y, nil
	}
	return m.mergeAt(j.list+"."+key, []any{a, b})
}
