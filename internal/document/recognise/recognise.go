// Package recognise finds the words in pictures of pages, with their boxes and with how sure they
// are. An Engine does it: Tesseract, or a program of the user's. The package straightens a page
// before an engine sees it, and says where the words stand on the page as it was.
//
// It keeps to the following.
//
//  1. A box is one of the picture that was given, in its pixels, however the picture was turned
//     before it was read. No box leaves the picture.
//  2. Words are in the order in which the engine read them; those of a line follow each other,
//     and have the number of the line.
//  3. A page takes no more of a processor than its bound, and what others do with the processor
//     has no part in whether a page is read.
//  4. An engine runs in processes of its own, with bounds, and sees none of the secrets of this
//     process.
package recognise

import (
	"context"
	"image"
	"math"
	"strings"
	"time"
	"unicode"
)

// A Box is what a word covers, in pixels from the top left of the picture.
type Box struct{ Left, Top, Right, Bottom float64 }

// A Word is a word that was found in a picture.
type Word struct {
	Text string
	Box  Box
	Line int     // of the page; the words of a line follow each other
	Sure float64 // how sure the engine is, in [0, 1]
}

// Certainty returns how sure a text with the word can be, in (0, 1]. A mark without a letter or a digit,
// such as a colon, is often misread, and says nothing of a value.
func (w *Word) Certainty() float64 {
	if !strings.ContainsFunc(w.Text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
		return 1
	}
	return max(w.Sure, 0.01)
}

// A Page is a picture of a page that is to be read.
type Page struct {
	Picture *image.Gray // whose bounds begin at (0, 0)
	DPI     int         // pixels an inch; 0 if nobody knows
	// Wait runs the wait for the program of the engine, whose work has bounds of its own, so that
	// whoever limits the time of the caller need not count it. Nil runs it as it is.
	Wait func(wait func() error) error
}

// wait runs work of a program.
func (p *Page) wait(work func() error) error {
	if p.Wait == nil {
		return work()
	}
	return p.Wait(work)
}

// An Engine finds words in pictures. It is safe for concurrent use.
type Engine interface {
	// Name is that of the engine, as people know it.
	Name() string
	// Missing says why the engine cannot run, and what to do; "" if it can.
	Missing() string
	// Words returns the words of a page. The error says, without the page, why it has none.
	Words(ctx context.Context, page Page) ([]Word, error)
}

// Bounds of an engine's work on one page.
const (
	pageBusy   = time.Minute      // of a processor
	pageHangs  = 30 * time.Minute // of the clock, for an engine that waits for something that never comes
	pageMemory = 4 << 30          // bytes of addresses
	pageFile   = 64 << 20         // bytes of a file that it writes
	pageBytes  = 16 << 20         // of what it says
)

// Sure returns how sure words are together, each by its letters; 0 of none.
func Sure(words []Word) float64 {
	sum, letters := 0.0, 0.0
	for _, w := range words {
		n := float64(len(w.Text))
		sum, letters = sum+n*w.Sure, letters+n
	}
	if letters == 0 {
		return 0
	}
	return sum / letters
}

// Clean returns a text without what no font shows.
func Clean(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\ufeff' || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, strings.TrimSpace(text))
}

// within returns a box that leaves no picture of a size, and is no smaller than a pixel.
func (b Box) within(size image.Point) Box {
	x, y := float64(size.X), float64(size.Y)
	b.Left, b.Top = math.Max(0, math.Min(b.Left, x-1)), math.Max(0, math.Min(b.Top, y-1))
	b.Right, b.Bottom = math.Max(b.Left+1, math.Min(b.Right, x)), math.Max(b.Top+1, math.Min(b.Bottom, y))
	return b
}
