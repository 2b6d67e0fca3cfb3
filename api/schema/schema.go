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
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// Errors are what is wrong with a schema file, by place.
type Errors = source.Errors

// Error is one fault of a schema file.
type Error = source.Error

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
	Locale calendar.DateOrder
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
	Hints       hint.Hints
}

// Validator returns what checks records of the schema, and whether it takes each as a list of one. Of a
// schema that is Bare it takes the value of the one field.
func (s *Schema) Validator() (of *validator.Schema, wrap bool) { return s.validator, s.wrap }
