// Package schema reads schema files: what to extract, of which type, and the
// hints of the rules provider and of merging. A schema file is JSON Schema
// 2020-12, as YAML or JSON, with hints under the key "x-coditect".
//
// The package also owns what a value of each type looks like once it is
// normalised (see Property.Normalize), so that extraction, merging and
// evaluation agree about when two values are equal. Everything in it is pure.
// Of the project it imports its parts alone.
package schema

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// Kind says how many records a document yields.
type Kind string

// The kinds of a schema.
const (
	KindRecord  Kind = "object" // one record a document
	KindRecords Kind = "array"  // many records a document
)

// A Schema is a schema file that was read and found valid. It is immutable and
// safe for concurrent use.
type Schema struct {
	Title       string
	Description string
	Kind        Kind
	Properties  []Property // of one record, in the order of the file

	// Rest is a map of the values of a record under names that documents give; nil if a
	// record has Properties alone. Its path is RestName.
	Rest *Property

	// Key names the fields whose values identify an entity: records with equal
	// keys are merged. See Entities for what nil and empty mean.
	Key []string

	// Near says that keys which differ by a slip or in their spelling are equal
	// too.
	Near bool

	// Locale is the order of dates in the schema's locale, for dates of which nothing else
	// tells the order; "" if it names none.
	Locale format.DateOrder
	// Numbers is the style of numbers in the schema's locale, for numbers of which nothing
	// else tells how they are read.
	Numbers format.NumberStyle

	// Warnings name what is accepted, and has no effect or another than its author may
	// think, in the order of the file.
	Warnings Errors

	canonical []byte
	plain     []byte // canonical without hints
	asked     []byte // plain without what the program fills in
	fields    []Field
	validator *validator.Schema
	wrap      bool // the validator expects a list of records
	bare      bool // the validator expects the value of a record's one field
	whole     bool // that value is all that a document yields
}

const (
	// RestName stands in paths for all names of an object that the schema does not give.
	RestName = "*"
	// ValueName is the name of the one field of a record that is no object: of schemas whose
	// items are texts, numbers or lists.
	ValueName = "value"
)

// Entities says which records describe the same entity, so are merged.
type Entities int

// The rules that say which records belong together.
const (
	PerDocument Entities = iota // every document, or record of a list, is its own entity
	ByKey                       // records with equal key fields
	Single                      // all records of all documents: one summary
)

// Entities tells the entity rule: without a key each document stands for
// itself, a key joins records with equal values, an explicit empty key joins
// everything.
func (s *Schema) Entities() Entities {
	switch {
	case s.Key == nil:
		return PerDocument
	case len(s.Key) == 0:
		return Single
	default:
		return ByKey
	}
}

// Type is a JSON Schema type.
type Type string

// The types a property may have. Those of JSON Schema come first; an Array has items of one
// property, and an Object has names that the schema gives.
const (
	String  Type = "string"
	Number  Type = "number"
	Integer Type = "integer"
	Boolean Type = "boolean"
	Array   Type = "array"
	Object  Type = "object"
	Map     Type = "map"   // an object whose names the document gives
	Tuple   Type = "tuple" // a list whose places have properties of their own
	Union   Type = "union" // one of several types
	Any     Type = "any"   // whatever JSON can hold
	Null    Type = "null"  // nothing but null: there is no value to find
)

// Format refines String. Formats other than these are kept and have no effect
// on extraction.
type Format string

// The formats that are detected and normalised.
const (
	Date     Format = "date"      // 2018-12-25
	DateTime Format = "date-time" // 2018-12-25T20:13:39, with its zone if it has one
	Time     Format = "time"      // 20:13:39
	Email    Format = "email"
	URI      Format = "uri"
	Duration Format = "duration" // P1Y6M; weeks alone, as P2W
	Currency Format = "currency" // the ISO 4217 code, USD
)

// A Property is one named value of a record.
type Property struct {
	Name        string
	Title       string
	Description string
	Type        Type
	Format      Format
	Enum        []any // allowed values, normalised; nil allows all
	Required    bool
	Nullable    bool
	Fraction    bool       // the greatest value is 1, so that percentages are parts of it
	Properties  []Property // of Object, in the order of the file
	Rest        *Property  // of Object: the values under other names; nil if they are of no interest
	Items       *Property  // of Array and Map; of Tuple, of the places behind Prefix, nil if there are none
	Prefix      []Property // of Tuple: of its first places
	Options     []Property // of Union: one for each type, in the order of the file
	Keywords    []Keyword  // what the schema asks of a value by itself, besides type, format and Enum
	Step        string     // its name in paths, if that is not Name
	Hints       Hints
}

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
	DateOrder format.DateOrder

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

// known reports whether something of this name can be given.
func (g Given) known() bool {
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

// Merge returns the strategy of p, its default filled in.
func (p *Property) Merge() Merge {
	switch {
	case p.Hints.Merge != "":
		return p.Hints.Merge
	case p.Type == Array || p.Type == Map:
		return MergeUnion
	default:
		return MergeVote
	}
}

// Numeric reports whether p holds numbers.
func (p *Property) Numeric() bool { return p.Type == Number || p.Type == Integer }

// Temporal reports whether p holds dates or times; normalised, they sort as
// strings.
func (p *Property) Temporal() bool {
	return p.Type == String && (p.Format == Date || p.Format == DateTime || p.Format == Time)
}
