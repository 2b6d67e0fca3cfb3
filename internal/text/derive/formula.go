package derive

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
)

// Bounds of formulas.
const (
	maxFormula  = 4000 // bytes
	maxDepth    = 60   // of brackets and operators within each other
	maxOperands = 1000
)

// A kind says what a node of a formula is.
type kind string

// The kinds of nodes: operands, operators, and calls of functions.
const (
	numberLiteral   kind = "number"
	dateLiteral     kind = "date"
	durationLiteral kind = "duration"
	textLiteral     kind = "text"

	addition       kind = "+"
	subtraction    kind = "-"
	multiplication kind = "*"
	division       kind = "/"
	negation       kind = "minus"
	comparison     kind = "comparison"
	call           kind = "call"
)

// A node is a formula or a part of one.
type node struct {
	kind kind
	// text is of a literal what it says: a number in canonical form, a date or a duration in
	// ISO 8601, a text as it is. Of a comparison it is the sign, of a call the function.
	text    string
	percent bool // of a number: a percent sign stands behind it, and text is the share
	args    []*node
}

var (
	isoDate     = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)
	isoDuration = regexp.MustCompile(`^P(?:\d+[YMWD])+(?:T(?:\d+[HMS])+)?`)
	plainNumber = regexp.MustCompile(`^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?`)
	groupNumber = regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?`)
	unitOfTime  = regexp.MustCompile(`^\s?(day|week|month|year)s?\b`)
	functionEnd = regexp.MustCompile(`^[A-Za-z_]+\s*\(`)
	equals      = regexp.MustCompile(`([^=<>!])=([^=])`)
)

// plainSigns writes the signs of mathematics as those of formulas.
var plainSigns = strings.NewReplacer("×", "*", "·", "*", "⋅", "*", "÷", "/", "−", "-", "–", "-", "≤", "<=", "≥", ">=", "≠", "!=", "“", `"`, "”", `"`, "’", "'", "[", "(", "]", ")")

// parse reads a formula. What stands behind or in front of a sign of equality, such as the
// result, is left out.
func parse(formula string) (*node, error) {
	if len(formula) > maxFormula {
		return nil, fmt.Errorf("it has more than %d bytes", maxFormula)
	}

	text := plainSigns.Replace(formula)
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "="))
	if strings.Contains(text, `"`) { // a sign within a text is none
		return parseWhole(text)
	}

	var first error
	for part := range strings.SplitSeq(equals.ReplaceAllString(text, "$1\n$2"), "\n") {
		n, err := parseWhole(part)
		if err == nil {
			return n, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func parseWhole(text string) (*node, error) {
	p := &parser{rest: text, grouped: strings.Contains(text, ", ")}

	n, err := p.readComparison()
	if err != nil {
		return nil, err
	}

	if p.skipBlanks(); p.rest != "" {
		return nil, fmt.Errorf("%.40q cannot be read", p.rest)
	}
	return n, nil
}

// A parser reads a formula by recursive descent.
type parser struct {
	rest     string
	depth    int
	operands int
	calls    int  // that the rest stands within
	grouped  bool // blanks follow the commas between arguments, so that others are parts of numbers
}

var errDeep = errors.New("it is nested too deep")

func (p *parser) skipBlanks() {
	p.rest = strings.TrimLeftFunc(p.rest, func(c rune) bool { return unicode.IsSpace(c) || unicode.Is(unicode.Sc, c) })
}

// accept takes a sign, if it comes next.
func (p *parser) accept(sign string) bool {
	p.skipBlanks()
	rest, ok := strings.CutPrefix(p.rest, sign)
	if ok {
		p.rest = rest
	}
	return ok
}

// acceptAny takes one of some signs, the longer of which come first.
func (p *parser) acceptAny(signs ...string) (string, bool) {
	for _, sign := range signs {
		if p.accept(sign) {
			return sign, true
		}
	}
	return "", false
}

func (p *parser) readComparison() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}

	sign, ok := p.acceptAny("<=", ">=", "==", "!=", "<", ">")
	if !ok {
		return left, nil
	}

	right, err := p.sum()
	return &node{kind: comparison, text: sign, args: []*node{left, right}}, err
}

func (p *parser) sum() (*node, error) {
	return p.readOperators(p.product, map[string]kind{"+": addition, "-": subtraction})
}

func (p *parser) product() (*node, error) {
	return p.readOperators(p.readSigned, map[string]kind{"*": multiplication, "/": division})
}

// readOperators reads operands that some operators join, from left to right.
func (p *parser) readOperators(operand func() (*node, error), signs map[string]kind) (*node, error) {
	left, err := operand()
	for err == nil {
		p.skipBlanks()
		if p.rest == "" || signs[p.rest[:1]] == "" {
			return left, nil
		}
		sign := signs[p.rest[:1]]
		p.rest = p.rest[1:]

		var right *node
		right, err = operand()
		left = &node{kind: sign, args: []*node{left, right}}
	}
	return nil, err
}

// readSigned reads an operand with a minus in front of it, or none.
func (p *parser) readSigned() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDeep
	}
	defer func() { p.depth-- }()

	if !p.accept("-") {
		p.accept("+")
		return p.readOperand()
	}
	n, err := p.readSigned()
	if err != nil {
		return nil, err
	}
	if n.kind == numberLiteral && n.text != "0" && !strings.HasPrefix(n.text, "-") {
		n.text = "-" + n.text // it has to stand so in a quote
		return n, nil
	}
	return &node{kind: negation, args: []*node{n}}, nil
}

// readOperand reads a literal, a call, or a formula in brackets.
func (p *parser) readOperand() (*node, error) {
	if p.operands++; p.operands > maxOperands {
		return nil, fmt.Errorf("it has more than %d operands", maxOperands)
	}
	if p.accept("(") {
		n, err := p.readComparison()
		if err == nil && !p.accept(")") {
			err = errors.New("a bracket is not closed")
		}
		return n, err
	}

	p.skipBlanks()
	p.skipCurrency()

	// A date begins like a number, and is tried before.
	switch {
	case p.rest == "":
		return nil, errors.New("it ends where a number or a date should stand")
	case p.rest[0] == '"':
		return p.readQuoted()
	case isoDate.MatchString(p.rest):
		return p.literal(dateLiteral, isoDate.FindString(p.rest))
	case isoDuration.MatchString(p.rest):
		return p.literal(durationLiteral, isoDuration.FindString(p.rest))
	case functionEnd.MatchString(p.rest):
		return p.call()
	}
	return p.number()
}

// skipCurrency passes over the code of a currency in front of a number.
func (p *parser) skipCurrency() {
	if len(p.rest) < 4 || !unicode.IsUpper(rune(p.rest[0])) || functionEnd.MatchString(p.rest) {
		return
	}
	if code, ok := format.ParseCurrency(p.rest[:3]); ok && code == p.rest[:3] {
		p.rest = strings.TrimLeft(p.rest[3:], " ")
	}
}

func (p *parser) literal(k kind, text string) (*node, error) {
	p.rest = p.rest[len(text):]
	return &node{kind: k, text: text}, nil
}

func (p *parser) readQuoted() (*node, error) {
	text, rest, closed := strings.Cut(p.rest[1:], `"`)
	if !closed || strings.TrimSpace(text) == "" {
		return nil, errors.New("a text has no end, or is empty")
	}
	p.rest = rest
	return &node{kind: textLiteral, text: text}, nil
}

// number reads a number with a word that multiplies it, a percent sign or a unit of time.
func (p *parser) number() (*node, error) {
	pattern := plainNumber
	if (p.calls == 0 || p.grouped) && groupNumber.MatchString(p.rest) {
		pattern = groupNumber
	}
	digits := pattern.FindString(p.rest)
	if digits == "" {
		c, _ := utf8.DecodeRuneInString(p.rest)
		return nil, fmt.Errorf("%q stands where a number, a date or a function should stand", c)
	}
	number, ok := format.CanonicalNumber(strings.ReplaceAll(digits, ",", ""))
	if !ok {
		return nil, fmt.Errorf("%.40s is out of range", digits)
	}

	if end := format.MagnitudeEnd(p.rest, len(digits), false); end > len(digits) {
		scaled, ok := format.ParseNumber(number + p.rest[len(digits):end])
		if !ok {
			return nil, fmt.Errorf("%.40q is no number", p.rest[:end])
		}
		p.rest = p.rest[end:]
		return &node{kind: numberLiteral, text: scaled}, nil
	}

	p.rest = p.rest[len(digits):]
	if unit := unitOfTime.FindStringSubmatch(p.rest); unit != nil && !strings.Contains(number, ".") {
		p.rest = p.rest[len(unit[0]):]
		return &node{kind: durationLiteral, text: "P" + number + strings.ToUpper(unit[1][:1])}, nil
	}

	if p.accept("%") {
		share, _ := format.CanonicalNumber(number + "e-2") // as it is a number
		return &node{kind: numberLiteral, text: share, percent: true}, nil
	}
	return &node{kind: numberLiteral, text: number}, nil
}

// call reads the call of a function.
func (p *parser) call() (*node, error) {
	name, rest, _ := strings.Cut(p.rest, "(")
	n := &node{kind: call, text: strings.ToLower(strings.TrimSpace(name))}
	if _, known := functions[n.text]; !known {
		return nil, fmt.Errorf("there is no function %.40q; there are %s", n.text, functionNames)
	}
	p.rest = rest
	if p.accept(")") {
		return n, nil
	}

	// Within a call a comma parts arguments, unless blanks follow such commas: see grouped.
	p.calls++
	defer func() { p.calls-- }()
	for {
		arg, err := p.readComparison()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
		if p.accept(")") {
			return n, nil
		}
		if _, ok := p.acceptAny(",", ";"); !ok {
			return nil, fmt.Errorf("a comma or a bracket is missing in front of %.40q", p.rest)
		}
	}
}
