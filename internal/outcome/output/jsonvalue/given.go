package jsonvalue

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A Given is what the program knows of a unit, and fills in where the schema of a value
// asks for it with the hints given and select.
type Given struct {
	Number     int64             // of the unit in its level, from 1 on
	References []refs.ID         // that the unit was given, in a fixed order
	Rows       []json.RawMessage // the values that the unit read, in order
	Item       []byte            // JSON of the element that the unit works on; may be empty

	Documents []Chosen // that the unit reads, of which it may choose
	Most      int64    // how many it may choose; 0 is no limit
}

// Chosen is a document that a unit may choose, as it is described to the unit.
type Chosen struct {
	Document string
	Metadata map[string]string
}

// hints are the hints at the top of a form: what is given by the name of a property,
// and how the objects of lists are joined.
type hints struct {
	given  map[string]hint.Given
	joins  map[string]Joining
	chosen map[string][]schema.Property // lists of documents that are chosen: the properties of an element
	quoted []quotedField
}

// A Joining says how objects of a list become one.
type Joining struct {
	List  string                      // the property that is the list
	By    string                      // objects are joined whose texts under this name are equal
	Parts map[string]*schema.Property // of the objects
}

// readHints reads the hints of a schema. Of one that has other properties than records may
// have there are none.
func readHints(source []byte) hints {
	h := hints{given: make(map[string]hint.Given), joins: make(map[string]Joining), chosen: make(map[string][]schema.Property)}
	s, err := schema.Shared(source)
	if err != nil || s.Kind != schema.KindRecord {
		return h
	}

	for i := range s.Properties {
		p := &s.Properties[i]
		if p.Hints.Given != "" {
			h.given[p.Name] = p.Hints.Given
		}

		// A list of objects is joined by one of their texts.
		if p.Hints.Join != "" {
			j := Joining{List: p.Name, By: p.Hints.Join, Parts: make(map[string]*schema.Property)}
			for k := range p.Items.Properties {
				j.Parts[p.Items.Properties[k].Name] = &p.Items.Properties[k]
			}
			h.joins[p.Name] = j
		}

		if p.Hints.Select {
			h.chosen[p.Name] = p.Items.Properties
		}
	}

	h.quoted = quotedIn(s.Properties, nil)
	return h
}

// NeedsGiven reports whether something is to be filled in.
func (f *Form) NeedsGiven() bool { return len(f.hints.given)+len(f.hints.chosen) > 0 }

// With returns the form of the values of a unit of which this is known.
func (f *Form) With(g Given) *Form {
	of := *f
	of.given = &g
	return &of
}

// IsGiven reports whether a property at the top of a value is filled in.
func (f *Form) IsGiven(name string) bool {
	return f != nil && f.given != nil && f.hints.given[name] != ""
}

// JoinOf returns how the objects of a list are joined that is the property of a name of
// the object at a path; ok is false if the form does not say.
func (f *Form) JoinOf(path, name string) (Joining, bool) {
	if f == nil || path != "" {
		return Joining{}, false
	}
	j, ok := f.hints.joins[name]
	return j, ok
}

// valueOf returns what is given, as JSON is decoded.
func (g *Given) valueOf(what hint.Given) any {
	name := string(what)
	switch {
	case what == hint.GivenNumber:
		return json.Number(fmt.Sprint(g.Number))
	case what == hint.GivenCount:
		return json.Number(fmt.Sprint(len(g.References)))
	case what == hint.GivenRowCount:
		return json.Number(fmt.Sprint(len(g.Rows)))
	case what == hint.GivenRows:
		return g.rows()
	case strings.HasPrefix(name, hint.GivenRowsWhere):
		return json.Number(fmt.Sprint(g.countRows(strings.TrimPrefix(name, hint.GivenRowsWhere))))
	case strings.HasPrefix(name, hint.GivenItem):
		return g.itemText(strings.TrimPrefix(name, hint.GivenItem))
	}

	// The last is that of all references, which is given as a list.
	list := make([]any, len(g.References))
	for i, id := range g.References {
		list[i] = id.Full()
	}
	return list
}

// rows returns the values that the unit read. Those that are no JSON are left out: the
// store has none.
func (g *Given) rows() []any {
	list := make([]any, 0, len(g.Rows))
	for _, raw := range g.Rows {
		if v, err := Decode(raw); err == nil {
			list = append(list, v)
		}
	}
	return list
}

// countRows returns how many of the rows are objects in which a name is true.
func (g *Given) countRows(name string) (n int) {
	for _, row := range g.rows() {
		if object, ok := row.(map[string]any); ok && object[name] == true {
			n++
		}
	}
	return n
}

// itemText returns a text of the unit's element, or "".
func (g *Given) itemText(name string) string {
	v, err := Decode(g.Item)
	if err != nil {
		return ""
	}
	object, _ := v.(map[string]any)
	text, _ := object[name].(string)
	return text
}

// Fill puts into an object what is given, in place of whatever stands there, and into
// its lists of chosen documents what is known of these.
func (f *Form) Fill(v any) {
	object, ok := v.(map[string]any)
	if !ok || f == nil || f.given == nil {
		return
	}

	for name, what := range f.hints.given {
		object[name] = f.given.valueOf(what)
	}

	for name, properties := range f.hints.chosen {
		list, _ := object[name].([]any)
		object[name] = f.given.choose(list, properties)
	}
}

// choose returns the objects of a list whose ids name documents of the unit, each once and
// no more than the unit may choose, with what is known of the documents in place of
// what the list says.
func (g *Given) choose(list []any, properties []schema.Property) []any {
	chosen := []any{}
	seen := make(map[string]bool)
	for _, one := range list {
		id, named := one.(string)
		if object, ok := one.(map[string]any); ok {
			id, named = object["id"].(string)
		}

		i := slices.IndexFunc(g.Documents, func(d Chosen) bool { return d.Document == id })
		if !named || i < 0 || seen[id] || g.Most > 0 && int64(len(chosen)) == g.Most {
			continue
		}

		seen[id] = true

		// Whatever the list says of the document, what is known of it stands there.
		object := map[string]any{"id": id}
		for _, p := range properties {
			if text, ok := g.Documents[i].Metadata[p.Name]; ok && p.Name != "id" {
				object[p.Name] = text
			}
		}
		chosen = append(chosen, object)
	}

	return chosen
}

// checkGiven refuses an object in which something else stands in place of what is given, or
// which says of a chosen document what is not so.
func (f *Form) checkGiven(v any) error {
	object, ok := v.(map[string]any)
	if !ok || f.given == nil {
		return nil
	}

	// In sorted order, so that the same value is refused with the same words.
	for _, name := range sortedKeys(f.hints.given) {
		if !reflect.DeepEqual(object[name], f.given.valueOf(f.hints.given[name])) {
			return fmt.Errorf("%w: %s is not what is given there", ErrForm, name)
		}
	}

	for _, name := range sortedKeys(f.hints.chosen) {
		list, _ := object[name].([]any)
		if !reflect.DeepEqual(any(list), any(f.given.choose(list, f.hints.chosen[name]))) {
			return fmt.Errorf("%w: %s is not a choice of the documents that were read", ErrForm, name)
		}
	}

	return nil
}

// References returns the references that a value rests on: all that it has but for those
// that are given whatever the value says.
func (f *Form) References(value []byte) (map[refs.ID]bool, error) {
	v, err := Decode(value)
	if err != nil {
		return nil, err
	}

	// References that the program fills in show nothing of what the value itself rests on.
	if object, ok := v.(map[string]any); ok {
		for name, what := range f.hints.given {
			if what == hint.GivenReferences {
				delete(object, name)
			}
		}
	}

	raw, err := Encode(v)
	if err != nil {
		return nil, err
	}

	used := make(map[refs.ID]bool)
	for _, id := range refs.FullIDs(string(raw)) {
		used[id] = true
	}

	return used, nil
}
