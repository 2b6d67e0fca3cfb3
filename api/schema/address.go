package schema

import (
	"net/url"
	"strings"
)

// baseAddress stands for the address of a schema that has none of its own.
const baseAddress = "mem:///schema.json"

// addresses are where the schema objects of a file are, by the addresses that they give
// themselves: $id, $anchor, and id of drafts before 6.
type addresses struct {
	root  *node
	byURI map[string]*node // an address without fragment, or with the name of an anchor
	bases map[*node]string // of schema objects below another base than the root's
}

func newAddresses(root *node) *addresses {
	a := &addresses{root: root, byURI: map[string]*node{}, bases: map[*node]string{}}
	a.collect(root, baseAddress, keywords)
	return a
}

// collect notes the addresses of a part of the schema, which lies below a base.
func (a *addresses) collect(n *node, base string, as role) {
	if as == data || n.kind != nodeMap && n.kind != nodeList {
		return
	}

	if as == keywords && n.kind == nodeMap {
		base = a.note(n, base)
	}

	if base != baseAddress {
		a.bases[n] = base
	}

	// What stands in hints and in values is no schema, even if it looks like one.
	for i, item := range n.items {
		inner := as
		if n.kind == nodeMap {
			inner = as.roleOf(n.keys[i].text)
		}
		if inner != hints && inner != values {
			a.collect(item, base, inner)
		}
	}
}

// note notes the address of a schema object, and returns the base of its parts.
func (a *addresses) note(n *node, base string) string {
	for _, key := range []string{"$id", "id"} {
		id := n.get(key)
		if id == nil || id.kind != nodeString || n.get("$ref") != nil && key == "id" {
			continue
		}

		uri, fragment, _ := strings.Cut(resolveURI(base, id.text), "#")
		if fragment != "" { // drafts before 2019 had anchors so
			a.byURI[uri+"#"+fragment] = n
			continue
		}

		base, a.byURI[uri] = uri, n
	}

	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name := n.get(key); name != nil && name.kind == nodeString {
			a.byURI[base+"#"+name.text] = n
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
func (r *views) resolveRef(of, ref *node, path string) (*node, string) {
	if ref.kind != nodeString {
		r.recordFault(ref, path, "must be a string, not %s", ref.kind)
		return nil, ""
	}

	base := baseAddress
	if b, ok := r.bases[of]; ok {
		base = b
	}

	uri, fragment, _ := strings.Cut(resolveURI(base, ref.text), "#")
	if n := r.byURI[uri+"#"+fragment]; n != nil && fragment != "" {
		return n, ref.text
	}

	// The file itself has the base address, unless an $id gives it another.
	n := r.byURI[uri]
	if n == nil && uri == baseAddress {
		n = r.root
	}

	if n == nil && strings.Contains(uri, "://json-schema.org/draft") {
		r.warn(ref, path, "schemas of schemas are taken as values of any kind")
		return nil, ""
	}

	if n == nil {
		r.recordFault(ref, path, "only references within the file (#/…) are followed, not %q", clipText(ref.text))
		return nil, ""
	}

	return r.followPointer(n, fragment, ref, path)
}

// followPointer follows a JSON pointer from a schema object.
func (r *views) followPointer(n *node, pointer string, ref *node, path string) (*node, string) {
	at := ""
	if n != r.root {
		at = clipText(ref.text)
	}

	start := n
	for _, token := range strings.Split(pointer, "/")[1:] {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}

		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if n = n.childAt(token); n == nil && start != r.root { // an address within that is none for its author
			return r.followPointer(r.root, pointer, ref, path)
		}

		if n == nil {
			r.recordFault(ref, path, "nothing is at %q", clipText(ref.text))
			return nil, ""
		}

		at = joinPath(at, token)
	}

	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		r.recordFault(ref, path, "nothing is at %q", clipText(ref.text))
		return nil, ""
	}

	return n, at
}
