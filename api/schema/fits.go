package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/source"
)

// isPlain reports whether a number is in the form that Normalize gives: digits, with at most
// a minus in front and decimals behind a point.
func isPlain(n json.Number) bool {
	whole, fraction, hasPoint := strings.Cut(strings.TrimPrefix(string(n), "-"), ".")
	return isDigits(whole) && (!hasPoint || isDigits(fraction))
}

// isDigits reports whether s has digits and nothing else.
func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Fits says why v is no value of p in the form that Normalize gives; nil if it is
// one. Null is none.
func (p *Property) Fits(v any) error {
	switch p.Type {
	case Union:
		option := p.Option(v)
		if option == nil {
			return fmt.Errorf("%s is of none of the types that are allowed", Shown(v))
		}
		return option.Fits(v)
	case Any:
		return fitsAny(v)
	}

	switch v := v.(type) {
	case []any:
		return fitsList(p, v)
	case map[string]any:
		return fitsObject(p, v)
	case json.Number:
		if p.Type != Number && p.Type != Integer || !isPlain(v) {
			return fmt.Errorf("%s is no %s", source.Clip(v.String()), p.Type)
		}
	case string:
		if p.Type != String {
			return fmt.Errorf("%q is no %s", source.Clip(v), p.Type)
		}
	case bool:
		if p.Type != Boolean {
			return fmt.Errorf("%t is no %s", v, p.Type)
		}
	default:
		return fmt.Errorf("%T is no value", v)
	}

	// The form of a single value is what remains to be checked: formats, and the allowed
	// values.
	_, err := p.Normalize(v)
	return err
}

func fitsList(p *Property, list []any) error {
	if p.Type == Tuple {
		return fitsTuple(p, list)
	}

	if p.Type != Array || p.Items == nil {
		return errors.New("a list where a single value belongs")
	}

	for i, item := range list {
		if err := p.Items.Fits(item); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}

	return nil
}

// fitsTuple checks the places of a tuple. Null keeps the place of what was not found.
func fitsTuple(p *Property, list []any) error {
	for i, item := range list {
		if item == nil {
			continue
		}
		if err := p.ItemAt(i).Fits(item); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func fitsObject(p *Property, m map[string]any) error {
	if p.Type != Object && p.Type != Map {
		return errors.New("an object where a single value belongs")
	}

	known := 0
	for i := range p.Properties {
		inner := &p.Properties[i]
		value, ok := m[inner.Name]
		if !ok {
			continue
		}

		known++

		if value == nil && inner.Nullable {
			continue
		}

		if err := inner.Fits(value); err != nil {
			return fmt.Errorf("%s: %w", inner.Name, err)
		}
	}

	// Names that the schema does not list are values under other names, if it allows any.
	others := p.others()
	if known < len(m) && others == nil {
		return errors.New("an object with a property that the schema does not have")
	}

	for _, name := range p.otherNames(m) {
		if value := m[name]; value != nil || !others.Nullable && others.Type != Any {
			if err := others.Fits(value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}

	return nil
}

// fitsAny checks that a value is in the form that Normalize gives any value.
func fitsAny(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			if err := fitsAny(item); item != nil && err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case []any:
		for i, item := range v {
			if err := fitsAny(item); item != nil && err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case json.Number:
		if !isPlain(v) {
			return fmt.Errorf("%s is no number in plain form", source.Clip(v.String()))
		}
	case string, bool:
	default:
		return fmt.Errorf("%T is no value", v)
	}
	return nil
}

// Merge returns the strategy of p, its default filled in.
func (p *Property) Merge() hint.Merge {
	switch {
	case p.Hints.Merge != "":
		return p.Hints.Merge
	case p.Type == Array || p.Type == Map:
		return hint.MergeUnion
	default:
		return hint.MergeVote
	}
}

// Numeric reports whether p holds numbers.
func (p *Property) Numeric() bool { return p.Type == Number || p.Type == Integer }

// Temporal reports whether p holds dates or times; normalised, they sort as
// strings.
func (p *Property) Temporal() bool {
	return p.Type == String && (p.Format == Date || p.Format == DateTime || p.Format == Time)
}

// Shown returns a value as JSON for a message, shortened.
func Shown(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return source.Clip(fmt.Sprint(v))
	}
	return source.Clip(string(b))
}
