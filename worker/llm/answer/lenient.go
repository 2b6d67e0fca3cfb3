package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds how deep values are nested.
const maxDepth = 100

// A parser reads one value of a text that may have faults. Where a text can be read in more
// ways than one it takes the one in which nothing is lost, or gives up.
type parser struct {
	text    string
	at      int
	steps   int // that are left
	repairs []Repair

	// unfinished reports that the text ends, or leaves something out, where more was to come.
	unfinished bool

	lastOf string // a mark, and where it stands for the last time
	last   int
}

// errTooMuch is returned for texts whose reading would take too long.
var errTooMuch = errors.New("it is too long and too faulty to be read")

func (p *parser) note(k Kind) { p.repairs = append(p.repairs, Repair{Kind: k}) }

func (p *parser) fault(what string) error {
	return fmt.Errorf("%s at character %d", what, utf8.RuneCountInString(p.text[:min(p.at, len(p.text))]))
}

// atEnd reports whether nothing is left.
func (p *parser) atEnd() bool { return p.at >= len(p.text) }

// has takes a text off if it comes next.
func (p *parser) has(s string) bool {
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// next returns the next byte without taking it, and 0 at the end.
func (p *parser) next() byte {
	if p.atEnd() {
		return 0
	}
	return p.text[p.at]
}

// skipSpace skips white space and comments.
func (p *parser) skipSpace() {
	for !p.atEnd() {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		switch {
		case unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b':
			p.at += size
		case strings.HasPrefix(p.text[p.at:], "//"), r == '#':
			p.note(Comment)
			p.skipPast("\n")
		case strings.HasPrefix(p.text[p.at:], "/*"):
			p.note(Comment)
			p.skipPast("*/")
		default:
			return
		}
	}
}

// skipPast skips all up to a text and the text itself.
func (p *parser) skipPast(mark string) {
	if i := strings.Index(p.text[p.at:], mark); i >= 0 {
		p.at += i + len(mark)
	} else {
		p.at = len(p.text)
	}
}

// A nothing is in place of a value that is cut off, or left out.
type nothing struct{}

// parseValue reads a value. Within an object commas may be parts of numbers.
func (p *parser) parseValue(depth int, inObject bool) (any, error) {
	p.skipSpace()
	if p.steps--; p.steps < 0 || depth > maxDepth {
		return nil, errTooMuch
	}

	if p.atEnd() {
		p.unfinished = true
		return nothing{}, nil
	}

	switch p.next() {
	case '{':
		p.at++
		return p.parseObject(depth)
	case '[':
		p.at++
		return p.parseList(depth)
	}

	if mark, closing, ok := p.openQuote(); ok {
		p.at += len(mark)
		return p.parseText(mark, closing, inObject, false)
	}
	return p.parseBare(inObject)
}

// parseObject reads an object behind its opening bracket.
func (p *parser) parseObject(depth int) (any, error) {
	o := Object{}
	for first := true; ; first = false {
		ended, err := p.separate(first, '}', ']')
		if err != nil || ended {
			return o, err
		}

		key, value, err := p.parseMember(depth)
		if err != nil {
			return nil, err
		}

		if _, cut := value.(nothing); cut {
			continue
		}
		if o, err = p.addMember(o, key, value); err != nil {
			return nil, err
		}
	}
}

// parseMember reads a key and its value; the value is nothing if it is cut off.
func (p *parser) parseMember(depth int) (key string, value any, err error) {
	if p.skipDots() {
		return "", nothing{}, nil
	}

	// A text that ends within a key, or right behind it, has lost the value.
	if key, err = p.parseKey(); err != nil || p.unfinished && p.atEnd() {
		return "", nothing{}, err
	}

	p.skipSpace()
	switch {
	case p.has(":"):
	case p.has("=>"), p.has("="):
		p.note(Sign)
	case p.atEnd():
		p.unfinished = true
		return "", nothing{}, nil
	default:
		return "", nil, p.fault("a key without a value")
	}

	value, err = p.parseValue(depth+1, true)
	return key, value, err
}

// parseList reads a list behind its opening bracket.
func (p *parser) parseList(depth int) (any, error) {
	list := []any{}
	for first := true; ; first = false {
		ended, err := p.separate(first, ']', '}')
		if err != nil || ended {
			return list, err
		}

		if p.skipDots() {
			continue
		}

		v, err := p.parseValue(depth+1, false)
		if err != nil {
			return nil, err
		}
		if _, cut := v.(nothing); !cut {
			list = append(list, v)
		}
	}
}

// separate reads what stands before an element: commas, or the end of the object or list.
// An end that is missing is found by that of what stands around it.
func (p *parser) separate(first bool, end, others byte) (ended bool, err error) {
	if p.steps--; p.steps < 0 {
		return false, errTooMuch
	}

	p.skipSpace()
	commas := 0
	for p.next() == ',' {
		p.at++
		commas++
		p.skipSpace()
	}

	switch {
	case p.atEnd():
		p.note(Bracket)
		p.unfinished = p.unfinished || commas > 0 || first // more was to come
		return true, nil
	case p.next() == end:
		p.at++
		if commas > 0 {
			p.note(Comma)
		}
		return true, nil
	case p.next() == others: // it ends what is around this one
		p.note(Bracket)
		return true, nil
	case !first && commas == 0 && !beginsElement(p.text[p.at:], end == '}'): // the answer is over
		p.note(Bracket)
		return true, nil
	}

	// Exactly one comma belongs before each element but the first.
	if first != (commas == 0) || commas > 1 {
		p.note(Comma)
	}
	return false, nil
}

// skipDots takes off dots in place of elements.
func (p *parser) skipDots() bool {
	if p.has("...") || p.has("…") {
		p.unfinished = true
		return true
	}
	return false
}

// addMember adds a member. A key that stands twice is one whose values are the same, or can
// be joined.
func (p *parser) addMember(o Object, key string, value any) (Object, error) {
	i := o.index(key)
	if i < 0 {
		return append(o, Member{key, value}), nil
	}

	p.note(Twice)
	joined, ok := joinValues(o[i].Value, value)
	if !ok {
		return nil, fmt.Errorf("the key %.40q stands twice, with different values", key)
	}
	o[i].Value = joined
	return o, nil
}

// joinValues returns two values of one key as one, if they do not contradict each other.
func joinValues(a, b any) (any, bool) {
	if reflect.DeepEqual(a, b) {
		return a, true
	}

	switch a := a.(type) {
	case []any:
		if b, ok := b.([]any); ok {
			return slices.Concat(a, b), true
		}
	case Object:
		b, ok := b.(Object)
		out := slices.Clip(a)
		for _, m := range b {
			i := out.index(m.Key)
			if i < 0 {
				out = append(out, m)
				continue
			}
			// The members are copied before one is changed: until then they are those of a.
			joined, same := joinValues(out[i].Value, m.Value)
			if ok = ok && same; ok {
				out = append(Object{}, out...)
				out[i].Value = joined
			}
		}
		return out, ok
	}

	return nil, false
}

// parseKey reads a key, with marks around it or none.
func (p *parser) parseKey() (string, error) {
	if mark, closing, ok := p.openQuote(); ok {
		p.at += len(mark)
		v, err := p.parseText(mark, closing, true, true)
		key, _ := v.(string)
		return key, err
	}

	start := p.at
	for !p.atEnd() && !strings.ContainsRune(":={}[],\"\n", rune(p.next())) {
		p.at++
	}

	key := strings.TrimSpace(p.text[start:p.at])
	switch {
	case p.atEnd():
		p.unfinished = true
	case key == "":
		return "", p.fault("a key is missing")
	default:
		p.note(Quotes)
	}
	return key, nil
}

// wordValue returns the value of a word: one of JSON, or one that Python and JavaScript
// write for values that JSON has no word for.
func wordValue(word string) (value, ok any) {
	switch word {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	case "null", "Null", "NULL", "None", "nil", "undefined", "NaN", "nan", "Infinity", "-Infinity", "+Infinity", "inf", "-inf":
		return nil, true
	}
	return nil, nil
}

// parseBare reads a value without marks: a number, a word, or a text.
func (p *parser) parseBare(inObject bool) (any, error) {
	start := p.at
	p.takeBare(inObject)
	word := p.text[start:p.at]

	// A comment behind a value belongs to its line.
	if i := strings.Index(word, " //"); i >= 0 {
		word = word[:i]
		p.note(Comment)
	}
	if i := strings.Index(word, " #"); i >= 0 {
		word = word[:i]
		p.note(Comment)
	}

	word = strings.TrimRightFunc(word, unicode.IsSpace)
	if word == "" {
		return nil, p.fault("a value is missing")
	}

	if p.atEnd() {
		p.unfinished = true // the rest of it may be missing
		return nothing{}, nil
	}

	if v, ok := wordValue(word); ok != nil {
		if word != "true" && word != "false" && word != "null" {
			p.note(Word)
		}
		return v, nil
	}

	if n, plain, ok := readNumber(word); ok {
		if !plain {
			p.note(Digits)
		}
		return n, nil
	}

	// Anything else is a text without marks.
	p.note(Quotes)
	return word, nil
}

// takeBare moves behind a value without marks. A comma between digits is a part of it if no
// key could follow.
func (p *parser) takeBare(inObject bool) {
	for !p.atEnd() {
		switch c := p.next(); c {
		case ',':
			if !inObject || !groupsDigits(p.text, p.at) {
				return
			}
		case '}', ']', '\n':
			return
		}
		p.at++
	}
}

// groupsDigits reports whether the comma at i groups the digits of a number: three follow it,
// and a digit stands before it.
func groupsDigits(text string, i int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	return digit(i-1) && digit(i+1) && digit(i+2) && digit(i+3) && !digit(i+4)
}

// readNumber reads a number. It is plain if it is one of JSON's.
func readNumber(word string) (n json.Number, plain, ok bool) {
	if isNumber(word) {
		return json.Number(word), true, true
	}

	// Sign and groups of digits are taken off before the rest is judged as JSON.
	fixed := strings.TrimPrefix(word, "+")
	sign := ""
	if rest, negative := strings.CutPrefix(fixed, "-"); negative {
		sign, fixed = "-", rest
	}

	if i := strings.IndexByte(fixed, ','); i > 0 {
		for j := i; j >= 0 && j < len(fixed); {
			if !groupsDigits(fixed, j) {
				return "", false, false
			}
			next := strings.IndexByte(fixed[j+1:], ',')
			if next < 0 {
				break
			}
			j += 1 + next
		}
		fixed = strings.ReplaceAll(fixed, ",", "")
	}

	fixed = strings.ReplaceAll(fixed, "_", "")
	if strings.HasPrefix(fixed, ".") {
		fixed = "0" + fixed
	}
	fixed = strings.TrimSuffix(fixed, ".")

	if fixed = sign + fixed; isNumber(fixed) {
		return json.Number(fixed), false, true
	}
	return "", false, false
}

// isNumber reports whether a text is a number as JSON writes it.
func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	return json.Valid([]byte(s))
}
