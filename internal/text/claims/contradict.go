package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// findContradiction returns how a sentence of the evidence says otherwise than the claim, or
// "". Only a sentence that has most of the claim can: what else differs is another matter.
// A sentence that says the same clears the claim, whatever others say; it may lack a word such as
// those that lead from what stands before ("In sum, …"), but no number and no name.
func (c *claim) findContradiction(e *evidence) string {
	why := ""
	for i := range e.sentences {
		s := &e.sentences[i]
		common, lacks, exact := c.inCommon(s)
		if s.about || common < contradictFrom {
			continue
		}

		found := c.differs(e, s, common)
		if found == "" && exact && (lacks == 0 || common >= sameSentence) {
			return "" // it says all of it
		}

		if why == "" {
			why = found
		}
	}
	return why
}

// inCommon returns the share of the claim's words that a sentence has, how many of them it lacks, and
// whether it has all of the claim's names and numbers.
func (c *claim) inCommon(s *sentence) (share float64, lacks int, exact bool) {
	if c.total == 0 {
		return 0, 0, true
	}

	exact = true
	for _, t := range c.terms {
		near := nearnessTo(t.stem, s.stems, s.roots, nil)
		share += t.weight * near
		if near == 0 {
			lacks++
			exact = exact && !t.name
		}
	}

	for _, n := range c.numbers {
		exact = exact && s.stems[n.value]
	}
	return share / c.total, lacks, exact
}

// differs returns in what a sentence that is about the same differs from the claim.
func (c *claim) differs(e *evidence, s *sentence, common float64) string {
	if why := c.otherPolarity(s, common); why != "" {
		return why
	}
	if why := c.otherNumber(e, s, common >= sameSentence); why != "" && common >= 0.6 {
		return why
	}

	if why := c.oppositeWord(s); why != "" {
		return why
	}

	if common >= 0.6 {
		return c.otherName(e, s, common >= sameSentence)
	}
	return ""
}

// sameSentence is what a sentence has in common with a claim that is the same but for a
// number or a name: whatever stands in its place is another one.
const sameSentence = 0.85

// otherPolarity compares negations: one that stands in the sentence or the claim alone,
// beside words that both have.
func (c *claim) otherPolarity(s *sentence, common float64) string {
	if common < 0.6 {
		return ""
	}

	mine, theirs := findNegations(c.words), findNegations(s.words)
	// Two negations cancel each other, but two against none still differ.
	if len(mine)%2 == len(theirs)%2 && len(mine) > 0 == (len(theirs) > 0) {
		return ""
	}

	// The sentence with more negations is looked through for what it alone denies.
	in, other := c.words, s.stems
	which := mine
	if len(theirs) > len(mine) {
		in, which = s.words, theirs
		other = make(map[string]bool, len(c.terms))
		for _, t := range c.terms {
			other[t.stem] = true
		}
	}

	for _, at := range which {
		if word := negated(in, at, other); word != "" {
			return fmt.Sprintf("%q is denied in one of them alone", word)
		}
	}
	return ""
}

// findNegations returns where words turn what a sentence says.
func findNegations(words []prose.Word) []int {
	var all []int
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1].Lower
		}

		// Phrases such as "not only" and "no doubt" deny nothing.
		if isNegation(w.Lower) && !(w.Lower == "not" && next == "only") && !(w.Lower == "no" && (next == "longer" || next == "doubt")) ||
			turning[w.Stem] && !w.Number && !w.Common {
			all = append(all, i)
		}
	}
	return all
}

// negated returns the word that a negation is about, if the other sentence has it, too:
// one of the words close behind it, or of those before it if none is behind.
func negated(words []prose.Word, at int, other map[string]bool) string {
	const reach = 4
	seen := 0
	for i := at + 1; i < len(words) && seen < reach; i++ {
		if seen > 0 && words[i].Start-words[i-1].End > 1 {
			break // a comma, or the like, stands between
		}

		if words[i].Common && !isNegation(words[i].Lower) {
			continue
		}

		seen++
		if other[words[i].Stem] {
			return words[i].Lower
		}
	}

	for i := at - 1; i >= 0 && i >= at-3 && seen == 0; i-- {
		if other[words[i].Stem] && !words[i].Common {
			return words[i].Lower
		}
	}
	return ""
}

// otherNumber returns a number of the claim in whose place the sentence has another one:
// it counts the same, and the number of the claim is nowhere in the evidence.
//
// In a table, which has many numbers, any number could be said to stand there.
func (c *claim) otherNumber(e *evidence, s *sentence, same bool) string {
	same = same && s.numbers <= len(c.numbers)+maxOtherNumbers

	for i, n := range c.numbers {
		// A number that the evidence has anywhere is not replaced by another one.
		if e.hasNumber(n) {
			continue
		}

		for k, w := range s.words {
			if !w.Number || c.hasNumber(w.Stem) {
				continue
			}

			unit := unitBehind(s.words, k)
			inPlace := same || n.unit != "" && unit == n.unit || strings.HasSuffix(n.value, "%") && strings.HasSuffix(w.Stem, "%") ||
				isYear(n.value) && isYear(w.Stem) || c.sameBefore(i, s, k)
			if inPlace {
				return fmt.Sprintf("the claim has %s, and the passage %s", n.shown, w.Lower)
			}
		}
	}
	return ""
}

// maxOtherNumbers is how many more numbers than the claim a sentence has at most that is no
// table.
const maxOtherNumbers = 8

// hasNumber reports whether the claim has a number.
func (c *claim) hasNumber(value string) bool {
	return slices.ContainsFunc(c.numbers, func(n number) bool {
		return strings.TrimSuffix(n.value, "%") == strings.TrimSuffix(value, "%")
	})
}

// sameBefore reports whether the words before the i-th number of the claim and before the
// k-th word of a sentence are the same.
func (c *claim) sameBefore(i int, s *sentence, k int) bool {
	at := -1 // of the i-th number, among the words
	for n, w := range c.words {
		if w.Number {
			if i == 0 {
				at = n
				break
			}
			i--
		}
	}

	before := func(words []prose.Word, at int) string {
		for at--; at >= 0; at-- {
			if !words[at].Common && !words[at].Number {
				return words[at].Stem
			}
		}
		return ""
	}

	mine := before(c.words, at)
	return mine != "" && mine == before(s.words, k)
}

func isYear(value string) bool {
	return len(value) == 4 && (strings.HasPrefix(value, "19") || strings.HasPrefix(value, "20"))
}

// oppositeWord returns a word of the claim in whose place the sentence has its opposite.
func (c *claim) oppositeWord(s *sentence) string {
	has := make(map[string]string, len(s.words)) // by the form by which opposites are found
	for _, w := range s.words {
		has[oppositeForm(w.Lower)] = w.Lower
	}

	mine := make(map[string]bool, len(c.words))
	for _, w := range c.words {
		mine[oppositeForm(w.Lower)] = true
	}

	for i, w := range c.words {
		form := oppositeForm(w.Lower)
		if has[form] != "" || w.Number {
			continue
		}

		for _, other := range opposites[form] {
			shown, there := has[other]
			if !there || mine[other] {
				continue
			}
			if besideSame(c.words, i, s) {
				return fmt.Sprintf("the claim says %q, and the passage %q", w.Lower, shown)
			}
		}
	}
	return ""
}

// besideSame reports whether a word beside the i-th of the claim stands in a sentence.
func besideSame(words []prose.Word, i int, s *sentence) bool {
	for _, step := range []int{-1, 1} {
		// At most two words on each side count as beside it.
		for k, seen := i+step, 0; k >= 0 && k < len(words) && seen < 2; k += step {
			if words[k].Common || words[k].Number {
				continue
			}
			seen++
			if s.stems[words[k].Stem] {
				return true
			}
		}
	}
	return false
}

// otherName returns a name of the claim in whose place the sentence has another one: the
// words around both are the same, and the name of the claim is nowhere in the evidence.
func (c *claim) otherName(e *evidence, s *sentence, same bool) string {
	for i, w := range c.words {
		if !w.Name && !(w.First && isCapital(w)) || e.stems[w.Stem] || c.isShort(w) && e.initials[w.Lower] || w.Common {
			continue
		}
		left, right := neighbourStem(c.words, i, -1), neighbourStem(c.words, i, 1)
		for k, o := range s.words {
			if !o.Name && !(o.First && isCapital(o)) || o.Common || c.has(o.Stem) {
				continue
			}
			before, after := neighbourStem(s.words, k, -1), neighbourStem(s.words, k, 1)
			if same || left != "" && left == before || right != "" && right == after {
				return fmt.Sprintf("the claim names %s, and the passage %s", w.Lower, o.Lower)
			}
		}
	}
	return ""
}

// isShort reports whether a word of the claim is an abbreviation: of capitals, but for a
// last s.
func (c *claim) isShort(w prose.Word) bool {
	text := strings.TrimSuffix(w.In(c.text), "s")
	return strings.ToUpper(text) == text
}

// isCapital reports whether the first word of a sentence may be a name: it is no word that
// is known to be another.
func isCapital(w prose.Word) bool {
	return !w.Common && !w.Number && len(synonyms[w.Stem]) == 0 && !weak[w.Lower]
}

// neighbourStem returns the stem of the next word that says something, in a direction, past
// words that are names themselves.
func neighbourStem(words []prose.Word, i, step int) string {
	for k := i + step; k >= 0 && k < len(words); k += step {
		if w := words[k]; !w.Common && !w.Name {
			return w.Stem
		}
	}
	return ""
}

func (c *claim) has(stem string) bool {
	return slices.ContainsFunc(c.terms, func(t term) bool { return t.stem == stem })
}
