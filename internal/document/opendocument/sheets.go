package opendocument

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/sheet"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/text/table"
)

// maxSheetRows is more than the rows of any sheet.
const maxSheetRows = 1 << 24

// readSheets reads the sheets of a spreadsheet.
func (p *parser) readSheets() error {
	w := &sheet.Writer{Text: p.writer, Limits: p.zip.Limits()}

	return p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "table" {
			return p.xml.Skip()
		}

		w.Begin(xmlread.Attr(e, "name"))

		// Rows count from 1 in each sheet, and merged cells are of one sheet.
		number, merges := 1, sheet.NewMerges(nil)
		var child func(xml.StartElement) error
		child = func(e xml.StartElement) error {
			switch e.Name.Local {
			case "table-row":
				return p.readSheetRow(e, w, &number, merges)
			case "table-row-group", "table-header-rows", "table-rows":
				return p.xml.Each(child, nil)
			}
			return p.xml.Skip()
		}

		err := p.xml.Each(child, nil)
		w.End()
		return err
	}, nil)
}

// readSheetRow reads a row of a sheet, which may stand for several. Empty rows at the end
// of a sheet are many.
func (p *parser) readSheetRow(e xml.StartElement, w *sheet.Writer, number *int, merges *sheet.Merges) error {
	repeats := min(max(1, parseCount(xmlread.Attr(e, "number-rows-repeated"))), maxSheetRows)

	var cells []string
	empty := 0 // cells behind the last one with a value
	err := p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return p.xml.Skip()
		}
		columns := max(1, parseCount(xmlread.Attr(e, "number-columns-repeated")))
		e = e.Copy()

		text, err := p.readSheetCell()
		if err != nil {
			return err
		}

		value := cellValue(e, text)
		if e.Name.Local == "covered-table-cell" || value == "" {
			empty = min(empty+min(columns, sheet.MaxColumns), sheet.MaxColumns)
			return nil
		}

		merges.Add(mergeOf(e, *number, len(cells)+empty))
		if columns > sheet.MaxColumns || len(cells)+empty+columns > sheet.MaxColumns {
			return document.Refuse("more than %d columns", sheet.MaxColumns)
		}

		cells = append(cells, make([]string, empty)...)
		empty = 0
		for range columns {
			cells = append(cells, value)
		}

		return nil
	}, nil)
	if err != nil {
		return err
	}

	written := repeats

	// Empty rows are written once, as the last one may stand for a million.
	if len(cells) == 0 {
		written = 1
	}

	if written*len(cells) > w.Limits.WithDefaults().Cells {
		return sheet.TooManyCells(w.Limits)
	}

	for i := range written {
		merged, spans := merges.Apply(*number+i, slices.Clone(cells))
		if err := w.MergedRow(*number+i, merged, spans); err != nil {
			return err
		}
	}

	*number += repeats
	return nil
}

// mergeOf returns the cells that are one with a cell in a row and a column.
func mergeOf(e xml.StartElement, row, column int) sheet.Merge {
	rows := min(max(1, parseCount(xmlread.Attr(e, "number-rows-spanned"))), maxSheetRows)
	columns := min(max(1, parseCount(xmlread.Attr(e, "number-columns-spanned"))), sheet.MaxColumns)
	return sheet.Merge{Top: row, Bottom: row + rows - 1, Left: column, Right: column + columns - 1}
}

// readSheetCell returns the text that a cell shows.
func (p *parser) readSheetCell() (string, error) {
	var lines []string
	comments := len(p.comments)
	err := p.xml.Each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p", "h":
			return p.readParagraph(e, line{}, func(l line) error { lines = append(lines, l.text); return nil })
		case "annotation":
			return p.readComment()
		}
		return p.xml.Skip()
	}, nil)

	// A comment in a sheet has no paragraph that it could stand at.
	for i := range p.comments[comments:] {
		p.comments[comments+i].place = &mapreduce.Location{Place: fmt.Sprintf("comment %d", comments+i+1)}
	}
	return strings.Join(lines, "\n"), err
}

// cellValue returns the value of a cell as it is shown, and as it is stored if that says
// more.
func cellValue(e xml.StartElement, shown string) string {
	stored := xmlread.Attr(e, "value")
	switch xmlread.Attr(e, "value-type") {
	case "boolean":
		return booleanValue(shown, xmlread.Attr(e, "boolean-value"))
	case "date":
		return sheet.Date(shown, xmlread.Attr(e, "date-value"))
	case "time":
		if isUnseen(shown) {
			return cmp.Or(xmlread.Attr(e, "time-value"), shown)
		}
	case "float", "currency", "percentage":
		if n, err := strconv.ParseFloat(stored, 64); err == nil {
			return sheet.Number(shown, n)
		}
	}
	return shown
}

// booleanValue returns a truth as other workbooks have it, TRUE or FALSE. Programs show it in the language
// of the sheet, and what they show stands before it then.
func booleanValue(shown, stored string) string {
	truth := strings.ToUpper(strings.TrimSpace(stored))
	switch {
	case truth != "TRUE" && truth != "FALSE":
		return shown
	case isUnseen(shown) || strings.EqualFold(strings.TrimSpace(shown), truth):
		return truth
	}
	return table.WithStored(shown, truth)
}

// isUnseen reports whether a cell does not show its value, as in too narrow a column.
func isUnseen(shown string) bool { return strings.Trim(shown, "# \n") == "" }

// readSlides reads the slides of a presentation.
func (p *parser) readSlides() error {
	number := 0
	return p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "page" {
			return p.xml.Skip()
		}
		number++
		return p.readSlide(&mapreduce.Location{Slide: number})
	}, nil)
}

// A slide is what one shows.
type slide struct {
	title        string
	lines, notes []line
}

// readSlide reads a slide and writes it: its title, what else it has, and its notes.
func (p *parser) readSlide(where *mapreduce.Location) error {
	var s slide
	if err := p.xml.Each(func(e xml.StartElement) error { return p.readShape(e, &s) }, nil); err != nil {
		return err
	}
	if s.title == "" {
		s.title = fmt.Sprintf("Slide %d", where.Slide)
	}

	p.writer.Heading(2, s.title, where)
	for _, l := range s.lines {
		// Cells have the place of their slide, as paragraphs do not count there.
		for i := range l.table {
			for j := range l.table[i].cells {
				l.table[i].cells[j].Place = where
			}
		}
		p.writeAt(l, where)
	}

	spoken := &mapreduce.Location{Slide: where.Slide, Part: "notes"}
	for _, l := range s.notes {
		p.writer.Note("Notes:", strings.TrimSpace(l.mark+" "+l.text), spoken)
	}

	return p.writer.Err()
}

// readShape reads a shape of a slide.
func (p *parser) readShape(e xml.StartElement, s *slide) error {
	collect := func(l line) error {
		l.heading = 0
		s.lines = append(s.lines, l)
		return nil
	}

	switch e.Name.Local {
	case "notes":
		return p.xml.Each(func(e xml.StartElement) error {
			if role := xmlread.Attr(e, "class"); role != "notes" {
				return p.xml.Skip()
			}
			return p.readBlocks(0, p.flattenTo(&s.notes))
		}, nil)
	case "forms", "desc", "animations", "par", "event-listeners", "annotation":
		return p.xml.Skip()
	case "g", "a":
		return p.xml.Each(func(e xml.StartElement) error { return p.readShape(e, s) }, nil)
	}

	// The class says what a shape is in the layout of its slide.
	switch xmlread.Attr(e, "class") {
	case "title":
		if s.title != "" {
			break
		}
		return p.readBlocks(0, func(l line) error { s.title = strings.TrimSpace(s.title + " " + l.text); return nil })
	case "page-number", "date-time", "footer", "header":
		return p.xml.Skip()
	}

	return p.readBlocks(0, func(l line) error {
		if l.table == nil && strings.TrimSpace(l.text) == "" {
			return nil
		}
		return collect(l)
	})
}
