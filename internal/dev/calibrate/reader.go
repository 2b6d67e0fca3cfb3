package main

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/lookalike"
)

// Nobody has a model here that sees. A simulated reader stands for one: it quotes lines that people read in
// a page as they are, with one letter or digit misread, or those of another page, as a model that makes them up.
const (
	asItIs = iota
	misread
	madeUp
	ways
)

// notThere is the grade of a quote that recognised text does not have: a value with it is seen, at best.
const notThere ground.Grade = "seen"

// grades are all that a quote of a picture may have.
var grades = []ground.Grade{ground.Exact, ground.Normalised, ground.Fuzzy, ground.Lookalike, notThere}

// quoted counts lines by the grade that they have in what was recognised, and by how they were read.
type quoted map[ground.Grade]*[ways]int

// quote has the reader quote all lines of pages.
func quote(pages []*page) (of quoted, lines [ways]int) {
	of = make(quoted)
	for _, g := range grades {
		of[g] = new([ways]int)
	}

	for i, p := range pages {
		if p.text == "" || len(p.Lines) == 0 {
			continue
		}
		text, similar := ground.New(p.text), lookalike.New(p.text)
		count := func(line string, way int) {
			lines[way]++
			of[gradeOf(text, similar, line)][way]++
		}

		for _, line := range p.Lines {
			if !says(line) {
				continue
			}
			count(line, asItIs)
			if wrong := misreadLine(line); !has(p.Lines, wrong) { // as another line of the page may be
				count(wrong, misread)
			}
		}
		for _, line := range pages[(i+1)%len(pages)].Lines {
			if says(line) && !has(p.Lines, line) {
				count(line, madeUp)
			}
		}
	}
	return of, lines
}

// says reports whether a line has letters and digits enough to be looked for.
func says(line string) bool {
	n := 0
	for _, c := range line {
		if isLetterOrDigit(c) {
			n++
		}
	}
	return n >= lookalike.MinLength
}

// has reports whether lines of a page have a line, whatever stands before and behind it.
func has(lines []string, line string) bool {
	for _, l := range lines {
		if strings.Contains(strings.ToUpper(l), strings.ToUpper(line)) {
			return true
		}
	}
	return false
}

// gradeOf returns the grade of a quote, as a job finds it.
func gradeOf(text *ground.Text, similar *lookalike.Text, line string) ground.Grade {
	if span, ok := text.Find(line, -1); ok && span.Verified() {
		return span.Grade
	}
	if len(similar.Find(line, 1)) > 0 {
		return ground.Lookalike
	}
	return notThere
}

// misreadLine returns a line with a digit that is another one, or a letter if it has no digit. The same line is
// misread in the same way.
func misreadLine(line string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(line))                     // never fails
	random := rand.New(rand.NewPCG(h.Sum64(), 0x5e)) //nolint:gosec // the same lines each time

	of, from, to := unicode.IsLetter, 'A', 26
	if strings.ContainsFunc(line, unicode.IsDigit) {
		of, from, to = unicode.IsDigit, '0', 10
	}
	letters := []rune(line)
	var at []int
	for i, c := range letters {
		if of(c) {
			at = append(at, i)
		}
	}

	i := at[random.IntN(len(at))]
	wrong := from + rune(random.IntN(to))
	for unicode.ToUpper(letters[i]) == wrong {
		wrong = from + rune(random.IntN(to))
	}
	if unicode.IsLower(letters[i]) {
		wrong = unicode.ToLower(wrong)
	}
	letters[i] = wrong
	return string(letters)
}
