// Package arrange puts the words of a page in the order in which people read them, and makes of them
// the text of a document: rows, blocks and columns, tables with lines around their cells and without,
// and text that runs from right to left. It knows words, lines and boxes, and nothing of the files
// that they are from. It is pure.
package arrange

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Word is a word with its box on the page.
type Word struct {
	Text string
	Box  mapreduce.Box
	Line int // words of one line of the file have the same, and lines follow each other
	// Sure is how sure it is, in (0, 1], of a word that was recognised in a picture; else 0.
	Sure float64
	// The parts, from left to right, of a word that does not run in one direction.
	Parts  []Word
	before string // what parts it from the word before it in its row
	grid   *grid  // the table for which it stands, in a line of its own; or nil
	// Where the pen stood before it, and how often it moved; 0 letters if that is not known.
	Pen     float64
	Letters int
	Pitch   float64 // of a font of one pitch; 0 of others
}

// A Note is a text beside that of the page: the value of a field, or an annotation.
type Note struct {
	Name string // of the field; may be empty
	Text string
	Box  mapreduce.Box
}

// A Ruling is a line of a page that is level or upright, as a viewer shows it, in points.
type Ruling struct {
	At       float64 // how far from the top it is if it is level, from the left if it is upright
	From, To float64 // what it covers in the other direction
}

// Rulings are the lines of a page.
type Rulings struct {
	Level, Upright []Ruling
	// The sides of what is filled, which give cells a colour.
	LevelSides, UprightSides []Ruling
	Cut                      bool // there are more than are looked at
}

// Union returns the smallest box around two of one page.
func Union(a, b mapreduce.Box) mapreduce.Box {
	return mapreduce.Box{
		Page: a.Page, Left: min(a.Left, b.Left), Top: min(a.Top, b.Top), Right: max(a.Right, b.Right), Bottom: max(a.Bottom, b.Bottom),
	}
}

// Within keeps a length within what a layout may have, to a tenth of a point.
func Within(points float64) float64 {
	const most = 20_000
	if !(points > -most) { // which no number is not, either
		return -most
	}
	return math.Round(min(points, most)*10) / 10
}

// BlanksBetween returns how many letters of a pitch have room between two words.
func BlanksBetween(a, b *Word, pitch float64) float64 {
	return (b.Pen-a.Pen)/pitch - float64(a.Letters)
}

// partsWords reports whether what stands between two words of one pitch, which follow each other,
// is what parts words: a blank, or two behind the end of a sentence. It is false of other words.
func partsWords(a, b *Word) bool {
	if a.Pitch == 0 || a.Pitch != b.Pitch {
		return false
	}
	blanks := math.Round(BlanksBetween(a, b, a.Pitch))
	last, _ := utf8.DecodeLastRuneInString(a.Text)
	return blanks == 1 || blanks == 2 && strings.ContainsRune(".:;!?", last)
}
