package infer

import (
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// A kind is the type and format of values.
type kind struct {
	typ    schema.Type
	format schema.Format
	enum   []string
}

// definition returns the kind as members of a YAML mapping.
func (k kind) definition() string {
	text := "type: " + string(k.typ)
	if k.format != "" {
		text += ", format: " + string(k.format)
	}

	if k.enum != nil {
		quoted := make([]string, len(k.enum))
		for i, v := range k.enum {
			quoted[i] = quote(v)
		}
		text += ", enum: [" + strings.Join(quoted, ", ") + "]"
	}

	return text
}

// forms are the kinds that are recognised without a label, and the names of the fields
// for them.
var forms = [...]struct {
	name, plural string
	kind         kind
	scan         form.Scanner
}{
	{"date", "dates", kind{typ: schema.String, format: schema.Date}, scannerOf(schema.Date)},
	{"email", "emails", kind{typ: schema.String, format: schema.Email}, scannerOf(schema.Email)},
	{"uri", "uris", kind{typ: schema.String, format: schema.URI}, scannerOf(schema.URI)},
	{"duration", "durations", kind{typ: schema.String, format: schema.Duration}, scannerOf(schema.Duration)},
	{"currency", "currencies", kind{typ: schema.String, format: schema.Currency}, scannerOf(schema.Currency)},
}

func scannerOf(f schema.Format) form.Scanner {
	return form.Of(&schema.Property{Type: schema.String, Format: f})
}

// nearlyAll is the share of values that must be of a kind.
const nearlyAll = 0.9

// kindOf returns the narrowest kind that nearly all values are of.
func kindOf(values []string) kind {
	for _, k := range []struct {
		kind kind
		is   func(string) bool
	}{
		{kind{typ: schema.Boolean}, isBoolean},
		{kind{typ: schema.Integer}, isInteger},
		{kind{typ: schema.Number}, isNumber},
		{kind{typ: schema.String, format: schema.DateTime}, normalises(schema.DateTime)},
		{kind{typ: schema.String, format: schema.Date}, isWhole(schema.Date)},
		{kind{typ: schema.String, format: schema.Time}, normalises(schema.Time)},
		{kind{typ: schema.String, format: schema.Email}, isWhole(schema.Email)},
		{kind{typ: schema.String, format: schema.URI}, normalises(schema.URI)},
		{kind{typ: schema.String, format: schema.Duration}, isWhole(schema.Duration)},
	} {
		n := 0
		// A kind stands before those that take its values too, so the first that fits is taken.
		for _, v := range values {
			if k.is(v) {
				n++
			}
		}

		if n > 0 && float64(n) >= nearlyAll*float64(len(values)) {
			return k.kind
		}
	}

	return kind{typ: schema.String, enum: enumOf(values)}
}

// enumOf returns the values if they are few, short and often repeated.
func enumOf(values []string) []string {
	const most, length, repeats = 8, 30, 4
	distinct := sortedDistinct(values)
	if len(distinct) < 2 || len(distinct) > most || len(values) < repeats*len(distinct) {
		return nil
	}

	for _, v := range distinct {
		if len(v) > length {
			return nil
		}
	}

	return distinct
}

func isBoolean(s string) bool {
	switch strings.ToLower(s) {
	case "yes", "no", "true", "false":
		return true
	default:
		return false
	}
}

// isInteger accepts whole numbers, but for those with leading zeros or of many
// digits, which are names of things.
func isInteger(s string) bool {
	n, ok := format.CanonicalNumber(s)
	return ok && n == s && len(s) <= 9 && !strings.Contains(s, ".")
}

// isNumber accepts numbers with at most a currency or a word such as million beside
// them, and not R-12.
func isNumber(s string) bool {
	n, ok := format.ParseNumber(s)
	if !ok || len(n) > 15 || len(s) > 1 && s[0] == '0' && s[1] != '.' && s[1] != ',' {
		return false
	}
	digits := strings.IndexFunc(s, unicode.IsDigit)
	head := strings.TrimRight(s[:max(digits, 0)], " -+(.")
	_, isCurrency := format.ParseCurrency(head)
	return (head == "" || isCurrency) && isUnit(s[strings.LastIndexFunc(s, unicode.IsDigit)+1:])
}

// isUnit reports whether what stands behind a number is a currency, a percent sign, or a word in
// small letters such as million or kg.
func isUnit(tail string) bool {
	word := strings.Trim(tail, " \u00a0\u202f.,-)%")
	if _, isCurrency := format.ParseCurrency(word); word == "" || isCurrency {
		return true
	}
	return tail[0] == ' ' && !strings.ContainsFunc(word, func(c rune) bool { return !unicode.IsLower(c) })
}

func normalises(f schema.Format) func(string) bool {
	p := &schema.Property{Type: schema.String, Format: f}
	return func(s string) bool {
		_, err := p.Normalize(s)
		return err == nil
	}
}

// isWhole accepts what is a value of the format, with few other words around it.
func isWhole(f schema.Format) func(string) bool {
	const spare = 12 // bytes
	scan := scannerOf(f)
	return func(s string) bool {
		found := scan(s, 0, len(s), format.NumberStyle{})
		if len(found) != 1 || len(s)-(found[0].End-found[0].Start) > spare {
			return false
		}
		before, after := s[:found[0].Start], s[found[0].End:]
		return !strings.HasSuffix(before, "-") && !strings.HasSuffix(before, "/") && !strings.HasPrefix(after, "-") && !strings.HasPrefix(after, "/")
	}
}
