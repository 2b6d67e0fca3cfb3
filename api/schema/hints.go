package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A hintReader reads the hints of a schema.
type hintReader struct {
	*placeReader
	hinted  map[*node]bool   // the hints that were read
	derived map[string]*node // by name of the property
}

// strayHints refuses hints at places where nothing reads them: a hint that is
// ignored would be worse than none.
func (r *hintReader) strayHints(n *node, path string) {
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
			// What is data is not looked at, and shared definitions are read where they are
			// used.
			case "default", "examples", "const", "enum", "$defs", "definitions":
			default:
				r.strayHints(n.items[i], at)
			}
		}
	}
}

// hintNode returns the mapping of hints of v, nil when there is none.
func (r *hintReader) hintNode(v *view) (*node, string) {
	found := r.findHints(v)
	switch {
	case found.first == nil || found.first.kind == nodeNull:
		return nil, ""
	case found.first.kind != nodeMap:
		r.recordFault(found.first, found.path, "hints must be a mapping, not %s", found.first.kind)
		return nil, ""
	}
	return found.first, found.path
}

// foundHints are the hints of a view, and where they stand.
type foundHints struct {
	first *node // nil if there are none
	path  string
}

// findHints returns the first hints of v, those of its alternatives included, and notes
// that the others, which these override, were seen.
func (r *hintReader) findHints(v *view) foundHints {
	if v.hints != nil {
		return *v.hints
	}

	var found foundHints
	v.hints = &found // what comes to itself has no hints that were not seen
	for i, n := range v.nodes {
		if hints := n.get(HintKey); hints != nil {
			r.hinted[hints] = true
			if found.first == nil {
				found = foundHints{first: hints, path: joinPath(v.paths[i], HintKey)}
			}
		}
	}

	for _, group := range v.groups {
		for _, one := range group {
			if of := r.findHints(one); found.first == nil {
				found = of
			}
		}
	}
	return found
}

// topHints reads the hints of the schema as a whole, and returns its key.
func (r *hintReader) topHints(v *view, s *Schema) []string {
	n, path := r.hintNode(v)
	if n == nil {
		return nil
	}

	var key []string
	var match *node

	// A match without a key is a fault that only shows when all hints are read.
	for i, name := range n.keys {
		switch name.text {
		case "key":
			key = r.readKey(n.items[i], joinPath(path, "key"), s)
		case "match":
			match = name
			s.Near = r.readMatch(n.items[i], joinPath(path, "match"))
		case "date_order":
			inheritOrder(s.Properties, r.readDateOrder(n.items[i], joinPath(path, "date_order")))
		case "locale":
			s.Locale, s.Numbers = r.readLocale(n.items[i], joinPath(path, "locale"))
		default:
			r.recordFault(name, joinPath(path, name.text), "unknown hint %q at the top of a schema; known are key, match, date_order and locale", clipText(name.text))
		}
	}

	if match != nil && len(key) == 0 {
		r.recordFault(match, joinPath(path, "match"), "says how keys are compared, but the schema has no key")
	}

	return key
}

// inheritOrder gives an order to the dates of properties that have none of their own.
func inheritOrder(properties []Property, order format.DateOrder) {
	for i := range properties {
		p := &properties[i]
		for _, of := range []*Property{p.Items, p.Rest} {
			if of != nil {
				inheritOrder([]Property{*of}, order) // what lies within is shared
				of.inheritOrder(order)
			}
		}
		inheritOrder(p.Properties, order)
		inheritOrder(p.Prefix, order)
		inheritOrder(p.Options, order)
		p.inheritOrder(order)
	}
}

func (p *Property) inheritOrder(order format.DateOrder) {
	if p.HasDates() {
		p.Hints.DateOrder = cmp.Or(p.Hints.DateOrder, order)
	}
}

// HasDates reports whether values of p are dates, or begin with one.
func (p *Property) HasDates() bool {
	return p.Type == String && (p.Format == Date || p.Format == DateTime)
}

// HasDates reports whether a field of the schema holds dates.
func (s *Schema) HasDates() bool {
	return slices.ContainsFunc(s.fields, func(f Field) bool {
		return f.Property.element().HasDates()
	})
}

// HasNumbers reports whether a field of the schema holds numbers, or objects that do.
func (s *Schema) HasNumbers() bool {
	return slices.ContainsFunc(s.fields, func(f Field) bool { return f.Property.holdsNumbers() })
}

func (p *Property) holdsNumbers() bool {
	return p.Numeric() || p.Items != nil && p.Items.holdsNumbers() || slices.ContainsFunc(p.Properties, func(one Property) bool { return one.holdsNumbers() })
}

// readOrderOf reads the order of a property's dates. The elements of a list have it too.
func (r *hintReader) readOrderOf(n *node, path string, p *Property) format.DateOrder {
	element := p
	if p.Type == Array {
		element = p.Items
	}
	if !element.HasDates() {
		r.recordFault(n, path, "needs a property with dates; %s has none", p.Name)
		return ""
	}
	return r.readDateOrder(n, path)
}

func (r *hintReader) readDateOrder(n *node, path string) format.DateOrder {
	if order := format.DateOrder(n.text); n.kind == nodeString && slices.Contains(format.DateOrders(), order) {
		return order
	}
	r.recordFault(n, path, "must be dmy, mdy or ymd, not %q", clipText(n.text))
	return ""
}

// readLocale reads a language with its region, and returns the order of its dates and the
// style of its numbers.
func (r *hintReader) readLocale(n *node, path string) (format.DateOrder, format.NumberStyle) {
	tag, err := language.Parse(n.text)
	if n.kind != nodeString || err != nil {
		r.recordFault(n, path, "must be a language with its region, such as en-US, not %q", clipText(n.text))
		return "", format.NumberStyle{}
	}
	return dateOrderOf(tag), format.StyleOf(tag)
}

func dateOrderOf(tag language.Tag) format.DateOrder {
	region, _ := tag.Region()
	base, _ := tag.Base()
	switch {
	case slices.Contains([]string{"US", "PH", "FM", "MH", "PW", "GU", "PR", "AS", "VI", "MP"}, region.String()):
		return format.MDY
	case slices.Contains([]string{"zh", "ja", "ko", "hu", "lt", "mn", "sv", "eu"}, base.String()) || region.String() == "CA":
		return format.YMD
	}
	return format.DMY
}

// readMatch reads how keys are compared, and reports whether near ones are equal.
func (r *hintReader) readMatch(n *node, path string) bool {
	if n.kind != nodeString || n.text != "exact" && n.text != "near" {
		r.recordFault(n, path, "must be exact or near, not %s", clipText(n.text))
	}
	return n.text == "near"
}

// readKey reads the names of the key fields; the result is nil only after a fault.
func (r *hintReader) readKey(n *node, path string, s *Schema) []string {
	if n.kind != nodeList {
		r.recordFault(n, path, "must be a list of property names, not %s", n.kind)
		return nil
	}

	// An empty key is no fault, so it is not nil.
	key := []string{}
	fields := flattenFields("", s.Properties, true)

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
		case fields[f].Property.Hints.Derived:
			r.recordFault(item, at, "a derived value cannot be part of the key, as it may be refused")
		case slices.Contains(key, item.text):
			r.recordFault(item, at, "%q is in the key twice", item.text)
		default:
			key = append(key, item.text)
		}
	}

	return key
}

// hintNames are the hints of a property.
var hintNames = []string{
	"labels", "pattern", "lines", "within", "after", "before", "between", "values", "exclude", "replace",
	"number_words", "units", "date_order", "otherwise", "pick", "merge", "given", "join", "write",
	"quoted", "select", "derived",
}

// hintsOfLists are the hints that a list of objects may have.
var hintsOfLists = []string{"merge", "join", "write", "given", "select"}

// HintNames returns the names of the hints that a property may have.
func HintNames() []string { return slices.Clone(hintNames) }

// readHints reads the hints of a property. Those of a list of single values may
// stand with the list or with its items.
func (r *hintReader) readHints(v *view, p *Property) Hints {
	var h Hints
	n, path := r.hintNode(v)
	// An object, and what is always null, has no value of its own: only the hint write fits.
	if n != nil && (p.Type == Object || p.Type == Null) && len(n.keys) == 1 && n.keys[0].text == "write" {
		h.Write = r.readWord(n.items[0], joinPath(path, "write"))
		return h
	}

	if n != nil && p.Type == Object {
		r.recordFault(n, path, "%s is an object; its hints belong to the properties inside it", p.Name)
		return h
	}

	if n != nil {
		r.readHintsOf(n, path, p, &h, false, nil)
	}

	if items, at := v.get("items"); p.Type == Array && items != nil && items.kind == nodeMap && !p.isComposite() {
		if inner, path := r.hintNode(r.newView(items, at)); inner != nil {
			r.readHintsOf(inner, path, p, &h, true, n)
		}
		p.Items.Hints.NumberWords, p.Items.Hints.Units, p.Items.Hints.DateOrder = h.NumberWords, h.Units, h.DateOrder
	}

	return h
}

// readHintsOf reads the mapping n of hints into h. If n stands with the items of a
// list, list is the mapping of the list itself, if it has one.
func (r *hintReader) readHintsOf(n *node, path string, p *Property, h *Hints, inItems bool, list *node) {
	readers := map[string]func(*node, string){
		"labels":       func(n *node, at string) { h.Labels = r.readPhrases(n, at) },
		"pattern":      func(n *node, at string) { h.Patterns = r.readPatterns(n, at, p) },
		"lines":        func(n *node, at string) { h.Lines = r.readLines(n, at) },
		"within":       func(n *node, at string) { h.Within = r.readWithin(n, at) },
		"after":        func(n *node, at string) { h.After = r.readTexts(n, at) },
		"before":       func(n *node, at string) { h.Before = r.readTexts(n, at) },
		"between":      func(n *node, at string) { r.readBetween(n, at, h) },
		"values":       func(n *node, at string) { h.Values = r.readValues(n, at, p) },
		"exclude":      func(n *node, at string) { h.Exclude = r.readTexts(n, at) },
		"replace":      func(n *node, at string) { h.Replace = r.readReplace(n, at) },
		"number_words": func(n *node, at string) { h.NumberWords = r.readNumberWords(n, at, p) },
		"units":        func(n *node, at string) { h.Units = r.readUnits(n, at, p) },
		"date_order":   func(n *node, at string) { h.DateOrder = r.readOrderOf(n, at, p) },
		"otherwise":    func(n *node, at string) { h.Otherwise = r.readOtherwise(n, at) },
		"pick":         func(n *node, at string) { h.Pick = r.readPick(n, at, p) },
		"merge":        func(n *node, at string) { h.Merge = r.readMerge(n, at, p) },
		"given":        func(n *node, at string) { h.Given = r.readGiven(n, at, p) },
		"join":         func(n *node, at string) { h.Join = r.readJoin(n, at, p) },
		"write":        func(n *node, at string) { h.Write = r.readWord(n, at) },
		"quoted":       func(n *node, at string) { h.Quoted = r.readQuoted(n, at, p) },
		"select":       func(n *node, at string) { h.Select = r.readSelect(n, at, p) },
		"derived":      func(n *node, at string) { h.Derived = r.readDerived(n, at, p) },
	}

	for i, key := range n.keys {
		at := joinPath(path, key.text)
		read, ok := readers[key.text]

		switch {
		case !ok:
			r.recordFault(key, at, "unknown hint %q; known are %s", clipText(key.text), strings.Join(hintNames, ", "))
		case !slices.Contains(hintsOfLists, key.text) && p.listsObjects():
			r.recordFault(key, at, "%s is a list of objects; this hint belongs to the properties inside it", p.Name)
		case !slices.Contains(hintsOfLists, key.text) && p.isComposite():
			r.recordFault(key, at, "%s may hold lists or objects, which no rule finds by this hint", p.Name)
		case inItems && (key.text == "pick" || key.text == "merge"):
			r.recordFault(key, at, "this hint is about the list as a whole; it belongs to %s, not to its items", p.Name)
		case list.get(key.text) != nil:
			r.recordFault(key, at, "this hint is given for the list %s as well; give it once", p.Name)
		default:
			read(n.items[i], at)
		}
	}

	// Some hints exclude each other, which only shows when all of them are read.
	r.checkPlaces(n, path)
	r.checkOtherwise(n, path, p, h)
	r.checkDerived(n, path, p, h)
}

// readOtherwise reads how a value is found where the other hints find none.
func (r *hintReader) readOtherwise(n *node, path string) Otherwise {
	if n.kind != nodeString || n.text != string(OtherwiseForm) {
		r.recordFault(n, path, "unknown otherwise %q; the only one known is form", clipText(n.text))
		return ""
	}
	return OtherwiseForm
}

// checkOtherwise refuses to find a value by its form that has none.
func (r *hintReader) checkOtherwise(n *node, path string, p *Property, h *Hints) {
	e := p.element()
	if h.Otherwise != "" && e.Type == String && e.Format == "" && e.Enum == nil && len(h.Patterns)+len(h.Values) == 0 {
		r.recordFault(n.get("otherwise"), joinPath(path, "otherwise"), "is for values of a form, such as dates and what a pattern matches, and %s is any text", p.Name)
	}
}

func (r *hintReader) readNumberWords(n *node, path string, p *Property) bool {
	if !p.element().Numeric() {
		r.recordFault(n, path, "number_words is for numbers, and %s is of type %s", p.Name, p.Type)
	}
	return r.readYes(n, path)
}

// readGiven reads what the program fills in, which has to fit the type of the property.
func (r *hintReader) readGiven(n *node, path string, p *Property) Given {
	g := Given(n.text)
	// Each given needs a type of its own; a list of objects takes rows alone.
	switch {
	case n.kind != nodeString || !g.known():
		r.recordFault(n, path, "unknown given %q; known are number, count, references, rows, rows.count, rows.count.NAME, item.NAME", clipText(n.text))
	case g == GivenReferences && (p.Type != Array || p.Items.Type != String):
		r.recordFault(n, path, "given: references needs a list of texts, and %s is of type %s", p.Name, p.Type)
	case g == GivenRows && !p.listsObjects():
		r.recordFault(n, path, "given: rows needs a list of objects, and %s is of type %s", p.Name, p.Type)
	case strings.HasPrefix(string(g), GivenItem) && p.Type != String:
		r.recordFault(n, path, "given: item.NAME needs a text, and %s is of type %s", p.Name, p.Type)
	case g.IsNumber() && !p.Numeric():
		r.recordFault(n, path, "given: %s needs a number, and %s is of type %s", g, p.Name, p.Type)
	case g != GivenRows && p.listsObjects():
		r.recordFault(n, path, "%s is a list of objects; only rows can be given there", p.Name)
	default:
		return g
	}
	return ""
}

// readQuoted reads whether a text or a date has to stand in a quote.
func (r *hintReader) readQuoted(n *node, path string, p *Property) bool {
	if p.Type != String {
		r.recordFault(n, path, "quoted is for texts and dates, and %s is of type %s", p.Name, p.Type)
		return false
	}
	return r.readYes(n, path)
}

// readSelect reads what the objects of a list are chosen out of.
func (r *hintReader) readSelect(n *node, path string, p *Property) bool {
	byID := p.listsObjects() && slices.ContainsFunc(p.Items.Properties, func(one Property) bool { return one.Name == "id" && one.Type == String })
	switch {
	case n.kind != nodeString || n.text != "documents":
		r.recordFault(n, path, "unknown select %q; the only one known is documents", clipText(n.text))
	case !byID:
		r.recordFault(n, path, "select is for lists of objects that have a text named id, and %s is not such a list", p.Name)
	default:
		return true
	}
	return false
}

// readJoin reads the name of the text by which objects of a list are joined.
func (r *hintReader) readJoin(n *node, path string, p *Property) string {
	if p.Type != Array || p.Items.Type != Object {
		r.recordFault(n, path, "join is for lists of objects, and %s is not one", p.Name)
		return ""
	}
	if !slices.ContainsFunc(p.Items.Properties, func(one Property) bool { return one.Name == n.text && one.Type == String }) {
		r.recordFault(n, path, "the objects of the list have no text named %q, by which they would be joined", clipText(n.text))
		return ""
	}
	return n.text
}

// readWord reads a word that is not empty.
func (r *hintReader) readWord(n *node, path string) string {
	if n.kind != nodeString || strings.TrimSpace(n.text) == "" {
		r.recordFault(n, path, "must be a word, not %s", n.kind)
		return ""
	}
	return n.text
}

func (p *Property) listsObjects() bool {
	return p.Type == Array && (p.Items.Type == Object || p.Items.Type == Array)
}

// isComposite reports whether a single value of p, or of the items of a list, may be a list
// or an object.
func (p *Property) isComposite() bool {
	switch of := p.element(); of.Type {
	case Union:
		return slices.ContainsFunc(of.Options, func(o Property) bool { return o.Type == Array || o.isComposite() })
	case Object, Array, Map, Tuple, Any, Null:
		return true
	default:
		return false
	}
}

// readValues reads the canonical values and their phrases, in the order of the file.
func (r *hintReader) readValues(n *node, path string, p *Property) []Value {
	if n.kind != nodeMap || len(n.items) == 0 {
		r.recordFault(n, path, "must map each value to its phrases")
		return nil
	}

	// The values of a list are those of its elements.
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

func (r *hintReader) readPick(n *node, path string, p *Property) Pick {
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
	MergeUnion:      func(p *Property) bool { return p.Type == Array || p.Type == Map },
	MergeConcat: func(p *Property) bool {
		return p.Type == Array || p.Type == String && !p.Temporal() && p.Enum == nil
	},
}

func (r *hintReader) readMerge(n *node, path string, p *Property) Merge {
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
