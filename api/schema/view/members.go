package view

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/schema/source"
)

// A member is a property of an object, as schema objects describe it.
type member struct {
	Name string
	View *View
	Node *source.Node
	Path string
}

// NamesOfAlternatives returns the names, sorted, that some alternative requires and none
// describes, nor v itself.
func (r *Reader) NamesOfAlternatives(v *View) []string {
	names := map[string]bool{}
	for _, group := range v.Groups {
		for _, one := range group {
			for name := range r.RequiredNames(one) {
				names[name] = true
			}
		}
	}

	// What is described, or may be any other property, needs no field of its own.
	for _, m := range r.MembersOf(v) {
		delete(names, m.Name)
	}

	if v.Has("patternProperties", "additionalProperties") {
		return nil
	}

	return slices.Sorted(maps.Keys(names))
}

// MembersOf returns the properties that v names, in the order of the file.
func (r *Reader) MembersOf(v *View) []member {
	if v.members == nil {
		v.members = new([]member) // what comes to itself names nothing more
		*v.members = r.findMembers(v)
	}
	return *v.members
}

func (r *Reader) findMembers(v *View) []member {
	var list []member

	at := map[string]int{}
	for i, n := range v.Nodes {
		props := n.Get("properties")
		if props == nil {
			continue
		}

		where := source.JoinPath(v.Paths[i], "properties")
		if props.Kind != source.Map {
			r.RecordFault(props, where, "must be a mapping, not %s", props.Kind)
			continue
		}

		for j, key := range props.Keys {
			one := member{Name: key.Text, Node: props.Items[j], Path: source.JoinPath(where, key.Text)}
			one.View = r.NewView(one.Node, one.Path)

			k, ok := at[key.Text]
			if !ok {
				at[key.Text] = len(list)
				list = append(list, one)
				continue
			}

			// Several schema objects may describe one property; all of them hold.
			both := &View{}
			both.absorb(list[k].View)
			both.absorb(one.View)
			list[k].View = both
		}
	}

	return r.addAlternatives(list, at, v)
}

// addAlternatives adds the properties that alternatives name, and those that are named
// under a condition. What is said of a property whatever the alternative counts first.
func (r *Reader) addAlternatives(list []member, at map[string]int, v *View) []member {
	always := len(list)
	said := func(k int) bool { return k < always && r.TypesOf(list[k].View) != All }
	for _, group := range append(slices.Clone(v.Groups), v.more) {
		for _, one := range group {
			for _, m := range r.MembersOf(one) {
				k, ok := at[m.Name]
				switch {
				case m.View.Never:
				case !ok:
					at[m.Name] = len(list)
					list = append(list, m)
				case !said(k):
					list[k].View = r.Either(list[k].View, m.View)
				}
			}
		}
	}

	return list
}

// Either returns the view of a property of which one of two holds.
func (r *Reader) Either(a, b *View) *View {
	if a == b || slices.Equal(a.Nodes, b.Nodes) && len(a.Nodes) > 0 {
		return a
	}

	if len(a.Nodes) == 0 && len(a.Groups) == 1 {
		if slices.ContainsFunc(a.Groups[0], func(one *View) bool { return slices.Equal(one.Nodes, b.Nodes) }) {
			return a
		}
		return &View{Groups: [][]*View{append(slices.Clone(a.Groups[0]), b)}, Nullable: a.Nullable || b.Nullable}
	}

	if r.TypesOf(a) == All { // it says nothing but a title or a description
		return &View{Nodes: a.Nodes, Paths: a.Paths, Groups: [][]*View{{b}}, Nullable: b.Nullable}
	}

	return &View{Groups: [][]*View{{a, b}}, Nullable: a.Nullable || b.Nullable}
}

// RequiredNames returns the names that are required whatever the alternative, and where
// it is said. It must not be changed.
func (r *Reader) RequiredNames(v *View) map[string]*source.Node {
	if v.required != nil {
		return v.required
	}

	names := map[string]*source.Node{}
	v.required = names // what comes to itself requires nothing more
	for _, n := range v.Nodes {
		list := n.Get("required")
		if list == nil || list.Kind != source.List {
			continue // the meta-schema says what is wrong with it
		}
		for _, item := range list.Items {
			names[item.Text] = item
		}
	}

	for _, group := range v.Groups {
		of := maps.Clone(r.RequiredNames(group[0]))
		for _, one := range group[1:] {
			more := r.RequiredNames(one)
			maps.DeleteFunc(of, func(name string, _ *source.Node) bool { return more[name] == nil })
		}
		maps.Copy(names, of)
	}
	return names
}

// Positions returns what a list says of its first items, one by one, and of those behind
// them. A list with one schema for the first, as earlier drafts write it, is meant for all.
func (r *Reader) Positions(v *View) (prefix []member, rest member) {
	list, path := v.Get("prefixItems")
	items, at := v.Get("items")
	if list == nil && items != nil && items.Kind == source.List {
		list, path = items, at
		items, at = v.Get("additionalItems")
		if len(list.Items) == 1 && (items == nil || items.Kind != source.Bool || items.Text == "true") {
			return nil, r.memberAt(list.Items[0], path+"[0]")
		}
	}

	if items != nil && (items.Kind == source.Map || items.Kind == source.Bool && items.Text == "false") {
		rest = r.memberAt(items, at)
	}

	if list != nil && list.Kind == source.List {
		for i, item := range list.Items {
			prefix = append(prefix, r.memberAt(item, fmt.Sprintf("%s[%d]", path, i)))
		}
	}

	return prefix, rest
}

func (r *Reader) memberAt(n *source.Node, path string) member {
	return member{View: r.NewView(n, path), Node: n, Path: path}
}

// ItemsOf returns the view of all items of a list: its own, or that of its alternatives.
func (r *Reader) ItemsOf(v *View, own member) *View {
	if own.View != nil {
		return own.View
	}

	var all *View
	for _, group := range v.Groups {
		for _, one := range group {
			prefix, rest := r.Positions(one)
			for _, m := range append(prefix, rest) {
				switch {
				case m.View == nil || m.View.Never:
				case all == nil:
					all = m.View
				default:
					all = r.Either(all, m.View)
				}
			}
		}
	}

	return all
}
