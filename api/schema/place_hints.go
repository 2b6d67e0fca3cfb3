package schema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/pattern"
)

// element returns the property of one value: the items of a list, else p.
func (p *Property) element() *Property {
	if p.Type == Array && p.Items != nil {
		return p.Items
	}
	return p
}

// A placeReader reads the hints that say where values stand: texts around them, patterns, lines
// and parts of a document.
type placeReader struct {
	*views
	instructions int // of the patterns so far
}

// readTexts reads a text or a list of texts.
func (r *placeReader) readTexts(n *node, path string) []string {
	items := []*node{n}
	if n.kind == nodeList {
		items = n.items
	}

	if len(items) == 0 {
		r.recordFault(n, path, "the list is empty")
	}

	var texts []string
	for i, item := range items {
		if item.kind != nodeString && item.kind != nodeNumber || strings.TrimSpace(item.text) == "" {
			r.recordFault(item, fmt.Sprintf("%s[%d]", path, i), "must be a text, not %s", item.kind)
			continue
		}
		texts = append(texts, item.text)
	}

	return texts
}

// readPatterns reads a regular expression, or several in order of preference. Lines
// are matched as in a text editor: ^ and $ stand for their ends.
func (r *placeReader) readPatterns(n *node, path string, p *Property) []string {
	items := []*node{n}
	if n.kind == nodeList && len(n.items) > 0 {
		items = n.items
	}

	var patterns []string
	for i, item := range items {
		at := path
		if n.kind == nodeList {
			at = fmt.Sprintf("%s[%d]", path, i)
		}

		if item.kind != nodeString || item.text == "" {
			r.recordFault(item, at, "must be a regular expression, not %s", item.kind)
			continue
		}

		tree, err := pattern.Parse(item.text)

		// All patterns of a schema share one bound of instructions.
		if err == nil {
			r.countInstructions(item, at, pattern.Size(tree))
			_, err = pattern.ValueGroups(tree.CapNames()[1:], p.Type == Array)
		}

		if err != nil {
			r.recordFault(item, at, "%v", err)
			continue
		}

		patterns = append(patterns, item.text)
	}

	return patterns
}

// maxInstructions bounds the compiled patterns of a schema together.
const maxInstructions = 50_000

func (r *placeReader) countInstructions(n *node, path string, more int) {
	if r.instructions <= maxInstructions && r.instructions+more > maxInstructions {
		r.recordFault(n, path, "the patterns of the schema are together too large: more than %d instructions", maxInstructions)
	}
	r.instructions += more
}

// readLines reads a range of lines: [from, to), [from] (to the end) or a single
// number.
func (r *placeReader) readLines(n *node, path string) *Lines { return r.readRange(n, path, "line") }

// readRange reads a range of lines or characters.
func (r *placeReader) readRange(n *node, path, what string) *Lines {
	items := n.items
	if n.kind != nodeList {
		items = []*node{n}
	}

	if len(items) < 1 || len(items) > 2 {
		r.recordFault(n, path, "must be [from, to], or [from] for all %ss from there", what)
		return nil
	}

	var bounds []int
	for _, item := range items {
		i, err := strconv.Atoi(item.text)
		if item.kind != nodeNumber || err != nil {
			r.recordFault(item, path, "%s numbers must be whole numbers", what)
			return nil
		}
		bounds = append(bounds, i)
	}

	// A single number is one line or character; the last one has no number behind it.
	l := &Lines{From: bounds[0], To: End}
	switch {
	case len(bounds) == 2 && !(l.From < 0 && bounds[1] == 0):
		l.To = bounds[1]
	case n.kind != nodeList && l.From != -1:
		l.To = l.From + 1
	}

	// Ends of which one counts from the beginning and one from the end cannot be compared
	// here.
	if (l.From < 0) == (l.To < 0) && l.From >= l.To {
		r.recordFault(n, path, "there are no %ss from %d to %d: the second number is the first %s that is left out", what, l.From, l.To, what)
		return nil
	}

	return l
}

// readWithin reads the part of a document to look in.
func (r *placeReader) readWithin(n *node, path string) *Within {
	if n.kind != nodeMap || len(n.keys) == 0 {
		r.recordFault(n, path, "must be a mapping of section, chars, column or row")
		return nil
	}

	w := &Within{}
	for i, key := range n.keys {
		switch at := joinPath(path, key.text); key.text {
		case "section":
			w.Sections = r.readPhrases(n.items[i], at)
		case "chars":
			w.Chars = r.readRange(n.items[i], at, "character")
		case "column":
			w.Columns = r.readPhrases(n.items[i], at)
		case "row":
			w.Rows = r.readPhrases(n.items[i], at)
		default:
			r.recordFault(key, at, "unknown place %q; known are section, chars, column, row", clipText(key.text))
		}
	}

	return w
}

// readBetween reads the two anchors of a value.
func (r *placeReader) readBetween(n *node, path string, h *Hints) {
	if n.kind != nodeList || len(n.items) != 2 {
		r.recordFault(n, path, "must be [text in front, text behind]; each may be a list")
		return
	}
	h.After, h.Before = r.readTexts(n.items[0], path+"[0]"), r.readTexts(n.items[1], path+"[1]")
	h.Between = true
}

// maxReplacement bounds the text that a match is replaced by, in bytes.
const maxReplacement = 1000

// readReplace reads what is replaced by what, in the order of the file.
func (r *placeReader) readReplace(n *node, path string) []Replacement {
	if n.kind != nodeMap || len(n.keys) == 0 {
		r.recordFault(n, path, "must map each regular expression to the text that replaces it")
		return nil
	}

	var list []Replacement
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		with := n.items[i]

		tree, err := pattern.Parse(key.text)
		switch {
		case err != nil:
			r.recordFault(key, at, "%v", err)
		case with.kind != nodeString && with.kind != nodeNumber && with.kind != nodeNull:
			r.recordFault(with, at, "must be a text, not %s", with.kind)
		case len(with.text) > maxReplacement:
			r.recordFault(with, at, "the text has %d bytes, of %d at most", len(with.text), maxReplacement)
		default:
			r.countInstructions(key, at, pattern.Size(tree))
			list = append(list, Replacement{Pattern: key.text, With: with.text})
		}
	}

	return list
}

// readYes reads a hint that is either on or off.
func (r *placeReader) readYes(n *node, path string) bool {
	if n.kind != nodeBool {
		r.recordFault(n, path, "must be true or false, not %s", n.kind)
	}
	return n.text == "true"
}

// checkPlaces refuses hints that contradict each other.
func (r *placeReader) checkPlaces(n *node, path string) {
	both := func(a, b string) {
		if n.get(a) != nil && n.get(b) != nil {
			r.recordFault(n.get(b), joinPath(path, b), "%s is given as well; give one of them", a)
		}
	}
	both("between", "after")
	both("between", "before")
	both("lines", "within")
}

// readPhrases reads a list of phrases, or a single one.
func (r *placeReader) readPhrases(n *node, path string) []string {
	if n.kind == nodeString {
		return r.appendPhrase(nil, n, path)
	}

	if n.kind != nodeList || len(n.items) == 0 {
		r.recordFault(n, path, "must be a list of phrases")
		return nil
	}

	var list []string
	for i, item := range n.items {
		list = r.appendPhrase(list, item, fmt.Sprintf("%s[%d]", path, i))
	}

	return list
}

func (r *placeReader) appendPhrase(list []string, n *node, path string) []string {
	text := n.text
	switch {
	case n.kind != nodeString && n.kind != nodeNumber:
		r.recordFault(n, path, "must be a phrase, not %s", n.kind)
		return list
	case !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }):
		r.recordFault(n, path, "a phrase must hold a letter or a digit")
		return list
	}
	return append(list, text)
}
