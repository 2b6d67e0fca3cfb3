// Package answer reads what models answer when JSON by a schema was asked of them: not only
// JSON that fits, but also JSON among prose, with the faults that models make in it, and in
// shapes beside the one that was asked for.
//
// A text is read in two steps. Candidates are the JSON values that a text holds, with faults of
// notation mended. A Shape then brings a candidate into the shape of a schema: it renames,
// wraps, unwraps and converts. It does not judge: whoever asked checks the outcome against the
// whole schema, and looks for its quotes, as with any answer.
//
// What always holds: a value comes from the text of the answer. Nothing is guessed, a number
// or word that may be cut off is left out, and of two readings that differ none is made up of
// both. Everything that was mended is listed as a Repair.
//
// The package is pure.
package answer

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A value is JSON with the order of its keys: an Object, a List, a string, a json.Number, a bool
// or nil.

// An Object is a JSON object in the order in which it was written.
type Object []Member

// A Member is a key of an object with its value.
type Member struct {
	Key   string
	Value any
}

// A Kind is a kind of repair. Its words are those of traces and metrics.
type Kind string

// The kinds of repairs. The first group is of notation, the second of shape.
const (
	Prose      Kind = "prose"        // text around the answer
	Fence      Kind = "fence"        // a code block around it
	Thinking   Kind = "thinking"     // thinking before it
	Several    Kind = "several"      // one of several values
	Comma      Kind = "comma"        // one too many, or too few
	Comment    Kind = "comment"      // which JSON has none of
	Quotes     Kind = "quotes"       // other marks than ", or none
	InnerQuote Kind = "inner quote"  // a mark within a text, without an escape
	Escape     Kind = "escape"       // one that JSON does not know
	LineBreak  Kind = "line break"   // within a text
	Word       Kind = "word"         // True, None, NaN and the like
	Digits     Kind = "digits"       // +5, .5, 1_000 or 1,000
	Sign       Kind = "sign"         // = for :
	Bracket    Kind = "bracket"      // one that is missing, or the wrong one
	Twice      Kind = "twice"        // a key that stands twice
	Text       Kind = "json in text" // a text that holds JSON

	Key      Kind = "key"      // spelled otherwise
	Extra    Kind = "extra"    // a key that the schema does not have
	Missing  Kind = "missing"  // a part that has to be there and says nothing
	Envelope Kind = "envelope" // one too many, or too few
	Single   Kind = "single"   // a value in place of a list of one, or the reverse
	Split    Kind = "split"    // a list in place of several values
	Type     Kind = "type"     // a number as a text, or the reverse
	Enum     Kind = "enum"     // a word of an enumeration, spelled otherwise
	Share    Kind = "share"    // a percentage, or a word, in place of a share
	LeftOut  Kind = "left out" // a member that does not fit, of an object that can do without
)

// A Repair is something that was mended.
type Repair struct {
	Kind Kind
	Path string // a JSON pointer, of a repair of shape
}

// Kinds returns the kinds of repairs, each once, in order.
func Kinds(repairs []Repair) []Kind {
	kinds := make([]Kind, 0, len(repairs))
	for _, r := range repairs {
		kinds = append(kinds, r.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Get returns the value of a key.
func (o Object) Get(key string) (any, bool) {
	if i := o.index(key); i >= 0 {
		return o[i].Value, true
	}
	return nil, false
}

func (o Object) index(key string) int {
	return slices.IndexFunc(o, func(m Member) bool { return m.Key == key })
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')

	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		// Key and value are both followed by a colon; that of the value is cut off again.
		for _, part := range []any{m.Key, m.Value} {
			raw, err := Encode(part)
			if err != nil {
				return nil, err
			}
			b.Write(raw)
			b.WriteByte(':')
		}
		b.Truncate(b.Len() - 1) // the colon behind the value
	}

	b.WriteByte('}')
	return b.Bytes(), nil
}

// Encode returns a value as JSON, without escaping what only matters in web pages.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
