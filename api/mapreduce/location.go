package mapreduce

import (
	"strconv"
	"strings"
)

// A Location says where a reader of a document would look for a piece of its text. Only
// the fields that the document's format has are set.
type Location struct {
	// Place is the location in words, such as "page 3". Left empty it follows from the
	// other fields: see String.
	Place     string
	Page      int    // of a PDF file, counted from 1
	Boxes     []Box  // what the text covers of pages, about one a line, in order of the text
	Sheet     string // of a workbook
	Cell      string // of the sheet, such as "B7", or "B7:C9" for several
	Slide     int    // counted from 1
	Paragraph int    // counted from 1
	Part      string // of a message
	Header    string // of the message or its part, such as "Subject"
	Chapter   string // of a book
	// Recognised is how sure the program was of the word that it was least sure of, in (0, 1], if the
	// text was recognised in a picture; else 0.
	Recognised float64
}

// A Box is a rectangle on a page as a viewer shows it. Lengths are in points, 72 an inch, and in
// pixels of a picture, from the page's top left corner. The zero Box is none.
type Box struct {
	Page                     int // counted from 1
	Left, Top, Right, Bottom float64
}

// Bounds of locations.
const (
	MaxLocationText = 256     // bytes of each of a location's texts
	MaxBoxes        = 64      // boxes of one citation
	MaxPage         = 1 << 24 // the highest number of a page, slide or paragraph
)

// String returns the location in words.
func (l *Location) String() string {
	if l.Place != "" {
		return l.Place
	}

	var words []string
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+" "+value)
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}

	cell := "cell"
	if strings.Contains(l.Cell, ":") {
		cell = "cells"
	}

	add("page", number(l.Page))
	add("sheet", l.Sheet)
	add(cell, l.Cell)
	add("slide", number(l.Slide))
	add("part", l.Part)
	add("header", l.Header)
	add("chapter", l.Chapter)
	add("paragraph", number(l.Paragraph))

	return strings.Join(words, ", ")
}

// FirstBoxes returns the page that the text begins on, and the edges of its boxes there: left, top, right
// and bottom of each. The page is 0 of a text without boxes.
func (l *Location) FirstBoxes() (page int, edges []float64) {
	if l == nil || len(l.Boxes) == 0 {
		return 0, nil
	}
	page = l.Boxes[0].Page
	for _, b := range l.Boxes {
		if b.Page == page {
			edges = append(edges, b.Left, b.Top, b.Right, b.Bottom)
		}
	}
	return page, edges
}
