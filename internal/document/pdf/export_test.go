package pdf

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// A Shown is a line of a made-up page as it looks, from left to right. Each character is 6
// points wide and 10 high; marks follow their letter, and stand above it.
type Shown struct {
	Left, Top float64
	Text      string
}

// ReadShown returns the text of a page with some lines. backwards has PDFium give the
// characters of each line with a letter from right to left, from right to left.
func ReadShown(backwards bool, lines ...Shown) (string, layout.Layout) {
	var words []arrange.Word
	for i, s := range lines {
		if g := s.glyphLine(backwards); arrange.HasRightToLeft([]rune(s.Text)) && g.isLegible() {
			words = append(words, g.words(i)...)
		} else {
			words = append(words, s.words(i)...)
		}
	}
	var b arrange.Text
	b.AddPage(1, arrange.Rows(words, nil), nil)
	return b.String(), b.Layout
}

func (s Shown) box(from, to int) mapreduce.Box {
	return mapreduce.Box{Page: 1, Left: s.Left + 6*float64(from), Top: s.Top, Right: s.Left + 6*float64(to), Bottom: s.Top + 10}
}

func (s Shown) words(line int) []arrange.Word {
	var words []arrange.Word
	at := 0
	for text := range strings.SplitSeq(s.Text, " ") {
		end := at + len([]rune(text))
		if text != "" {
			words = append(words, arrange.Word{Text: text, Line: line, Box: s.box(at, end)})
		}
		at = end + 1
	}
	return words
}

func (s Shown) glyphLine(backwards bool) (l glyphLine) {
	var all []glyph
	at := 0
	for _, c := range s.Text {
		g := glyph{char: c, box: s.box(at, at+1), x: s.Left + 6*float64(at), y: s.Top + 8}
		if arrange.DirectionOf(c) == arrange.Attached {
			g.box, g.x = all[len(all)-1].box, all[len(all)-1].x
		} else {
			at++
		}
		all = append(all, g)
	}
	if backwards {
		slices.Reverse(all)
	}
	for _, g := range all {
		if g.char == ' ' {
			l.blanks++
			continue
		}
		g.blanks = l.blanks
		l.glyphs = append(l.glyphs, g)
	}
	return l
}
