package schema

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Field is a property that holds a value of its own: everything but a nested object,
// which is represented by the fields inside it. The values of an object under names that
// the document gives are a field too, a map: see RestName.
type Field struct {
	Path     string // names joined by dots, unique within the schema
	Property *Property
	Must     bool // each record has to have a value, whatever else it has
}

// Fields returns the fields of a record in the order of the file.
func (s *Schema) Fields() []Field { return s.fields }

func (s *Schema) listFields() []Field {
	fields := flattenFields("", s.Properties, true)
	if s.Rest != nil {
		fields = append(fields, Field{Path: RestName, Property: s.Rest})
	}
	return fields
}

// Field returns the field at path, nil when there is none.
func (s *Schema) Field(path string) *Property {
	for _, f := range s.fields {
		if f.Path == path {
			return f.Property
		}
	}
	return nil
}

// NamesOf returns the names that lead to the value of a field in a record. The field of all
// other names of an object has the names that lead to the object, and names those that it
// does not have.
func (s *Schema) NamesOf(path string) (names []string, others map[string]bool) {
	properties := s.Properties
	rest := path
	for {
		if rest == RestName {
			others = make(map[string]bool, len(properties))
			for i := range properties {
				others[nameAt(names, properties[i].Name)] = true
			}
			return names, others
		}

		p := longestStep(properties, rest)
		if p == nil {
			return names, nil
		}

		names = append(names, nameAt(names, p.Name))
		if rest = strings.TrimPrefix(rest, p.PathStep()); rest == "" {
			return names, nil
		}

		// The step is followed by a point.
		rest, properties = rest[1:], p.Properties
	}
}

// nameAt returns how a name is written behind others: the first one is of a record.
func nameAt(before []string, name string) string {
	if len(before) == 0 {
		return RecordName(name)
	}
	return name
}

// longestStep returns the property with which a path begins.
func longestStep(properties []Property, path string) (found *Property) {
	for i := range properties {
		p := &properties[i]
		step := p.PathStep()
		if (path == step || strings.HasPrefix(path, step+".")) && (found == nil || len(step) > len(found.PathStep())) {
			found = p
		}
	}
	return found
}

// PathStep returns the name of p in paths.
func (p *Property) PathStep() string { return cmp.Or(p.Step, p.Name) }

// restOf returns the field of an object's values under other names, nil if there is none.
func restOf(p *Property) *Property {
	if p.Rest == nil {
		return nil
	}
	return &Property{Name: RestName, Type: Map, Items: p.Rest}
}

// setSteps gives the properties of an object names in paths that are not empty and that
// differ from all paths into the other properties.
func setSteps(properties []Property) {
	for i := range properties {
		p := &properties[i]
		clashes := p.Name == "" || p.Name == RestName || strings.ContainsAny(p.Name, `"[]`) ||
			strings.Contains(p.Name, ".") && slices.ContainsFunc(properties, func(q Property) bool { return strings.HasPrefix(p.Name, q.Name+".") && q.Name != "" })
		if clashes {
			p.Step = strconv.Quote(p.Name)
		}
	}
}

// flattenFields lists the fields of properties below prefix, of an object that has to be
// there or not.
func flattenFields(prefix string, properties []Property, must bool) []Field {
	var fields []Field
	for i := range properties {
		p := &properties[i]
		path, must := prefix+p.PathStep(), must && p.Required && !p.Nullable
		switch p.Type {
		case Null:
		case Object:
			fields = append(fields, flattenFields(path+".", p.Properties, must)...)
			if rest := restOf(p); rest != nil {
				fields = append(fields, Field{Path: path + "." + RestName, Property: rest})
			}
		default:
			fields = append(fields, Field{Path: path, Property: p, Must: must})
		}
	}
	return fields
}

// ofRecords matches the names under which a record says something about its values, and
// the names that are written like them.
var ofRecords = regexp.MustCompile(`^_+(sources|citations|confidence|said|missing|unverified|warnings|derived|reviewed|seen)$`)

// RecordName returns the name under which a value stands in a record of the schema: with
// one more underscore if a record says something else under its own.
func RecordName(name string) string {
	if ofRecords.MatchString(name) {
		return "_" + name
	}
	return name
}

// IsAbout reports whether a record says something about its values under a name.
func IsAbout(name string) bool { return ofRecords.MatchString(name) && !strings.HasPrefix(name, "__") }

// propertyName is the inverse of RecordName.
func propertyName(name string) string {
	if ofRecords.MatchString(name) {
		return name[1:]
	}
	return name
}

// Nest turns values by field path into a record, with nested objects where the schema has
// them. Fields without a value become null; paths that the schema does not know are left
// out. Names are those of RecordName.
func (s *Schema) Nest(values map[string]any) map[string]any {
	record := make(map[string]any, len(s.Properties))
	for name, v := range nestValues("", s.Properties, s.Rest != nil, values) {
		record[RecordName(name)] = v
	}
	return record
}

// Names returns the names of a record that Nest made, in the order of the file. Those that
// the document gave come last, sorted.
func (s *Schema) Names(record map[string]any) []string {
	names := make([]string, 0, len(record))
	for i := range s.Properties {
		names = append(names, RecordName(s.Properties[i].Name))
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		if s.Rest != nil && !IsAbout(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func nestValues(prefix string, properties []Property, rest bool, values map[string]any) map[string]any {
	record := make(map[string]any, len(properties))
	if others, ok := values[prefix+RestName].(map[string]any); ok && rest {
		maps.Copy(record, others)
	}

	for i := range properties {
		p := &properties[i]
		if p.Type == Object {
			record[p.Name] = nestValues(prefix+p.PathStep()+".", p.Properties, p.Rest != nil, values)
			continue
		}
		record[p.Name] = values[prefix+p.PathStep()]
	}
	return record
}

// Fields returns the fields inside an object, by their paths from it.
func (p *Property) Fields() []Field {
	fields := flattenFields("", p.Properties, true)
	if rest := restOf(p); rest != nil {
		fields = append(fields, Field{Path: RestName, Property: rest})
	}
	return fields
}

// Nest turns values by their paths from p, an object, into that object.
func (p *Property) Nest(values map[string]any) map[string]any {
	return nestValues("", p.Properties, p.Rest != nil, values)
}

// Flatten is the inverse of Nest. What the schema does not know, and values that are null,
// are left out.
func (s *Schema) Flatten(record map[string]any) map[string]any {
	plain := make(map[string]any, len(record))
	for name, v := range record {
		if !IsAbout(name) {
			plain[propertyName(name)] = v
		}
	}
	values := make(map[string]any, len(s.fields))
	flattenValues("", s.Properties, s.Rest != nil, plain, values)
	return values
}

func flattenValues(prefix string, properties []Property, rest bool, record, values map[string]any) {
	named := make(map[string]bool, len(properties))
	for i := range properties {
		p := &properties[i]
		v := record[p.Name]
		named[p.Name] = true
		if p.Type == Object {
			inner, _ := v.(map[string]any)
			flattenValues(prefix+p.PathStep()+".", p.Properties, p.Rest != nil, inner, values)
		} else if v != nil {
			values[prefix+p.PathStep()] = v
		}
	}

	others := map[string]any{}

	// What the schema does not name is one value of the object, under a name of its own.
	for name, v := range record {
		if rest && !named[name] && v != nil {
			others[name] = v
		}
	}

	if len(others) > 0 {
		values[prefix+RestName] = others
	}
}

// Many reports whether each item of the list that the schema describes is a record.
func (s *Schema) Many() bool { return s.Kind == KindRecords && !s.whole }

// Bare reports whether a record stands for a value that is no object: it has the one field
// ValueName.
func (s *Schema) Bare() bool { return s.bare }

// element returns the property of one value: the items of a list, else p.
func (p *Property) element() *Property {
	if p.Type == Array && p.Items != nil {
		return p.Items
	}
	return p
}
