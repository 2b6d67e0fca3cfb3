package answer

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// alignObject brings a value into the shape of an object.
func (a *aligner) alignObject(schema Object, v any, path string, depth int) any {
	if inner, ok := readText(v); ok {
		a.note(Text, path)
		v = inner
	}

	named := objectOf(schema, "properties")
	o, isObject := v.(Object)
	if !isObject {
		return a.wrapValue(schema, named, v, path, depth)
	}

	// Keys get the spelling of the schema first: what follows goes by them.
	o = a.renameKeys(named, a.flattenKeys(named, o, path), path)
	if inner, ok := a.unwrap(schema, named, o, path, depth); ok {
		return inner
	}

	if p := a.principalOf(path); p != nil && !sharesKey(named, o) && named.index(p.Key) >= 0 {
		return a.alignMembers(schema, named, a.principalObject(p, o, path), path, depth)
	}
	o = a.wrapMembers(schema, named, o, path)
	return a.alignMembers(schema, named, o, path, depth)
}

// alignMembers brings each member into its shape, leaves out what the schema does not have,
// and adds what may be left out.
func (a *aligner) alignMembers(schema, named, o Object, path string, depth int) any {
	extra, _ := schema.Get("additionalProperties")
	if extra == false && len(o) > 0 && !sharesKey(named, o) {
		return o // it is something else altogether
	}

	out := make(Object, 0, len(o))
	for _, m := range o {
		sub, known := named.Get(m.Key)
		if !known && extra == false {
			a.note(Extra, child(path, m.Key))
			continue
		}
		if !known {
			sub = extra
		}

		out = append(out, Member{m.Key, a.align(sub, m.Value, child(path, m.Key), depth+1)})
	}

	// What is required, and missing or null, is filled in where a hint says with what.
	for _, key := range listOf(schema, "required") {
		name, _ := key.(string)
		at := child(path, name)
		i := out.index(name)
		if i >= 0 && out[i].Value != nil {
			continue
		}
		for _, f := range a.shape.hints.Empty {
			if !f.Place.MatchString(at) {
				continue
			}
			a.note(Missing, at)
			if i < 0 {
				out = append(out, Member{name, f.Value})
			} else {
				out[i].Value = f.Value
			}
			break
		}
	}

	return out
}

// renameKeys gives keys the spelling of the schema: another case, spaces and hyphens do not
// make another key. Keys that could be two are left.
func (a *aligner) renameKeys(named, o Object, path string) Object {
	out := o
	for i, m := range o {
		if named.index(m.Key) >= 0 {
			continue
		}

		var likely []string
		for _, p := range named {
			if likeKey(p.Key, m.Key) && o.index(p.Key) < 0 {
				likely = append(likely, p.Key)
			}
		}

		if len(likely) != 1 || out.index(likely[0]) >= 0 {
			continue
		}
		// The object is copied, since others may hold it.
		out = slices.Clone(out)
		out[i].Key = likely[0]
		a.note(Key, child(path, likely[0]))
	}

	return out
}

// flattenKeys writes objects within each other as one where the schema does: {"a": {"b": 1}} is
// {"a.b": 1}.
func (a *aligner) flattenKeys(named, o Object, path string) Object {
	dotted := func(key string) bool {
		return slices.ContainsFunc(named, func(p Member) bool { return strings.HasPrefix(foldDotted(p.Key), foldDotted(key)+".") })
	}

	// It stays nil as long as nothing is flattened, so that most objects are not copied.
	var out Object
	for i, m := range o {
		sub, ok := m.Value.(Object)
		if !ok || named.index(m.Key) >= 0 || !dotted(m.Key) {
			if out != nil {
				out = append(out, m)
			}
			continue
		}
		if out == nil {
			a.note(Envelope, child(path, m.Key))
			out = slices.Clone(o[:i])
		}

		inner := make(Object, len(sub))
		for j, one := range sub {
			inner[j] = Member{m.Key + "." + one.Key, one.Value}
		}
		out = append(out, a.flattenKeys(named, inner, path)...)
	}

	if out == nil {
		return o
	}
	return out
}

// foldDotted returns a key of several steps as it is compared.
func foldDotted(key string) string {
	steps := strings.Split(key, ".")
	for i, step := range steps {
		steps[i] = foldKey(step)
	}
	return strings.Join(steps, ".")
}

// foldKey returns a key as it is compared: letters and digits alone, in lower case.
func foldKey(key string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, key)
}

// likeKey reports whether two keys are spelled alike, or are one and several of the same.
func likeKey(a, b string) bool {
	a, b = foldKey(a), foldKey(b)
	return a != "" && (a == b || a+"s" == b || b+"s" == a)
}

// sharesKey reports whether an object has any key of the schema.
func sharesKey(named, o Object) bool {
	return slices.ContainsFunc(o, func(m Member) bool { return named.index(m.Key) >= 0 })
}

// unwrap returns what an object holds in the place of the object that was asked for, as
// {"arguments": {…}}: it has no key of the schema, and one of its members has.
func (a *aligner) unwrap(schema, named, o Object, path string, depth int) (any, bool) {
	if len(named) == 0 || sharesKey(named, o) || a.canWrap(schema, named, o, path) {
		return nil, false
	}

	var inside []any
	for _, m := range o {
		v := m.Value
		if inner, ok := readText(v); ok {
			v = inner
		}
		// The attempt has its own list of repairs: those of what is not taken do not count.
		if sub, ok := v.(Object); ok {
			renamed := (&aligner{shape: a.shape, steps: a.steps}).renameKeys(named, sub, "")
			if sharesKey(named, renamed) || a.canWrap(schema, named, sub, path) {
				inside = append(inside, v)
			}
		}

		if list, ok := v.([]any); ok && a.onlyList(schema, named, path) != "" && len(list) > 0 {
			inside = append(inside, v)
		}
	}

	// Of two that could be meant, neither is taken.
	if len(inside) != 1 {
		return nil, false
	}

	a.note(Envelope, path)
	return a.align(schema, inside[0], path, depth+1), true
}

// innerProperty returns the property that members of an object may belong to when the object around
// them is missing: an object that is required, and absent.
func (a *aligner) innerProperty(schema, named, o Object) (name string, properties Object) {
	for _, key := range listOf(schema, "required") {
		one, _ := key.(string)
		sub, _ := named.Get(one)
		if o.index(one) >= 0 {
			continue
		}

		if p := objectOf(a.resolve(sub), "properties"); len(p) > 0 {
			return one, p
		}
	}
	return "", nil
}

// canWrap reports whether an object has members of an object that is missing in it.
func (a *aligner) canWrap(schema, named, o Object, path string) bool {
	_, properties := a.innerProperty(schema, named, o)
	return slices.ContainsFunc(o, func(m Member) bool { return matchesKey(properties, m.Key) }) ||
		a.onlyList(schema, named, path) != "" && a.isElement(schema, named, o, path)
}

func matchesKey(named Object, key string) bool {
	return slices.ContainsFunc(named, func(p Member) bool { return likeKey(p.Key, key) })
}

// wrapMembers puts members into the object that they are missing: {"vendor": …} becomes
// {"fields": {"vendor": …}}; or an object into the list that it is an element of.
func (a *aligner) wrapMembers(schema, named, o Object, path string) Object {
	name, properties := a.innerProperty(schema, named, o)
	if name == "" {
		if list := a.onlyList(schema, named, path); list != "" && !sharesKey(named, o) && a.isElement(schema, named, o, path) {
			a.note(Envelope, path)
			return Object{{list, []any{o}}}
		}
		return o
	}

	var inside, outside Object
	for _, m := range o {
		if named.index(m.Key) < 0 && matchesKey(properties, m.Key) {
			inside = append(inside, m)
		} else {
			outside = append(outside, m)
		}
	}

	if inside == nil {
		return o
	}
	a.note(Envelope, child(path, name))
	return append(Object{{name, inside}}, outside...)
}

// onlyList returns the one list that is required of an object; "" if there are none, or more.
func (a *aligner) onlyList(schema, named Object, path string) string {
	var lists []string
	for _, key := range listOf(schema, "required") {
		name, _ := key.(string)
		sub, _ := named.Get(name)
		if first(typesOf(a.resolve(sub))) == "array" && !a.holdsRemarks(child(path, name)) {
			lists = append(lists, name)
		}
	}

	if len(lists) != 1 {
		return ""
	}
	return lists[0]
}

// holdsRemarks reports whether a list holds nothing but remarks.
func (a *aligner) holdsRemarks(path string) bool {
	return a.shape.hints.Remarks != nil && a.shape.hints.Remarks.MatchString(path)
}

// isElement reports whether an object is one of the elements of the list that is required.
func (a *aligner) isElement(schema, named, o Object, path string) bool {
	list, _ := named.Get(a.onlyList(schema, named, path))
	items, _ := a.resolve(list).Get("items")
	element := a.resolve(items)
	properties := objectOf(element, "properties")
	if slices.ContainsFunc(o, func(m Member) bool { return matchesKey(properties, m.Key) }) {
		return true
	}
	_, inner := a.innerProperty(element, properties, o)
	return slices.ContainsFunc(o, func(m Member) bool { return matchesKey(inner, m.Key) })
}

// wrapValue makes an object of what is none: of the one element of a list, of a list that the
// object is to hold, or of a value alone.
func (a *aligner) wrapValue(schema, named Object, v any, path string, depth int) any {
	if p := a.principalOf(path); p != nil && named.index(p.Key) >= 0 && v != nil {
		return a.alignMembers(schema, named, a.principalObject(p, v, path), path, depth)
	}

	list, isList := v.([]any)
	if !isList {
		return v
	}

	key := a.onlyList(schema, named, path)
	if len(list) == 1 && (key == "" || a.isWhole(named, list[0])) {
		a.note(Single, path)
		return a.align(schema, list[0], path, depth+1)
	}

	if key != "" {
		a.note(Envelope, path)
		return a.alignMembers(schema, named, Object{{key, list}}, path, depth)
	}
	return v
}

// isWhole reports whether a value is the object that was asked for, and no part of it.
func (a *aligner) isWhole(named Object, v any) bool {
	o, ok := v.(Object)
	return ok && slices.ContainsFunc(o, func(m Member) bool { return matchesKey(named, m.Key) })
}

// principalOf returns the hint about the objects at a place.
func (a *aligner) principalOf(path string) *Principal {
	for i, p := range a.shape.hints.Values {
		if p.Place.MatchString(path) {
			return &a.shape.hints.Values[i]
		}
	}
	return nil
}

// principalObject returns the object that a value alone stands for.
func (a *aligner) principalObject(p *Principal, v any, path string) Object {
	a.note(Envelope, path)
	return Object{{p.Key, v}}
}

// alignList brings a value into the shape of a list.
func (a *aligner) alignList(schema Object, v any, path string, depth int) any {
	items, _ := schema.Get("items")
	if inner, ok := readText(v); ok {
		if _, isList := inner.([]any); isList {
			a.note(Text, path)
			v = inner
		}
	}

	list, ok := v.([]any)
	if o, isObject := v.(Object); isObject {
		list, ok = a.listWithin(items, o, path)
	}

	switch {
	case ok:
	case v == nil:
		return v // that there is none is said by hints alone
	default:
		a.note(Single, path)
		list = []any{v}
	}

	out := make([]any, 0, len(list))
	loose := a.holdsRemarks(path)
	// Places are counted by what is kept: that is checked against the schema.
	for _, item := range list {
		for _, one := range a.splitElement(items, item, path) {
			got := a.align(items, one, child(path, strconv.Itoa(len(out))), depth+1)
			if loose && a.countMisfits(items, got, depth+1) > 0 {
				a.note(Extra, path)
				continue
			}
			out = append(out, got)
		}
	}
	return out
}

// listWithin returns the list that an object holds in its place: that of its one member.
func (a *aligner) listWithin(items any, o Object, path string) ([]any, bool) {
	named := objectOf(a.resolve(items), "properties")
	if len(o) != 1 || matchesKey(named, o[0].Key) {
		return nil, false
	}
	list, ok := o[0].Value.([]any)
	if ok {
		a.note(Envelope, path)
	}
	return list, ok
}

// splitElement returns an element whose value is a list, where a single one belongs, as an
// element for each. Each keeps those of the texts that name it, or all.
func (a *aligner) splitElement(items, item any, path string) []any {
	p := a.principalOf(child(path, "0"))
	o, isObject := item.(Object)
	if p == nil || !isObject {
		return []any{item}
	}

	value, _ := o.Get(p.Key)
	values, isList := value.([]any)
	sub, _ := objectOf(a.resolve(items), "properties").Get(p.Key)
	wanted := a.resolve(sub)
	if !isList || slices.Contains(typesOf(wanted), "array") || len(typesOf(wanted)) == 0 || len(values) == 1 {
		return []any{item}
	}

	a.note(Split, path)
	all := make([]any, 0, len(values))
	for _, v := range values {
		one := slices.Clone(o)
		one[one.index(p.Key)].Value = v
		if i := one.index(p.Texts); i >= 0 {
			one[i].Value = textsOf(one[i].Value, v)
		}
		all = append(all, one)
	}
	return all
}

// textsOf returns the texts that hold a value; all of them if none does.
func textsOf(texts, v any) any {
	list, ok := texts.([]any)
	word, isText := scalarText(v)
	if !ok || !isText {
		return texts
	}

	var some []any
	for _, t := range list {
		if text, ok := t.(string); ok && strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			some = append(some, t)
		}
	}

	if some == nil {
		return texts
	}
	return some
}

// readText returns the object or list that a text holds, and nothing else.
func readText(v any) (any, bool) {
	text, ok := v.(string)
	if !ok || !strings.ContainsAny(text, "{[") {
		return nil, false
	}

	found := Find(text)
	if len(found) != 1 || found[0].Unfinished {
		return nil, false
	}
	for _, r := range found[0].Repairs {
		if r.Kind == Prose || r.Kind == Thinking {
			return nil, false
		}
	}
	return found[0].Value, true
}
