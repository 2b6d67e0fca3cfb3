package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/worker/claims"
	"github.com/coditect/mapreduce/worker/merge"
	"github.com/coditect/mapreduce/worker/refs"
)

// MaxValue bounds a value, in bytes of its canonical JSON.
const MaxValue = 15 << 18

// ErrForm is what a value is refused with that is not what its stage is to make.
var ErrForm = errors.New("output: the value does not fit the schema of its stage")

// A Form is what the values of a stage have to look like: a JSON Schema made
// ready, with its hints. It is immutable and safe for concurrent use.
type Form struct {
	validator *jsonschema.Schema
	hints     formHints
	given     *Given // nil if nothing is known that could be filled in
}

// NewForm reads a JSON Schema (2020-12).
func NewForm(schema []byte) (*Form, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("output: schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	const url = "mem:///value.json"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("output: schema: %w", err)
	}
	v, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("output: schema: %w", err)
	}
	return &Form{validator: v, hints: hintsOf(schema)}, nil
}

// A noLoader keeps the compiler from reading files and the network.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s", url)
}

// checkFit checks a value that was decoded.
func (f *Form) checkFit(value any) error {
	if err := f.validator.Validate(value); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}

// decodeValue reads one JSON value, with numbers as they were written. Numbers
// that would take long to compute with are refused.
func decodeValue(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("output: value: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("output: value: there is more than one")
	}
	return v, boundNumbers(v)
}

// boundNumbers refuses numbers that no float can hold.
func boundNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		if f, err := strconv.ParseFloat(v.String(), 64); err != nil || math.IsInf(f, 0) || len(v) > 400 {
			return fmt.Errorf("output: value: the number %.40s is out of range", v.String())
		}
	case []any:
		for _, item := range v {
			if err := boundNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := boundNumbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodeValue returns the canonical JSON of a value: keys sorted, no white space,
// no escapes that pages would need.
func encodeValue(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("output: value: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Canonical returns a JSON value in canonical form, which is the same for values
// that differ in the order of keys and in white space alone.
func Canonical(value []byte) ([]byte, error) {
	v, err := decodeValue(value)
	if err != nil {
		return nil, err
	}
	return encodeValue(v)
}

// IssueAll spells the citations that the outputs hold, as short as they can be
// told apart.
func IssueAll(outputs []*Output) *Issued {
	return issueNames(func(yield func(refs.ID) bool) {
		for _, o := range outputs {
			for id := range o.Citations {
				if !yield(refs.ID([]byte(id))) {
					return
				}
			}
		}
	})
}

// NewValue makes the output of a unit of the JSON that somebody wrote who had read
// others' outputs. Its references may be spelled as they were issued to the
// writer, or in full. Any other is removed and reported:
//   - of a list of references the element is left out;
//   - elsewhere a question mark stands in its place.
//
// The error wraps ErrForm if the value does not fit the form, with what was
// removed or at all, and so is worth another try by the writer.
func NewValue(unit string, raw []byte, form *Form, issued *Issued, inputs []*Output) (*Output, error) {
	v, err := decodeValue(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	var broken error
	for _, drop := range []bool{true, false} {
		c := &citer{unit: unit, issued: issued, drop: drop}
		cited, _ := c.citeValue("", v)
		form.fillGiven(cited)
		if broken = form.checkFit(cited); broken != nil {
			if len(c.removed) > 0 {
				continue // the list may be too short now
			}
			return nil, broken
		}
		o := &Output{Removed: c.removed}
		if o.Value, err = encodeValue(cited); err != nil {
			return nil, err
		}
		if len(o.Value) > MaxValue {
			return nil, fmt.Errorf("%w: it has %d bytes; at most %d are kept", ErrForm, len(o.Value), MaxValue)
		}
		o.citeFrom(inputs)
		if broken = form.checkQuoted(cited, o.Citations); broken != nil {
			return nil, broken
		}
		return o, nil
	}
	return nil, broken
}

// citeFrom takes the citations to which the value refers, and those that
// decisions compare, from others' outputs.
func (o *Output) citeFrom(inputs []*Output) {
	for id := range o.usedCitations() {
		for _, in := range inputs {
			if c, ok := in.Citations[id]; ok {
				o.Cite(c)
			}
		}
	}
}

// A citer spells the references in a value in full.
type citer struct {
	unit    string
	issued  *Issued
	drop    bool // references that were not issued are left out of lists
	removed []Removed
}

// citeValue returns a value with its references in full; ok is false if it is itself a
// reference that was not issued.
func (c *citer) citeValue(path string, v any) (_ any, ok bool) {
	switch v := v.(type) {
	case string:
		return c.citeText(path, v)
	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			if one, ok := c.citeValue(path, item); ok || !c.drop {
				list = append(list, one)
			}
		}
		return list, true
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			name, _ := c.citeText(path, key)
			at := strings.TrimPrefix(path+"."+key, ".")
			object[name], _ = c.citeValue(at, v[key])
		}
		return object, true
	}
	return v, true
}

// citeText returns a text with its references in full. One that is a reference and
// nothing else stays so.
func (c *citer) citeText(path, text string) (_ string, ok bool) {
	if !strings.Contains(strings.ToUpper(text), refs.Mark) {
		return text, true
	}
	bare := strings.TrimSpace(text)
	if id, known := c.issuedID(bare); known {
		return id.Full(), true
	}
	if names := refs.Mentioned(bare, c.issued.wasIssued); len(names) == 1 && names[0] == refs.Canonical(bare) {
		c.noteRemoved(path, bare)
		return refs.Unknown, false
	}
	// What is in full is checked wherever it stands, in code and addresses too.
	text = inFull.ReplaceAllStringFunc(text, func(name string) string {
		if _, known := c.issuedID(name); known {
			return name
		}
		c.noteRemoved(path, name)
		return refs.Unknown
	})
	r := refs.Respell(text, func(name string) (string, bool) {
		id, known := c.issuedID(name)
		return id.Full(), known
	})
	for _, m := range r.Removed {
		c.noteRemoved(path, m.Name)
	}
	return r.Text, true
}

// issuedID returns the id that a name stands for, spelled short or in full.
func (c *citer) issuedID(name string) (refs.ID, bool) {
	if id, ok := c.issued.ids[refs.Canonical(name)]; ok {
		return refs.ID([]byte(id)), true
	}
	id, ok := refs.Parse(name)
	return id, ok && c.issued.names[merge.Citation(id[:])] != ""
}

func (c *citer) noteRemoved(path, name string) {
	if path == "" {
		path = wholeValue
	}
	r := Removed{Name: shortenText(name), Field: path, Reason: "the reference was never issued", Unit: c.unit}
	if !slices.Contains(c.removed, r) {
		c.removed = append(c.removed, r)
	}
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// wholeValue is the path of a value that is not inside another.
const wholeValue = "value"

// citesOf visits the citations to which a value refers.
func citesOf(value []byte, visit func(merge.Citation)) {
	for _, name := range inFull.FindAll(value, -1) {
		id, _ := refs.Parse(string(name)) // it has the form
		visit(merge.Citation(id[:]))
	}
}

// Respelled returns JSON that holds references in full with each as spell says.
func Respelled(value []byte, spell func(refs.ID) string) []byte {
	return inFull.ReplaceAllFunc(value, func(name []byte) []byte {
		id, _ := refs.Parse(string(name)) // it has the form
		return []byte(spell(id))
	})
}

// checkCanonical checks a value: that it is canonical, fits the form, and has what is given.
func (f *Form) checkCanonical(value []byte) error {
	if len(value) == 0 || len(value) > MaxValue {
		return fmt.Errorf("%w: it has %d bytes; 1 to %d are kept", ErrForm, len(value), MaxValue)
	}
	v, err := decodeValue(value)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	if canonical, err := encodeValue(v); err != nil || !bytes.Equal(canonical, value) {
		return fmt.Errorf("%w: it is not in canonical form", ErrForm)
	}
	if err := f.checkFit(v); err != nil {
		return err
	}
	return f.checkGiven(v)
}

// Bounds of what is kept of judgements.
const (
	maxJudged      = 10_000
	maxJudgedBytes = 4 << 10 // of the texts of one
)

// checkJudged refuses judgements of references that the value does not have, or too many.
func checkJudged(o *Output) error {
	if len(o.Judged) > maxJudged {
		return breachError("there are %d judgements; at most %d are kept", len(o.Judged), maxJudged)
	}
	for _, j := range o.Judged {
		if _, ok := o.Citations[merge.Citation(j.Citation[:])]; !ok || len(j.Claim)+len(j.Reason) > maxJudgedBytes || !slices.Contains(claims.Grades(), claims.Grade(j.Grade)) {
			return breachError("a judgement %.20q of %.80q is none of a reference of the value", j.Grade, j.Claim)
		}
	}
	return nil
}

// CheckValue checks the output of a unit that read others' outputs and came to a
// value: that it is canonical and fits the form, and that it cites only what these
// cite, all that it refers to and no more. A unit with tools may cite texts of its own as
// well; of any other own is nil.
func CheckValue(inputs []*Output, own Texts, form *Form, o *Output) error {
	if len(o.Entries)+len(o.Open)+len(o.Dropped) > 0 {
		return breachError("a unit that comes to a value reports records")
	}
	if err := form.checkCanonical(o.Value); err != nil {
		return err
	}
	if err := checkJudged(o); err != nil {
		return err
	}
	used := o.usedCitations()
	for id := range o.Citations {
		if !used[id] {
			return breachError("the value carries the citation of %.80q without referring to it", o.Citations[id].Quote)
		}
	}
	c := &reduceCheck{given: make(map[merge.Citation][]Citation)}
	for _, in := range inputs {
		for id, cite := range in.Citations {
			c.given[id] = append(c.given[id], cite)
		}
	}
	if own == nil {
		if err := c.checkCitations(o); err != nil {
			return err
		}
		return form.checkQuotes(o)
	}
	found, rest := c.ownCitations(o)
	if err := checkCited("the unit", own, found); err != nil {
		return err
	}
	if err := c.checkGiven(o, rest); err != nil {
		return err
	}
	return form.checkQuotes(o)
}

// checkQuotes is checkQuoted for the value of an output.
func (f *Form) checkQuotes(o *Output) error {
	if len(f.hints.quoted) == 0 {
		return nil
	}
	v, err := decodeValue(o.Value)
	if err != nil {
		return err
	}
	return f.checkQuoted(v, o.Citations)
}
