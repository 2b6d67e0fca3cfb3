// Package view sees a schema object together with those that it refers to: what holds of every
// value, which alternatives there are, of which types values may be, and which members and items
// they have.
//
// It makes nothing of that: properties are read by package schema.
package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/shorten"
)

const (
	// maxReferences bounds how many schema objects in a row refer to the next one.
	maxReferences = 100
	// MaxLooks bounds the work on one file: how often a schema object of it is looked at,
	// and a name of a property. Definitions that refer to others twice, which refer to
	// others twice, would take longer than anybody waits.
	MaxLooks = 200_000
)

// A View is a schema object together with the objects that it refers to. All of its nodes
// hold of every value: its own keys come first, then those of $ref, of allOf, and of the
// only alternative of anyOf or oneOf that is not null.
//
// Alternatives may be shared, and nest: there may be far more ways through them than views.
// What is found of a view by way of its alternatives is therefore remembered with it.
type View struct {
	Nodes    []*source.Node
	Paths    []string
	Groups   [][]*View // of anyOf and oneOf: of each group one holds
	more     []*View   // of then, else and dependentSchemas: they hold under a condition
	Nullable bool      // an alternative is null
	Never    bool      // it is false, or one of its parts is: no value is allowed

	gathered map[*source.Node]bool   // false while those that it refers to are gathered
	narrowed map[Types]*View         // by the type of the values, see narrow
	declared *Types                  // memory of declaredTypes
	hinted   *Types                  // memory of hintedTypes
	format   *string                 // memory of CommonFormat
	Hints    *FoundHints             // memory of findHints
	members  *[]member               // memory of membersOf
	required map[string]*source.Node // memory of RequiredNames
}

// Get returns the value of key and its path.
func (v *View) Get(key string) (*source.Node, string) {
	for i, n := range v.Nodes {
		if found := n.Get(key); found != nil {
			return found, source.JoinPath(v.Paths[i], key)
		}
	}
	return nil, ""
}

// Has reports whether one of the keys is there.
func (v *View) Has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { n, _ := v.Get(k); return n != nil })
}

// absorb adds what holds of other to what holds of v.
func (v *View) absorb(other *View) {
	for i, n := range other.Nodes {
		if !slices.Contains(v.Nodes, n) {
			v.Nodes, v.Paths = append(v.Nodes, n), append(v.Paths, other.Paths[i])
		}
	}
	v.Groups, v.more = append(v.Groups, other.Groups...), append(v.more, other.more...)
	v.Nullable, v.Never = v.Nullable || other.Nullable, v.Never || other.Never
}

// Reader looks schema objects up, and what they refer to.
type Reader struct {
	*source.Faults
	*addresses
	Looks int                    // once these are more than maxLooks, nothing more is looked up
	known map[*source.Node]*View // those that are whole
	under map[*source.Node]bool  // those that are being gathered: what comes to one refers to itself
}

// NewReader returns what looks up the schema objects of a file.
func NewReader(found *source.Faults, root *source.Node) *Reader {
	return &Reader{Faults: found, addresses: newAddresses(root), known: map[*source.Node]*View{}, under: map[*source.Node]bool{}}
}

// look counts that a schema object is looked at, and reports whether it may be.
func (r *Reader) look(n *source.Node) bool {
	r.Looks++
	if props := n.Get("properties"); props != nil {
		r.Looks += len(props.Keys)
	}
	return r.Looks <= MaxLooks
}

// NewView returns the view of a schema object. It must not be changed.
func (r *Reader) NewView(n *source.Node, path string) *View {
	if v := r.known[n]; v != nil {
		return v
	}

	v := &View{gathered: make(map[*source.Node]bool)}
	if r.under[n] {
		r.RecordFault(n, path, "refers to itself")
		return v
	}

	r.under[n] = true
	r.gatherKeywords(v, n, path, 0)
	delete(r.under, n)

	r.known[n] = v
	return v
}

// gatherKeywords adds a schema object to v, and what it refers to.
func (r *Reader) gatherKeywords(v *View, n *source.Node, path string, depth int) {
	if n.Kind == source.Bool {
		v.Never = v.Never || n.Text == "false"
		return
	}

	if n.Kind != source.Map {
		r.RecordFault(n, path, "a schema must be a mapping, not %s", n.Kind)
		return
	}

	switch done, known := v.gathered[n]; {
	case known && !done:
		r.RecordFault(n, path, "refers to itself")
		return
	case depth > maxReferences:
		r.RecordFault(n, path, "more than %d references in a row", maxReferences)
		return
	case known || !r.look(n):
		return // once is enough, as what comes first counts
	}
	v.gathered[n] = false
	defer func() { v.gathered[n] = true }()

	v.Nodes, v.Paths = append(v.Nodes, n), append(v.Paths, path)
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref := n.Get(key)
		if ref == nil {
			continue
		}
		if target, to := r.resolveRef(n, ref, source.JoinPath(path, key)); target != nil {
			r.gatherKeywords(v, target, to, depth+1)
		}
	}

	r.eachListed(n, path, func(item *source.Node, at string) { r.gatherKeywords(v, item, at, depth+1) }, "allOf")

	for _, key := range []string{"anyOf", "oneOf"} {
		r.gatherAlternatives(v, n, key, path, depth)
	}

	r.gatherConditions(v, n, path)
}

// eachListed calls do with each schema in the list of a key, if there is one.
func (r *Reader) eachListed(n *source.Node, path string, do func(item *source.Node, at string), key string) {
	list := n.Get(key)
	if list == nil || list.Kind != source.List {
		return // the meta-schema says what is wrong with it
	}
	for i, item := range list.Items {
		do(item, fmt.Sprintf("%s[%d]", source.JoinPath(path, key), i))
	}
}

// gatherAlternatives adds the alternatives of anyOf or oneOf. When all but one of them are
// null, which is how generators write "may be missing", that one holds.
func (r *Reader) gatherAlternatives(v *View, n *source.Node, key, path string, depth int) {
	var chosen []*source.Node
	var at []string
	isNull := func(item *source.Node) bool { t := item.Get("type"); return t != nil && t.Text == "null" }

	r.eachListed(n, path, func(item *source.Node, where string) {
		switch {
		case isNull(item):
			v.Nullable = true
		case item.Kind != source.Bool || item.Text == "true":
			chosen, at = append(chosen, item), append(at, where)
		}
	}, key)

	if len(chosen) == 1 {
		r.gatherKeywords(v, chosen[0], at[0], depth+1)
		return
	}

	group := make([]*View, 0, len(chosen))
	// An alternative that the view holds already says nothing more.
	for i, item := range chosen {
		if v.gathered[item] || r.Looks > MaxLooks {
			continue
		}

		one := r.NewView(item, at[i])
		v.Nullable = v.Nullable || one.Nullable
		group = append(group, one)
	}

	if len(group) > 0 {
		v.Groups = append(v.Groups, group)
	}
}

// gatherConditions adds what holds under a condition: it may speak of properties.
func (r *Reader) gatherConditions(v *View, n *source.Node, path string) {
	var found []*source.Node
	var at []string

	for _, key := range []string{"then", "else"} {
		if item := n.Get(key); item != nil && n.Get("if") != nil {
			found, at = append(found, item), append(at, source.JoinPath(path, key))
		}
	}

	for _, key := range []string{"dependentSchemas", "dependencies"} {
		all := n.Get(key)
		if all == nil || all.Kind != source.Map {
			continue
		}

		for i, item := range all.Items {
			found, at = append(found, item), append(at, source.JoinPath(source.JoinPath(path, key), all.Keys[i].Text))
		}
	}

	// Conditions may speak of the schema object they stand in, which would have no end.
	for i, item := range found {
		if item.Kind == source.Map && !r.under[item] && !v.gathered[item] {
			v.more = append(v.more, r.NewView(item, at[i]))
		}
	}
}

// ReadString returns the string at key, "" when there is none.
func (r *Reader) ReadString(v *View, key string) string {
	n, path := v.Get(key)
	if n == nil {
		return ""
	}
	if n.Kind != source.String {
		r.RecordFault(n, path, "must be a string, not %s", n.Kind)
		return ""
	}
	return n.Text
}

// A Types is a set of the types that JSON values have.
type Types uint8

// The members of type sets. A whole number has the type Whole, any other Fraction.
const (
	Null Types = 1 << iota
	Boolean
	Whole
	Fraction
	String
	Array
	Object

	Number = Whole | Fraction
	All    = Null | Boolean | Number | String | Array | Object
)

// TypesByName are the sets that JSON Schema names.
var TypesByName = map[string]Types{
	"null": Null, "boolean": Boolean, "integer": Whole, "number": Number,
	"string": String, "array": Array, "object": Object,
}

// String names the types of a set.
func (set Types) String() string {
	var names []string
	for _, name := range []string{"string", "number", "integer", "boolean", "array", "object", "null"} {
		if s := TypesByName[name]; set&s == s && !(name == "integer" && set&Number == Number) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// typeOfLiteral returns the type of a value in a schema.
func typeOfLiteral(n *source.Node) Types {
	return [...]Types{source.Null: Null, source.Bool: Boolean, source.Number: Number, source.String: String, source.List: Array, source.Map: Object}[n.Kind]
}

// declaredTypes returns the types that values of v may have by what v says of types and of
// single values; All if it says nothing of them.
func (r *Reader) declaredTypes(v *View) Types {
	if v.declared != nil {
		return *v.declared
	}

	all := All
	v.declared = &all // if it comes to itself, it says nothing more

	for i, n := range v.Nodes {
		all &= r.typesOfNode(n, v.Paths[i])
	}

	for _, group := range v.Groups {
		var any Types
		for _, one := range group {
			any |= r.declaredTypes(one)
		}

		if v.Nullable {
			any |= Null
		}

		all &= any
	}

	if v.Nullable && all != All {
		all |= Null
	}

	v.declared = &all
	return all
}

// typesOfNode returns the types that one schema object allows.
func (r *Reader) typesOfNode(n *source.Node, path string) Types {
	all := All
	if t := n.Get("type"); t != nil {
		all = r.namedTypes(t, source.JoinPath(path, "type"))
	}

	if one := n.Get("const"); one != nil {
		all &= typeOfLiteral(one)
	}

	if list := n.Get("enum"); list != nil && list.Kind == source.List {
		if len(list.Items) == 0 { // as validators have it, though it is hardly meant
			r.Warn(list, source.JoinPath(path, "enum"), "no value fits: the list of those that are allowed is empty")
			return 0
		}

		var any Types
		for _, item := range list.Items {
			any |= typeOfLiteral(item)
		}

		if all&any == 0 {
			r.Warn(list, source.JoinPath(path, "enum"), "no value fits: none of those that are allowed is of the type that is asked for")
			return all
		}

		all &= any
	}

	return all
}

// namedTypes reads a type, or a list of types.
func (r *Reader) namedTypes(t *source.Node, path string) Types {
	names := []*source.Node{t}
	if t.Kind == source.List {
		names = t.Items
	}

	var all Types
	for _, name := range names {
		set, ok := TypesByName[name.Text]
		switch {
		case name.Kind != source.String:
			r.RecordFault(name, path, "a type must be a string, not %s", name.Kind)
		case !ok:
			r.RecordFault(name, path, "unknown type %q; known are string, number, integer, boolean, array, object", source.Clip(name.Text))
		}

		all |= set
	}

	if all == 0 {
		return All // after a fault
	}

	return all
}

// hintedTypes returns the types that the keywords of v are about, 0 if none tells.
func (r *Reader) hintedTypes(v *View) Types {
	if v.hinted == nil {
		all := r.hintsOfTypes(v)
		v.hinted = &all
	}
	return *v.hinted
}

func (r *Reader) hintsOfTypes(v *View) (all Types) {
	switch {
	case v.Has("properties", "additionalProperties", "patternProperties", "required", "propertyNames", "minProperties", "maxProperties",
		"dependentSchemas", "dependentRequired", "unevaluatedProperties"):
		return Object
	case v.Has("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"):
		return Array
	case v.Has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
		return Number
	case v.Has("minLength", "maxLength", "pattern", "format"):
		return String
	}

	// Without keywords of its own, it may be of the types of its alternatives.
	for _, group := range v.Groups {
		for _, one := range group {
			if declared := r.declaredTypes(one); declared != All {
				all |= declared
			} else {
				all |= r.hintedTypes(one)
			}
		}
	}

	return all
}

// TypesOf returns the types that extraction takes values of v to have: those that are
// declared, or else those that its keywords are about; All if nothing tells.
func (r *Reader) TypesOf(v *View) Types {
	all := r.declaredTypes(v)
	if all|Null != All {
		return all
	}
	if hinted := r.hintedTypes(v); hinted != 0 {
		return hinted
	}
	return All
}

// Narrow returns what v says of values of some types: alternatives that are of no such
// type are left out, and the only one that is left holds.
func (r *Reader) Narrow(v *View, to Types) *View {
	if known := v.narrowed[to]; known != nil {
		return known
	}

	out := &View{Nodes: slices.Clone(v.Nodes), Paths: slices.Clone(v.Paths), more: slices.Clone(v.more), Nullable: v.Nullable, Never: v.Never}
	if v.narrowed == nil {
		v.narrowed = map[Types]*View{}
	}
	// The view is noted before it is complete, as it may come to itself.
	v.narrowed[to] = out

	for _, group := range v.Groups {
		var kept []*View
		for _, one := range group {
			if r.TypesOf(one)&to != 0 && !one.Never {
				kept = append(kept, r.Narrow(one, to))
			}
		}

		switch len(kept) {
		case 0:
		case 1:
			out.absorb(kept[0])
		default:
			out.Groups = append(out.Groups, kept)
		}
	}

	return out
}

// Describe joins what alternatives say of themselves, if v says nothing.
func (r *Reader) Describe(v *View) string {
	if text := r.ReadString(v, "description"); text != "" || len(v.Groups) != 1 {
		return text
	}

	var all []string
	for _, one := range v.Groups[0] {
		if text := r.ReadString(one, "description"); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}

	// What many alternatives say is too long for a form that a model fills in.
	const limit = 1000
	return shorten.Text(strings.Join(all, " Or: "), limit)
}

// CommonFormat returns the format of v, or else the one that all its alternatives have.
func (r *Reader) CommonFormat(v *View) string {
	if v.format == nil {
		found := r.formatOf(v)
		v.format = &found
	}
	return *v.format
}

func (r *Reader) formatOf(v *View) string {
	if v.Has("format") {
		return r.ReadString(v, "format")
	}

	for _, group := range v.Groups {
		text := r.CommonFormat(group[0])
		if text != "" && !slices.ContainsFunc(group[1:], func(one *View) bool { return r.CommonFormat(one) != text }) {
			return text
		}
	}
	return ""
}

// EachRest calls do with each schema of values under other names. Views that are seen are
// not gone through again.
func (r *Reader) EachRest(v *View, named bool, seen map[*View]bool, do func(*View)) {
	if seen[v] {
		return
	}
	seen[v] = true

	for i, n := range v.Nodes {
		if patterns := n.Get("patternProperties"); patterns != nil && patterns.Kind == source.Map {
			for j, item := range patterns.Items {
				if one := r.NewView(item, source.JoinPath(source.JoinPath(v.Paths[i], "patternProperties"), patterns.Keys[j].Text)); !one.Never {
					do(one)
				}
			}
		}
		for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
			// Beside named properties, an empty schema allows others without asking for
			// them.
			extra := n.Get(key)
			if extra != nil && extra.Kind == source.Map && (len(extra.Keys) > 0 || !named) {
				do(r.NewView(extra, source.JoinPath(v.Paths[i], key)))
			}
		}
	}

	for _, group := range v.Groups {
		for _, one := range group {
			r.EachRest(one, named, seen, do)
		}
	}
}

// AllowedOf returns the values that v allows.
func AllowedOf(v *View) (list []*source.Node, ok bool) {
	if one, _ := v.Get("const"); one != nil {
		return []*source.Node{one}, true
	}
	enum, _ := v.Get("enum")
	if enum == nil || enum.Kind != source.List {
		return nil, false
	}
	return enum.Items, true
}

// EndsAtOne reports whether no value may be greater than 1.
func EndsAtOne(v *View) bool {
	for _, key := range []string{"maximum", "exclusiveMaximum"} {
		n, _ := v.Get(key)
		if n == nil || n.Kind != source.Number {
			continue
		}
		if most, ok := format.CanonicalNumber(n.Text); ok && format.CompareNumbers(most, "1") <= 0 && format.CompareNumbers(most, "0") > 0 {
			return true
		}
	}
	return false
}

// FoundHints are the hints of a view, and where they stand.
type FoundHints struct {
	First *source.Node // nil if there are none
	Path  string
}
