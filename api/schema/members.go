package schema

import (
	"fmt"
	"maps"
	"slices"
)

// A member is a property of an object, as schema objects describe it.
type member struct {
	name string
	view *view
	node *node
	path string
}

// namesOfAlternatives returns the names, sorted, that some alternative requires and none
// describes, nor v itself.
func (r *views) namesOfAlternatives(v *view) []string {
	names := map[string]bool{}
	for _, group := range v.groups {
		for _, one := range group {
			for name := range r.requiredNames(one) {
				names[name] = true
			}
		}
	}

	// What is described, or may be any other property, needs no field of its own.
	for _, m := range r.membersOf(v) {
		delete(names, m.name)
	}

	if v.has("patternProperties", "additionalProperties") {
		return nil
	}

	return slices.Sorted(maps.Keys(names))
}

// membersOf returns the properties that v names, in the order of the file.
func (r *views) membersOf(v *view) []member {
	if v.members == nil {
		v.members = new([]member) // what comes to itself names nothing more
		*v.members = r.findMembers(v)
	}
	return *v.members
}

func (r *views) findMembers(v *view) []member {
	var list []member

	at := map[string]int{}
	for i, n := range v.nodes {
		props := n.get("properties")
		if props == nil {
			continue
		}

		where := joinPath(v.paths[i], "properties")
		if props.kind != nodeMap {
			r.recordFault(props, where, "must be a mapping, not %s", props.kind)
			continue
		}

		for j, key := range props.keys {
			one := member{name: key.text, node: props.items[j], path: joinPath(where, key.text)}
			one.view = r.newView(one.node, one.path)

			k, ok := at[key.text]
			if !ok {
				at[key.text] = len(list)
				list = append(list, one)
				continue
			}

			// Several schema objects may describe one property; all of them hold.
			both := &view{}
			both.absorb(list[k].view)
			both.absorb(one.view)
			list[k].view = both
		}
	}

	return r.addAlternatives(list, at, v)
}

// addAlternatives adds the properties that alternatives name, and those that are named
// under a condition. What is said of a property whatever the alternative counts first.
func (r *views) addAlternatives(list []member, at map[string]int, v *view) []member {
	always := len(list)
	said := func(k int) bool { return k < always && r.typesOf(list[k].view) != typeAll }
	for _, group := range append(slices.Clone(v.groups), v.more) {
		for _, one := range group {
			for _, m := range r.membersOf(one) {
				k, ok := at[m.name]
				switch {
				case m.view.never:
				case !ok:
					at[m.name] = len(list)
					list = append(list, m)
				case !said(k):
					list[k].view = r.either(list[k].view, m.view)
				}
			}
		}
	}

	return list
}

// either returns the view of a property of which one of two holds.
func (r *views) either(a, b *view) *view {
	if a == b || slices.Equal(a.nodes, b.nodes) && len(a.nodes) > 0 {
		return a
	}

	if len(a.nodes) == 0 && len(a.groups) == 1 {
		if slices.ContainsFunc(a.groups[0], func(one *view) bool { return slices.Equal(one.nodes, b.nodes) }) {
			return a
		}
		return &view{groups: [][]*view{append(slices.Clone(a.groups[0]), b)}, nullable: a.nullable || b.nullable}
	}

	if r.typesOf(a) == typeAll { // it says nothing but a title or a description
		return &view{nodes: a.nodes, paths: a.paths, groups: [][]*view{{b}}, nullable: b.nullable}
	}

	return &view{groups: [][]*view{{a, b}}, nullable: a.nullable || b.nullable}
}

// requiredNames returns the names that are required whatever the alternative, and where
// it is said. It must not be changed.
func (r *views) requiredNames(v *view) map[string]*node {
	if v.required != nil {
		return v.required
	}

	names := map[string]*node{}
	v.required = names // what comes to itself requires nothing more
	for _, n := range v.nodes {
		list := n.get("required")
		if list == nil || list.kind != nodeList {
			continue // the meta-schema says what is wrong with it
		}
		for _, item := range list.items {
			names[item.text] = item
		}
	}

	for _, group := range v.groups {
		of := maps.Clone(r.requiredNames(group[0]))
		for _, one := range group[1:] {
			more := r.requiredNames(one)
			maps.DeleteFunc(of, func(name string, _ *node) bool { return more[name] == nil })
		}
		maps.Copy(names, of)
	}
	return names
}

// positions returns what a list says of its first items, one by one, and of those behind
// them. A list with one schema for the first, as earlier drafts write it, is meant for all.
func (r *views) positions(v *view) (prefix []member, rest member) {
	list, path := v.get("prefixItems")
	items, at := v.get("items")
	if list == nil && items != nil && items.kind == nodeList {
		list, path = items, at
		items, at = v.get("additionalItems")
		if len(list.items) == 1 && (items == nil || items.kind != nodeBool || items.text == "true") {
			return nil, r.memberAt(list.items[0], path+"[0]")
		}
	}

	if items != nil && (items.kind == nodeMap || items.kind == nodeBool && items.text == "false") {
		rest = r.memberAt(items, at)
	}

	if list != nil && list.kind == nodeList {
		for i, item := range list.items {
			prefix = append(prefix, r.memberAt(item, fmt.Sprintf("%s[%d]", path, i)))
		}
	}

	return prefix, rest
}

func (r *views) memberAt(n *node, path string) member {
	return member{view: r.newView(n, path), node: n, path: path}
}

// itemsOf returns the view of all items of a list: its own, or that of its alternatives.
func (r *views) itemsOf(v *view, own member) *view {
	if own.view != nil {
		return own.view
	}

	var all *view
	for _, group := range v.groups {
		for _, one := range group {
			prefix, rest := r.positions(one)
			for _, m := range append(prefix, rest) {
				switch {
				case m.view == nil || m.view.never:
				case all == nil:
					all = m.view
				default:
					all = r.either(all, m.view)
				}
			}
		}
	}

	return all
}
