package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/source"
)

// CutUnit returns the number in text without the unit that stands behind or in front
// of it, and that unit; nil if there is none of p.
func (p *Property) CutUnit(text string) (number string, u *hint.Unit) {
	text = strings.TrimSpace(text)
	longest := 0
	// The longest unit wins, as one may end with another, such as m and km.
	for i := range p.Hints.Units {
		for _, form := range p.Hints.Units[i].Forms() {
			if len(form) <= longest || len(form) >= len(text) {
				continue
			}

			head, tail := text[:len(text)-len(form)], text[len(form):]
			switch {
			case strings.EqualFold(text[len(head):], form) && endsApart(head, form):
				number, u, longest = strings.TrimRight(head, " -\u00a0\u202f"), &p.Hints.Units[i], len(form)
			case strings.EqualFold(text[:len(form)], form) && beginsApart(tail, form):
				number, u, longest = strings.TrimLeft(tail, " .\u00a0\u202f"), &p.Hints.Units[i], len(form)
			}
		}
	}

	return number, u
}

// MentionsPercent reports whether p may hold a percentage, by its labels, its name and what it
// says of itself.
func (p *Property) MentionsPercent() bool {
	words := strings.Join(p.Hints.Labels, " ") + " " + p.Name + " " + p.Title + " " + p.Description
	notWord := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	return strings.Contains(words, "%") || slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(words), notWord), func(w string) bool {
		return w == "percent" || w == "percentage" || w == "rate" || w == "share"
	})
}

// endsApart reports whether the unit behind head is no part of a longer word.
func endsApart(head, unit string) bool {
	last, _ := utf8.DecodeLastRuneInString(head)
	first, _ := utf8.DecodeRuneInString(unit)
	return !unicode.IsLetter(last) || !unicode.IsLetter(first)
}

func beginsApart(tail, unit string) bool {
	first, _ := utf8.DecodeRuneInString(tail)
	last, _ := utf8.DecodeLastRuneInString(unit)
	return !unicode.IsLetter(first) || !unicode.IsLetter(last)
}

// parseNumber reads a number, in words and with units if the hints allow them.
func parseNumber(p *Property, text string) (any, error) {
	readings := readingsOf(p, text, format.NumberStyle{})
	if len(readings) == 0 {
		return nil, fmt.Errorf("%q is no number", source.Clip(text))
	}
	if readings = wholeOnly(p, readings); len(readings) == 0 {
		return nil, fmt.Errorf("%q is no whole number", source.Clip(text))
	}
	return json.Number(readings[0]), nil
}

// Readings returns what a text may mean as a number of p, the most usual first: one value
// if the style of its document leaves no doubt, see format.ReadNumber.
func (p *Property) Readings(text string, style format.NumberStyle) []json.Number {
	var all []json.Number
	for _, n := range wholeOnly(p, readingsOf(p, text, style)) {
		all = append(all, json.Number(n))
	}
	return all
}

// ReadingsLike returns what a number may be, by those of a text that may mean it in any
// style: the readings, in a style, of the first one, or the number itself if another can mean
// nothing else. There are none if the text has no such number.
func (p *Property) ReadingsLike(value json.Number, text string, style format.NumberStyle) []json.Number {
	if slices.Contains(p.Readings(text, format.NumberStyle{}), value) {
		return p.Readings(text, style)
	}

	var found []json.Number
	for start, end := range format.Numerals(text, format.NumberStyle{}) {
		for _, numeral := range []string{text[start:end], withPercent(text, start, end)} {
			all := p.Readings(numeral, format.NumberStyle{})
			if !slices.Contains(all, value) {
				continue
			}

			// A numeral that can mean nothing else settles it.
			if len(all) == 1 {
				return all
			}

			if found == nil {
				found = p.Readings(numeral, style)
			}
		}
	}

	return found
}

// withPercent returns a number with the percent sign behind it, if there is one.
func withPercent(text string, start, end int) string {
	rest := strings.TrimLeft(text[end:], " \u00a0\u202f")
	if !strings.HasPrefix(rest, "%") {
		return ""
	}
	return text[start : len(text)-len(rest)+1]
}

// wholeOnly returns those readings that the type of p allows.
func wholeOnly(p *Property, readings []string) []string {
	if p.Type != Integer {
		return readings
	}
	return slices.DeleteFunc(readings, func(n string) bool { return strings.Contains(n, ".") })
}

func readingsOf(p *Property, text string, style format.NumberStyle) []string {
	number, unit := p.CutUnit(text)
	if unit == nil {
		number = text
	}

	readings := readWords(p, number)
	if readings == nil {
		readings = format.ReadNumber(number, style)
	}

	factor := "1"
	switch {
	case unit != nil:
		factor = unit.Factor
	case p.Fraction && strings.ContainsAny(text, "%％٪"):
		factor = "0.01"
	}

	var all []string
	// Several readings may come to the same number, which counts once.
	for _, n := range readings {
		if n, ok := multiply(n, factor); ok && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}

	return all
}

// readWords reads a number in words, if the hints allow them.
func readWords(p *Property, text string) []string {
	if !p.Hints.NumberWords {
		return nil
	}

	if _, _, ok := format.WordsAt(strings.TrimSpace(text), 0); !ok {
		return nil
	}

	n, ok := format.ParseNumberWords(text)

	// An empty list says that there are words which are no number, nil that there are none.
	if !ok {
		return []string{}
	}

	return []string{n}
}

// multiply returns the exact product of two numbers in canonical form.
func multiply(a, b string) (string, bool) {
	if b == "1" {
		return a, true
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !okX || !okY {
		return "", false
	}
	decimals := func(s string) int { _, fraction, _ := strings.Cut(s, "."); return len(fraction) }
	return format.CanonicalNumber(x.Mul(x, y).FloatString(decimals(a) + decimals(b)))
}
