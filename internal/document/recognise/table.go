package recognise

import (
	"image"
	"strconv"
	"strings"
)

// columns are those that a table of words has, as Tesseract writes it.
var columns = [...]string{"level", "block_num", "par_num", "line_num", "left", "top", "width", "height", "conf", "text"}

// parse returns the words of what an engine wrote of a picture of a size: a table of tab separated
// values as Tesseract writes it, or plain text, of which no boxes are known but those of its lines,
// which share the height of the page.
func parse(out string, size image.Point) []Word {
	head, rows, _ := strings.Cut(strings.ToValidUTF8(out, ""), "\n")
	at := make(map[string]int)
	for i, name := range strings.Split(strings.TrimRight(head, "\r"), "\t") {
		at[name] = i
	}

	for _, name := range columns {
		if _, ok := at[name]; !ok {
			return parseLines(head+"\n"+rows, size)
		}
	}
	return parseRows(rows, at, size)
}

// parseRows returns the words of the rows of a table whose columns are known.
func parseRows(rows string, at map[string]int, size image.Point) []Word {
	var words []Word
	line, before := 0, ""
	for row := range strings.SplitSeq(rows, "\n") {
		cells := strings.Split(strings.TrimRight(row, "\r"), "\t")
		if len(cells) < len(at) {
			continue
		}

		text, sure := Clean(cells[at["text"]]), number(cells[at["conf"]])
		if text == "" || sure < 0 { // a row of a block, a paragraph or a line
			continue
		}

		// A line is known by its numbers, which begin anew in each paragraph and block.
		if n := cells[at["block_num"]] + "." + cells[at["par_num"]] + "." + cells[at["line_num"]]; n != before {
			line, before = line+1, n
		}

		left, top := number(cells[at["left"]]), number(cells[at["top"]])
		box := Box{left, top, left + number(cells[at["width"]]), top + number(cells[at["height"]])}
		words = append(words, Word{Text: text, Box: box.within(size), Line: line, Sure: min(sure/100, 1)})
	}

	return words
}

// parseLines returns the words of lines, each of which is as high as its part of the page. Nothing
// says how sure they are, so they are.
func parseLines(out string, size image.Point) []Word {
	var words []Word
	lines := strings.Split(strings.TrimRight(out, "\n\f "), "\n")
	height := float64(size.Y) / float64(len(lines))
	for i, l := range lines {
		for text := range strings.FieldsSeq(l) {
			if text = Clean(text); text != "" {
				box := Box{0, float64(i) * height, float64(size.X), float64(i+1) * height}
				words = append(words, Word{Text: text, Box: box.within(size), Line: i, Sure: 1})
			}
		}
	}
	return words
}

// number returns what a cell says; -1 if that is no number.
func number(cell string) float64 {
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil || n != n || n > 1<<24 || n < -(1<<24) {
		return -1
	}
	return n
}
