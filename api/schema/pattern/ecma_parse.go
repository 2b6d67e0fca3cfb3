package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// An ecmaParser reads an expression.
type ecmaParser struct {
	text   []rune
	at     int
	groups int            // that capture, so far
	names  map[string]int // of groups, to their numbers
}

// findNames finds the names of groups, to which a reference may stand in front of them.
func (p *ecmaParser) findNames() {
	n, class := 0, false
	// Only parentheses outside of classes count as groups, and with a question mark only
	// named ones.
	for i := 0; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '(' && !class && (i+1 == len(p.text) || p.text[i+1] != '?'):
			n++
		case c == '(' && !class && strings.HasPrefix(string(p.text[i:min(i+4, len(p.text))]), "(?<") && !strings.ContainsAny(string(p.text[min(i+3, len(p.text)):min(i+4, len(p.text))]), "=!"):
			n++
			if name, _, ok := strings.Cut(string(p.text[i+3:]), ">"); ok {
				p.names[name] = n
			}
		}
	}
}

// peek reports whether a text comes next.
func (p *ecmaParser) peek(text string) bool {
	r := []rune(text)
	return p.at+len(r) <= len(p.text) && string(p.text[p.at:p.at+len(r)]) == text
}

// take takes a text that comes next, and reports whether it does.
func (p *ecmaParser) take(text string) bool {
	if !p.peek(text) {
		return false
	}
	p.at += len([]rune(text))
	return true
}

func (p *ecmaParser) parseChoice(depth int) (part, error) {
	if depth > maxParens {
		return nil, fmt.Errorf("the pattern has more than %d groups in groups", maxParens)
	}

	var all choice
	for {
		one, err := p.parseSequence(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if !p.take("|") {
			break
		}
	}

	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (p *ecmaParser) parseSequence(depth int) (part, error) {
	var all sequence
	for p.at < len(p.text) && !p.peek("|") && !p.peek(")") {
		one, err := p.parseAtom(depth)
		if err != nil {
			return nil, err
		}
		if one, err = p.parseLoop(one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// parseLoop reads how often the atom before may stand.
func (p *ecmaParser) parseLoop(of part) (part, error) {
	l := loop{of: of, max: -1}
	switch {
	case p.take("*"):
	case p.take("+"):
		l.min = 1
	case p.take("?"):
		l.max = 1
	case p.peek("{"):
		least, most, ok := p.takeBounds()
		if !ok {
			return of, nil // a brace that stands for itself
		}
		if l.min, l.max = least, most; most >= 0 && most < least {
			return nil, fmt.Errorf("numbers out of order in {%d,%d}", least, most)
		}
	default:
		return of, nil
	}

	if _, isPlace := of.(place); isPlace {
		// A place has no width, so repeating it would change nothing.
		return nil, fmt.Errorf("nothing to repeat: `%s`", string(p.text[:p.at]))
	}

	l.lazy = p.take("?")
	return l, nil
}

// takeBounds takes {n}, {n,} or {n,m}.
func (p *ecmaParser) takeBounds() (least, most int, ok bool) {
	inside, _, closed := strings.Cut(string(p.text[p.at+1:min(len(p.text), p.at+30)]), "}")
	if !closed {
		return 0, 0, false
	}

	from, to, isRange := strings.Cut(inside, ",")
	least, err := strconv.Atoi(from)
	if err != nil || from[0] < '0' {
		return 0, 0, false
	}

	most = least
	if isRange {
		most = -1
		if to != "" {
			if most, err = strconv.Atoi(to); err != nil || to[0] < '0' {
				return 0, 0, false
			}
		}
	}

	// Both braces are passed with what is inside.
	p.at += len(inside) + 2
	return least, most, true
}

func (p *ecmaParser) parseAtom(depth int) (part, error) {
	c := p.text[p.at]
	switch c {
	case '(':
		return p.parseGroup(depth)
	case '[':
		return p.parseClass()
	case '\\':
		return p.parseEscape()
	case '*', '+', '?':
		return nil, fmt.Errorf("nothing to repeat: `%c`", c)
	}

	p.at++

	switch c {
	case '^':
		return place{atStart}, nil
	case '$':
		return place{atEnd}, nil
	case '.':
		return charSet{func(c rune) bool { return !isLineEnd(c) }}, nil
	}
	return one(c), nil
}

func one(c rune) charSet { return charSet{func(d rune) bool { return c == d }} }

func (p *ecmaParser) parseGroup(depth int) (part, error) {
	start := p.at
	var wrap func(part) part
	switch {
	case p.take("(?:"):
		wrap = func(of part) part { return of }
	case p.take("(?="):
		wrap = func(of part) part { return look{of: of} }
	case p.take("(?!"):
		wrap = func(of part) part { return look{of: of, absent: true} }
	case p.take("(?<="):
		wrap = func(of part) part { return look{of: of, behind: true} }
	case p.take("(?<!"):
		wrap = func(of part) part { return look{of: of, behind: true, absent: true} }
	case p.peek("(?") && !p.peek("(?<"):
		return nil, fmt.Errorf("invalid group: `%s`", string(p.text[start:min(start+4, len(p.text))]))
	default:
		p.groups++
		n := p.groups
		wrap = func(of part) part { return capture{of, n} }
		// The name was read by findNames already; here it is passed.
		if p.take("(?<") {
			for p.at < len(p.text) && !p.take(">") {
				p.at++
			}
		} else {
			p.at++
		}
	}

	of, err := p.parseChoice(depth + 1)
	if err != nil {
		return nil, err
	}

	if !p.take(")") {
		return nil, fmt.Errorf("missing closing ): `%s`", string(p.text[start:]))
	}

	return wrap(of), nil
}

// parseEscape reads an escape outside of a class.
func (p *ecmaParser) parseEscape() (part, error) {
	start := p.at
	switch {
	case p.take(`\b`):
		return place{atWordEnd}, nil
	case p.take(`\B`):
		return place{func(text []rune, at int) bool { return !atWordEnd(text, at) }}, nil
	case p.take(`\k<`):
		name, _, ok := strings.Cut(string(p.text[p.at:]), ">")
		if n, known := p.names[name]; ok && known {
			p.at += len([]rune(name)) + 1
			return backward{n}, nil
		}
		return nil, fmt.Errorf("no group has the name in `%s`", string(p.text[start:]))
	}

	if n := p.digitsAt(p.at + 1); n != "" && n[0] != '0' {
		// All digits that follow belong to the number.
		p.at += 1 + len(n)
		number, err := strconv.Atoi(n)
		if err != nil {
			return nil, fmt.Errorf("no group has the number in `\\%s`", n)
		}
		return backward{number}, nil
	}

	holds, _, err := p.parseClassAtom()
	return charSet{holds}, err
}

// digitsAt returns the digits at a place, three at most.
func (p *ecmaParser) digitsAt(at int) string {
	end := at
	for end < len(p.text) && end < at+3 && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	return string(p.text[min(at, end):end])
}

// parseClass reads a class in brackets.
func (p *ecmaParser) parseClass() (part, error) {
	start := p.at

	p.at++

	absent := p.take("^")

	var all []func(rune) bool
	for !p.take("]") {
		if p.at >= len(p.text) {
			return nil, fmt.Errorf("missing closing ]: `%s`", string(p.text[start:]))
		}
		holds, from, err := p.parseClassAtom()
		if err != nil {
			return nil, err
		}

		// A hyphen makes a range only between two single characters.
		if p.peek("-") && p.at+1 < len(p.text) && p.text[p.at+1] != ']' && from >= 0 {
			before := p.at
			p.at++
			_, to, err := p.parseClassAtom()
			switch {
			case err != nil:
				return nil, err
			case to >= 0 && to < from:
				return nil, fmt.Errorf("invalid range: `%c-%c`", from, to)
			case to >= 0:
				holds = func(c rune) bool { return c >= from && c <= to }
			default:
				p.at = before // a hyphen before a class stands for itself
			}
		}

		all = append(all, holds)
	}

	return charSet{func(c rune) bool {
		for _, holds := range all {
			if holds(c) {
				return !absent
			}
		}
		return absent
	}}, nil
}

// classes are the escapes that stand for several characters.
var classes = map[rune]func(rune) bool{
	'd': func(c rune) bool { return c >= '0' && c <= '9' },
	'w': isWord,
	's': isSpace,
	'D': func(c rune) bool { return c < '0' || c > '9' },
	'W': func(c rune) bool { return !isWord(c) },
	'S': func(c rune) bool { return !isSpace(c) },
}

// controls are the escapes of control characters.
var controls = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'b': '\b', '0': 0}

// parseClassAtom reads a character or an escape. The character is -1 if it is several.
func (p *ecmaParser) parseClassAtom() (holds func(rune) bool, char rune, err error) {
	c := p.text[p.at]

	p.at++

	if c != '\\' {
		return one(c).holds, c, nil
	}

	if p.at >= len(p.text) {
		return nil, 0, fmt.Errorf("trailing backslash at end of expression")
	}

	c = p.text[p.at]
	p.at++

	if holds := classes[c]; holds != nil {
		return holds, -1, nil
	}

	if control, ok := controls[c]; ok {
		return one(control).holds, control, nil
	}

	switch c {
	case 'p', 'P':
		holds, err = p.parseProperty(c == 'P')
		return holds, -1, err
	case 'c':
		if p.at < len(p.text) && unicode.IsLetter(p.text[p.at]) {
			c = p.text[p.at] % 32
			p.at++
		}
	case 'x':
		c = p.takeHex(2, c)
	case 'u':
		if p.take("{") {
			inside, _, _ := strings.Cut(string(p.text[p.at:]), "}")
			c = p.takeHex(len(inside), c)
			p.take("}")
		} else {
			c = p.takeHex(4, c)
		}
	}

	return one(c).holds, c, nil
}

// takeHex takes a character given by n hexadecimal digits; without them, it is other.
func (p *ecmaParser) takeHex(n int, other rune) rune {
	if n == 0 || n > 6 || p.at+n > len(p.text) {
		return other
	}
	code, err := strconv.ParseUint(string(p.text[p.at:p.at+n]), 16, 32)
	if err != nil {
		return other
	}
	p.at += n
	return rune(code)
}

// parseProperty reads the name of a property of Unicode, in braces.
func (p *ecmaParser) parseProperty(absent bool) (func(rune) bool, error) {
	inside, _, ok := strings.Cut(string(p.text[p.at:]), "}")
	name, isProperty := strings.CutPrefix(inside, "{")
	if !ok || !isProperty {
		return one('p').holds, nil // an escape of the letter
	}

	p.at += len([]rune(inside)) + 1
	if _, value, ok := strings.Cut(name, "="); ok {
		name = value
	}

	table := unicode.Categories[name]
	if table == nil {
		table = unicode.Scripts[name]
	}
	if table == nil {
		table = unicode.Properties[name]
	}

	if long, ok := categoryNames[name]; ok && table == nil {
		table = unicode.Categories[long]
	}

	if table == nil {
		return nil, fmt.Errorf("no property of Unicode is named %q", name)
	}

	return func(c rune) bool { return unicode.Is(table, c) != absent }, nil
}

// categoryNames are the long names of categories.
var categoryNames = map[string]string{"Letter": "L", "Alphabetic": "L", "Mark": "M", "Number": "N", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Decimal_Number": "Nd"}
