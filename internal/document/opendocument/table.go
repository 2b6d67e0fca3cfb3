package opendocument

import (
	"encoding/xml"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// Bounds of tables.
const (
	maxNested  = 20
	maxColumns = 1000
	maxRepeats = 1000 // of a row of a text's table
)

// readTable reads a table of a text.
func (p *parser) readTable() ([]row, error) {
	if p.tables++; p.tables > maxNested {
		return nil, document.Refuse("damaged: more than %d tables within each other", maxNested)
	}
	defer func() { p.tables-- }()

	var rows []row
	above := map[int]*tallCell{}
	heads := false
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "table-header-rows":
			// Rows may stand within the element for heads, or beside it.
			heads = true
			err := p.xml.Each(child, nil)
			heads = false
			return err
		case "table-row":
			times := min(max(1, parseCount(xmlread.Attr(e, "number-rows-repeated"))), maxRepeats)
			cells, err := p.readRow(above)
			if err != nil {
				return err
			}
			rows = append(rows, row{cells: cells, times: times, head: heads})
			return p.writer.CountCells(times * (richtext.Width(cells) + 1))
		case "table-column", "table-columns", "forms", "shapes", "named-expressions", "desc", "title", "soft-page-break", "table-source":
			return p.xml.Skip()
		}
		return p.xml.Each(child, nil)
	}

	return rows, p.xml.Each(child, nil)
}

// A tallCell is a cell that covers rows below its own.
type tallCell struct {
	richtext.Cell
	left int // rows that it covers yet
}

// readRow reads a row of a table, below cells that cover several rows, by column.
func (p *parser) readRow(above map[int]*tallCell) ([]richtext.Cell, error) {
	r := rowReader{parser: p, above: above}

	err := p.xml.Each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "table-cell":
			return r.readCell(e)
		case "covered-table-cell":
			r.cover(r.repeats(e))
		}
		return p.xml.Skip()
	}, nil)

	return r.cells, err
}

// A rowReader reads one row of a table.
type rowReader struct {
	*parser
	above  map[int]*tallCell // that cover rows below their own, by column
	cells  []richtext.Cell
	width  int // columns of the cells
	joined int // cells to come that belong to the last one
}

// repeats returns how many cells an element stands for, within the columns that are left.
func (r *rowReader) repeats(e xml.StartElement) int {
	return min(max(1, parseCount(xmlread.Attr(e, "number-columns-repeated"))), maxColumns-r.width)
}

// readCell reads a cell and adds it.
func (r *rowReader) readCell(e xml.StartElement) error {
	c, err := r.readCellText()
	if err != nil {
		return err
	}

	at := r.width
	c.Span = min(parseCount(xmlread.Attr(e, "number-columns-spanned")), maxColumns-r.width)
	r.add(c, r.repeats(e))

	// The cells that it covers come below it in their rows.
	if down := parseCount(xmlread.Attr(e, "number-rows-spanned")); down > 1 && len(r.cells) > 0 {
		r.above[at] = &tallCell{r.cells[len(r.cells)-1], down - 1}
	}
	return nil
}

// readCellText reads the text of a cell, which is at the place of its first line.
func (r *rowReader) readCellText() (richtext.Cell, error) {
	var c richtext.Cell
	var texts []string

	err := r.readBlocks(0, func(l line) error {
		if c.Place == nil {
			c.Place = &mapreduce.Location{Paragraph: min(max(1, l.number), mapreduce.MaxPage)}
		}

		var lines []line
		err := r.flattenTo(&lines)(l)
		for _, l := range lines {
			texts = append(texts, strings.TrimSpace(l.mark+" "+l.text))
		}
		return err
	})

	c.Text = strings.Join(texts, "\n")
	return c, err
}

// add adds a cell that repeats, or one that covers several columns.
func (r *rowReader) add(c richtext.Cell, repeats int) {
	switch {
	case c.Span > 1:
		r.cells, r.width = append(r.cells, c), r.width+c.Span
		r.joined = c.Span - 1
	case repeats > 0:
		c.Times = repeats
		r.cells, r.width = append(r.cells, c), r.width+repeats
	}
}

// cover adds what stands in cells that others cover: nothing, or the text of a cell above that covers
// several rows. The cells that the last one covers in its own row are part of it.
func (r *rowReader) cover(repeats int) {
	for range repeats {
		if r.joined > 0 {
			r.joined--
			continue
		}

		c := richtext.Cell{}
		if tall := r.above[r.width]; tall != nil && tall.left > 0 {
			c = tall.Cell
			c.Tall = true
			tall.left--
			r.joined = max(c.Span, 1) - 1
		}
		r.cells, r.width = append(r.cells, c), r.width+max(c.Span, 1)
	}
}
