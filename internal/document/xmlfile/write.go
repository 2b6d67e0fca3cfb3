package xmlfile

import (
	"context"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// A writer writes the text of a file.
type writer struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	text   *richtext.Writer
	limits document.Limits
	title  string
	notes  []string
	named  bool                // values among the paragraphs stand behind their names
	place  *mapreduce.Location // of what comes next
	err    error               // the first
	steps  int
}

// stopped reports whether nothing more is to be written.
func (w *writer) stopped() bool {
	if w.steps++; w.steps%1024 == 0 && w.ctx.Err() != nil && w.err == nil {
		w.err = context.Cause(w.ctx)
	}
	if w.err == nil {
		w.err = w.text.Err()
	}
	return w.err != nil
}

// writeRoot writes a file by what its outermost element is.
func (w *writer) writeRoot(root *node) {
	switch {
	case root.name == "svg":
		w.writeDrawing(root)
	case isWorkbook(root):
		w.writeWorkbook(root)
	case root.name == "article" && root.child("front", "body", "front-stub") != nil:
		w.writeArticle(root)
	case isProse(root):
		w.named = true
		if w.title = plainText(root.child("title", "head")); w.title == "" {
			w.title = plainText(find(root, "invention-title", "article-title", "book-title", "titleStmt"))
		}
		w.writeBlocks(root, 1)
	default:
		w.title = plainText(root.child("title"))
		w.writeData(root, 1)
	}
}

// isProse reports whether a file has paragraphs for people to read, and not data alone.
func isProse(root *node) bool {
	paragraphs, left := 0, 20_000
	var look func(n *node)
	look = func(n *node) {
		for _, c := range n.children {
			// The bound keeps a very large file of data from being searched as a whole.
			if left--; left < 0 || paragraphs > 0 {
				return
			}

			if isParagraph(c.name) {
				paragraphs++
			}
			look(c)
		}
	}

	look(root)
	return paragraphs > 0
}

// heading writes a heading, which is the place of what follows.
func (w *writer) heading(level int, title string) {
	if title == "" {
		return
	}
	w.place = &mapreduce.Location{Chapter: richtext.Clip(title)}
	w.text.Heading(level, title, w.place)
}

// writeParagraph writes text on lines of its own.
func (w *writer) writeParagraph(text string) {
	if text = strings.TrimSpace(text); text != "" {
		w.text.Paragraph(text, w.place)
	}
}

// isParagraph reports whether elements called name are paragraphs.
func isParagraph(name string) bool {
	switch name {
	case "p", "P", "para", "simpara", "formalpara", "verse-line", "claim-text":
		return true
	}
	return false
}

// isDropped reports whether elements called name have no text for readers.
func isDropped(name string) bool {
	switch name {
	case "graphic", "inline-graphic", "media", "object-id", "tex-math", "style", "script", "colspec", "col", "colgroup", "img", "anchor", "indexterm":
		return true
	}
	return false
}

// isBlock reports whether elements called name stand apart from the text around them.
func isBlock(name string) bool {
	switch name {
	case "table", "table-wrap", "tables", "tgroup", "informaltable", "list", "itemizedlist", "orderedlist", "variablelist", "ul", "ol", "dl", "def-list",
		"sec", "section", "sect1", "sect2", "sect3", "chapter", "div", "div1", "div2", "fig", "figure", "fig-group", "table-wrap-group", "disp-formula",
		"disp-formula-group", "disp-quote", "blockquote", "boxed-text", "verse-group", "preformat", "programlisting", "code-block", "ref-list", "fn-group",
		"supplementary-material", "statement", "speech":
		return true
	}
	return isParagraph(name)
}

// writeBlocks writes what an element holds: text as paragraphs, and what stands apart.
func (w *writer) writeBlocks(n *node, level int) {
	var line richtext.Runs
	flush := func() {
		w.writeParagraph(squeeze(line.String()))
		line.Reset()
	}

	alone := !isParagraph(n.name) && !hasText(n) // elements without text beside them stand apart
	for _, c := range n.children {
		switch {
		case w.stopped():
			return
		case c.name == "" || !alone && !isBlock(c.name) && !isDropped(c.name):
			addInline(&line, c)
		default:
			flush()
			w.writeBlock(c, level)
		}
	}

	flush()
}

// hasText reports whether an element has text of its own.
func hasText(n *node) bool {
	for _, c := range n.children {
		if c.name == "" && strings.TrimSpace(c.text) != "" {
			return true
		}
	}
	return false
}

// writeBlock writes an element that stands apart.
func (w *writer) writeBlock(n *node, level int) {
	switch n.name {
	case "table", "tgroup", "informaltable":
		w.writeTable(n, "")
	case "table-wrap":
		w.writeTableWrap(n)
	case "list", "itemizedlist", "orderedlist", "ul", "ol":
		w.writeList(n, 0)
	case "def-list", "dl", "variablelist":
		w.writeTerms(n)
	case "fig", "figure", "supplementary-material":
		w.writeFigure(n)
	case "ref-list":
		w.writeReferences(n, level)
	case "disp-formula":
		w.writeParagraph(squeeze(plainText(n)))
	case "preformat", "programlisting", "code-block":
		w.writeParagraph(strings.Trim(rawText(n), "\n"))
	case "title", "head", "heading", "bridgehead":
		w.heading(level, plainText(n))
	default:
		w.writeSection(n, level)
	}
}

// writeSection writes an element with a title as a section, and any other as what it holds.
func (w *writer) writeSection(n *node, level int) {
	if isDropped(n.name) {
		return
	}

	title := n.child("title", "head")
	if w.named && title == nil && !isParagraph(n.name) && !isProse(n) {
		// In a file of prose, an element without any prose of its own is data.
		w.writeData(&node{children: []*node{n}}, level)
		return
	}

	if title == nil || isParagraph(n.name) {
		w.writeBlocks(n, level)
		return
	}

	label := ""
	if l := n.child("label"); l != nil {
		label = plainText(l) + " "
	}

	w.heading(level, strings.TrimSpace(label+plainText(title)))
	w.writeBlocks(without(n, "title", "head", "label"), level+1)
}

// without returns an element without those in it that have some names.
func without(n *node, names ...string) *node {
	rest := &node{name: n.name, attrs: n.attrs}
	for _, c := range n.children {
		dropped := false
		for _, name := range names {
			dropped = dropped || c.name == name
		}

		if !dropped {
			rest.children = append(rest.children, c)
		}
	}

	return rest
}

// plainText returns the text of an element on one line; "" of nil.
func plainText(n *node) string {
	if n == nil {
		return ""
	}
	var line richtext.Runs
	addInline(&line, n)
	return squeeze(line.String())
}

// rawText returns the text of an element with its white space; "" if there is none.
func rawText(n *node) string {
	if n == nil {
		return ""
	}

	var b strings.Builder
	var add func(*node)
	add = func(n *node) {
		b.WriteString(n.text)
		for _, c := range n.children {
			add(c)
		}
	}
	add(n)
	return b.String()
}

// addInline adds the text of a node to a line. White space stands between elements that are
// blocks elsewhere.
func addInline(line *richtext.Runs, n *node) {
	switch {
	case n.name == "":
		line.WriteString(n.text)
		return
	case isDropped(n.name):
		return
	case n.name == "math":
		line.Equation(n.children[0].text)
		return
	case n.name == "sup" || n.name == "superscript":
		line.At(richtext.Raised)
		defer line.At(richtext.OnLine)
	case n.name == "sub" || n.name == "subscript":
		line.At(richtext.Lowered)
		defer line.At(richtext.OnLine)
	case n.name == "break" || n.name == "br" || n.name == "lb" || isBlock(n.name):
		line.WriteString(" ")
		defer line.WriteString(" ")
	}

	children := n.children
	if n.name == "alternatives" || n.name == "inline-formula" && len(n.elementsIn()) > 1 { // forms of the same
		if m := n.child("math", "textual-form"); m != nil {
			children = []*node{m}
		}
	}

	apart := len(children) > 1 && !hasText(n)
	for i, c := range children {
		if apart && i > 0 && c.name != "" && !isFormat(c.name) && !isFormat(children[i-1].name) {
			line.WriteString(" ") // parts of a name, of a date
		}
		addInline(line, c)
	}
}

// isFormat reports whether elements called name only say how text looks or what it refers to, so
// that it is one with the text around it.
func isFormat(name string) bool {
	switch name {
	case "", "bold", "italic", "b", "i", "u", "em", "strong", "underline", "sc", "sup", "sub", "superscript", "subscript", "monospace", "roman",
		"sans-serif", "styled-content", "named-content", "xref", "ext-link", "emphasis", "span", "a", "hi", "tspan", "strike", "overline", "abbrev", "smallcaps", "o":
		return true
	}
	return false
}

// squeeze returns text with single spaces.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

// writeList writes a list at a depth.
func (w *writer) writeList(n *node, depth int) {
	number := 0
	for _, item := range n.elementsIn() {
		if w.stopped() {
			return
		}

		if item.name == "title" {
			w.writeParagraph(plainText(item))
			continue
		}

		number++

		mark := w.markOf(n, item, number)
		for _, c := range item.children {
			switch c.name {
			case "list", "itemizedlist", "orderedlist", "ul", "ol":
				w.writeList(c, depth+1)
			case "label":
			case "table-wrap", "table":
				w.writeBlock(c, 1)
			default:
				if text := plainText(c); text != "" {
					// Only the first text of an item has its mark.
					w.text.Item(depth, mark, text, w.place)
					mark = ""
				}
			}
		}
	}
}

// markOf returns the mark of an item of a list.
func (w *writer) markOf(list, item *node, number int) string {
	if label := plainText(item.child("label")); label != "" {
		return label
	}
	switch kind := list.attributeOf("list-type"); {
	case list.name == "ol", list.name == "orderedlist", kind == "order", kind == "ordered":
		return numbered(number)
	}
	return "-"
}

// numbered returns the mark of a number.
func numbered(n int) string { return richtext.FormatNumber(richtext.Decimal, n) + "." }

// writeTerms writes a list of terms and what they mean, one on a line.
func (w *writer) writeTerms(n *node) {
	term := ""
	for _, c := range n.elementsIn() {
		if w.stopped() {
			return
		}

		switch c.name {
		case "def-item", "varlistentry", "def":
			w.writeTerms(c)
		case "term", "dt":
			term = plainText(c)
		case "title", "def-head", "term-head":
			w.writeParagraph(plainText(c))
		default:
			w.writeParagraph(strings.TrimPrefix(term+": "+plainText(c), ": "))
			term = ""
		}
	}

	// A term without a meaning is kept, too.
	w.writeParagraph(term)
}

// writeFigure writes what stands below a figure.
func (w *writer) writeFigure(n *node) {
	w.writeParagraph(captionOf(n))
	for _, c := range n.elementsIn() {
		if c.name == "p" || c.name == "attrib" {
			w.writeParagraph(plainText(c))
		}
	}
}

// captionOf returns the label of a figure or a table with what its caption says.
func captionOf(n *node) string {
	return squeeze(plainText(n.child("label")) + " " + plainText(n.child("caption", "title")))
}

// writeTableWrap writes a table with its caption above and its notes below.
func (w *writer) writeTableWrap(n *node) {
	tables := []*node{}
	var find func(*node)
	find = func(n *node) {
		for _, c := range n.elementsIn() {
			switch c.name {
			case "table", "tgroup":
				tables = append(tables, c)
			case "alternatives", "informaltable":
				find(c)
			}
		}
	}

	find(n)

	caption := captionOf(n)
	// Only the first table has the caption above it.
	for _, t := range tables {
		w.writeTable(t, caption)
		caption = ""
	}
	w.writeParagraph(caption) // of a table that is a picture

	for _, foot := range n.elementsIn() {
		if foot.name == "table-wrap-foot" {
			for _, c := range foot.elementsIn() {
				w.writeParagraph(plainText(c))
			}
		}
	}
}

// writeReferences writes a list of references, one on a line.
func (w *writer) writeReferences(n *node, level int) {
	title := plainText(n.child("title"))
	if title == "" {
		title = "References"
	}

	w.heading(level, title)

	for _, c := range n.elementsIn() {
		switch {
		case w.stopped():
			return
		case c.name == "ref":
			label := plainText(c.child("label"))
			w.text.Item(0, strings.TrimSpace("- "+inBrackets(label)), citationOf(c), w.place)
		case c.name == "ref-list":
			w.writeReferences(c, level+1)
		case c.name != "title":
			w.writeBlock(c, level+1)
		}
	}
}

// inBrackets returns the label of a reference in brackets.
func inBrackets(label string) string {
	if label = strings.Trim(label, "[]. "); label == "" {
		return ""
	}
	return "[" + label + "]"
}
