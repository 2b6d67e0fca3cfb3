package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/view"
)

const (
	// maxNesting bounds how deep objects and lists of a record may be nested. What lies
	// deeper is any value.
	maxNesting = 12
	// maxWithin is how often a definition is read within itself. What lies deeper is any
	// value.
	maxWithin = 3
	// maxProperties bounds the properties of a schema, with those of definitions as often as
	// they are referred to. Those that come after are any value.
	maxProperties = 5_000
)

// A shaper turns views into properties.
type shaper struct {
	*view.Reader
	hints *hintReader
	count int     // properties so far
	above []frame // the properties around the one that is read, the outermost first
	cut   bool    // it was said that the rest of a large schema is any value
}

// A frame is a property that is being read.
type frame struct {
	nodes []*source.Node
	must  bool // each value of the property around it has one of this, which is no list
}

// readProperty reads one property.
func (r *shaper) readProperty(name string, v *view.View, n *source.Node, path string, depth int) Property {
	p := r.readShape(name, v, n, path, depth)
	p.Hints = r.hints.readHints(v, &p)
	return p
}

// readShape reads what a property says of its values, without its hints.
func (r *shaper) readShape(name string, v *view.View, n *source.Node, path string, depth int) Property {
	p := Property{Name: name, Title: r.ReadString(v, "title"), Description: r.Describe(v)}
	types := r.TypesOf(v)
	// Null is no type of its own here: it only says that the value may be missing.
	p.Nullable = types != view.All && types&view.Null != 0 || v.Nullable
	types &^= view.Null
	r.count++

	switch {
	case v.Never || types == 0:
		p.Type = Null
		r.Warn(n, path, "no value but null is allowed here, so nothing is extracted")
	case types == view.All&^view.Null:
		p.Type = Any
		if v.Has(source.HintKey) { // the rules find texts
			p.Type = String
		}
		p.Enum = r.readEnum(v, &p)
	case depth > maxNesting || r.isWithinItself(v, n, path) || r.isTooLarge(n, path):
		r.cutOff(&p, types)
	default:
		r.readTypes(&p, v, n, path, depth, types)
	}

	return p
}

// isTooLarge reports whether the schema has more properties than are read.
func (r *shaper) isTooLarge(n *source.Node, path string) bool {
	if r.count <= maxProperties {
		return false
	}
	if !r.cut {
		r.Warn(n, path, "the schema has more than %d properties: those from here on are taken as values of any kind, and judged as they are", maxProperties)
		r.cut = true
	}
	return true
}

// isWithinItself reports whether v stands within itself so often that it is read no
// deeper. It is a fault if each of its values would have another one within.
func (r *shaper) isWithinItself(v *view.View, n *source.Node, path string) bool {
	times, endless := 0, true
	for _, f := range slices.Backward(r.above) {
		if slices.ContainsFunc(v.Nodes, func(n *source.Node) bool {
			return n.Kind == source.Map && len(n.Keys) > 0 && slices.Contains(f.nodes, n)
		}) {
			if times++; times == 1 && endless && f.must {
				r.RecordFault(n, path, "refers to itself, and requires it: no value would have an end")
				return true
			}
		}

		endless = endless && f.must
	}

	return times >= maxWithin
}

// cutOff makes p a property of any values of its types.
func (r *shaper) cutOff(p *Property, types view.Types) {
	of := Property{Name: p.Name, Type: Any}
	switch types {
	case view.Object:
		p.Type, p.Items = Map, &of
	case view.Array:
		p.Type, p.Items = Array, &of
	default:
		p.Type = Any
	}
}

// oneType are the sets that make one property, with its type.
var oneType = []struct {
	set view.Types
	typ Type
}{{view.String, String}, {view.Number, Number}, {view.Whole, Integer}, {view.Boolean, Boolean}, {view.Array, Array}, {view.Object, Object}}

// readTypes reads a property of some types: of several, it is a union.
func (r *shaper) readTypes(p *Property, v *view.View, n *source.Node, path string, depth int, types view.Types) {
	if types&view.Number == view.Fraction {
		// A fraction may be a whole number, too.
		types |= view.Number
	}

	for _, one := range oneType {
		if types == one.set {
			p.Type = one.typ
			r.readKind(p, r.Narrow(v, one.set), n, path, depth)
			return
		}
	}

	p.Type = Union

	for _, one := range oneType {
		whole := types&view.Number == view.Whole
		if types&one.set == 0 || one.typ == Integer && !whole || one.typ == Number && whole {
			continue
		}

		option := Property{Name: p.Name, Type: one.typ}
		r.readKind(&option, r.Narrow(v, one.set), n, path, depth)
		p.Options = append(p.Options, option)
	}

	slices.SortStableFunc(p.Options, func(a, b Property) int { return r.mentioned(v, a.Type) - r.mentioned(v, b.Type) })
}

// mentioned returns which of the types of v this one is, in the order of the file.
func (r *shaper) mentioned(v *view.View, t Type) int {
	set := view.TypesByName[string(t)]
	if list, _ := v.Get("type"); list != nil && list.Kind == source.List {
		return slices.IndexFunc(list.Items, func(n *source.Node) bool { return view.TypesByName[n.Text]&set != 0 })
	}
	for _, group := range v.Groups {
		if i := slices.IndexFunc(group, func(one *view.View) bool { return r.TypesOf(one)&set != 0 }); i >= 0 {
			return i
		}
	}
	return 0
}

// readKind reads a property of one type, of which v speaks alone.
func (r *shaper) readKind(p *Property, v *view.View, n *source.Node, path string, depth int) {
	switch p.Type {
	case Object:
		r.readObject(p, v, n, path, depth)
	case Array:
		r.readArray(p, v, n, path, depth)
	case String:
		p.Format = Format(r.CommonFormat(v))
	}

	p.Enum = r.readEnum(v, p)
	p.Fraction = view.EndsAtOne(v)
	p.Keywords = keywordsOf(v, p)
}

// readObject reads the properties of an object, those of all alternatives included.
func (r *shaper) readObject(p *Property, v *view.View, n *source.Node, path string, depth int) {
	r.above = append(r.above, frame{nodes: v.Nodes})
	defer func() { r.above = r.above[:len(r.above)-1] }()

	p.Properties = r.readProperties(v, path, depth)
	p.Rest = r.readRest(p.Name, v, n, path, depth, len(p.Properties) > 0)
	if len(p.Properties) > 0 {
		return
	}
	p.Type, p.Items, p.Rest = Map, p.Rest, nil
	if p.Items == nil {
		p.Items = &Property{Name: p.Name, Type: Any}
	}
}

// readProperties reads the named properties of an object.
func (r *shaper) readProperties(v *view.View, path string, depth int) []Property {
	var list []Property

	required := r.RequiredNames(v)
	for _, m := range r.MembersOf(v) {
		must := required[m.Name]
		delete(required, m.Name)

		if m.View.Never {
			continue // it must not be there
		}

		r.above[len(r.above)-1].must = must != nil && r.TypesOf(m.View) == view.Object && len(m.View.Groups) == 0

		p := r.readProperty(m.Name, m.View, m.Node, m.Path, depth+1)
		p.Required = must != nil
		list = append(list, p)
	}

	for _, name := range slices.Sorted(maps.Keys(required)) {
		if p, ok := r.readUnnamed(name, required[name], v, path); ok {
			list = append(list, p)
		}
	}

	for _, name := range r.NamesOfAlternatives(v) {
		if !slices.ContainsFunc(list, func(p Property) bool { return p.Name == name }) {
			list = append(list, Property{Name: name, Type: Any})
		}
	}

	setSteps(list)
	return list
}

// readUnnamed makes a property of a name that is required and has no schema.
func (r *shaper) readUnnamed(name string, n *source.Node, v *view.View, path string) (Property, bool) {
	if v.Has("patternProperties") || len(v.Nodes) == 0 {
		return Property{}, false
	}
	if extra, _ := v.Get("additionalProperties"); extra != nil && extra.Kind == source.Map {
		return Property{}, false
	}
	r.Warn(n, "required", "there is no property %q: it is taken as a value of any kind", source.Clip(name))
	r.count++
	return Property{Name: name, Type: Any, Required: true}, true
}

// readRest reads the values under names that the document gives; nil if only the named
// properties are of interest.
func (r *shaper) readRest(name string, v *view.View, n *source.Node, path string, depth int, named bool) *Property {
	var all *view.View
	r.EachRest(v, named, map[*view.View]bool{}, func(one *view.View) {
		if all == nil {
			all = one
		} else {
			all = r.Either(all, one)
		}
	})

	if all == nil {
		return nil
	}

	// The names are those of the document, so none of them must be there.
	r.above[len(r.above)-1].must = false

	p := r.readShape(name, all, n, path, depth+1)
	return &p
}

// readArray reads the items of a list.
func (r *shaper) readArray(p *Property, v *view.View, n *source.Node, path string, depth int) {
	r.above = append(r.above, frame{nodes: v.Nodes})
	defer func() { r.above = r.above[:len(r.above)-1] }()

	prefix, rest := r.Positions(v)
	if len(prefix) == 0 {
		item := Property{Name: p.Name, Type: Any}
		if all := r.ItemsOf(v, rest); all != nil {
			item = r.readItem(p.Name, all, n, path, depth+1)
		}
		p.Items = &item
		return
	}

	// With places of its own a list is a tuple; what follows them is its items.
	p.Type = Tuple
	for i, m := range prefix {
		p.Prefix = append(p.Prefix, r.readItem(fmt.Sprint(i+1), m.View, m.Node, m.Path, depth+1))
	}

	if rest.View != nil && !rest.View.Never {
		item := r.readItem(p.Name, rest.View, rest.Node, rest.Path, depth+1)
		p.Items = &item
	}
}

// readItem reads the items of a list. Hints of single values are read with the list, see
// readHints; for a list in a list there are none.
func (r *shaper) readItem(name string, v *view.View, n *source.Node, path string, depth int) Property {
	r.above[len(r.above)-1].must = false
	p := r.readShape(name, v, n, path, depth)
	switch p.Type {
	case Null:
		p.Type = Any // it is the list that may have no items
	case Object:
		p.Hints = r.hints.readHints(v, &p)
	}
	return p
}

// readEnum reads the allowed values in their normalised form: those of v, or else of all
// alternatives.
func (r *shaper) readEnum(v *view.View, p *Property) []any {
	if list, ok := view.AllowedOf(v); ok {
		return r.allowedValues(list, p)
	}

	// Alternatives bound the values only if each of them lists some.
	for _, group := range v.Groups {
		var all []any
		for _, one := range group {
			list, ok := view.AllowedOf(one)
			if !ok {
				all = nil
				break
			}

			for _, value := range r.allowedValues(list, p) {
				if !slices.Contains(all, value) {
					all = append(all, value)
				}
			}
		}

		if all != nil {
			return all
		}
	}

	return nil
}

// allowedValues returns those of the allowed values that are of p's type. It returns nil if
// one of them is a list or an object, which only the judge compares.
func (r *shaper) allowedValues(list []*source.Node, p *Property) []any {
	var values []any
	for _, item := range list {
		switch {
		case item.Kind == source.Null:
			p.Nullable = true
			continue
		case item.Kind == source.List || item.Kind == source.Map:
			return nil
		case !allowsKind(p, item.Kind):
			continue
		}

		value := item.DecodeValue()

		// Numbers are compared in their canonical form.
		if num, ok := value.(json.Number); ok {
			text, _ := format.CanonicalNumber(num.String())
			value = json.Number(text)
		}

		values = append(values, value)
	}

	return values
}

// allowsKind reports whether a literal of this kind can be a value of p.
func allowsKind(p *Property, kind source.Kind) bool {
	switch p.Type {
	case String:
		return kind == source.String
	case Boolean:
		return kind == source.Bool
	case Number, Integer:
		return kind == source.Number
	default:
		return false
	}
}

// A Keyword is what a schema asks of a value by itself, in JSON.
type Keyword struct {
	Name  string
	Value json.RawMessage
}

// keywordNames are those of Property.Keywords, by type.
var keywordNames = map[Type][]string{
	String:  {"contentEncoding", "contentMediaType", "maxLength", "minLength", "pattern"},
	Number:  {"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"},
	Integer: {"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"},
	Array:   {"maxItems", "minItems", "uniqueItems"},
	Map:     {"maxProperties", "minProperties"},
	Object:  {"maxProperties", "minProperties"},
}

// keywordsOf returns the keywords that v has of those of p's type.
func keywordsOf(v *view.View, p *Property) []Keyword {
	var list []Keyword
	for _, name := range keywordNames[p.Type] {
		n, _ := v.Get(name)
		if n == nil || n.Kind == source.Map || n.Kind == source.List || strings.HasPrefix(name, "exclusive") && n.Kind != source.Number {
			continue
		}
		list = append(list, Keyword{name, source.EncodeSchema(n, true)})
	}
	return list
}

// formatsOfSchemas are the formats that are read, and that others are likely to be a slip of.
var formatsOfSchemas = []string{string(Date), string(DateTime), string(Time), string(Email), string(URI), string(Duration), string(Currency)}

// readSchema reads the whole file.
func (r *shaper) readSchema() *Schema {
	root := r.Root
	if root.Kind != source.Map {
		r.RecordFault(root, "", "a schema must be a mapping, not %s", root.Kind)
		return nil
	}

	v := r.NewView(root, "")
	s := &Schema{Title: r.ReadString(v, "title"), Description: r.ReadString(v, "description"), Kind: KindRecord}

	types := r.TypesOf(v)
	switch whole := types & (view.Object | view.Array); {
	case types == 0:
		r.RecordFault(root, "type", "no value fits: what the schema asks for excludes every type")
		return nil
	case whole == 0:
		r.RecordFault(root, "type", "the type of a schema must be object or array, not %s", types)
		return nil
	case whole == view.Array, whole != view.Object && types != view.All && r.mentioned(v, Array) < r.mentioned(v, Object):
		s.Kind = KindRecords
		r.readList(s, r.Narrow(v, view.Array))
	default:
		r.readRecord(s, r.Narrow(v, view.Object), root, "")
	}

	if len(s.Properties) == 0 && s.Rest == nil {
		r.RecordFault(root, "", "there are no properties, so there is nothing to extract")
		return nil
	}

	s.Key = r.hints.topHints(v, s)
	return s
}

// readRecord reads what a record of the schema has.
func (r *shaper) readRecord(s *Schema, v *view.View, n *source.Node, path string) {
	record := Property{Type: Object}
	r.readKind(&record, v, n, path, 0)
	s.useRecord(&record)
	if extra, _ := v.Get("additionalProperties"); len(s.Properties) == 0 && extra != nil && extra.Text == "false" && !v.Has("patternProperties") {
		s.Rest = nil
	}
}

// useRecord makes p, an object or a map, what a record of the schema has.
func (s *Schema) useRecord(p *Property) {
	s.Properties, s.Rest = p.Properties, restOf(p)
	if p.Type == Map {
		s.Rest = restOf(&Property{Rest: p.Items})
	}
}

// readList reads a schema of many records in a document, of its items. Items that are no
// objects become records with one field.
func (r *shaper) readList(s *Schema, v *view.View) {
	list := Property{Name: ValueName, Type: Array}
	r.readKind(&list, v, r.Root, "", 0)

	switch {
	case list.Type == Array && (list.Items.Type == Object || list.Items.Type == Map):
		s.useRecord(list.Items)
		return
	case list.Type == Array:
		list.Items.Name, list.Items.Required = ValueName, true
		s.Properties, s.bare = []Property{*list.Items}, true
	default:
		list.Required = true
		s.Properties, s.bare, s.whole = []Property{list}, true, true
	}

	setSteps(s.Properties)
}
