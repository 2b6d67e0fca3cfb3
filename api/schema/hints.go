package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/view"
)

// A hintReader reads the hints of a schema.
type hintReader struct {
	*hint.Reader
	hinted  map[*source.Node]bool   // the hints that were read
	derived map[string]*source.Node // by name of the property
}

// strayHints refuses hints at places where nothing reads them: a hint that is
// ignored would be worse than none.
func (r *hintReader) strayHints(n *source.Node, path string) {
	switch n.Kind {
	case source.List:
		for i, item := range n.Items {
			r.strayHints(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case source.Map:
		for i, key := range n.Keys {
			switch at := source.JoinPath(path, key.Text); key.Text {
			case source.HintKey:
				if !r.hinted[n.Items[i]] {
					r.RecordFault(key, at, "hints have no effect here; they belong to the schema's top or to a property that holds a value")
				}
			// What is data is not looked at, and shared definitions are read where they are
			// used.
			case "default", "examples", "const", "enum", "$defs", "definitions":
			default:
				r.strayHints(n.Items[i], at)
			}
		}
	}
}

// hintNode returns the mapping of hints of v, nil when there is none.
func (r *hintReader) hintNode(v *view.View) (*source.Node, string) {
	found := r.findHints(v)
	switch {
	case found.First == nil || found.First.Kind == source.Null:
		return nil, ""
	case found.First.Kind != source.Map:
		r.RecordFault(found.First, found.Path, "hints must be a mapping, not %s", found.First.Kind)
		return nil, ""
	}
	return found.First, found.Path
}

// findHints returns the first hints of v, those of its alternatives included, and notes
// that the others, which these override, were seen.
func (r *hintReader) findHints(v *view.View) view.FoundHints {
	if v.Hints != nil {
		return *v.Hints
	}

	var found view.FoundHints
	v.Hints = &found // what comes to itself has no hints that were not seen
	for i, n := range v.Nodes {
		if hints := n.Get(source.HintKey); hints != nil {
			r.hinted[hints] = true
			if found.First == nil {
				found = view.FoundHints{First: hints, Path: source.JoinPath(v.Paths[i], source.HintKey)}
			}
		}
	}

	for _, group := range v.Groups {
		for _, one := range group {
			if of := r.findHints(one); found.First == nil {
				found = of
			}
		}
	}
	return found
}

// topHints reads the hints of the schema as a whole, and returns its key.
func (r *hintReader) topHints(v *view.View, s *Schema) []string {
	n, path := r.hintNode(v)
	if n == nil {
		return nil
	}

	var key []string
	var match *source.Node

	// A match without a key is a fault that only shows when all hints are read.
	for i, name := range n.Keys {
		switch name.Text {
		case "key":
			key = r.readKey(n.Items[i], source.JoinPath(path, "key"), s)
		case "match":
			match = name
			s.Near = r.readMatch(n.Items[i], source.JoinPath(path, "match"))
		case "date_order":
			inheritOrder(s.Properties, r.readDateOrder(n.Items[i], source.JoinPath(path, "date_order")))
		case "locale":
			s.Locale, s.Numbers = r.readLocale(n.Items[i], source.JoinPath(path, "locale"))
		default:
			r.RecordFault(name, source.JoinPath(path, name.Text), "unknown hint %q at the top of a schema; known are key, match, date_order and locale", source.Clip(name.Text))
		}
	}

	if match != nil && len(key) == 0 {
		r.RecordFault(match, source.JoinPath(path, "match"), "says how keys are compared, but the schema has no key")
	}

	return key
}

// inheritOrder gives an order to the dates of properties that have none of their own, and of
// what lies within them.
func inheritOrder(properties []Property, order calendar.DateOrder) {
	for i := range properties {
		p := &properties[i]
		for _, of := range []*Property{p.Items, p.Rest} {
			if of != nil {
				inheritOrder([]Property{*of}, order) // what lies within is shared
				inheritOwn(of, order)
			}
		}
		inheritOrder(p.Properties, order)
		inheritOrder(p.Prefix, order)
		inheritOrder(p.Options, order)
		inheritOwn(p, order)
	}
}

func inheritOwn(p *Property, order calendar.DateOrder) {
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
func (r *hintReader) readOrderOf(n *source.Node, path string, p *Property) calendar.DateOrder {
	element := p
	if p.Type == Array {
		element = p.Items
	}
	if !element.HasDates() {
		r.RecordFault(n, path, "needs a property with dates; %s has none", p.Name)
		return ""
	}
	return r.readDateOrder(n, path)
}

func (r *hintReader) readDateOrder(n *source.Node, path string) calendar.DateOrder {
	if order := calendar.DateOrder(n.Text); n.Kind == source.String && slices.Contains(calendar.DateOrders(), order) {
		return order
	}
	r.RecordFault(n, path, "must be dmy, mdy or ymd, not %q", source.Clip(n.Text))
	return ""
}

// readLocale reads a language with its region, and returns the order of its dates and the
// style of its numbers.
func (r *hintReader) readLocale(n *source.Node, path string) (calendar.DateOrder, format.NumberStyle) {
	tag, err := language.Parse(n.Text)
	if n.Kind != source.String || err != nil {
		r.RecordFault(n, path, "must be a language with its region, such as en-US, not %q", source.Clip(n.Text))
		return "", format.NumberStyle{}
	}
	return dateOrderOf(tag), format.StyleOf(tag)
}

func dateOrderOf(tag language.Tag) calendar.DateOrder {
	region, _ := tag.Region()
	base, _ := tag.Base()
	switch {
	case slices.Contains([]string{"US", "PH", "FM", "MH", "PW", "GU", "PR", "AS", "VI", "MP"}, region.String()):
		return calendar.MDY
	case slices.Contains([]string{"zh", "ja", "ko", "hu", "lt", "mn", "sv", "eu"}, base.String()) || region.String() == "CA":
		return calendar.YMD
	}
	return calendar.DMY
}

// readMatch reads how keys are compared, and reports whether near ones are equal.
func (r *hintReader) readMatch(n *source.Node, path string) bool {
	if n.Kind != source.String || n.Text != "exact" && n.Text != "near" {
		r.RecordFault(n, path, "must be exact or near, not %s", source.Clip(n.Text))
	}
	return n.Text == "near"
}

// readKey reads the names of the key fields; the result is nil only after a fault.
func (r *hintReader) readKey(n *source.Node, path string, s *Schema) []string {
	if n.Kind != source.List {
		r.RecordFault(n, path, "must be a list of property names, not %s", n.Kind)
		return nil
	}

	// An empty key is no fault, so it is not nil.
	key := []string{}
	fields := flattenFields("", s.Properties, true)

	for i, item := range n.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		f := slices.IndexFunc(fields, func(f Field) bool { return f.Path == item.Text })

		switch {
		case item.Kind != source.String:
			r.RecordFault(item, at, "must be a property name, not %s", item.Kind)
		case f < 0:
			r.RecordFault(item, at, "there is no property %q", source.Clip(item.Text))
		case fields[f].Property.Type == Array:
			r.RecordFault(item, at, "a list cannot be part of the key")
		case fields[f].Property.Hints.Derived:
			r.RecordFault(item, at, "a derived value cannot be part of the key, as it may be refused")
		case slices.Contains(key, item.Text):
			r.RecordFault(item, at, "%q is in the key twice", item.Text)
		default:
			key = append(key, item.Text)
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
func (r *hintReader) readHints(v *view.View, p *Property) hint.Hints {
	var h hint.Hints
	n, path := r.hintNode(v)
	// An object, and what is always null, has no value of its own: only the hint write fits.
	if n != nil && (p.Type == Object || p.Type == Null) && len(n.Keys) == 1 && n.Keys[0].Text == "write" {
		h.Write = r.readWord(n.Items[0], source.JoinPath(path, "write"))
		return h
	}

	if n != nil && p.Type == Object {
		r.RecordFault(n, path, "%s is an object; its hints belong to the properties inside it", p.Name)
		return h
	}

	if n != nil {
		r.readHintsOf(n, path, p, &h, false, nil)
	}

	if items, at := v.Get("items"); p.Type == Array && items != nil && items.Kind == source.Map && !p.isComposite() {
		if inner, path := r.hintNode(r.NewView(items, at)); inner != nil {
			r.readHintsOf(inner, path, p, &h, true, n)
		}
		p.Items.Hints.NumberWords, p.Items.Hints.Units, p.Items.Hints.DateOrder = h.NumberWords, h.Units, h.DateOrder
	}

	return h
}

// readHintsOf reads the mapping n of hints into h. If n stands with the items of a
// list, list is the mapping of the list itself, if it has one.
func (r *hintReader) readHintsOf(n *source.Node, path string, p *Property, h *hint.Hints, inItems bool, list *source.Node) {
	readers := map[string]func(*source.Node, string){
		"labels":       func(n *source.Node, at string) { h.Labels = r.ReadPhrases(n, at) },
		"pattern":      func(n *source.Node, at string) { h.Patterns = r.ReadPatterns(n, at, p.Type == Array) },
		"lines":        func(n *source.Node, at string) { h.Lines = r.ReadLines(n, at) },
		"within":       func(n *source.Node, at string) { h.Within = r.ReadWithin(n, at) },
		"after":        func(n *source.Node, at string) { h.After = r.ReadTexts(n, at) },
		"before":       func(n *source.Node, at string) { h.Before = r.ReadTexts(n, at) },
		"between":      func(n *source.Node, at string) { r.ReadBetween(n, at, h) },
		"values":       func(n *source.Node, at string) { h.Values = r.readValues(n, at, p) },
		"exclude":      func(n *source.Node, at string) { h.Exclude = r.ReadTexts(n, at) },
		"replace":      func(n *source.Node, at string) { h.Replace = r.ReadReplace(n, at) },
		"number_words": func(n *source.Node, at string) { h.NumberWords = r.readNumberWords(n, at, p) },
		"units":        func(n *source.Node, at string) { h.Units = r.readUnits(n, at, p) },
		"date_order":   func(n *source.Node, at string) { h.DateOrder = r.readOrderOf(n, at, p) },
		"otherwise":    func(n *source.Node, at string) { h.Otherwise = r.readOtherwise(n, at) },
		"pick":         func(n *source.Node, at string) { h.Pick = r.readPick(n, at, p) },
		"merge":        func(n *source.Node, at string) { h.Merge = r.readMerge(n, at, p) },
		"given":        func(n *source.Node, at string) { h.Given = r.readGiven(n, at, p) },
		"join":         func(n *source.Node, at string) { h.Join = r.readJoin(n, at, p) },
		"write":        func(n *source.Node, at string) { h.Write = r.readWord(n, at) },
		"quoted":       func(n *source.Node, at string) { h.Quoted = r.readQuoted(n, at, p) },
		"select":       func(n *source.Node, at string) { h.Select = r.readSelect(n, at, p) },
		"derived":      func(n *source.Node, at string) { h.Derived = r.readDerived(n, at, p) },
	}

	for i, key := range n.Keys {
		at := source.JoinPath(path, key.Text)
		read, ok := readers[key.Text]

		switch {
		case !ok:
			r.RecordFault(key, at, "unknown hint %q; known are %s", source.Clip(key.Text), strings.Join(hintNames, ", "))
		case !slices.Contains(hintsOfLists, key.Text) && p.listsObjects():
			r.RecordFault(key, at, "%s is a list of objects; this hint belongs to the properties inside it", p.Name)
		case !slices.Contains(hintsOfLists, key.Text) && p.isComposite():
			r.RecordFault(key, at, "%s may hold lists or objects, which no rule finds by this hint", p.Name)
		case inItems && (key.Text == "pick" || key.Text == "merge"):
			r.RecordFault(key, at, "this hint is about the list as a whole; it belongs to %s, not to its items", p.Name)
		case list.Get(key.Text) != nil:
			r.RecordFault(key, at, "this hint is given for the list %s as well; give it once", p.Name)
		default:
			read(n.Items[i], at)
		}
	}

	// Some hints exclude each other, which only shows when all of them are read.
	r.CheckPlaces(n, path)
	r.checkOtherwise(n, path, p, h)
	r.checkDerived(n, path, p, h)
}

// readOtherwise reads how a value is found where the other hints find none.
func (r *hintReader) readOtherwise(n *source.Node, path string) hint.Otherwise {
	if n.Kind != source.String || n.Text != string(hint.OtherwiseForm) {
		r.RecordFault(n, path, "unknown otherwise %q; the only one known is form", source.Clip(n.Text))
		return ""
	}
	return hint.OtherwiseForm
}

// checkOtherwise refuses to find a value by its form that has none.
func (r *hintReader) checkOtherwise(n *source.Node, path string, p *Property, h *hint.Hints) {
	e := p.element()
	if h.Otherwise != "" && e.Type == String && e.Format == "" && e.Enum == nil && len(h.Patterns)+len(h.Values) == 0 {
		r.RecordFault(n.Get("otherwise"), source.JoinPath(path, "otherwise"), "is for values of a form, such as dates and what a pattern matches, and %s is any text", p.Name)
	}
}

func (r *hintReader) readNumberWords(n *source.Node, path string, p *Property) bool {
	if !p.element().Numeric() {
		r.RecordFault(n, path, "number_words is for numbers, and %s is of type %s", p.Name, p.Type)
	}
	return r.ReadYes(n, path)
}

// readGiven reads what the program fills in, which has to fit the type of the property.
func (r *hintReader) readGiven(n *source.Node, path string, p *Property) hint.Given {
	g := hint.Given(n.Text)
	// Each given needs a type of its own; a list of objects takes rows alone.
	switch {
	case n.Kind != source.String || !g.Known():
		r.RecordFault(n, path, "unknown given %q; known are number, count, references, rows, rows.count, rows.count.NAME, item.NAME", source.Clip(n.Text))
	case g == hint.GivenReferences && (p.Type != Array || p.Items.Type != String):
		r.RecordFault(n, path, "given: references needs a list of texts, and %s is of type %s", p.Name, p.Type)
	case g == hint.GivenRows && !p.listsObjects():
		r.RecordFault(n, path, "given: rows needs a list of objects, and %s is of type %s", p.Name, p.Type)
	case strings.HasPrefix(string(g), hint.GivenItem) && p.Type != String:
		r.RecordFault(n, path, "given: item.NAME needs a text, and %s is of type %s", p.Name, p.Type)
	case g.IsNumber() && !p.Numeric():
		r.RecordFault(n, path, "given: %s needs a number, and %s is of type %s", g, p.Name, p.Type)
	case g != hint.GivenRows && p.listsObjects():
		r.RecordFault(n, path, "%s is a list of objects; only rows can be given there", p.Name)
	default:
		return g
	}
	return ""
}

// readQuoted reads whether a text or a date has to stand in a quote.
func (r *hintReader) readQuoted(n *source.Node, path string, p *Property) bool {
	if p.Type != String {
		r.RecordFault(n, path, "quoted is for texts and dates, and %s is of type %s", p.Name, p.Type)
		return false
	}
	return r.ReadYes(n, path)
}

// readSelect reads what the objects of a list are chosen out of.
func (r *hintReader) readSelect(n *source.Node, path string, p *Property) bool {
	byID := p.listsObjects() && slices.ContainsFunc(p.Items.Properties, func(one Property) bool { return one.Name == "id" && one.Type == String })
	switch {
	case n.Kind != source.String || n.Text != "documents":
		r.RecordFault(n, path, "unknown select %q; the only one known is documents", source.Clip(n.Text))
	case !byID:
		r.RecordFault(n, path, "select is for lists of objects that have a text named id, and %s is not such a list", p.Name)
	default:
		return true
	}
	return false
}

// readJoin reads the name of the text by which objects of a list are joined.
func (r *hintReader) readJoin(n *source.Node, path string, p *Property) string {
	if p.Type != Array || p.Items.Type != Object {
		r.RecordFault(n, path, "join is for lists of objects, and %s is not one", p.Name)
		return ""
	}
	if !slices.ContainsFunc(p.Items.Properties, func(one Property) bool { return one.Name == n.Text && one.Type == String }) {
		r.RecordFault(n, path, "the objects of the list have no text named %q, by which they would be joined", source.Clip(n.Text))
		return ""
	}
	return n.Text
}

// readWord reads a word that is not empty.
func (r *hintReader) readWord(n *source.Node, path string) string {
	if n.Kind != source.String || strings.TrimSpace(n.Text) == "" {
		r.RecordFault(n, path, "must be a word, not %s", n.Kind)
		return ""
	}
	return n.Text
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
func (r *hintReader) readValues(n *source.Node, path string, p *Property) []hint.Value {
	if n.Kind != source.Map || len(n.Items) == 0 {
		r.RecordFault(n, path, "must map each value to its phrases")
		return nil
	}

	// The values of a list are those of its elements.
	element := p
	if p.Type == Array {
		element = p.Items
	}

	var values []hint.Value
	for i, key := range n.Keys {
		at := source.JoinPath(path, key.Text)
		v, err := element.Normalize(key.Text)
		if err != nil {
			r.RecordFault(key, at, "is no value of %s: %v", p.Name, err)
			continue
		}

		values = append(values, hint.Value{Canonical: v, Phrases: r.ReadPhrases(n.Items[i], at)})
	}

	return values
}

func (r *hintReader) readPick(n *source.Node, path string, p *Property) hint.Pick {
	pick := hint.Pick(n.Text)
	known := []hint.Pick{hint.PickFirst, hint.PickLast, hint.PickMax, hint.PickMin, hint.PickLongest, hint.PickAll}

	element := p
	if p.Type == Array {
		element = p.Items
	}

	switch {
	case n.Kind != source.String || !slices.Contains(known, pick):
		r.RecordFault(n, path, "unknown pick %q; known are first, last, max, min, longest, all", source.Clip(n.Text))
	case pick == hint.PickAll && p.Type != Array:
		r.RecordFault(n, path, "pick all needs a property of type array, %s is of type %s", p.Name, p.Type)
	case (pick == hint.PickMax || pick == hint.PickMin) && !element.isOrdered():
		r.RecordFault(n, path, "pick %s needs numbers or dates, %s is of type %s", pick, p.Name, p.Type)
	default:
		return pick
	}
	return ""
}

// isOrdered reports whether values of p have a smallest and a largest.
func (p *Property) isOrdered() bool { return p.Numeric() || p.Temporal() }

// fits tells for each merge strategy which properties it can merge.
var fits = map[hint.Merge]func(*Property) bool{
	hint.MergeVote:       func(*Property) bool { return true },
	hint.MergeFirst:      func(*Property) bool { return true },
	hint.MergeLatest:     func(*Property) bool { return true },
	hint.MergeConfidence: func(*Property) bool { return true },
	hint.MergeLongest:    func(p *Property) bool { return p.Type == Array || p.Type == String && !p.Temporal() },
	hint.MergeMax:        (*Property).isOrdered,
	hint.MergeMin:        (*Property).isOrdered,
	hint.MergeSum:        (*Property).Numeric,
	hint.MergeUnion:      func(p *Property) bool { return p.Type == Array || p.Type == Map },
	hint.MergeConcat: func(p *Property) bool {
		return p.Type == Array || p.Type == String && !p.Temporal() && p.Enum == nil
	},
}

func (r *hintReader) readMerge(n *source.Node, path string, p *Property) hint.Merge {
	m := hint.Merge(n.Text)
	fit, ok := fits[m]

	switch {
	case n.Kind != source.String || !ok:
		names := slices.Sorted(maps.Keys(fits))
		r.RecordFault(n, path, "unknown merge %q; known are %s", source.Clip(n.Text), joinNames(names))
	case !fit(p):
		r.RecordFault(n, path, "merge %s does not fit %s, which is of type %s", m, p.Name, p.Type)
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

// readUnits reads a list of units, or a mapping of units to factors.
func (r *hintReader) readUnits(n *source.Node, path string, p *Property) []hint.Unit {
	if !p.element().Numeric() {
		r.RecordFault(n, path, "units stand beside numbers, and %s is of type %s", p.Name, p.Type)
		return nil
	}

	if n.Kind != source.Map {
		var units []hint.Unit
		for _, name := range r.ReadTexts(n, path) {
			units = append(units, hint.Unit{Name: name, Factor: "1"})
		}
		return units
	}

	var units []hint.Unit
	for i, key := range n.Keys {
		factor, ok := format.CanonicalNumber(n.Items[i].Text)
		if n.Items[i].Kind != source.Number || !ok || factor == "0" || strings.TrimSpace(key.Text) == "" {
			r.RecordFault(n.Items[i], source.JoinPath(path, key.Text), "must be the number that a number with this unit is multiplied by, not %s", source.Clip(n.Items[i].Text))
			continue
		}

		units = append(units, hint.Unit{Name: key.Text, Factor: factor})
	}

	slices.SortFunc(units, func(a, b hint.Unit) int { return strings.Compare(a.Name, b.Name) })
	return units
}
