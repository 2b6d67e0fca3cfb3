package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema/validator"
	"github.com/coditect/mapreduce/worker/llm/answer"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
)

// A Schema says what an answer has to look like. Vendors are given as much of it
// as they understand (see Dialect), and answers are checked against all of it.
// It is immutable and safe for concurrent use.
type Schema struct {
	name      string
	doc       object
	text      string // doc in compact form: it is sent, measured and hashed with each request
	wrap      bool   // a vendor is given an object with the answer in it
	validator *validator.Schema
	tolerated *regexp.Regexp // places that need not fit, see Tolerating; nil if there are none
	shape     *answer.Shape
}

// wrapped is the field for an answer that is no object itself: vendors want one
// at the top.
const wrapped = "answer"

// NewSchema reads a JSON Schema (2020-12). The model sees the name: 1 to 64 of a-z, A-Z,
// 0-9, _ and -.
func NewSchema(name string, doc []byte) (*Schema, error) {
	if !validName(name) {
		return nil, NewError(BadSchema, "the name %q is not 1 to 64 of a-z, A-Z, 0-9, _ and -", name)
	}
	v, err := parseJSON(doc)
	if err != nil {
		return nil, NewError(BadSchema, "it is no JSON: %v", err)
	}
	root, ok := v.(object)
	if !ok {
		return nil, NewError(BadSchema, "it is no object")
	}
	// The validator cannot compute with numbers that are out of range.
	if faults := wildNumbers(root); len(faults) > 0 {
		return nil, NewError(BadSchema, "%v", &MismatchError{Faults: faults})
	}
	compiled, err := validator.Parse(doc)
	if err != nil {
		return nil, NewError(BadSchema, "%v", err)
	}
	shape, err := answer.NewShape(doc, answer.Hints{})
	if err != nil {
		return nil, NewError(BadSchema, "%v", err)
	}

	text, err := encodeJSON(root)
	if err != nil {
		return nil, NewError(BadSchema, "%v", err)
	}
	return &Schema{
		name: name, doc: root, text: string(text), wrap: !plainObject(root), validator: compiled, shape: shape,
	}, nil
}

// plainObject reports whether vendors take the schema at the top.
func plainObject(root object) bool {
	for _, key := range []string{"anyOf", "oneOf", "allOf", "$ref"} {
		if _, ok := root.get(key); ok {
			return false
		}
	}
	return root.getText("type") == "object"
}

// Name returns the name of the answer that the model sees.
func (s *Schema) Name() string { return s.name }

// Document returns the schema as it was given, in compact form.
func (s *Schema) Document() string { return s.text }

// A MismatchError says where an answer does not fit, in words for its author.
type MismatchError struct {
	Faults []Fault
	NoJSON string // the beginning of an answer that holds no JSON
}

// A Fault is one place that does not fit.
type Fault struct {
	Path    string // a JSON pointer; "" is the whole
	Message string
}

// maxFaults bounds the faults in one message to a model.
const maxFaults = 12

// Error gives one fault a line.
func (e *MismatchError) Error() string {
	var b strings.Builder
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}

		if i == maxFaults {
			fmt.Fprintf(&b, "and %d more", len(e.Faults)-i)
			break
		}

		if f.Path == "" {
			f.Path = "the answer"
		}
		b.WriteString(f.Path + ": " + f.Message)
	}
	return b.String()
}

// Check returns an answer in compact form. It removes what a dialect added: the object
// around the answer, and nulls for properties that may be absent but not null. The error
// for an answer that does not fit is a *MismatchError.
func (s *Schema) Check(answer []byte) (json.RawMessage, error) {
	v, err := s.parseAnswer(answer)
	if err != nil {
		return nil, err
	}
	if raw, err := s.fitValue(v); err == nil {
		return raw, nil
	}

	// Nulls that a dialect asked for are no faults, and are not reported.
	raw, err := s.fitValue(s.pruneValue(v))
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// parseAnswer reads an answer, without the object around it. Its error is a *MismatchError.
// It refuses numbers that the validator cannot compute with.
func (s *Schema) parseAnswer(answer []byte) (any, error) {
	v, err := parseJSON(stripFence(answer))
	if err != nil {
		return nil, &MismatchError{Faults: []Fault{{Message: "it is not one JSON value: " + err.Error()}}}
	}
	if o, ok := v.(object); ok && s.wrap && len(o) == 1 && o[0].key == wrapped {
		v = o[0].value
	}

	if faults := wildNumbers(v); len(faults) > 0 {
		return nil, &MismatchError{Faults: faults}
	}
	return v, nil
}

// Tolerating returns the schema for a reader who judges some places of an answer again,
// and can use the rest if one of them does not fit: those whose JSON pointer matches. See
// Salvage.
func (s *Schema) Tolerating(places *regexp.Regexp) *Schema {
	out := *s
	out.tolerated = places
	return &out
}

// Salvage returns an answer, in compact form, that does not fit and will not be mended any more.
// It returns false unless all that does not fit is at tolerated places. Of an object at one, it
// leaves out the members that do not fit, if the object can do without them: these are returned. A
// number that is out of range is tolerated nowhere, as the rest cannot be checked with it.
func (s *Schema) Salvage(raw []byte) (_ json.RawMessage, left []answer.Repair, ok bool) {
	v, err := s.parseAnswer(raw)
	if err != nil || s.tolerated == nil {
		return nil, nil, false
	}

	v = s.pruneValue(v)
	_, err = s.fitValue(v)
	faults := faultsIn(err)

	for _, f := range faults {
		parent := f.Path[:max(0, strings.LastIndexByte(f.Path, '/'))]
		if !s.tolerated.MatchString(f.Path) {
			return nil, nil, false
		}
		// A member is left out only if that makes the faults fewer.
		if without, ok := withoutPlace(v, f.Path); ok && s.tolerated.MatchString(parent) {
			if _, err := s.fitValue(without); len(faultsIn(err)) < len(faultsOf(s, v)) {
				v, left = without, append(left, answer.Repair{Kind: answer.LeftOut, Path: f.Path})
			}
		}
	}

	if err != nil && faults == nil {
		return nil, nil, false
	}

	out, err := encodeJSON(v)
	return out, left, err == nil
}

func faultsOf(s *Schema, v any) []Fault {
	_, err := s.fitValue(v)
	return faultsIn(err)
}

// faultsIn returns the faults that an error is of.
func faultsIn(err error) []Fault {
	if e, ok := errors.AsType[*MismatchError](err); ok {
		return e.Faults
	}
	return nil
}

// withoutPlace returns a value without the member of an object that a JSON pointer leads to.
func withoutPlace(v any, pointer string) (any, bool) {
	if pointer == "" {
		return nil, false
	}

	step, rest, more := strings.Cut(pointer[1:], "/")
	step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	rest = "/" + rest

	switch v := v.(type) {
	case object:
		i := slices.IndexFunc(v, func(m member) bool { return m.key == step })
		if i < 0 {
			return nil, false
		}
		// The value itself stays as it is: only the way to the place is copied.
		out := slices.Clone(v)
		if !more {
			return slices.Delete(out, i, i+1), true
		}
		inner, ok := withoutPlace(v[i].value, rest)
		out[i].value = inner
		return out, ok
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(v) || !more {
			return nil, false
		}

		inner, ok := withoutPlace(v[i], rest)
		out := slices.Clone(v)
		out[i] = inner
		return out, ok
	}
	return nil, false
}

func (s *Schema) fitValue(v any) (json.RawMessage, error) {
	raw, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}

	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}

	err = s.validator.Validate(plain)
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return nil, newMismatch(e)
	}
	if err != nil {
		return nil, &MismatchError{Faults: []Fault{{Message: err.Error()}}}
	}
	return raw, nil
}

// newMismatch gathers the leaves of a validator's error.
func newMismatch(e *jsonschema.ValidationError) *MismatchError {
	var out MismatchError
	printer := message.NewPrinter(language.English)
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			walk(c)
		}
		if len(e.Causes) > 0 {
			// An error with causes says no more than these.
			return
		}
		out.Faults = append(out.Faults, Fault{jsonPointer(e.InstanceLocation), redact.ShortenLine(e.ErrorKind.LocalizedString(printer))})
	}

	walk(e)
	slices.SortStableFunc(out.Faults, func(a, b Fault) int { return strings.Compare(a.Path+a.Message, b.Path+b.Message) })
	out.Faults = slices.Compact(out.Faults)
	return &out
}

// stripFence takes off the marks of a code block, which models like to put around
// JSON when nothing constrains them.
func stripFence(answer []byte) []byte {
	answer = bytes.TrimSpace(answer)
	rest, ok := bytes.CutPrefix(answer, []byte("```"))
	if !ok {
		return answer
	}
	rest, ok = bytes.CutSuffix(rest, []byte("```"))
	if !ok {
		return answer
	}
	return bytes.TrimSpace(bytes.TrimPrefix(rest, []byte("json")))
}
