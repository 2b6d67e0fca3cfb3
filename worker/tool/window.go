package tool

import (
	"fmt"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/shorten"
)

// A Window is the part of a text that a call shows.
type Window struct {
	Range          // bytes
	Start, End int // characters, counted in code points
	Total      int // characters of the whole text
}

// ShowFrom returns the part of a text that begins at a character, has at most so many
// bytes, and ends between two characters: at the end of a line where one is near. An error
// says that the text ends before.
func ShowFrom(text string, start, bytes int) (Window, error) {
	w := Window{Total: utf8.RuneCountInString(text)}
	if start < 0 || start > 0 && start >= w.Total {
		return w, fmt.Errorf("start: %d is not within the %d characters of the text", start, w.Total)
	}

	w.Start = start
	w.Range.Start = offsetOf(text, start)
	w.Range.End = min(len(text), w.Range.Start+bytes)
	for w.Range.End < len(text) && w.Range.End > w.Range.Start && !utf8.RuneStart(text[w.Range.End]) {
		w.Range.End--
	}

	// A cut at the end of a line reads better, if it costs no more than a quarter.
	if w.Range.End < len(text) {
		for i := w.Range.End; i > w.Range.Start+bytes*3/4; i-- {
			if text[i-1] == '\n' {
				w.Range.End = i
				break
			}
		}
	}

	w.End = w.Start + utf8.RuneCountInString(text[w.Range.Start:w.Range.End])
	return w, nil
}

// offsetOf returns the byte at which a character begins.
func offsetOf(text string, character int) int {
	n := 0
	for at := range text {
		if n == character {
			return at
		}
		n++
	}
	return len(text)
}

// String says which part it is, and how to go on, for a model.
func (w Window) String() string {
	switch {
	case w.Start == 0 && w.End == w.Total:
		return fmt.Sprintf("%d characters, all shown", w.Total)
	case w.End == w.Total:
		return fmt.Sprintf("characters %d to %d of %d, the end", w.Start, w.End, w.Total)
	}
	return fmt.Sprintf("characters %d to %d of %d; go on with start %d", w.Start, w.End, w.Total, w.End)
}

// CutText returns a text of at most so many bytes, cut between two characters, and how many
// bytes were left out.
func CutText(text string, bytes int) (string, int64) {
	if len(text) <= bytes {
		return text, 0
	}
	at := shorten.Boundary(text, bytes)
	return text[:at], int64(len(text) - at)
}
