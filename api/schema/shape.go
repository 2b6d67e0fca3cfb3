package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
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
	*views
	hints *hintReader
	count int     // properties so far
	above []frame // the properties around the one that is read, the outermost first
	cut   bool    // it was said that the rest of a large schema is any value
}

// A frame is a property that is being read.
type frame struct {
	nodes []*node
	must  bool // each value of the property around it has one of this, which is no list
}

// readProperty reads one property.
func (r *shaper) readProperty(name string, v *view, n *node, path string, depth int) Property {
	p := r.readShape(name, v, n, path, depth)
	p.Hints = r.hints.readHints(v, &p)
	return p
}

// readShape reads what a property says of its values, without its hints.
func (r *shaper) readShape(name string, v *view, n *node, path string, depth int) Property {
	p := Property{Name: name, Title: r.readString(v, "title"), Description: r.describe(v)}
	types := r.typesOf(v)
	// Null is no type of its own here: it only says that the value may be missing.
	p.Nullable = types != typeAll && types&typeNull != 0 || v.nullable
	types &^= typeNull
	r.count++

	switch {
	case v.never || types == 0:
		p.Type = Null
		r.warn(n, path, "no value but null is allowed here, so nothing is extracted")
	case types == typeAll&^typeNull:
		p.Type = Any
		if v.has(HintKey) { // the rules find texts
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
func (r *shaper) isTooLarge(n *node, path string) bool {
	if r.count <= maxProperties {
		return false
	}
	if !r.cut {
		r.warn(n, path, "the schema has more than %d properties: those from here on are taken as values of any kind, and judged as they are", maxProperties)
		r.cut = true
	}
	return true
}

// isWithinItself reports whether v stands within itself so often that it is read no
// deeper. It is a fault if each of its values would have another one within.
func (r *shaper) isWithinItself(v *view, n *node, path string) bool {
	times, endless := 0, true
	for _, f := range slices.Backward(r.above) {
		if slices.ContainsFunc(v.nodes, func(n *node) bool { return n.kind == nodeMap && len(n.keys) > 0 && slices.Contains(f.nodes, n) }) {
			if times++; times == 1 && endless && f.must {
				r.recordFault(n, path, "refers to itself, and requires it: no value would have an end")
				return true
			}
		}

		endless = endless && f.must
	}

	return times >= maxWithin
}

// cutOff makes p a property of any values of its types.
func (r *shaper) cutOff(p *Property, types typeSet) {
	of := Property{Name: p.Name, Type: Any}
	switch types {
	case typeObject:
		p.Type, p.Items = Map, &of
	case typeArray:
		p.Type, p.Items = Array, &of
	default:
		p.Type = Any
	}
}

// oneType are the sets that make one property, with its type.
var oneType = []struct {
	set typeSet
	typ Type
}{{typeString, String}, {typeNumber, Number}, {typeWhole, Integer}, {typeBoolean, Boolean}, {typeArray, Array}, {typeObject, Object}}

// readTypes reads a property of some types: of several, it is a union.
func (r *shaper) readTypes(p *Property, v *view, n *node, path string, depth int, types typeSet) {
	if types&typeNumber == typeFraction {
		// A fraction may be a whole number, too.
		types |= typeNumber
	}

	for _, one := range oneType {
		if types == one.set {
			p.Type = one.typ
			r.readKind(p, r.narrow(v, one.set), n, path, depth)
			return
		}
	}

	p.Type = Union

	for _, one := range oneType {
		whole := types&typeNumber == typeWhole
		if types&one.set == 0 || one.typ == Integer && !whole || one.typ == Number && whole {
			continue
		}

		option := Property{Name: p.Name, Type: one.typ}
		r.readKind(&option, r.narrow(v, one.set), n, path, depth)
		p.Options = append(p.Options, option)
	}

	slices.SortStableFunc(p.Options, func(a, b Property) int { return r.mentioned(v, a.Type) - r.mentioned(v, b.Type) })
}

// mentioned returns which of the types of v this one is, in the order of the file.
func (r *shaper) mentioned(v *view, t Type) int {
	set := typesByName[string(t)]
	if list, _ := v.get("type"); list != nil && list.kind == nodeList {
		return slices.IndexFunc(list.items, func(n *node) bool { return typesByName[n.text]&set != 0 })
	}
	for _, group := range v.groups {
		if i := slices.IndexFunc(group, func(one *view) bool { return r.typesOf(one)&set != 0 }); i >= 0 {
			return i
		}
	}
	return 0
}

// readKind reads a property of one type, of which v speaks alone.
func (r *shaper) readKind(p *Property, v *view, n *node, path string, depth int) {
	switch p.Type {
	case Object:
		r.readObject(p, v, n, path, depth)
	case Array:
		r.readArray(p, v, n, path, depth)
	case String:
		p.Format = Format(r.commonFormat(v))
	}

	p.Enum = r.readEnum(v, p)
	p.Fraction = endsAtOne(v)
	p.Keywords = keywordsOf(v, p)
}

// endsAtOne reports whether no value may be greater than 1.
func endsAtOne(v *view) bool {
	for _, key := range []string{"maximum", "exclusiveMaximum"} {
		n, _ := v.get(key)
		if n == nil || n.kind != nodeNumber {
			continue
		}
		if most, ok := format.CanonicalNumber(n.text); ok && format.CompareNumbers(most, "1") <= 0 && format.CompareNumbers(most, "0") > 0 {
			return true
		}
	}
	return false
}

// commonFormat returns the format of v, or else the one that all its alternatives have.
func (r *shaper) commonFormat(v *view) string {
	if v.format == nil {
		found := r.formatOf(v)
		v.format = &found
	}
	return *v.format
}

func (r *shaper) formatOf(v *view) string {
	if v.has("format") {
		return r.readString(v, "format")
	}

	for _, group := range v.groups {
		text := r.commonFormat(group[0])
		if text != "" && !slices.ContainsFunc(group[1:], func(one *view) bool { return r.commonFormat(one) != text }) {
			return text
		}
	}
	return ""
}

// readObject reads the properties of an object, those of all alternatives included.
func (r *shaper) readObject(p *Property, v *view, n *node, path string, depth int) {
	r.above = append(r.above, frame{nodes: v.nodes})
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
func (r *shaper) readProperties(v *view, path string, depth int) []Property {
	var list []Property

	required := r.requiredNames(v)
	for _, m := range r.membersOf(v) {
		must := required[m.name]
		delete(required, m.name)

		if m.view.never {
			continue // it must not be there
		}

		r.above[len(r.above)-1].must = must != nil && r.typesOf(m.view) == typeObject && len(m.view.groups) == 0

		p := r.readProperty(m.name, m.view, m.node, m.path, depth+1)
		p.Required = must != nil
		list = append(list, p)
	}

	for _, name := range slices.Sorted(maps.Keys(required)) {
		if p, ok := r.readUnnamed(name, required[name], v, path); ok {
			list = append(list, p)
		}
	}

	for _, name := range r.namesOfAlternatives(v) {
		if !slices.ContainsFunc(list, func(p Property) bool { return p.Name == name }) {
			list = append(list, Property{Name: name, Type: Any})
		}
	}

	setSteps(list)
	return list
}

// readUnnamed makes a property of a name that is required and has no schema.
func (r *shaper) readUnnamed(name string, n *node, v *view, path string) (Property, bool) {
	if v.has("patternProperties") || len(v.nodes) == 0 {
		return Property{}, false
	}
	if extra, _ := v.get("additionalProperties"); extra != nil && extra.kind == nodeMap {
		return Property{}, false
	}
	r.warn(n, "required", "there is no property %q: it is taken as a value of any kind", clipText(name))
	r.count++
	return Property{Name: name, Type: Any, Required: true}, true
}

// readRest reads the values under names that the document gives; nil if only the named
// properties are of interest.
func (r *shaper) readRest(name string, v *view, n *node, path string, depth int, named bool) *Property {
	var all *view
	r.eachRest(v, named, map[*view]bool{}, func(one *view) {
		if all == nil {
			all = one
		} else {
			all = r.either(all, one)
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

// eachRest calls do with each schema of values under other names. Views that are seen are
// not gone through again.
func (r *shaper) eachRest(v *view, named bool, seen map[*view]bool, do func(*view)) {
	if seen[v] {
		return
	}
	seen[v] = true

	for i, n := range v.nodes {
		if patterns := n.get("patternProperties"); patterns != nil && patterns.kind == nodeMap {
			for j, item := range patterns.items {
				if one := r.newView(item, joinPath(joinPath(v.paths[i], "patternProperties"), patterns.keys[j].text)); !one.never {
					do(one)
				}
			}
		}
		for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
			// Beside named properties, an empty schema allows others without asking for
			// them.
			extra := n.get(key)
			if extra != nil && extra.kind == nodeMap && (len(extra.keys) > 0 || !named) {
				do(r.newView(extra, joinPath(v.paths[i], key)))
			}
		}
	}

	for _, group := range v.groups {
		for _, one := range group {
			r.eachRest(one, named, seen, do)
		}
	}
}

// readArray reads the items of a list.
func (r *shaper) readArray(p *Property, v *view, n *node, path string, depth int) {
	r.above = append(r.above, frame{nodes: v.nodes})
	defer func() { r.above = r.above[:len(r.above)-1] }()

	prefix, rest := r.positions(v)
	if len(prefix) == 0 {
		item := Property{Name: p.Name, Type: Any}
		if all := r.itemsOf(v, rest); all != nil {
			item = r.readItem(p.Name, all, n, path, depth+1)
		}
		p.Items = &item
		return
	}

	// With places of its own a list is a tuple; what follows them is its items.
	p.Type = Tuple
	for i, m := range prefix {
		p.Prefix = append(p.Prefix, r.readItem(fmt.Sprint(i+1), m.view, m.node, m.path, depth+1))
	}

	if rest.view != nil && !rest.view.never {
		item := r.readItem(p.Name, rest.view, rest.node, rest.path, depth+1)
		p.Items = &item
	}
}

// readItem reads the items of a list. Hints of single values are read with the list, see
// readHints; for a list in a list there are none.
func (r *shaper) readItem(name string, v *view, n *node, path string, depth int) Property {
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
func (r *shaper) readEnum(v *view, p *Property) []any {
	if list, ok := allowedOf(v); ok {
		return r.allowedValues(list, p)
	}

	// Alternatives bound the values only if each of them lists some.
	for _, group := range v.groups {
		var all []any
		for _, one := range group {
			list, ok := allowedOf(one)
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

// allowedOf returns the values that v allows.
func allowedOf(v *view) (list []*node, ok bool) {
	if one, _ := v.get("const"); one != nil {
		return []*node{one}, true
	}
	enum, _ := v.get("enum")
	if enum == nil || enum.kind != nodeList {
		return nil, false
	}
	return enum.items, true
}

// allowedValues returns those of the allowed values that are of p's type. It returns nil if
// one of them is a list or an object, which only the judge compares.
func (r *shaper) allowedValues(list []*node, p *Property) []any {
	var values []any
	for _, item := range list {
		switch {
		case item.kind == nodeNull:
			p.Nullable = true
			continue
		case item.kind == nodeList || item.kind == nodeMap:
			return nil
		case !p.allowsKind(item.kind):
			continue
		}

		value := item.decodeValue()

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
func (p *Property) allowsKind(kind nodeKind) bool {
	switch p.Type {
	case String:
		return kind == nodeString
	case Boolean:
		return kind == nodeBool
	case Number, Integer:
		return kind == nodeNumber
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
func keywordsOf(v *view, p *Property) []Keyword {
	var list []Keyword
	for _, name := range keywordNames[p.Type] {
		n, _ := v.get(name)
		if n == nil || n.kind == nodeMap || n.kind == nodeList || strings.HasPrefix(name, "exclusive") && n.kind != nodeNumber {
			continue
		}
		list = append(list, Keyword{name, encodeSchema(n, true)})
	}
	return list
}
