package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/shorten"
)

const (
	// maxReferences bounds how many schema objects in a row refer to the next one.
	maxReferences = 100
	// maxLooks bounds the work on one file: how often a schema object of it is looked at,
	// and a name of a property. Definitions that refer to others twice, which refer to
	// others twice, would take longer than anybody waits.
	maxLooks = 200_000
)

// A view is a schema object together with the objects that it refers to. All of its nodes
// hold of every value: its own keys come first, then those of $ref, of allOf, and of the
// only alternative of anyOf or oneOf that is not null.
//
// Alternatives may be shared, and nest: there may be far more ways through them than views.
// What is found of a view by way of its alternatives is therefore remembered with it.
type view struct {
	nodes    []*node
	paths    []string
	groups   [][]*view // of anyOf and oneOf: of each group one holds
	more     []*view   // of then, else and dependentSchemas: they hold under a condition
	nullable bool      // an alternative is null
	never    bool      // it is false, or one of its parts is: no value is allowed

	gathered map[*node]bool    // false while those that it refers to are gathered
	narrowed map[typeSet]*view // by the type of the values, see narrow
	declared *typeSet          // memory of declaredTypes
	hinted   *typeSet          // memory of hintedTypes
	format   *string           // memory of commonFormat
	hints    *foundHints       // memory of findHints
	members  *[]member         // memory of membersOf
	required map[string]*node  // memory of requiredNames
}

// get returns the value of key and its path.
func (v *view) get(key string) (*node, string) {
	for i, n := range v.nodes {
		if found := n.get(key); found != nil {
			return found, joinPath(v.paths[i], key)
		}
	}
	return nil, ""
}

// has reports whether one of the keys is there.
func (v *view) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { n, _ := v.get(k); return n != nil })
}

// absorb adds what holds of other to what holds of v.
func (v *view) absorb(other *view) {
	for i, n := range other.nodes {
		if !slices.Contains(v.nodes, n) {
			v.nodes, v.paths = append(v.nodes, n), append(v.paths, other.paths[i])
		}
	}
	v.groups, v.more = append(v.groups, other.groups...), append(v.more, other.more...)
	v.nullable, v.never = v.nullable || other.nullable, v.never || other.never
}

// views looks schema objects up, and what they refer to.
type views struct {
	*faults
	*addresses
	looks int             // once these are more than maxLooks, nothing more is looked up
	known map[*node]*view // those that are whole
	under map[*node]bool  // those that are being gathered: what comes to one refers to itself
}

func newViews(found *faults, root *node) *views {
	return &views{faults: found, addresses: newAddresses(root), known: map[*node]*view{}, under: map[*node]bool{}}
}

// look counts that a schema object is looked at, and reports whether it may be.
func (r *views) look(n *node) bool {
	r.looks++
	if props := n.get("properties"); props != nil {
		r.looks += len(props.keys)
	}
	return r.looks <= maxLooks
}

// newView returns the view of a schema object. It must not be changed.
func (r *views) newView(n *node, path string) *view {
	if v := r.known[n]; v != nil {
		return v
	}

	v := &view{gathered: make(map[*node]bool)}
	if r.under[n] {
		r.recordFault(n, path, "refers to itself")
		return v
	}

	r.under[n] = true
	r.gatherKeywords(v, n, path, 0)
	delete(r.under, n)

	r.known[n] = v
	return v
}

// gatherKeywords adds a schema object to v, and what it refers to.
func (r *views) gatherKeywords(v *view, n *node, path string, depth int) {
	if n.kind == nodeBool {
		v.never = v.never || n.text == "false"
		return
	}

	if n.kind != nodeMap {
		r.recordFault(n, path, "a schema must be a mapping, not %s", n.kind)
		return
	}

	switch done, known := v.gathered[n]; {
	case known && !done:
		r.recordFault(n, path, "refers to itself")
		return
	case depth > maxReferences:
		r.recordFault(n, path, "more than %d references in a row", maxReferences)
		return
	case known || !r.look(n):
		return // once is enough, as what comes first counts
	}
	v.gathered[n] = false
	defer func() { v.gathered[n] = true }()

	v.nodes, v.paths = append(v.nodes, n), append(v.paths, path)
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref := n.get(key)
		if ref == nil {
			continue
		}
		if target, to := r.resolveRef(n, ref, joinPath(path, key)); target != nil {
			r.gatherKeywords(v, target, to, depth+1)
		}
	}

	r.eachListed(n, path, func(item *node, at string) { r.gatherKeywords(v, item, at, depth+1) }, "allOf")

	for _, key := range []string{"anyOf", "oneOf"} {
		r.gatherAlternatives(v, n, key, path, depth)
	}

	r.gatherConditions(v, n, path)
}

// eachListed calls do with each schema in the list of a key, if there is one.
func (r *views) eachListed(n *node, path string, do func(item *node, at string), key string) {
	list := n.get(key)
	if list == nil || list.kind != nodeList {
		return // the meta-schema says what is wrong with it
	}
	for i, item := range list.items {
		do(item, fmt.Sprintf("%s[%d]", joinPath(path, key), i))
	}
}

// gatherAlternatives adds the alternatives of anyOf or oneOf. When all but one of them are
// null, which is how generators write "may be missing", that one holds.
func (r *views) gatherAlternatives(v *view, n *node, key, path string, depth int) {
	var chosen []*node
	var at []string
	isNull := func(item *node) bool { t := item.get("type"); return t != nil && t.text == "null" }

	r.eachListed(n, path, func(item *node, where string) {
		switch {
		case isNull(item):
			v.nullable = true
		case item.kind != nodeBool || item.text == "true":
			chosen, at = append(chosen, item), append(at, where)
		}
	}, key)

	if len(chosen) == 1 {
		r.gatherKeywords(v, chosen[0], at[0], depth+1)
		return
	}

	group := make([]*view, 0, len(chosen))
	// An alternative that the view holds already says nothing more.
	for i, item := range chosen {
		if v.gathered[item] || r.looks > maxLooks {
			continue
		}

		one := r.newView(item, at[i])
		v.nullable = v.nullable || one.nullable
		group = append(group, one)
	}

	if len(group) > 0 {
		v.groups = append(v.groups, group)
	}
}

// gatherConditions adds what holds under a condition: it may speak of properties.
func (r *views) gatherConditions(v *view, n *node, path string) {
	var found []*node
	var at []string

	for _, key := range []string{"then", "else"} {
		if item := n.get(key); item != nil && n.get("if") != nil {
			found, at = append(found, item), append(at, joinPath(path, key))
		}
	}

	for _, key := range []string{"dependentSchemas", "dependencies"} {
		all := n.get(key)
		if all == nil || all.kind != nodeMap {
			continue
		}

		for i, item := range all.items {
			found, at = append(found, item), append(at, joinPath(joinPath(path, key), all.keys[i].text))
		}
	}

	// Conditions may speak of the schema object they stand in, which would have no end.
	for i, item := range found {
		if item.kind == nodeMap && !r.under[item] && !v.gathered[item] {
			v.more = append(v.more, r.newView(item, at[i]))
		}
	}
}

// readString returns the string at key, "" when there is none.
func (r *views) readString(v *view, key string) string {
	n, path := v.get(key)
	if n == nil {
		return ""
	}
	if n.kind != nodeString {
		r.recordFault(n, path, "must be a string, not %s", n.kind)
		return ""
	}
	return n.text
}

// A typeSet is a set of the types that JSON values have.
type typeSet uint8

// The members of type sets. A whole number has the type typeWhole, any other typeFraction.
const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeWhole
	typeFraction
	typeString
	typeArray
	typeObject

	typeNumber = typeWhole | typeFraction
	typeAll    = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

// typesByName are the sets that JSON Schema names.
var typesByName = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "integer": typeWhole, "number": typeNumber,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// String names the types of a set.
func (set typeSet) String() string {
	var names []string
	for _, name := range []string{"string", "number", "integer", "boolean", "array", "object", "null"} {
		if s := typesByName[name]; set&s == s && !(name == "integer" && set&typeNumber == typeNumber) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// typeOfLiteral returns the type of a value in a schema.
func typeOfLiteral(n *node) typeSet {
	return [...]typeSet{nodeNull: typeNull, nodeBool: typeBoolean, nodeNumber: typeNumber, nodeString: typeString, nodeList: typeArray, nodeMap: typeObject}[n.kind]
}

// declaredTypes returns the types that values of v may have by what v says of types and of
// single values; typeAll if it says nothing of them.
func (r *views) declaredTypes(v *view) typeSet {
	if v.declared != nil {
		return *v.declared
	}

	all := typeAll
	v.declared = &all // if it comes to itself, it says nothing more

	for i, n := range v.nodes {
		all &= r.typesOfNode(n, v.paths[i])
	}

	for _, group := range v.groups {
		var any typeSet
		for _, one := range group {
			any |= r.declaredTypes(one)
		}

		if v.nullable {
			any |= typeNull
		}

		all &= any
	}

	if v.nullable && all != typeAll {
		all |= typeNull
	}

	v.declared = &all
	return all
}

// typesOfNode returns the types that one schema object allows.
func (r *views) typesOfNode(n *node, path string) typeSet {
	all := typeAll
	if t := n.get("type"); t != nil {
		all = r.namedTypes(t, joinPath(path, "type"))
	}

	if one := n.get("const"); one != nil {
		all &= typeOfLiteral(one)
	}

	if list := n.get("enum"); list != nil && list.kind == nodeList {
		if len(list.items) == 0 { // as validators have it, though it is hardly meant
			r.warn(list, joinPath(path, "enum"), "no value fits: the list of those that are allowed is empty")
			return 0
		}

		var any typeSet
		for _, item := range list.items {
			any |= typeOfLiteral(item)
		}

		if all&any == 0 {
			r.warn(list, joinPath(path, "enum"), "no value fits: none of those that are allowed is of the type that is asked for")
			return all
		}

		all &= any
	}

	return all
}

// namedTypes reads a type, or a list of types.
func (r *views) namedTypes(t *node, path string) typeSet {
	names := []*node{t}
	if t.kind == nodeList {
		names = t.items
	}

	var all typeSet
	for _, name := range names {
		set, ok := typesByName[name.text]
		switch {
		case name.kind != nodeString:
			r.recordFault(name, path, "a type must be a string, not %s", name.kind)
		case !ok:
			r.recordFault(name, path, "unknown type %q; known are string, number, integer, boolean, array, object", clipText(name.text))
		}

		all |= set
	}

	if all == 0 {
		return typeAll // after a fault
	}

	return all
}

// hintedTypes returns the types that the keywords of v are about, 0 if none tells.
func (r *views) hintedTypes(v *view) typeSet {
	if v.hinted == nil {
		all := r.hintsOfTypes(v)
		v.hinted = &all
	}
	return *v.hinted
}

func (r *views) hintsOfTypes(v *view) (all typeSet) {
	switch {
	case v.has("properties", "additionalProperties", "patternProperties", "required", "propertyNames", "minProperties", "maxProperties",
		"dependentSchemas", "dependentRequired", "unevaluatedProperties"):
		return typeObject
	case v.has("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"):
		return typeArray
	case v.has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
		return typeNumber
	case v.has("minLength", "maxLength", "pattern", "format"):
		return typeString
	}

	// Without keywords of its own, it may be of the types of its alternatives.
	for _, group := range v.groups {
		for _, one := range group {
			if declared := r.declaredTypes(one); declared != typeAll {
				all |= declared
			} else {
				all |= r.hintedTypes(one)
			}
		}
	}

	return all
}

// typesOf returns the types that extraction takes values of v to have: those that are
// declared, or else those that its keywords are about; typeAll if nothing tells.
func (r *views) typesOf(v *view) typeSet {
	all := r.declaredTypes(v)
	if all|typeNull != typeAll {
		return all
	}
	if hinted := r.hintedTypes(v); hinted != 0 {
		return hinted
	}
	return typeAll
}

// narrow returns what v says of values of some types: alternatives that are of no such
// type are left out, and the only one that is left holds.
func (r *views) narrow(v *view, to typeSet) *view {
	if known := v.narrowed[to]; known != nil {
		return known
	}

	out := &view{nodes: slices.Clone(v.nodes), paths: slices.Clone(v.paths), more: slices.Clone(v.more), nullable: v.nullable, never: v.never}
	if v.narrowed == nil {
		v.narrowed = map[typeSet]*view{}
	}
	// The view is noted before it is complete, as it may come to itself.
	v.narrowed[to] = out

	for _, group := range v.groups {
		var kept []*view
		for _, one := range group {
			if r.typesOf(one)&to != 0 && !one.never {
				kept = append(kept, r.narrow(one, to))
			}
		}

		switch len(kept) {
		case 0:
		case 1:
			out.absorb(kept[0])
		default:
			out.groups = append(out.groups, kept)
		}
	}

	return out
}

// describe joins what alternatives say of themselves, if v says nothing.
func (r *views) describe(v *view) string {
	if text := r.readString(v, "description"); text != "" || len(v.groups) != 1 {
		return text
	}
	var all []string
	for _, one := range v.groups[0] {
		if text := r.readString(one, "description"); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	// What many alternatives say is too long for a form that a model fills in.
	const limit = 1000
	return shorten.Text(strings.Join(all, " Or: "), limit)
}
