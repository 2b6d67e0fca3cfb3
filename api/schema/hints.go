package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/pattern"
)

// strayHints refuses hints at places where nothing reads them: a hint that is
// ignored would be worse than none.
func (r *reader) strayHints(n *node, path string) {
	switch n.kind {
	case nodeList:
		for i, item := range n.items {
			r.strayHints(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case nodeMap:
		for i, key := range n.keys {
			switch at := joinPath(path, key.text); key.text {
			case HintKey:
				if !r.hinted[n.items[i]] {
					r.recordFault(key, at, "hints have no effect here; they belong to the schema's top or to a property that holds a value")
				}
			case "default", "examples", "const", "enum", "$defs", "definitions":
			default:
				r.strayHints(n.items[i], at)
			}
		}
	}
}

// hintNode returns the mapping of hints of v, nil when there is none.
func (r *reader) hintNode(v *view) (*node, string) {
	n, path := v.get(HintKey)
	if n == nil {
		return nil, ""
	}
	for _, other := range v.nodes { // those of references, overridden by n
		if o := other.get(HintKey); o != nil {
			r.hinted[o] = true
		}
	}
	if n.kind == nodeNull {
		return nil, ""
	}
	if n.kind != nodeMap {
		r.recordFault(n, path, "hints must be a mapping, not %s", n.kind)
		return nil, ""
	}
	return n, path
}

// topHints reads the hints of the schema as a whole, and returns its key.
func (r *reader) topHints(v *view, s *Schema) []string {
	n, path := r.hintNode(v)
	if n == nil {
		return nil
	}
	var key []string
	var match *node
	for i, name := range n.keys {
		switch name.text {
		case "key":
			key = r.readKey(n.items[i], joinPath(path, "key"), s)
		case "match":
			match = name
			s.Near = r.readMatch(n.items[i], joinPath(path, "match"))
		default:
			r.recordFault(name, joinPath(path, name.text), "unknown hint %q at the top of a schema; known are key and match", clipText(name.text))
		}
	}
	if match != nil && len(key) == 0 {
		r.recordFault(match, joinPath(path, "match"), "says how keys are compared, and there is no key")
	}
	return key
}

// readMatch reads how keys are compared, and reports whether near ones are equal.
func (r *reader) readMatch(n *node, path string) bool {
	if n.kind != nodeString || n.text != "exact" && n.text != "near" {
		r.recordFault(n, path, "must be exact or near, not %s", clipText(n.text))
	}
	return n.text == "near"
}

// readKey reads the names of the key fields; the result is nil only after a fault.
func (r *reader) readKey(n *node, path string, s *Schema) []string {
	if n.kind != nodeList {
		r.recordFault(n, path, "must be a list of property names, not %s", n.kind)
		return nil
	}
	key := []string{}
	fields := flattenFields("", s.Properties)
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		f := slices.IndexFunc(fields, func(f Field) bool { return f.Path == item.text })
		switch {
		case item.kind != nodeString:
			r.recordFault(item, at, "must be a property name, not %s", item.kind)
		case f < 0:
			r.recordFault(item, at, "there is no property %q", clipText(item.text))
		case fields[f].Property.Type == Array:
			r.recordFault(item, at, "a list cannot be part of the key")
		case slices.Contains(key, item.text):
			r.recordFault(item, at, "%q is in the key twice", item.text)
		default:
			key = append(key, item.text)
		}
	}
	return key
}

// readHints reads the hints of a property.
func (r *reader) readHints(v *view, p *Property) Hints {
	var h Hints
	n, path := r.hintNode(v)
	if n == nil {
		return h
	}
	if p.Type == Object {
		r.recordFault(n, path, "%s is an object; its hints belong to the properties inside it", p.Name)
		return h
	}
	readers := map[string]func(*node, string){
		"labels":  func(n *node, at string) { h.Labels = r.readPhrases(n, at) },
		"pattern": func(n *node, at string) { h.Pattern = r.readPattern(n, at) },
		"lines":   func(n *node, at string) { h.Lines = r.readLines(n, at) },
		"values":  func(n *node, at string) { h.Values = r.readValues(n, at, p) },
		"pick":    func(n *node, at string) { h.Pick = r.readPick(n, at, p) },
		"merge":   func(n *node, at string) { h.Merge = r.readMerge(n, at, p) },
	}
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		read, ok := readers[key.text]
		switch {
		case !ok:
			r.recordFault(key, at, "unknown hint %q; known are labels, pattern, lines, values, pick, merge", clipText(key.text))
		case key.text != "merge" && p.listsObjects():
			r.recordFault(key, at, "%s is a list of objects; this hint belongs to the properties inside it", p.Name)
		default:
			read(n.items[i], at)
		}
	}
	return h
}

func (p *Property) listsObjects() bool {
	return p.Type == Array && (p.Items.Type == Object || p.Items.Type == Array)
}

// readPhrases reads a list of phrases, or a single one.
func (r *reader) readPhrases(n *node, path string) []string {
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

func (r *reader) appendPhrase(list []string, n *node, path string) []string {
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

// readPattern reads a regular expression. Lines are matched as in a text editor: ^
// and $ stand for their ends.
func (r *reader) readPattern(n *node, path string) string {
	if n.kind != nodeString || n.text == "" {
		r.recordFault(n, path, "must be a regular expression, not %s", n.kind)
		return ""
	}
	tree, err := pattern.Parse(n.text)
	if err != nil {
		r.recordFault(n, path, "%v", err)
		return ""
	}
	r.countInstructions(n, path, pattern.Size(tree))
	return n.text
}

// maxInstructions bounds the compiled patterns of a schema together.
const maxInstructions = 50_000

func (r *reader) countInstructions(n *node, path string, more int) {
	if r.instructions <= maxInstructions && r.instructions+more > maxInstructions {
		r.recordFault(n, path, "the patterns of the schema are together too large: more than %d instructions", maxInstructions)
	}
	r.instructions += more
}

// readLines reads [from, to), [from] (to the end) or a single line number.
func (r *reader) readLines(n *node, path string) *Lines {
	items := n.items
	if n.kind != nodeList {
		items = []*node{n}
	}
	if len(items) < 1 || len(items) > 2 {
		r.recordFault(n, path, "must be [from, to], or [from] for all lines from there")
		return nil
	}
	var bounds []int
	for _, item := range items {
		i, err := strconv.Atoi(item.text)
		if item.kind != nodeNumber || err != nil {
			r.recordFault(item, path, "line numbers must be whole numbers")
			return nil
		}
		bounds = append(bounds, i)
	}
	l := &Lines{From: bounds[0], To: End}
	switch {
	case len(bounds) == 2 && !(l.From < 0 && bounds[1] == 0):
		l.To = bounds[1]
	case n.kind != nodeList && l.From != -1:
		l.To = l.From + 1
	}
	if (l.From < 0) == (l.To < 0) && l.From >= l.To {
		r.recordFault(n, path, "the lines [%d, %d) are none: the second number is the first line that is left out", l.From, l.To)
		return nil
	}
	return l
}

// readValues reads the canonical values and their phrases, in the order of the file.
func (r *reader) readValues(n *node, path string, p *Property) []Value {
	if n.kind != nodeMap || len(n.items) == 0 {
		r.recordFault(n, path, "must map each value to its phrases")
		return nil
	}
	element := p
	if p.Type == Array {
		element = p.Items
	}
	var values []Value
	for i, key := range n.keys {
		at := joinPath(path, key.text)
		v, err := element.Normalize(key.text)
		if err != nil {
			r.recordFault(key, at, "is no value of %s: %v", p.Name, err)
			continue
		}
		values = append(values, Value{Canonical: v, Phrases: r.readPhrases(n.items[i], at)})
	}
	return values
}

func (r *reader) readPick(n *node, path string, p *Property) Pick {
	pick := Pick(n.text)
	known := []Pick{PickFirst, PickLast, PickMax, PickMin, PickLongest, PickAll}
	element := p
	if p.Type == Array {
		element = p.Items
	}
	switch {
	case n.kind != nodeString || !slices.Contains(known, pick):
		r.recordFault(n, path, "unknown pick %q; known are first, last, max, min, longest, all", clipText(n.text))
	case pick == PickAll && p.Type != Array:
		r.recordFault(n, path, "pick all needs a property of type array, %s is of type %s", p.Name, p.Type)
	case (pick == PickMax || pick == PickMin) && !element.isOrdered():
		r.recordFault(n, path, "pick %s needs numbers or dates, %s is of type %s", pick, p.Name, p.Type)
	default:
		return pick
	}
	return ""
}

// isOrdered reports whether values of p have a smallest and a largest.
func (p *Property) isOrdered() bool { return p.Numeric() || p.Temporal() }

// fits tells for each merge strategy which properties it can merge.
var fits = map[Merge]func(*Property) bool{
	MergeVote:       func(*Property) bool { return true },
	MergeFirst:      func(*Property) bool { return true },
	MergeLatest:     func(*Property) bool { return true },
	MergeConfidence: func(*Property) bool { return true },
	MergeLongest:    func(p *Property) bool { return p.Type == Array || p.Type == String && !p.Temporal() },
	MergeMax:        (*Property).isOrdered,
	MergeMin:        (*Property).isOrdered,
	MergeSum:        (*Property).Numeric,
	MergeUnion:      func(p *Property) bool { return p.Type == Array },
	MergeConcat: func(p *Property) bool {
		return p.Type == Array || p.Type == String && !p.Temporal() && p.Enum == nil
	},
}

func (r *reader) readMerge(n *node, path string, p *Property) Merge {
	m := Merge(n.text)
	fit, ok := fits[m]
	switch {
	case n.kind != nodeString || !ok:
		names := slices.Sorted(maps.Keys(fits))
		r.recordFault(n, path, "unknown merge %q; known are %s", clipText(n.text), joinNames(names))
	case !fit(p):
		r.recordFault(n, path, "merge %s does not fit %s, which is of type %s", m, p.Name, p.Type)
	default:
		return m
	}
	return ""
}

func joinNames[T ~string](names []T) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return strings.Join(list, ", ")
}
