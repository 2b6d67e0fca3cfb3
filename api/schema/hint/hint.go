// Package hint has the hints of schemas, which steer extraction by rules and the typed merge,
// and reads those of them that say where a value stands.
//
// Hints that depend on the type of their property are read by package schema.
package hint

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

// Hints steer the rules provider and the typed merge.
type Hints struct {
	Labels   []string // words that stand before the value or on the line above, the best first
	Patterns []string // regular expressions (RE2), the preferred first; see ValueGroups
	Lines    *Lines   // where to look
	Within   *Within  // where to look
	After    []string // the value stands behind one of these
	Before   []string // the value stands in front of one of these
	Between  bool     // After and Before belong together: the value is all that stands between
	Values   []Value  // canonical values and the phrases that mean them
	Exclude  []string // what is not the value
	Replace  []Replacement
	// Otherwise says how a value is found where the hints above find none. Without it
	// there is no value then.
	Otherwise Otherwise
	Pick      Pick  // which of several matches
	Merge     Merge // which of several values of one entity

	NumberWords bool   // numbers may be written in words
	Units       []Unit // the number stands with one of these; nil if any will do

	// DateOrder is the order of dates of three numbers, the property's own or the schema's;
	// "" leaves it to the documents.
	DateOrder calendar.DateOrder

	Given Given  // what the program fills in, whoever writes the rest
	Join  string // of a list of objects: those with equal texts under this name are one
	Write string // what stands here of a text that is written without a model

	// Quoted says that the text, or the date, stands in a quote of a reference that the
	// object around it has.
	Quoted bool
	// Derived says that the value follows from quotes without standing in them.
	Derived bool
	// Select says of a list of objects that they are chosen out of the documents that the
	// unit reads: each is named by its id, and the program fills in the rest.
	Select bool
}

// A Within is a part of a document. What it says must all hold.
type Within struct {
	Sections []string // below a heading with one of these phrases
	Chars    *Lines   // the characters [From, To), counted as lines are
	Columns  []string // in a column of a table with one of these headings
	Rows     []string // in a row of a table that begins with one of these
}

// A Replacement is done to what was found before it is read as a value; the quote
// stays as it is.
type Replacement struct {
	Pattern string // regular expression
	With    string // may hold $1 for a group
}

// A Unit is what stands behind or in front of a number, and what the number is
// multiplied by for it.
type Unit struct {
	Name   string
	Factor string // a number in canonical form
}

// Given is a value that nobody has to write: the program knows it.
type Given string

// What can be given.
const (
	GivenNumber     Given = "number"     // the number of the unit in its level, from 1 on
	GivenCount      Given = "count"      // how many references the unit was given
	GivenReferences Given = "references" // these references
	GivenRows       Given = "rows"       // the values that the unit read, in order
	GivenRowCount   Given = "rows.count" // how many these are
)

// Beginnings of what can be given by a name.
const (
	// GivenRowsWhere and a name is how many of the values that the unit read are objects in
	// which the name is true.
	GivenRowsWhere = "rows.count."
	// GivenItem and a name is a text of the element that the unit works on.
	GivenItem = "item."
)

// IsNumber reports whether what is given is a number.
func (g Given) IsNumber() bool {
	return g == GivenNumber || g == GivenCount || g == GivenRowCount || strings.HasPrefix(string(g), GivenRowsWhere)
}

// Known reports whether something of this name can be given.
func (g Given) Known() bool {
	for _, prefix := range []string{GivenRowsWhere, GivenItem} {
		if name, ok := strings.CutPrefix(string(g), prefix); ok {
			return name != ""
		}
	}
	return slices.Contains([]Given{GivenNumber, GivenCount, GivenReferences, GivenRows, GivenRowCount}, g)
}

// Otherwise is how a value is found where the hints find none.
type Otherwise string

// OtherwiseForm has the value found by its form, wherever it stands.
const OtherwiseForm Otherwise = "form"

// Lines is the half-open range [From, To) of a document's lines. Negative
// numbers count from the end; To = End reaches to the last line.
type Lines struct {
	From, To int
}

// End as Lines.To means "to the end of the document".
const End = int(^uint(0) >> 1)

// A Value is a canonical value and the phrases that stand for it.
type Value struct {
	Canonical any
	Phrases   []string
}

// Pick chooses among several matches in one document.
type Pick string

// The ways to pick. The zero value leaves the choice to the extractor: for scalars
// the value at the best label, or the longest phrase; for arrays all matches.
const (
	PickFirst   Pick = "first"
	PickLast    Pick = "last"
	PickMax     Pick = "max"
	PickMin     Pick = "min"
	PickLongest Pick = "longest"
	PickAll     Pick = "all"
)

// Merge chooses among, or combines, several values of one entity.
type Merge string

// The ways to merge. The zero value means MergeVote for scalars and MergeUnion
// for arrays, see Property.Merge.
const (
	MergeVote       Merge = "vote" // the value with the most confidence behind it
	MergeFirst      Merge = "first"
	MergeLatest     Merge = "latest"
	MergeLongest    Merge = "longest"
	MergeMax        Merge = "max"
	MergeMin        Merge = "min"
	MergeSum        Merge = "sum"
	MergeUnion      Merge = "union"
	MergeConfidence Merge = "highest_confidence"
	MergeConcat     Merge = "concat"
)

// percentWords are other ways to write the unit %.
var percentWords = []string{"percent", "per cent", "prozent", "pour cent", "por ciento", "per cento", "процентов", "％"}

// Forms returns the ways to write a unit. Its digits may stand on the line, as in m2 and
// CO2, or be raised or lowered.
func (u *Unit) Forms() []string {
	if u.Name == "%" {
		return append([]string{"%"}, percentWords...)
	}
	if !strings.ContainsFunc(u.Name, unicode.IsNumber) {
		return []string{u.Name}
	}
	plain := norm.NFKC.String(u.Name)
	return []string{u.Name, plain, strings.Map(digits(format.Raise), plain), strings.Map(digits(format.Lower), plain)}
}

// digits returns a function that gives digits another form, and nothing else.
func digits(form func(rune) (rune, bool)) func(rune) rune {
	return func(c rune) rune {
		if f, ok := form(c); ok && unicode.IsDigit(c) {
			return f
		}
		return c
	}
}
