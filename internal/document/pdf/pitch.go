package pdf

import (
	"math"
	"slices"

	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
)

// All letters of a font of one pitch, as of a typewriter, are equally wide, and so is its blank:
// often wider than a gap between cells is, measured by the height of letters. In such a line every
// word begins at a multiple of the pitch. By that it is known, as fonts do not always say so. Behind
// a gap of several blanks another cell of a table may begin, which stands anywhere.

// Bounds of lines of one pitch.
const (
	offPitch   = 0.08  // pitches by which a word may stand beside its place
	samePitch  = 0.005 // share by which two pitches may differ and be the same
	sureGaps   = 5     // gaps of lines that follow each other, at least: fewer may fit by chance
	bearings   = 0.85  // pitches that are free at both ends of a word, at most
	mostPitchs = 4     // of a page
	cellBlanks = 2.5   // blanks behind which another cell may begin, at least
)

// A pitchLine is the words of a line of the file.
type pitchLine struct {
	words   []arrange.Word
	least   float64 // the pitch if there is one, and a single blank anywhere; 0 if unknown
	decided bool
}

// gaps returns how many gaps of the line are between words of one cell, if it has a pitch.
func (l *pitchLine) gaps(pitch float64) (n int) {
	for i := 1; i < len(l.words); i++ {
		if arrange.BlanksBetween(&l.words[i-1], &l.words[i], pitch) < cellBlanks {
			n++
		}
	}
	return n
}

// findPitches sets the pitch of words that stand in lines of one pitch.
func findPitches(words []arrange.Word) {
	lines := pitchLines(words)
	for range mostPitchs {
		pitch := commonPitch(lines)
		if pitch == 0 {
			return
		}
		setPitch(lines, pitch)
	}
}

// pitchLines returns the lines of several words.
func pitchLines(words []arrange.Word) (lines []pitchLine) {
	for from := 0; from < len(words); {
		to := from + 1
		for to < len(words) && words[to].Line == words[from].Line {
			to++
		}

		if to-from > 1 {
			l := pitchLine{words: words[from:to]}
			l.least = l.leastAdvance()
			lines = append(lines, l)
		}

		from = to
	}

	return lines
}

// leastAdvance returns how far the pen moves for a letter, where it moves least; 0 if it goes
// back, or if where it stood is not known.
func (l *pitchLine) leastAdvance() (least float64) {
	for i := 1; i < len(l.words); i++ {
		a, b := &l.words[i-1], &l.words[i]
		if a.Letters == 0 || b.Letters == 0 || !(b.Pen > a.Pen) {
			return 0
		}
		if by := (b.Pen - a.Pen) / float64(a.Letters+1); least == 0 || by < least {
			least = by
		}
	}
	return least
}

// commonPitch returns the pitch that most of the lines which are not decided may have, 0 of none.
func commonPitch(lines []pitchLine) float64 {
	var all []float64
	for i := range lines {
		if !lines[i].decided && lines[i].least > 0 {
			all = append(all, lines[i].least)
		}
	}
	slices.Sort(all)

	from, most, pitch := 0, 0, 0.0
	for i := range all {
		for all[i] > all[from]*(1+samePitch) {
			from++
		}
		if n := i - from + 1; n > most {
			most, pitch = n, all[from+n/2]
		}
	}
	return pitch
}

// setPitch sets a pitch in the lines that have it: runs of lines with enough gaps, and the others
// that fit it if most gaps of the page are in such runs. Lines whose pitch it could be are decided.
func setPitch(lines []pitchLine, pitch float64) {
	sure, all := 0, 0
	for from := 0; from < len(lines); {
		to, gaps := from, 0
		for to < len(lines) && lines[to].fits(pitch) {
			gaps += lines[to].gaps(pitch)
			to++
		}
		if to > from && gaps >= sureGaps {
			sure += gaps
			for i := from; i < to; i++ {
				lines[i].set(pitch)
			}
		}
		// A line that does not fit ends the run, and is no part of the next.
		for to = max(to, from+1); from < to; from++ {
			all += lines[from].gaps(pitch)
		}
	}

	for i := range lines {
		l := &lines[i]
		if 2*sure > all && l.fits(pitch) {
			l.set(pitch)
		}
		l.decided = l.decided || math.Abs(l.least-pitch) <= 2*samePitch*pitch
	}
}

// fits reports whether every word of the line begins at a multiple of a pitch, and is as wide as
// its letters are then: columns of numbers of equal length stand at multiples of something, too.
func (l *pitchLine) fits(pitch float64) bool {
	if l.decided || l.least == 0 {
		return false
	}

	for i := range l.words {
		wide := (l.words[i].Box.Right - l.words[i].Box.Left) / pitch
		if n := float64(l.words[i].Letters); wide < n-bearings-offPitch || wide > n+offPitch {
			return false
		}
	}

	for i := 1; i < len(l.words); i++ {
		blanks := arrange.BlanksBetween(&l.words[i-1], &l.words[i], pitch)
		if blanks >= cellBlanks {
			continue // another cell
		}

		// Between the beginnings of two words there must be room for the first one and a
		// space.
		if math.Abs(blanks-math.Round(blanks)) > offPitch || math.Round(blanks) < 1 {
			return false
		}
	}

	return true
}

func (l *pitchLine) set(pitch float64) {
	l.decided = true
	for i := range l.words {
		l.words[i].Pitch = pitch
	}
}
