package hint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/view"
)

// A Reader reads the hints that say where values stand: texts around them, patterns, lines
// and parts of a document.
type Reader struct {
	*view.Reader
	instructions int // of the patterns so far
}

// ReadTexts reads a text or a list of texts.
func (r *Reader) ReadTexts(n *source.Node, path string) []string {
	items := []*source.Node{n}
	if n.Kind == source.List {
		items = n.Items
	}

	if len(items) == 0 {
		r.RecordFault(n, path, "the list is empty")
	}

	var texts []string
	for i, item := range items {
		if item.Kind != source.String && item.Kind != source.Number || strings.TrimSpace(item.Text) == "" {
			r.RecordFault(item, fmt.Sprintf("%s[%d]", path, i), "must be a text, not %s", item.Kind)
			continue
		}
		texts = append(texts, item.Text)
	}

	return texts
}

// ReadPatterns reads a regular expression, or several in order of preference, of a list or not. Lines
// are matched as in a text editor: ^ and $ stand for their ends.
func (r *Reader) ReadPatterns(n *source.Node, path string, ofList bool) []string {
	items := []*source.Node{n}
	if n.Kind == source.List && len(n.Items) > 0 {
		items = n.Items
	}

	var patterns []string
	for i, item := range items {
		at := path
		if n.Kind == source.List {
			at = fmt.Sprintf("%s[%d]", path, i)
		}

		if item.Kind != source.String || item.Text == "" {
			r.RecordFault(item, at, "must be a regular expression, not %s", item.Kind)
			continue
		}

		tree, err := pattern.Parse(item.Text)

		// All patterns of a schema share one bound of instructions.
		if err == nil {
			r.countInstructions(item, at, pattern.Size(tree))
			_, err = pattern.ValueGroups(tree.CapNames()[1:], ofList)
		}

		if err != nil {
			r.RecordFault(item, at, "%v", err)
			continue
		}

		patterns = append(patterns, item.Text)
	}

	return patterns
}

// maxInstructions bounds the compiled patterns of a schema together.
const maxInstructions = 50_000

func (r *Reader) countInstructions(n *source.Node, path string, more int) {
	if r.instructions <= maxInstructions && r.instructions+more > maxInstructions {
		r.RecordFault(n, path, "the patterns of the schema are together too large: more than %d instructions", maxInstructions)
	}
	r.instructions += more
}

// ReadLines reads a range of lines: [from, to), [from] (to the end) or a single
// number.
func (r *Reader) ReadLines(n *source.Node, path string) *Lines {
	return r.readRange(n, path, "line")
}

// readRange reads a range of lines or characters.
func (r *Reader) readRange(n *source.Node, path, what string) *Lines {
	items := n.Items
	if n.Kind != source.List {
		items = []*source.Node{n}
	}

	if len(items) < 1 || len(items) > 2 {
		r.RecordFault(n, path, "must be [from, to], or [from] for all %ss from there", what)
		return nil
	}

	var bounds []int
	for _, item := range items {
		i, err := strconv.Atoi(item.Text)
		if item.Kind != source.Number || err != nil {
			r.RecordFault(item, path, "%s numbers must be whole numbers", what)
			return nil
		}
		bounds = append(bounds, i)
	}

	// A single number is one line or character; the last one has no number behind it.
	l := &Lines{From: bounds[0], To: End}
	switch {
	case len(bounds) == 2 && !(l.From < 0 && bounds[1] == 0):
		l.To = bounds[1]
	case n.Kind != source.List && l.From != -1:
		l.To = l.From + 1
	}

	// Ends of which one counts from the beginning and one from the end cannot be compared
	// here.
	if (l.From < 0) == (l.To < 0) && l.From >= l.To {
		r.RecordFault(n, path, "there are no %ss from %d to %d: the second number is the first %s that is left out", what, l.From, l.To, what)
		return nil
	}

	return l
}

// ReadWithin reads the part of a document to look in.
func (r *Reader) ReadWithin(n *source.Node, path string) *Within {
	if n.Kind != source.Map || len(n.Keys) == 0 {
		r.RecordFault(n, path, "must be a mapping of section, chars, column or row")
		return nil
	}

	w := &Within{}
	for i, key := range n.Keys {
		switch at := source.JoinPath(path, key.Text); key.Text {
		case "section":
			w.Sections = r.ReadPhrases(n.Items[i], at)
		case "chars":
			w.Chars = r.readRange(n.Items[i], at, "character")
		case "column":
			w.Columns = r.ReadPhrases(n.Items[i], at)
		case "row":
			w.Rows = r.ReadPhrases(n.Items[i], at)
		default:
			r.RecordFault(key, at, "unknown place %q; known are section, chars, column, row", source.Clip(key.Text))
		}
	}

	return w
}

// ReadBetween reads the two anchors of a value.
func (r *Reader) ReadBetween(n *source.Node, path string, h *Hints) {
	if n.Kind != source.List || len(n.Items) != 2 {
		r.RecordFault(n, path, "must be [text in front, text behind]; each may be a list")
		return
	}
	h.After, h.Before = r.ReadTexts(n.Items[0], path+"[0]"), r.ReadTexts(n.Items[1], path+"[1]")
	h.Between = true
}

// maxReplacement bounds the text that a match is replaced by, in bytes.
const maxReplacement = 1000

// ReadReplace reads what is replaced by what, in the order of the file.
func (r *Reader) ReadReplace(n *source.Node, path string) []Replacement {
	if n.Kind != source.Map || len(n.Keys) == 0 {
		r.RecordFault(n, path, "must map each regular expression to the text that replaces it")
		return nil
	}

	var list []Replacement
	for i, key := range n.Keys {
		at := source.JoinPath(path, key.Text)
		with := n.Items[i]

		tree, err := pattern.Parse(key.Text)
		switch {
		case err != nil:
			r.RecordFault(key, at, "%v", err)
		case with.Kind != source.String && with.Kind != source.Number && with.Kind != source.Null:
			r.RecordFault(with, at, "must be a text, not %s", with.Kind)
		case len(with.Text) > maxReplacement:
			r.RecordFault(with, at, "the text has %d bytes, of %d at most", len(with.Text), maxReplacement)
		default:
			r.countInstructions(key, at, pattern.Size(tree))
			list = append(list, Replacement{Pattern: key.Text, With: with.Text})
		}
	}

	return list
}

// ReadYes reads a hint that is either on or off.
func (r *Reader) ReadYes(n *source.Node, path string) bool {
	if n.Kind != source.Bool {
		r.RecordFault(n, path, "must be true or false, not %s", n.Kind)
	}
	return n.Text == "true"
}

// CheckPlaces refuses hints that contradict each other.
func (r *Reader) CheckPlaces(n *source.Node, path string) {
	both := func(a, b string) {
		if n.Get(a) != nil && n.Get(b) != nil {
			r.RecordFault(n.Get(b), source.JoinPath(path, b), "%s is given as well; give one of them", a)
		}
	}
	both("between", "after")
	both("between", "before")
	both("lines", "within")
}

// ReadPhrases reads a list of phrases, or a single one.
func (r *Reader) ReadPhrases(n *source.Node, path string) []string {
	if n.Kind == source.String {
		return r.appendPhrase(nil, n, path)
	}

	if n.Kind != source.List || len(n.Items) == 0 {
		r.RecordFault(n, path, "must be a list of phrases")
		return nil
	}

	var list []string
	for i, item := range n.Items {
		list = r.appendPhrase(list, item, fmt.Sprintf("%s[%d]", path, i))
	}

	return list
}

func (r *Reader) appendPhrase(list []string, n *source.Node, path string) []string {
	text := n.Text
	switch {
	case n.Kind != source.String && n.Kind != source.Number:
		r.RecordFault(n, path, "must be a phrase, not %s", n.Kind)
		return list
	case !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }):
		r.RecordFault(n, path, "a phrase must hold a letter or a digit")
		return list
	}
	return append(list, text)
}
