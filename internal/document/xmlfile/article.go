package xmlfile

import (
	"strings"
)

// writeArticle writes an article in JATS: its title, who wrote it and where it appeared, its
// abstracts, its text and its references.
func (w *writer) writeArticle(root *node) {
	meta := root.child("front", "front-stub")
	journal := ""
	if meta != nil && meta.name == "front" {
		journal = plainText(find(meta.child("journal-meta"), "journal-title"))
		meta = meta.child("article-meta")
	}

	if meta != nil {
		w.writeFront(meta, journal)
	}

	// Answers and comments are articles within the article.
	for _, part := range root.elementsIn() {
		switch part.name {
		case "body", "back", "floats-group", "floats-wrap":
			w.writeBlocks(part, 2)
		case "sub-article", "response":
			w.writeArticle(part)
		}
	}
}

// find returns the first element within n with one of some names; nil if there is none.
func find(n *node, names ...string) *node {
	if n == nil {
		return nil
	}

	if c := n.child(names...); c != nil {
		return c
	}

	for _, c := range n.elementsIn() {
		if f := find(c, names...); f != nil {
			return f
		}
	}

	return nil
}

// findAll calls visit for the elements within n that have a name.
func findAll(n *node, name string, visit func(*node)) {
	for _, c := range n.elementsIn() {
		if c.name == name {
			visit(c)
		} else {
			findAll(c, name, visit)
		}
	}
}

// writeFront writes what stands before the text of an article.
func (w *writer) writeFront(meta *node, journal string) {
	title := plainText(find(meta, "article-title"))
	if sub := plainText(find(meta, "subtitle")); sub != "" {
		title += ": " + sub
	}
	if w.title == "" {
		w.title = title
	}
	w.heading(1, title)

	line := func(name, value string) {
		if value != "" {
			w.writeParagraph(name + ": " + value)
		}
	}

	line("Authors", strings.Join(authorsOf(meta), "; "))
	line("Journal", journal)
	line("Published", dateOf(meta))

	for _, id := range meta.elementsIn() {
		if id.name == "article-id" && id.attributeOf("pub-id-type") == "doi" {
			line("DOI", plainText(id))
		}
	}

	var words []string
	findAll(meta, "kwd", func(k *node) { words = append(words, plainText(k)) })
	line("Keywords", strings.Join(words, "; "))

	findAll(meta, "aff", func(a *node) { line("Affiliation", plainText(without(a, "label"))) })

	for _, part := range meta.elementsIn() {
		if part.name == "abstract" || part.name == "trans-abstract" {
			if part.child("title") == nil {
				w.heading(2, "Abstract")
			}
			w.writeSection(part, 2)
		}
	}
}

// authorsOf returns the names of those who wrote an article.
func authorsOf(meta *node) (names []string) {
	for _, group := range meta.elementsIn() {
		if group.name != "contrib-group" {
			continue
		}

		for _, c := range group.elementsIn() {
			if kind := c.attributeOf("contrib-type"); c.name != "contrib" || kind != "" && kind != "author" {
				continue
			}
			if name := personName(c, "given-names", "surname", " "); name != "" {
				names = append(names, name)
			} else if name := plainText(c.child("collab", "string-name", "anonymous")); name != "" {
				names = append(names, name)
			}
		}
	}

	return names
}

// personName returns the name in an element, in the order of two of its parts.
func personName(n *node, first, second, between string) string {
	name := n
	if n.name != "name" && n.name != "string-name" {
		if name = find(n, "name", "string-name"); name == nil {
			return ""
		}
	}

	one, other := plainText(name.child(first)), plainText(name.child(second))

	// A name without these parts is one text.
	if one == "" && other == "" {
		return plainText(name)
	}

	return strings.TrimSpace(one + between + other)
}

// dateOf returns when an article was published, as far as it says, in ISO 8601.
func dateOf(meta *node) string {
	best := ""
	for _, c := range meta.elementsIn() {
		if c.name != "pub-date" {
			continue
		}
		if date := isoDate(c); len(date) > len(best) {
			best = date
		}
	}
	return best
}

// isoDate returns a date by its year, month and day.
func isoDate(n *node) string {
	date := []string{plainText(n.child("year"))}
	for _, name := range []string{"month", "day"} {
		part := plainText(n.child(name))
		if part == "" || len(part) > 2 || strings.Trim(part, "0123456789") != "" {
			break
		}
		date = append(date, strings.Repeat("0", 2-len(part))+part)
	}
	return strings.Join(date, "-")
}

// citationOf returns a reference as it is written; one that is only data, as it would be.
func citationOf(ref *node) string {
	c := find(ref, "mixed-citation", "citation", "element-citation", "nlm-citation")
	if c == nil {
		return plainText(without(ref, "label"))
	}
	if hasText(c) {
		return plainText(without(c, "label"))
	}

	// Data is put together in the usual order: authors, the rest, and where it stands.
	var authors, rest []string
	for _, part := range c.elementsIn() {
		switch part.name {
		case "person-group":
			for _, person := range part.elementsIn() {
				if person.name == "name" || person.name == "string-name" {
					authors = append(authors, personName(person, "surname", "given-names", " "))
				} else {
					authors = append(authors, plainText(person))
				}
			}
		case "name", "string-name":
			authors = append(authors, personName(part, "surname", "given-names", " "))
		case "label", "fpage", "lpage", "volume", "issue":
		default:
			rest = append(rest, plainText(part))
		}
	}

	if where := pagesOf(c); where != "" {
		rest = append(rest, where)
	}

	if len(authors) > 0 {
		rest = append([]string{strings.Join(authors, ", ")}, rest...)
	}

	return strings.Join(rest, ". ")
}

// pagesOf returns the volume, the issue and the pages of a reference, such as 12(3):45–67.
func pagesOf(c *node) string {
	where := plainText(c.child("volume"))
	if issue := plainText(c.child("issue")); issue != "" {
		where += "(" + issue + ")"
	}

	if first := plainText(c.child("fpage")); first != "" {
		where += ":" + first
		if last := plainText(c.child("lpage")); last != "" && last != first {
			where += "–" + last
		}
	}

	return strings.TrimPrefix(where, ":")
}

// writeDrawing writes the texts of a drawing, one on a line.
func (w *writer) writeDrawing(root *node) {
	w.title = plainText(root.child("title"))
	w.heading(1, w.title)
	w.writeParagraph(plainText(root.child("desc")))
	w.writeLabels(without(root, "title", "desc"))
}

// writeLabels writes the texts within an element of a drawing.
func (w *writer) writeLabels(n *node) {
	for _, c := range n.elementsIn() {
		if w.stopped() || isHidden(c) {
			continue
		}

		switch c.name {
		case "defs", "style", "script", "metadata", "symbol", "clipPath", "mask", "pattern", "title":
		case "text":
			for _, line := range linesOf(c) {
				w.writeParagraph(squeeze(line))
			}
		case "desc", "foreignObject":
			w.writeBlocks(c, 2)
		default:
			w.writeLabels(c)
		}
	}
}

// isHidden reports whether an element of a drawing does not show.
func isHidden(n *node) bool {
	style := strings.Join(strings.Fields(n.attributeOf("style")), "")
	return n.attributeOf("display") == "none" || n.attributeOf("visibility") == "hidden" || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

// linesOf returns the lines of a text in a drawing: a part with a height of its own begins one.
func linesOf(text *node) []string {
	lines := []string{""}

	var add func(*node)
	add = func(n *node) {
		// Text is a node without a name; only elements can be hidden.
		if n.name != "" && isHidden(n) {
			return
		}

		if n.name == "tspan" && (n.attributeOf("y") != "" || n.attributeOf("dy") != "" && strings.Trim(n.attributeOf("dy"), "0") != "") {
			lines = append(lines, "")
		}

		lines[len(lines)-1] += n.text
		for _, c := range n.children {
			add(c)
		}
	}

	add(text)

	return lines
}
