package ground

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// maxElided bounds the bytes of the text that one ellipsis stands for.
const maxElided = 1000

// maxSkipped bounds the bytes inspected between the parts of one quote.
const maxSkipped = 1 << 17

// minPart is the least number of words in each part of a quote with an ellipsis.
// A shorter part would be found anywhere.
const minPart = 2

// maxParts bounds the parts of a quote with ellipses.
const maxParts = 16

// findWithEllipses returns the places of a quote with ellipses. Its parts must
// stand in order and near each other, and the text between them must not reverse
// their meaning.
func (t *Text) findWithEllipses(quote string) hits {
	parts := splitEllipses(quote)
	if parts == nil || !t.partsLongEnough(parts) {
		return hits{}
	}

	all := make([][]place, len(parts))
	for i, part := range parts {
		h := t.findVerbatim(part, whole)
		// A part may be as inexact as a quote: the grade is Fuzzy in any case.
		if len(h.places) == 0 {
			h = findFuzzy(t.prepareReadings(part))
		}
		if len(h.places) == 0 {
			return hits{}
		}
		all[i] = h.places
	}

	return hits{places: t.followParts(all), grade: Fuzzy}
}

// partsLongEnough reports whether there are few parts, and each of them and all
// together are long enough.
func (t *Text) partsLongEnough(parts []string) bool {
	if len(parts) > maxParts {
		return false
	}

	words, letters := 0, 0
	for _, part := range parts {
		k := splitTokens(part)
		if len(k) < minPart {
			return false
		}
		words += len(k)
		for _, k := range k {
			letters += k.end - k.start
		}
	}

	return words >= t.gates.MinWords || letters >= t.gates.MinCharacters
}

// splitEllipses returns the parts of a quote around its ellipses, or nil if it has
// none.
func splitEllipses(quote string) []string {
	rest := strings.ReplaceAll(quote, "…", "...")
	if !strings.Contains(rest, "...") {
		return nil
	}

	var parts []string
	for more := true; more; {
		var part string
		part, rest, more = cutEllipsis(rest)
		if !isBlankText(part) {
			parts = append(parts, strings.TrimSpace(part))
		}
	}
	return parts
}

// cutEllipsis cuts s around its first ellipsis, with the brackets about it.
func cutEllipsis(s string) (before, behind string, ok bool) {
	before, behind, ok = strings.Cut(s, "...")
	if !ok {
		return s, "", false
	}
	behind = strings.TrimLeft(behind, ".")

	for _, b := range [...][2]string{{"[", "]"}, {"(", ")"}} {
		open := strings.TrimRight(before, " ")
		rest := strings.TrimLeft(behind, " ")
		if strings.HasSuffix(open, b[0]) && strings.HasPrefix(rest, b[1]) {
			return open[:len(open)-1], rest[1:], true
		}
	}
	return before, behind, true
}

// followParts returns the places that begin with a place of the first part and go
// on with the nearest place of each next part.
func (t *Text) followParts(parts [][]place) []place {
	var found []place
	next := make([]int, len(parts)) // places before it begin too early
	skipped := 0
	for _, p := range parts[0] {
		if skipped > maxSkipped {
			break
		}

		c := elision{first: p, last: p, skipped: &skipped}
		if p, ok := c.extendThrough(t, parts[1:], next[1:]); ok {
			// Of elisions that end at the same place the last begins the nearest to it.
			if n := len(found); n > 0 && found[n-1].end == p.end {
				found[n-1] = p // nearer
				continue
			}
			found = append(found, p)
		}
	}
	return found
}

// An elision is parts of a quote that follow each other in the text.
type elision struct {
	first, last place
	covered     int  // bytes of the parts
	skipped     *int // bytes between parts, of all elisions of the quote
}

// extendThrough extends the elision by the nearest place of each part. next holds,
// for each part, how many of its places lie before the last elision's.
func (c *elision) extendThrough(t *Text, parts [][]place, next []int) (place, bool) {
	c.covered = c.last.end - c.last.start

	coverage := c.last.quoteCoverage()
	for i, part := range parts {
		k, _ := slices.BinarySearchFunc(part[next[i]:], c.last.end, func(p place, at int) int { return p.start - at })
		next[i] += k
		if next[i] == len(part) {
			return place{}, false
		}

		p := part[next[i]]
		gap := p.start - c.last.end
		// What was skipped is counted for all elisions of the quote, so that texts that
		// repeat its parts cost no more than others.
		*c.skipped += min(gap, maxElided)
		if gap > maxElided || changesMeaning(t.text[c.last.end:p.start]) {
			return place{}, false
		}

		c.last, c.covered = p, c.covered+p.end-p.start
		coverage = min(coverage, p.quoteCoverage())
	}

	return place{start: c.first.start, end: c.last.end, score: &score{
		coverage: coverage,
		density:  float64(c.covered) / float64(c.last.end-c.first.start),
	}}, true
}

// quoteCoverage returns the share of the quote that p covers.
func (p place) quoteCoverage() float64 {
	if p.score == nil {
		return 1
	}
	return p.score.coverage
}

// changesMeaning reports whether s holds a negation, so that leaving it out of a
// quote changes the meaning.
func changesMeaning(s string) bool {
	s = normalQuote(s, hyphensJoined)
	return slices.ContainsFunc(splitTokens(s), func(k token) bool { return prose.IsNegative(s[k.start:k.end]) })
}
