// Package claims checks whether passages support what a sentence claims. Without a model it
// compares terms, numbers, names and negation. A caller that asks a model as well joins
// both by Join.
//
// It is pure. It imports internal/text/prose, and nothing else of the project.
package claims

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// A Grade says how far a passage supports a claim.
type Grade string

// The grades, the best first.
const (
	Supported    Grade = "supported"    // it says the same
	Partial      Grade = "partial"      // it says a part of it, and nothing against the rest
	Unsupported  Grade = "unsupported"  // it does not say it
	Contradicted Grade = "contradicted" // it says otherwise
)

// Grades returns all grades, the best first.
func Grades() []Grade { return []Grade{Supported, Partial, Unsupported, Contradicted} }

// A Verdict is the grade of a claim by one or several passages, and why.
type Verdict struct {
	Grade   Grade
	Score   float64  // share of what the claim says that the passages say, in [0,1]
	Reasons []string // what is missing or differs; none if the claim is supported
}

// Bounds of grades. They were fitted on the sets that the tests of this package make, and
// the tests print what they come to.
const (
	supportedFrom  = 0.43 // of the score
	partialFrom    = 0.25
	contradictFrom = 0.55 // of what a sentence has in common with a claim that it contradicts
	windowLength   = 3    // sentences of a passage that are read together
	maxSentences   = 400  // of passages; more are read without their order
	maxReasons     = 4
	partTerms      = 5    // terms of a part of a claim that has to be said by itself
	partFrom       = 0.34 // of such a part
)

// Check grades a claim, a sentence, by passages: by all of them together, each of which
// may say a part of it. References in brackets in the claim count for nothing, nor does the
// number of a list that it begins with.
func Check(claim string, passages ...string) Verdict {
	sources := make([]Source, len(passages))
	for i, p := range passages {
		sources[i].Passage = p
	}
	return CheckSources(claim, sources...)
}

// A Source is a passage with what is known of the text that it is from.
type Source struct {
	Passage string
	// About is the title of the text, its authors and the year, as far as they are known. A
	// claim may name these ("Wan and others (2015) show …") without the passage having them.
	// They support a claim, and contradict none. Empty if nothing is known.
	About string
}

// CheckSources is Check with passages of which more is known.
func CheckSources(claim string, sources ...Source) Verdict {
	c := newClaim(claim)
	if len(c.terms) == 0 && len(c.numbers) == 0 {
		return Verdict{Grade: Unsupported, Reasons: []string{"the sentence claims nothing that could be checked"}}
	}
	e := newEvidence(sources)
	best := e.bestMatch(c)
	return c.gradeBest(e, best)
}

// gradeBest is the verdict by the window of the evidence that matches best.
func (c *claim) gradeBest(e *evidence, best match) Verdict {
	v := Verdict{Score: c.score(e, best)}
	if why := c.findContradiction(e); why != "" {
		v.Grade, v.Reasons = Contradicted, []string{why}
		return v
	}

	missing := c.missingNumbers(e)
	names := c.missingNames(e)
	switch {
	case len(missing) > 0:
		v.Reasons = append(v.Reasons, "not in the passage: the number "+strings.Join(missing, ", "))
	case len(names) > 0:
		v.Reasons = append(v.Reasons, "not in the passage: the name "+strings.Join(names, ", "))
	}

	part := c.unsaidPart(e)
	if part != "" {
		v.Reasons = append(v.Reasons, "no passage says this part: "+part)
	}

	// Any of these keeps a claim from being supported, however much of it is said.
	hard := part != "" || len(missing) > 0 || c.lacksShort(e, best) || len(names) > 0 && len(names)*2 >= len(c.names)
	switch {
	case v.Score >= supportedFrom && !hard:
		v.Grade, v.Reasons = Supported, nil
		return v
	case v.Score >= partialFrom:
		v.Grade = Partial
	default:
		v.Grade = Unsupported
	}

	if terms := c.missingTerms(e, best); len(terms) > 0 {
		v.Reasons = append(v.Reasons, "not said: "+strings.Join(terms, ", "))
	}
	return v
}

// shortClaim is how many terms a claim has at most that is not supported if one of them is
// not said: where there are few, each is what the claim is about or what it says of it.
const shortClaim = 3

// lacksShort reports whether passages lack a term of a claim that has few.
func (c *claim) lacksShort(e *evidence, best match) bool {
	return len(c.terms) <= shortClaim && len(c.missingTerms(e, best)) > 0
}

// Join returns the grade of a claim that a model has graded as well as this package. The
// model decides, but for what is computed: a claim that numbers, names or a negation
// contradict stays contradicted.
func Join(computed Verdict, model Grade) Grade {
	switch {
	case !slices.Contains(Grades(), model):
		return computed.Grade
	case computed.Grade == Contradicted:
		return Contradicted
	}
	return model
}

// A term is a word of a claim that says something.
type term struct {
	stem, shown string
	weight      float64
	name        bool
}

// A claim is a sentence made ready.
type claim struct {
	terms   []term
	numbers []number
	names   []term
	total   float64 // of all weights
	pairs   [][2]string
	words   []prose.Word
	text    string // without references
}

// A number is one of a claim or of evidence, with the word behind it.
type number struct {
	value, unit, shown string
	scale              int // of a claim: the power of ten of a word such as million behind it, 0 if there is none
}

// listNumber is the number of a list that a sentence begins with, such as "(3) " or "2. ".
var listNumber = regexp.MustCompile(`^\s*(?:[-*•]\s*)?(?:\([0-9]{1,2}\)|[0-9]{1,2}[.)])\s+`)

// newClaim reads a sentence.
func newClaim(sentence string) *claim {
	c := &claim{text: listNumber.ReplaceAllString(withoutReferences(sentence), "")}
	c.words = prose.Words(c.text)

	seen := make(map[string]bool)
	previous := ""

	for i, w := range c.words {
		switch {
		case w.Number && i > 0 && scaleBehind(c.words, i-1) > 0:
			continue // it belongs to the number in front of it
		case w.Number:
			n := number{value: w.Stem, unit: unitBehind(c.words, i), shown: w.Lower, scale: scaleBehind(c.words, i)}
			if n.scale > 0 {
				n.shown += " " + c.words[i+1].Lower
			}
			c.numbers = append(c.numbers, n)
			continue
		case w.Common:
			continue
		}

		if previous != "" {
			c.pairs = append(c.pairs, [2]string{previous, w.Stem})
		}
		previous = w.Stem

		if seen[w.Stem] {
			continue
		}
		seen[w.Stem] = true
		t := term{stem: w.Stem, shown: w.Lower, weight: weightOf(w), name: w.Name}
		c.terms = append(c.terms, t)
		c.total += t.weight
		if w.Name {
			c.names = append(c.names, t)
		}
	}

	return c
}

// weightOf says how much a word tells: names and long words tell most.
func weightOf(w prose.Word) float64 {
	switch n := len(w.Stem); {
	case w.Name:
		return 1.5
	case weak[w.Lower]:
		return 0.4
	case n >= 8:
		return 1.25
	case n <= 3:
		return 0.8
	}
	return 1
}

// unitBehind returns the stem of the word that a number counts, "" if none follows.
func unitBehind(words []prose.Word, i int) string {
	for k := i + 1; k < len(words) && k <= i+2; k++ {
		if !words[k].Common && !words[k].Number {
			return words[k].Stem
		}
	}
	return ""
}

// score is the share of the claim that the evidence says: what the best window has counts
// most, what stands anywhere in the evidence less, and words that stand beside each other
// in both for something.
func (c *claim) score(e *evidence, best match) float64 {
	if c.total == 0 {
		return 1 // numbers alone
	}

	anywhere := 0.0
	for _, t := range c.terms {
		anywhere += t.weight * e.nearness(t.stem)
	}

	pairs := 0
	for _, p := range c.pairs {
		if e.pairs[p] || e.pairs[[2]string{p[1], p[0]}] {
			pairs++
		}
	}

	score := 0.62*best.share + 0.38*anywhere/c.total
	if len(c.pairs) > 0 {
		score = 0.88*score + 0.12*min(1, 1.6*float64(pairs)/float64(len(c.pairs)))
	}
	return min(1, score)
}

// breaks stand between parts of a sentence that claim something each.
var breaks = regexp.MustCompile(`;|, (?:and|but|while|whereas|which|although) |\. `)

// unsaidPart returns the beginning of a part of the claim of which the evidence has next to
// nothing, or "".
func (c *claim) unsaidPart(e *evidence) string {
	parts := breaks.Split(c.text, -1)
	if len(parts) < 2 {
		return ""
	}

	for _, part := range parts {
		one := newClaim(part)
		// A short part says too little to be judged by itself.
		if len(one.terms) < partTerms {
			continue
		}

		share := 0.0
		for _, t := range one.terms {
			share += t.weight * e.nearness(t.stem)
		}

		if share/one.total < partFrom {
			words := strings.Fields(part)
			return strings.Join(words[:min(len(words), 8)], " ")
		}
	}
	return ""
}

// missingNumbers returns the numbers of the claim that the evidence does not have.
func (c *claim) missingNumbers(e *evidence) []string {
	var missing []string
	for _, n := range c.numbers {
		if !e.hasNumber(n) && !slices.Contains(missing, n.shown) {
			missing = append(missing, n.shown)
		}
	}
	return missing[:min(len(missing), maxReasons)]
}

// missingNames returns the names of the claim that the evidence does not have.
func (c *claim) missingNames(e *evidence) []string {
	var missing []string
	for _, t := range c.names {
		if e.nearness(t.stem) < 0.8 && !e.initials[t.shown] {
			missing = append(missing, t.shown)
		}
	}
	return missing[:min(len(missing), maxReasons)]
}

// missingTerms returns the words of the claim that tell most and that the window does not
// have.
func (c *claim) missingTerms(e *evidence, best match) []string {
	var missing []term
	for _, t := range c.terms {
		if e.nearnessIn(t.stem, best) < 0.5 {
			missing = append(missing, t)
		}
	}

	slices.SortStableFunc(missing, func(a, b term) int { return cmp.Compare(b.weight, a.weight) })

	names := make([]string, 0, maxReasons)
	for _, t := range missing[:min(len(missing), maxReasons)] {
		names = append(names, t.shown)
	}
	return names
}

// withoutReferences returns a sentence without references in brackets.
func withoutReferences(sentence string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(sentence, '[')
		if open < 0 {
			b.WriteString(sentence)
			return b.String()
		}

		end := strings.IndexByte(sentence[open:], ']')
		if end < 0 || !isReference(sentence[open+1:open+end]) {
			b.WriteString(sentence[:open+1])
			sentence = sentence[open+1:]
			continue
		}

		b.WriteString(sentence[:open])
		sentence = sentence[open+end+1:]
	}
}

// isReference reports whether what stands in brackets is numbers or ids, and nothing else.
func isReference(inside string) bool {
	for _, part := range strings.FieldsFunc(inside, func(r rune) bool { return strings.ContainsRune(",; –-", r) }) {
		if !strings.HasPrefix(strings.ToUpper(part), "REF_") && strings.Trim(part, "0123456789?") != "" {
			return false
		}
	}
	return true
}

// Claims reports whether a sentence claims something: it is no heading, no question, and
// says more than a phrase.
func Claims(sentence string) bool {
	text := strings.TrimSpace(withoutReferences(sentence))
	if text == "" || text[0] == '#' || strings.HasSuffix(text, "?") || strings.HasSuffix(text, ":") {
		return false
	}

	said := 0
	for _, w := range prose.Words(text) {
		if !w.Common || w.Number {
			said++
		}
	}
	return said >= 3
}

// Says reports whether a text has a word besides its references.
func Says(text string) bool { return strings.ContainsFunc(withoutReferences(text), unicode.IsLetter) }

func (v Verdict) String() string {
	return fmt.Sprintf("%s (%.2f) %s", v.Grade, v.Score, strings.Join(v.Reasons, "; "))
}
