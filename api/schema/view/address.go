package view

import (
	"net/url"
	"strings"

	"github.com/coditect/mapreduce/api/schema/source"
)

// baseAddress stands for the address of a schema that has none of its own.
const baseAddress = "mem:///schema.json"

// addresses are where the schema objects of a file are, by the addresses that they give
// themselves: $id, $anchor, and id of drafts before 6.
type addresses struct {
	Root  *source.Node
	byURI map[string]*source.Node // an address without fragment, or with the name of an anchor
	bases map[*source.Node]string // of schema objects below another base than the root's
}

func newAddresses(root *source.Node) *addresses {
	a := &addresses{Root: root, byURI: map[string]*source.Node{}, bases: map[*source.Node]string{}}
	a.collect(root, baseAddress, source.Keywords)
	return a
}

// collect notes the addresses of a part of the schema, which lies below a base.
func (a *addresses) collect(n *source.Node, base string, as source.Role) {
	if as == source.Data || n.Kind != source.Map && n.Kind != source.List {
		return
	}

	if as == source.Keywords && n.Kind == source.Map {
		base = a.note(n, base)
	}

	if base != baseAddress {
		a.bases[n] = base
	}

	// What stands in hints and in values is no schema, even if it looks like one.
	for i, item := range n.Items {
		inner := as
		if n.Kind == source.Map {
			inner = as.RoleOf(n.Keys[i].Text)
		}
		if inner != source.Hints && inner != source.Values {
			a.collect(item, base, inner)
		}
	}
}

// note notes the address of a schema object, and returns the base of its parts.
func (a *addresses) note(n *source.Node, base string) string {
	for _, key := range []string{"$id", "id"} {
		id := n.Get(key)
		if id == nil || id.Kind != source.String || n.Get("$ref") != nil && key == "id" {
			continue
		}

		uri, fragment, _ := strings.Cut(resolveURI(base, id.Text), "#")
		if fragment != "" { // drafts before 2019 had anchors so
			a.byURI[uri+"#"+fragment] = n
			continue
		}

		base, a.byURI[uri] = uri, n
	}

	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name := n.Get(key); name != nil && name.Kind == source.String {
			a.byURI[base+"#"+name.Text] = n
		}
	}

	return base
}

// resolveURI returns what a reference means below a base.
func resolveURI(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

// resolveRef follows a reference of a schema object to another one of the file.
func (r *Reader) resolveRef(of, ref *source.Node, path string) (*source.Node, string) {
	if ref.Kind != source.String {
		r.RecordFault(ref, path, "must be a string, not %s", ref.Kind)
		return nil, ""
	}

	base := baseAddress
	if b, ok := r.bases[of]; ok {
		base = b
	}

	uri, fragment, _ := strings.Cut(resolveURI(base, ref.Text), "#")
	if n := r.byURI[uri+"#"+fragment]; n != nil && fragment != "" {
		return n, ref.Text
	}

	// The file itself has the base address, unless an $id gives it another.
	n := r.byURI[uri]
	if n == nil && uri == baseAddress {
		n = r.Root
	}

	if n == nil && strings.Contains(uri, "://json-schema.org/draft") {
		r.Warn(ref, path, "schemas of schemas are taken as values of any kind")
		return nil, ""
	}

	if n == nil {
		r.RecordFault(ref, path, "only references within the file (#/…) are followed, not %q", source.Clip(ref.Text))
		return nil, ""
	}

	return r.followPointer(n, fragment, ref, path)
}

// followPointer follows a JSON pointer from a schema object.
func (r *Reader) followPointer(n *source.Node, pointer string, ref *source.Node, path string) (*source.Node, string) {
	at := ""
	if n != r.Root {
		at = source.Clip(ref.Text)
	}

	start := n
	for _, token := range strings.Split(pointer, "/")[1:] {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}

		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if n = n.ChildAt(token); n == nil && start != r.Root { // an address within that is none for its author
			return r.followPointer(r.Root, pointer, ref, path)
		}

		if n == nil {
			r.RecordFault(ref, path, "nothing is at %q", source.Clip(ref.Text))
			return nil, ""
		}

		at = source.JoinPath(at, token)
	}

	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		r.RecordFault(ref, path, "nothing is at %q", source.Clip(ref.Text))
		return nil, ""
	}

	return n, at
}
