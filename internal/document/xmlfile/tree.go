package xmlfile

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// maxNodes bounds the elements and runs of text of a file.
const maxNodes = 2_000_000

// A node is an element, or a run of text.
type node struct {
	name     string // of an element, without its prefix; "" of text
	text     string // of a run
	attrs    []xml.Attr
	children []*node
}

// attributeOf returns an attribute of an element by its name without prefix, or "".
func (n *node) attributeOf(name string) string {
	for _, a := range n.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// child returns the first of the elements in n that has one of some names; nil if there is none.
func (n *node) child(names ...string) *node {
	if n == nil {
		return nil
	}

	for _, name := range names {
		for _, c := range n.children {
			if c.name == name {
				return c
			}
		}
	}

	return nil
}

// elementsIn returns the elements in n.
func (n *node) elementsIn() []*node {
	var all []*node
	for _, c := range n.children {
		if c.name != "" {
			all = append(all, c)
		}
	}
	return all
}

// A treeReader reads a file.
type treeReader struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	xml   *xmlread.Decoder
	nodes int
}

// readTree returns the outermost element of a file. The error is a *xml.SyntaxError if the file is
// not well-formed, and a document.RefusedError if it is beyond its limits.
func readTree(ctx context.Context, content string, entities map[string]string, limits document.Limits) (*node, error) {
	r := &treeReader{ctx: ctx, xml: xmlread.NewText(strings.NewReader(content), limits, entities)}
	var root *node
	err := r.xml.Document(func(e xml.StartElement) (err error) {
		root, err = r.element(e)
		return err
	})
	if err != nil {
		return nil, err
	}

	for { // what stands behind the outermost element has to be XML, too
		if _, err := r.xml.Next(); errors.Is(err, io.EOF) {
			return root, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// count counts a node.
func (r *treeReader) count() error {
	if r.nodes++; r.nodes > maxNodes {
		return document.Refuse("more than %d elements", maxNodes)
	}
	if r.nodes%1024 == 0 && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// element reads the element whose start was the last token.
func (r *treeReader) element(e xml.StartElement) (*node, error) {
	if err := r.count(); err != nil {
		return nil, err
	}

	if e.Name.Local == "math" && strings.Contains(e.Name.Space, "MathML") {
		formula, err := equation.ReadMathML(r.xml, e)
		return &node{name: "math", children: []*node{{text: formula}}}, err
	}

	n := &node{name: e.Name.Local}
	for _, a := range e.Attr {
		if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" && a.Name.Local != "schemaLocation" {
			n.attrs = append(n.attrs, a)
		}
	}

	var full error

	// The callback for text cannot return an error, so it is kept here for the next
	// element.
	err := r.xml.Each(func(e xml.StartElement) error {
		if full != nil {
			return full
		}
		c, err := r.element(e)
		n.children = append(n.children, c)
		return err
	}, func(s string) {
		if full = cmp.Or(full, r.count()); full == nil {
			n.children = append(n.children, &node{text: s})
		}
	})

	raiseMarks(n.children)
	return n, cmp.Or(full, err)
}
