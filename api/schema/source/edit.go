package source

import (
	"maps"
	"slices"
	"strconv"
)

// ChildAt returns the value at one token of a JSON pointer.
func (n *Node) ChildAt(token string) *Node {
	if n.Kind == List {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i]
		}
		return nil
	}
	return n.Get(token)
}

// With returns n with one more key.
func (n *Node) With(key string, value *Node) *Node {
	out := *n
	out.Keys = append(slices.Clip(n.Keys), &Node{Kind: String, Line: value.Line, Col: value.Col, Text: key})
	out.Items = append(slices.Clip(n.Items), value)
	out.index = make(map[string]int, len(n.index)+1)
	maps.Copy(out.index, n.index)
	out.index[key] = len(out.Items) - 1
	return &out
}

// Pick returns a mapping or a list with the items alone that a function keeps, which is given the
// key as well; that is nil in lists.
func (n *Node) Pick(keep func(key, item *Node) bool) *Node {
	out := &Node{Kind: n.Kind, Line: n.Line, Col: n.Col, index: make(map[string]int)}
	for i, item := range n.Items {
		var key *Node
		if n.Kind == Map {
			key = n.Keys[i]
		}
		if !keep(key, item) {
			continue
		}

		if key != nil {
			out.index[key.Text] = len(out.Keys)
			out.Keys = append(out.Keys, key)
		}
		out.Items = append(out.Items, item)
	}
	return out
}

// Replace returns a mapping with another value under a key that it has.
func (n *Node) Replace(key string, value *Node) *Node {
	out := *n
	out.Items = slices.Clone(n.Items)
	out.Items[n.index[key]] = value
	return &out
}

// PartBeyond returns the first mapping or boolean of a tree that has most before it; nil if there is none.
func (n *Node) PartBeyond(most int) *Node {
	seen := 0
	var visit func(n *Node) *Node
	visit = func(n *Node) *Node {
		if n.Kind == Map || n.Kind == Bool {
			if seen++; seen > most {
				return n
			}
		}

		for _, item := range n.Items {
			if beyond := visit(item); beyond != nil {
				return beyond
			}
		}
		return nil
	}
	return visit(n)
}

// setKey adds a key that a mapping does not have.
func (n *Node) setKey(key string, value *Node) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[key] = len(n.Keys)
	n.Keys = append(n.Keys, &Node{Kind: String, Text: key, Line: n.Line, Col: n.Col})
	n.Items = append(n.Items, value)
}

// AddLocale adds the hint locale to a schema that has none.
func (n *Node) AddLocale(locale string) {
	if n.Kind != Map {
		return
	}

	hints := n.Get(HintKey)
	if hints == nil {
		hints = &Node{Kind: Map, Line: n.Line, Col: n.Col}
		n.setKey(HintKey, hints)
	}

	if hints.Kind == Map && hints.Get("locale") == nil {
		hints.setKey("locale", &Node{Kind: String, Text: locale, Line: n.Line, Col: n.Col})
	}
}
