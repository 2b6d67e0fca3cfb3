package claims

import (
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// An evidence is passages made ready.
type evidence struct {
	sentences []sentence
	stems     map[string]bool // of all sentences
	numbers   map[string]bool
	units     map[number]bool // numbers with what they count
	pairs     map[[2]string]bool
	initials  map[string]bool // abbreviations whose words stand in a row, in small letters
	roots     map[string]bool // the first letters of long stems
	scales    map[int]bool    // powers of ten of words such as million, also of "(in millions)" above a table
}

// A sentence is one of the evidence.
type sentence struct {
	words   []prose.Word
	numbers int // among the words
	stems   map[string]bool
	roots   map[string]bool
	about   bool // it is from what is known of a source, and not from its passage
}

// rootLength is how many first letters long words have in common that mean about the same.
const rootLength = 6

// A match is a window of sentences [from, to) and the share of a claim that it has.
type match struct {
	from, to int
	share    float64
}

func newEvidence(sources []Source) *evidence {
	e := &evidence{
		stems: make(map[string]bool), numbers: make(map[string]bool), units: make(map[number]bool), pairs: make(map[[2]string]bool),
		initials: make(map[string]bool), roots: make(map[string]bool), scales: make(map[int]bool),
	}
	for _, source := range sources {
		e.addText(source.Passage, false)
		e.addText(source.About, true)
	}
	return e
}

func (e *evidence) addText(text string, about bool) {
	for _, span := range prose.Sentences(text) {
		e.addSentence(prose.Words(span.In(text)), about)
	}
}

func (e *evidence) addSentence(words []prose.Word, about bool) {
	s := sentence{words: words, stems: make(map[string]bool), roots: make(map[string]bool), about: about}

	previous := ""
	for i, w := range words {
		if scale := scales[w.Lower]; scale > 0 {
			e.scales[scale] = true
		}

		if w.Number {
			s.numbers++
			e.numbers[w.Stem] = true
			e.units[number{value: w.Stem, unit: unitBehind(words, i)}] = true
			s.stems[w.Stem] = true
			continue
		}

		if w.Common {
			continue
		}

		if previous != "" {
			e.pairs[[2]string{previous, w.Stem}] = true
		}
		previous = w.Stem
		s.stems[w.Stem], e.stems[w.Stem] = true, true
		if len(w.Stem) >= rootLength {
			s.roots[w.Stem[:rootLength]], e.roots[w.Stem[:rootLength]] = true, true
		}
	}

	e.addInitials(words)
	// Beyond the bound the words of a sentence count, and their order does not.
	if len(e.sentences) < maxSentences {
		e.sentences = append(e.sentences, s)
	}
}

// addInitials notes the first letters of words in a row, which an abbreviation may stand
// for, with and without the common words among them.
func (e *evidence) addInitials(words []prose.Word) {
	var letters []string
	for _, w := range words {
		if w.Number || w.Common {
			continue
		}
		for _, r := range w.Lower {
			letters = append(letters, string(r))
			break
		}
	}

	for n := 2; n <= 5; n++ {
		for i := 0; i+n <= len(letters); i++ {
			short := strings.Join(letters[i:i+n], "")
			e.initials[short], e.initials[short+"s"] = true, true
		}
	}
}

// nearness says how well the evidence has a word anywhere, in [0,1].
func (e *evidence) nearness(stem string) float64 {
	return nearnessTo(stem, e.stems, e.roots, e.initials)
}

// nearnessIn is nearness to the sentences of a window.
func (e *evidence) nearnessIn(stem string, m match) float64 {
	best := 0.0
	for _, s := range e.sentences[m.from:m.to] {
		best = max(best, nearnessTo(stem, s.stems, s.roots, e.initials))
	}
	return best
}

func nearnessTo(stem string, stems, roots, initials map[string]bool) float64 {
	if stems[stem] {
		return 1
	}

	for _, other := range synonyms[stem] {
		if stems[other] {
			return 0.9
		}
	}

	if len(stem) >= rootLength && roots[stem[:rootLength]] {
		return 0.8
	}
	if len(stem) >= 2 && len(stem) <= 5 && isLetters(stem) && initials[stem] && !vowelInside(stem) {
		return 0.8
	}
	return 0
}

func isLetters(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
}

// vowelInside reports whether a short word could be spoken: an abbreviation rarely can.
func vowelInside(s string) bool { return strings.ContainsAny(s, "aeiouy") }

// bestMatch returns the window that has most of the claim.
func (e *evidence) bestMatch(c *claim) match {
	var best match
	if c.total == 0 {
		return match{0, min(1, len(e.sentences)), 1}
	}

	near := make([][]float64, len(e.sentences)) // by sentence and term
	for i, s := range e.sentences {
		near[i] = make([]float64, len(c.terms))
		for k, t := range c.terms {
			near[i][k] = nearnessTo(t.stem, s.stems, s.roots, e.initials)
		}
	}

	for n := 1; n <= windowLength; n++ {
		// The window has a word as well as the best of its sentences has it.
		for from := 0; from+n <= len(e.sentences); from++ {
			share := 0.0
			for k, t := range c.terms {
				most := 0.0
				for i := from; i < from+n; i++ {
					most = max(most, near[i][k])
				}
				share += t.weight * most
			}

			if share /= c.total; share > best.share+1e-9 {
				best = match{from, from + n, share}
			}
		}
	}

	return best
}

// hasNumber reports whether the evidence has a number, whatever it counts there. One with a
// scale, such as 8.738 billion, may be written with another one, in full, or as 8,738 in a
// table of millions.
func (e *evidence) hasNumber(n number) bool {
	value := strings.TrimSuffix(n.value, "%")
	if n.scale == 0 {
		return e.hasValue(value)
	}

	if (len(e.scales) == 0 || e.scales[n.scale]) && e.hasValue(value) || e.hasValue(shifted(value, n.scale)) {
		return true
	}

	for scale := range e.scales {
		if e.hasValue(shifted(value, n.scale-scale)) {
			return true
		}
	}
	return false
}

func (e *evidence) hasValue(value string) bool { return e.numbers[value] || e.numbers[value+"%"] }
