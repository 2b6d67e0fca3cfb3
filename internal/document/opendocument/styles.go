package opendocument

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// A listStyle says how the items of lists are marked, and counts them.
type listStyle struct {
	levels  [10]richtext.ListLevel
	counter richtext.ListCounter
}

// A font is what counts of how the characters of a style look.
type font struct {
	base     string // the style that it is based on
	position richtext.Position
	placed   bool   // the position is said
	display  string // "none" if nobody sees them; "" if it is not said
}

// readStyles reads the styles of characters and lists of an entry, and the margins of pages.
func (r *reader) readStyles(name string) error {
	if !r.zip.Has(name) {
		return nil
	}

	return r.open(name, func(d *xmlread.Decoder) error {
		var child func(xml.StartElement) error
		child = func(e xml.StartElement) error {
			switch e.Name.Local {
			case "body", "font-face-decls", "meta", "settings", "scripts":
				return d.Skip()
			case "style":
				return r.readStyle(d, e)
			case "list-style":
				s := new(listStyle)
				r.lists[xmlread.Attr(e, "name")] = s
				return s.read(d)
			case "outline-style":
				r.outline = new(listStyle)
				return r.outline.read(d)
			// Headers and footers belong to the styles of pages.
			case "header", "header-left", "header-first", "footer", "footer-left", "footer-first":
				return r.readMargin(d, e.Name.Local)
			}
			return d.Each(child, nil)
		}
		return d.Each(child, nil)
	})
}

// readStyle reads a style, if it is one of characters or paragraphs.
func (r *reader) readStyle(d *xmlread.Decoder, e xml.StartElement) error {
	fonts := r.fonts
	switch xmlread.Attr(e, "family") {
	case "text":
	case "paragraph":
		fonts = r.ofBlocks
	default:
		return d.Skip()
	}

	name := xmlread.Attr(e, "name")
	f := font{base: xmlread.Attr(e, "parent-style-name")}

	err := d.Each(func(e xml.StartElement) error {
		if rise, _, _ := strings.Cut(xmlread.Attr(e, "text-position"), " "); rise != "" {
			f.position, f.placed = positionOf(rise), true
		}
		if e.Name.Local == "text-properties" {
			f.display = xmlread.Attr(e, "display")
		}
		return d.Skip()
	}, nil)

	fonts[name] = f
	return err
}

// positionOf returns where characters stand: by a name, or by how far they are raised, as a
// percentage.
func positionOf(rise string) richtext.Position {
	switch rise {
	case "super":
		return richtext.Raised
	case "sub":
		return richtext.Lowered
	}

	percent, err := strconv.ParseFloat(strings.TrimSuffix(rise, "%"), 64)
	if err != nil {
		return richtext.OnLine
	}
	return richtext.PositionAt(percent)
}

// maxBases bounds the styles that are based on each other.
const maxBases = 20

// positionOf returns where the characters of a style stand, if that is said.
func (r *reader) positionOf(style string) (at richtext.Position, said bool) {
	for range maxBases {
		f, ok := r.fonts[style]
		if !ok || f.placed {
			return f.position, ok
		}
		style = f.base
	}
	return richtext.OnLine, false
}

// isHidden reports whether nobody sees the characters of a style, if that is said.
func isHidden(fonts map[string]font, style string) (hidden, said bool) {
	for range maxBases {
		f, ok := fonts[style]
		if !ok || f.display != "" {
			return f.display == "none", ok
		}
		style = f.base
	}
	return false, false
}

// readMargin reads a header or footer of pages.
func (r *reader) readMargin(d *xmlread.Decoder, name string) error {
	var lines []line
	before := r.paragraphs
	err := (&parser{reader: r, xml: d}).readBlocks(0, r.flattenTo(&lines))
	r.paragraphs = before // only those of the text count

	if strings.HasPrefix(name, "header") {
		r.headers = append(r.headers, lines)
	} else {
		r.footers = append(r.footers, lines)
	}

	return err
}

// Bounds of the lines of cells that repeat, in bytes. Tables within each other that each
// repeat a cell would fill the memory.
const (
	maxRepeated  = 16 << 20
	repeatedLine = 100 // of one without its text
)

// flattenTo returns a function that adds a line, or those of the cells of a table that
// have text.
func (r *reader) flattenTo(lines *[]line) func(line) error {
	return func(l line) error {
		if l.table == nil {
			*lines = append(*lines, l)
			return nil
		}

		for _, t := range l.table {
			for i := range t.times {
				if err := r.flattenRow(lines, t.cells, i > 0); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// flattenRow adds the lines of the cells of a row, which may repeat the one above it.
func (r *reader) flattenRow(lines *[]line, cells []richtext.Cell, repeats bool) error {
	for _, c := range cells {
		if c.Text == "" {
			continue
		}
		for i := range max(c.Times, 1) {
			if repeats || i > 0 {
				r.repeated += len(c.Text) + repeatedLine
			}
			if r.repeated > maxRepeated {
				return document.Refuse("more than %d bytes of cells that repeat within cells, notes or margins", maxRepeated)
			}
			*lines = append(*lines, line{text: c.Text})
		}
	}
	return nil
}

// read reads the levels of a style.
func (s *listStyle) read(d *xmlread.Decoder) error {
	return d.Each(func(e xml.StartElement) error {
		at, err := strconv.Atoi(xmlread.Attr(e, "level"))
		if at--; err == nil && 0 <= at && at < len(s.levels) {
			s.levels[at] = readLevel(e, at)
		}
		return d.Skip()
	}, nil)
}

func readLevel(e xml.StartElement, at int) richtext.ListLevel {
	l := richtext.ListLevel{Start: 1}
	if e.Name.Local == "list-level-style-bullet" || e.Name.Local == "list-level-style-image" {
		return l
	}

	switch xmlread.Attr(e, "num-format") {
	case "":
		l.Format = richtext.NoNumber
	case "a":
		l.Format = richtext.LowerLetter
	case "A":
		l.Format = richtext.UpperLetter
	case "i":
		l.Format = richtext.LowerRoman
	case "I":
		l.Format = richtext.UpperRoman
	default:
		l.Format = richtext.Decimal
	}

	if n, err := strconv.Atoi(xmlread.Attr(e, "start-value")); err == nil {
		l.Start = n
	}

	if f := xmlread.Attr(e, "num-list-format"); f != "" { // %1%.%2%.
		for level := range 10 {
			f = strings.ReplaceAll(f, fmt.Sprintf("%%%d%%", level+1), fmt.Sprintf("%%%d", level+1))
		}
		l.Text = f
		return l
	}

	shown, err := strconv.Atoi(xmlread.Attr(e, "display-levels"))
	if err != nil {
		shown = 1
	}

	var numbers []string
	for level := max(0, at+1-shown); level <= at; level++ {
		numbers = append(numbers, fmt.Sprintf("%%%d", level+1))
	}

	l.Text = xmlread.Attr(e, "num-prefix") + strings.Join(numbers, ".") + xmlread.Attr(e, "num-suffix")
	return l
}
