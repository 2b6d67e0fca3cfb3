package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/api/schema/source"
)

// Normalize converts v, a value as found in a text or said by a model, into the
// form that p asks for: json.Number in plain notation for numbers, ISO 8601 for
// dates, the member for enums, NFKC with single spaces for other strings, []any
// and map[string]any for lists and objects. Null stays null. The error says why
// v is no value of p.
func (p *Property) Normalize(v any) (any, error) {
	if v == nil {
		return nil, nil
	}

	switch p.Type {
	case Array:
		return normalizeList(p, v)
	case Object:
		return normalizeObject(p, v)
	case Map:
		return normalizeMap(p, v)
	case Tuple:
		return normalizeTuple(p, v)
	case Union:
		return normalizeUnion(p, v)
	case Any:
		return normalizeAny(v)
	case Null:
		return nil, errors.New("no value is allowed here")
	}

	text, err := scalarText(v)
	if err != nil {
		return nil, err
	}

	value, err := parseScalar(p, text)
	if err != nil || p.Enum == nil {
		return value, err
	}

	// The value is normalised before it is compared with those that are allowed.
	return matchEnum(p, value)
}

// normalizeList accepts a single value as a list of one.
func normalizeList(p *Property, v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}

	out := make([]any, 0, len(list))
	for i, item := range list {
		value, err := p.Items.Normalize(item)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}

		// Null is no element: a list holds what was found.
		if value != nil {
			out = append(out, value)
		}
	}

	return out, nil
}

// normalizeObject leaves out properties that the schema does not have, and null, unless it
// has to be said.
func normalizeObject(p *Property, v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T is no object", v)
	}

	out := make(map[string]any, len(p.Properties))
	for i := range p.Properties {
		inner := &p.Properties[i]
		value, err := inner.Normalize(m[inner.Name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", inner.Name, err)
		}

		// Null is kept only where the schema asks for the property and allows null.
		if value != nil || inner.Required && inner.Nullable {
			out[inner.Name] = value
		}
	}

	return out, addOthers(p, m, out)
}

// scalarText returns a scalar as text.
func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	default:
		return "", errors.New("a list or object where a single value belongs")
	}
}

// parseScalar reads a scalar of p's type and format.
func parseScalar(p *Property, text string) (any, error) {
	switch p.Type {
	case Number, Integer:
		return parseNumber(p, text)
	case Boolean:
		yes, ok := format.ParseBoolean(text)
		if !ok {
			return nil, fmt.Errorf("%q is neither yes nor no", source.Clip(text))
		}
		return yes, nil
	}

	parse, what := textParser(p)
	value, ok := parse(text)
	if !ok {
		if why := calendar.WhyNoDate(text); p.Format == Date && why != "" {
			return nil, fmt.Errorf("%q is no %s: %s", source.Clip(text), what, why)
		}
		return nil, fmt.Errorf("%q is no %s", source.Clip(text), what)
	}

	// The empty text counts only where the schema lists it.
	if value == "" && !slices.Contains(p.Enum, any("")) {
		return nil, errors.New("is empty")
	}

	return value, nil
}

// textParser returns the parser of p's format and the format's name for messages.
func textParser(p *Property) (parse func(string) (string, bool), what string) {
	order := p.Hints.DateOrder

	switch p.Format {
	case Date:
		return func(s string) (string, bool) { return calendar.ParseDateIn(order, s) }, "date"
	case DateTime:
		return func(s string) (string, bool) { return calendar.ParseDateTimeIn(order, s) }, "date and time"
	case Time:
		return calendar.ParseTime, "time of day"
	case Email:
		return format.ParseEmail, "email address"
	case URI:
		return format.ParseURI, "absolute URI"
	case Duration:
		return calendar.ParseDuration, "duration"
	case Currency:
		return format.ParseCurrency, "currency"
	default:
		return func(s string) (string, bool) { return format.Text(s), true }, "text"
	}
}

// ErrNotAllowed is the error of a value that is none of those that the schema lists.
var ErrNotAllowed = errors.New("none of the allowed values")

// matchEnum returns the allowed value that equals value except for case and spaces.
func matchEnum(p *Property, value any) (any, error) {
	for _, allowed := range p.Enum {
		if allowed == value {
			return allowed, nil
		}
	}

	// Texts may differ in case and white space from the value that is allowed.
	if s, ok := value.(string); ok {
		for _, allowed := range p.Enum {
			if a, ok := allowed.(string); ok && foldText(a) == foldText(s) {
				return allowed, nil
			}
		}
	}

	return nil, fmt.Errorf("%q is %w", source.Clip(fmt.Sprint(value)), ErrNotAllowed)
}

// foldText folds case and removes spaces, hyphens and underscores.
func foldText(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '-' || c == '_' {
			return -1
		}
		return c
	}, format.Fold(s))
}

// Identity returns a string that is equal for values of p that mean the same:
// strings that differ in case or white space, lists and objects of such. The
// value must be normalised.
func (p *Property) Identity(v any) string {
	if p.Type == Union {
		if option := p.Option(v); option != nil {
			p = option
		}
	}

	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if p.Enum != nil || p.Format == URI {
			return v
		}
		if p.Format == Duration {
			return calendar.DurationIdentity(v)
		}
		return format.Fold(v)
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = p.ItemAt(i).Identity(item)
		}
		return encodeParts(parts)
	case map[string]any:
		return identityOfObject(p, v)
	default:
		return fmt.Sprint(v)
	}
}

// identityOfObject takes members that p does not describe as values of any kind: free objects
// have no others, and of objects that the schema refuses each counts as well.
func identityOfObject(p *Property, v map[string]any) string {
	parts := make([]string, 0, 2*len(v))
	for i := range p.Properties {
		inner := &p.Properties[i]
		if item, ok := v[inner.Name]; ok && item != nil {
			parts = append(parts, inner.Name, inner.Identity(item))
		}
	}

	others := cmp.Or(p.others(), &Property{Type: Any})
	for _, name := range p.unnamed(v) {
		parts = append(parts, name, others.Identity(v[name]))
	}
	return encodeParts(parts)
}

// encodeParts joins strings so that different lists never give the same text.
func encodeParts(parts []string) string {
	b, _ := json.Marshal(parts) // strings cannot fail
	return string(b)
}

// Compare orders normalised values of p: numbers by value, dates and times as
// their normalised strings, everything else by identity.
func (p *Property) Compare(a, b any) int {
	x, okX := a.(json.Number)
	y, okY := b.(json.Number)
	if okX && okY {
		return format.CompareNumbers(x.String(), y.String())
	}
	return strings.Compare(p.Identity(a), p.Identity(b))
}
