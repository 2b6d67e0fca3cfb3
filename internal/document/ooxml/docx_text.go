package ooxml

import (
	"cmp"
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// A block is a paragraph or a table.
type block struct {
	paragraph docxParagraph
	table     [][]cell // rows; nil for a paragraph
}

// A cell is one of a table, with what is in it. One without blocks may stand
// for columns that a row leaves out.
type cell struct {
	blocks    []block
	columns   int  // that it spans; all but the first are empty
	continues bool // the cell above it
	head      bool // its row is in the head of the table, which stands again on each page
}

// A paragraph is a line of text.
type docxParagraph struct {
	text       string
	properties properties
	number     int     // counted from 1
	sure       float64 // how sure recognition is of it, of a line in a picture; else 0
}

// properties are what counts of a paragraph's.
type properties struct {
	style   string
	outline int // level of a heading, from 1; 0 for text, -1 if not said
	list    listRef
	deleted bool // the mark at its end is, so the next paragraph follows on its line
}

// A parser reads one entry.
type docxParser struct {
	*docxReader
	xml     *xmlread.Decoder
	carried string // text of a paragraph whose mark was deleted
	boxed   []block
	entry   string         // that is read
	shown   []pictureRef   // pictures of the paragraph that is read
	extent  int64          // of the drawing that is read, in square EMU
	text    *richtext.Runs // of the paragraph that is read
}

// readBlocks calls take for the paragraphs and tables within the element that began.
func (p *docxParser) readBlocks(take func(block) error) error {
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return p.readParagraph(take)
		case "tbl":
			t, err := p.readTable()
			if err != nil || len(t) == 0 {
				return err
			}
			return take(block{table: t})
		case "del", "moveFrom", "sectPr", "tblPr", "tcPr", "sdtPr", "Fallback":
			return p.xml.Skip()
		}
		return p.xml.Each(child, nil)
	}
	return p.xml.Each(child, nil)
}

// readParagraph calls take with a paragraph, and behind it with those of its text boxes.
func (p *docxParser) readParagraph(take func(block) error) error {
	var text richtext.Runs
	before, boxed, shown := p.text, p.boxed, p.shown
	p.text, p.boxed, p.shown = &text, nil, nil

	var props properties
	props.outline = -1

	err := p.xml.Each(func(e xml.StartElement) (err error) {
		if e.Name.Local == "pPr" {
			props, err = readProperties(p.xml)
			return err
		}
		return p.readInline(e)
	}, nil)

	boxed, p.boxed = p.boxed, boxed
	shown, p.shown = p.shown, shown
	p.text = before

	if err != nil {
		return err
	}

	line := p.carried + text.String()
	if p.carried = ""; props.deleted {
		p.carried = line
	} else {
		p.paragraphs++
		if err := take(block{paragraph: docxParagraph{text: line, properties: props, number: p.paragraphs}}); err != nil {
			return err
		}
	}

	// A paragraph whose mark was deleted is one with the next, which takes its text.
	for _, b := range boxed {
		if err := take(b); err != nil {
			return err
		}
	}
	return p.readPictures(shown, take)
}

// readPictures calls take with the lines of pictures, which stand behind their paragraph.
func (p *docxParser) readPictures(shown []pictureRef, take func(block) error) error {
	for _, ref := range shown {
		text, err := p.shelf.textOf(p.entry, ref)
		if err != nil || text == nil {
			if err != nil {
				return err
			}
			continue
		}
		for _, line := range text.Lines {
			one := docxParagraph{text: line.Text, properties: properties{outline: -1}, number: max(p.paragraphs, 1), sure: line.Sure}
			if err := take(block{paragraph: one}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readInline reads an element within a paragraph.
func (p *docxParser) readInline(e xml.StartElement) error {
	switch e.Name.Local {
	case "t":
		s, err := p.xml.Text()
		p.text.WriteString(s)
		return err
	case "tab", "ptab":
		p.text.WriteRune('\t')
	case "br", "cr":
		p.text.WriteRune('\n')
	case "noBreakHyphen":
		p.text.WriteRune('-')
	case "sym":
		p.text.WriteString(symbolCharacter(xmlread.Attr(e, "char")))
	case "footnoteReference", "endnoteReference":
		p.writeReference(strings.TrimSuffix(e.Name.Local, "Reference"), xmlread.Attr(e, "id"))
	case "commentReference":
		p.commented = append(p.commented, xmlread.Attr(e, "id"))
	case "extent":
		p.extent = areaOf(e)
	case "blip":
		p.shown = append(p.shown, pictureRef{xmlread.Attr(e, "embed"), p.extent})
	case "txbxContent":
		return p.readBlocks(func(b block) error { p.boxed = append(p.boxed, b); return nil })
	case "rPr":
		return p.xml.Skip()
	case "r":
		return p.readRun()
	case "oMath", "oMathPara":
		return equation.Write(&p.text, p.xml, e, p.readInline)
	// What is deleted, moved away, or another form of what is read already is no text.
	case "del", "moveFrom", "delText", "instrText", "Fallback", "rt", "ffData", "sdtPr", "posOffset", "fldData":
	default:
		return p.xml.Each(p.readInline, nil)
	}
	return p.xml.Skip()
}

// readRun reads a run of characters, unless they are hidden.
func (p *docxParser) readRun() error {
	shown := p.text
	defer func() { p.text = shown }()
	p.text.At(richtext.OnLine)

	return p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "rPr" {
			return p.readInline(e)
		}
		f, err := readFont(p.xml)
		if f.hidden {
			p.text = new(richtext.Runs) // which nobody reads
		}
		p.text.At(p.position(f))
		return err
	}, nil)
}

// symbolCharacter returns a character of a symbol font, which has it in a private range, too.
func symbolCharacter(code string) string {
	n, err := strconv.ParseUint(code, 16, 32)
	if err != nil {
		return ""
	}

	if n >= 0xf000 && n < 0xf100 {
		n -= 0xf000
	}
	if n < ' ' || n > 0x10ffff || n >= 0xd800 && n < 0xe000 {
		return ""
	}

	return string(rune(n))
}

// readProperties reads the properties of a paragraph.
func readProperties(d *xmlread.Decoder) (properties, error) {
	p := properties{outline: -1}
	err := d.Each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "pStyle":
			p.style = xmlread.Attr(e, "val")
		case "outlineLvl":
			if n, err := strconv.Atoi(xmlread.Attr(e, "val")); err == nil && n >= 0 {
				p.outline = (n + 1) % 10 // the tenth is text
			}
		case "numPr":
			return d.Each(func(e xml.StartElement) error {
				switch e.Name.Local {
				case "numId":
					p.list.id = xmlread.Attr(e, "val")
				case "ilvl":
					p.list.level = xmlread.Attr(e, "val")
				}
				return d.Skip()
			}, nil)
		case "rPr":
			return d.Each(func(e xml.StartElement) error {
				if e.Name.Local == "del" || e.Name.Local == "moveFrom" {
					p.deleted = true
				}
				return d.Skip()
			}, nil)
		}
		return d.Skip()
	}, nil)

	return p, err
}

// maxNested bounds tables within each other, and maxColumns the columns of a table.
const (
	maxNested  = 20
	maxColumns = 1000
)

// readTable reads a table.
func (p *docxParser) readTable() ([][]cell, error) {
	if p.nested++; p.nested > maxNested {
		return nil, document.Refuse("damaged: more than %d tables within each other", maxNested)
	}
	defer func() { p.nested-- }()

	var rows [][]cell
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "tr":
			row, err := p.readRow()
			if err != nil || len(row) == 0 {
				return err
			}
			rows = append(rows, row)
			return p.writer.CountCells(1) // its cells have been counted
		case "tblPr", "tblGrid", "del", "moveFrom", "sdtPr":
			return p.xml.Skip()
		}
		return p.xml.Each(child, nil)
	}

	return rows, p.xml.Each(child, nil)
}

// width returns the columns of a row.
func width(row []cell) int {
	n := 0
	for _, c := range row {
		n += c.columns
	}
	return n
}

// readRow reads a row of a table. It is empty if it is deleted.
func (p *docxParser) readRow() ([]cell, error) {
	var row []cell
	columns, deleted, head := 0, false, false
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "tc":
			blocks, span, continues, err := p.readCell()
			c := cell{blocks: blocks, continues: continues, columns: max(1, min(span, maxColumns-columns))}
			row = append(row, c)
			columns += c.columns
			return cmp.Or(err, p.writer.CountCells(c.columns))
		case "trPr":
			return p.xml.Each(func(e xml.StartElement) error {
				switch e.Name.Local {
				case "del":
					deleted = true
				case "tblHeader":
					head = xmlread.Attr(e, "val") != "0" && xmlread.Attr(e, "val") != "false"
				case "gridBefore":
					// The row begins behind columns that it leaves out.
					n, _ := strconv.Atoi(xmlread.Attr(e, "val"))
					if n = min(n, maxColumns-columns); n > 0 {
						row = append(row, cell{columns: n})
						columns += n
						if err := p.writer.CountCells(n); err != nil {
							return err
						}
					}
				}
				return p.xml.Skip()
			}, nil)
		case "tblPrEx", "sdtPr":
			return p.xml.Skip()
		}
		return p.xml.Each(child, nil)
	}

	err := p.xml.Each(child, nil)

	if deleted {
		return nil, err
	}

	for i := range row {
		row[i].head = head
	}

	return row, err
}

// readCell reads what is in a cell and how many columns it spans. A cell that continues
// the one above it is empty.
func (p *docxParser) readCell() (c []block, span int, continues bool, err error) {
	span = 1
	collect := func(b block) error { c = append(c, b); return nil }
	err = p.xml.Each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "tcPr":
			return p.xml.Each(func(e xml.StartElement) error {
				value := xmlread.Attr(e, "val")
				switch e.Name.Local {
				case "gridSpan":
					if n, err := strconv.Atoi(value); err == nil {
						span = n
					}
				case "vMerge":
					continues = value != "restart"
				}
				return p.xml.Skip()
			}, nil)
		case "p":
			return p.readParagraph(collect)
		case "tbl":
			t, err := p.readTable()
			if len(t) > 0 {
				c = append(c, block{table: t})
			}
			return err
		case "del", "moveFrom":
			return p.xml.Skip()
		}
		return p.readBlocks(collect)
	}, nil)

	// A cell that continues the one above it shows nothing of its own.
	if continues {
		c = nil
	}

	return c, span, continues, err
}

// plainText returns the text of blocks: the lines of paragraphs, and of tables those of
// the cells.
func plainText(blocks []block) string {
	var lines []string
	for _, b := range blocks {
		if b.table == nil {
			if b.paragraph.text != "" {
				lines = append(lines, b.paragraph.text)
			}
			continue
		}

		// A table within is its cells, line by line.
		for _, row := range b.table {
			for _, c := range row {
				if text := plainText(c.blocks); text != "" {
					lines = append(lines, text)
				}
			}
		}
	}

	return strings.Join(lines, "\n")
}

// number returns the number of the first paragraph of blocks; 0 if there is none.
func number(blocks []block) int {
	for _, b := range blocks {
		if b.table == nil {
			return b.paragraph.number
		}
		for _, row := range b.table {
			for _, c := range row {
				if n := number(c.blocks); n > 0 {
					return n
				}
			}
		}
	}
	return 0
}

// leastSure returns how sure the line of pictures among blocks is that is least so; 0 if there is none.
func leastSure(blocks []block) float64 {
	least := 0.0
	add := func(sure float64) {
		if sure > 0 && (least == 0 || sure < least) {
			least = sure
		}
	}

	for _, b := range blocks {
		add(b.paragraph.sure)
		for _, row := range b.table {
			for _, c := range row {
				add(leastSure(c.blocks))
			}
		}
	}
	return least
}

// place returns the location of a paragraph.
func place(number int) *mapreduce.Location {
	if number == 0 {
		return nil
	}
	return &mapreduce.Location{Paragraph: min(number, mapreduce.MaxPage)}
}

// writeBlock writes a paragraph or a table of the text.
func (r *docxReader) writeBlock(b block) error {
	if b.table != nil {
		return r.writeTable(b.table)
	}

	p := b.paragraph
	if p.sure > 0 {
		r.writer.Paragraph(p.text, &mapreduce.Location{Paragraph: min(p.number, mapreduce.MaxPage), Part: partOfPicture, Recognised: p.sure})
		return r.writer.Err()
	}

	s := r.styleOf(p.properties.style)
	if p.properties.outline >= 0 {
		s.heading = p.properties.outline
	}

	// What the paragraph does not say of its list, its style does.
	list := p.properties.list
	if list.id == "" {
		list.id = s.list.id
	}
	if list.level == "" {
		list.level = s.list.level
	}

	if strings.TrimSpace(p.text) == "" {
		r.writer.Paragraph("", nil)
		return r.writer.Err()
	}

	mark, level, listed := r.numbering.next(list)
	switch {
	case s.heading > 0 && mark != "" && mark != richtext.BulletMark:
		r.writer.Heading(s.heading, mark+" "+p.text, place(p.number))
	case s.heading > 0:
		r.writer.Heading(s.heading, p.text, place(p.number))
	case listed:
		r.writer.Item(level, mark, p.text, place(p.number))
	default:
		r.writer.Paragraph(p.text, place(p.number))
	}
	return r.writer.Err()
}

// writeTable writes a table. One of a single cell is a frame around its text.
func (r *docxReader) writeTable(rows [][]cell) error {
	if len(rows) == 1 && width(rows[0]) == 1 {
		for _, b := range rows[0][0].blocks {
			if err := r.writeBlock(b); err != nil {
				return err
			}
		}
		return nil
	}

	table := richtext.Table{Rows: make([][]richtext.Cell, len(rows))}
	above := map[int]richtext.Cell{} // by column: the cell that those below may continue

	var inner [][][]cell
	for i, row := range rows {
		if i == table.Heads && len(row) > 0 && row[0].head {
			table.Heads++
		}

		column := 0
		for _, c := range row {
			blocks, tables := withoutTables(c.blocks)
			inner = append(inner, tables...)
			one := richtext.Cell{Text: plainText(blocks), Place: place(number(c.blocks)), Span: c.columns}
			if one.Place != nil {
				one.Place.Recognised = leastSure(blocks)
			}
			if before, ok := above[column]; c.continues && ok && before.Span == c.columns {
				one = before
				one.Tall = true
			}
			above[column] = one
			table.Rows[i] = append(table.Rows[i], one)
			column += c.columns
		}
	}

	r.writer.WriteTable(table)

	for _, t := range inner {
		if err := r.writeTable(t); err != nil {
			return err
		}
	}

	return r.writer.Err()
}

// withoutTables returns the blocks of a cell without the tables of values among them, and those:
// they stand behind the table of the cell. Other tables in cells lay a page out.
func withoutTables(blocks []block) (rest []block, tables [][][]cell) {
	for _, b := range blocks {
		if b.table != nil && isOfValues(b.table) {
			tables = append(tables, b.table)
		} else {
			rest = append(rest, b)
		}
	}
	return rest, tables
}

// isOfValues reports whether two rows of a table or more have two values or more.
func isOfValues(rows [][]cell) bool {
	full := 0
	for _, row := range rows {
		values := 0
		for _, c := range row {
			if plainText(c.blocks) != "" {
				values++
			}
		}

		if values > 1 {
			full++
		}
	}

	return full > 1
}

// writeMargin writes a block of a header or footer, which is no part of the outline.
func (r *docxReader) writeMargin(b block) {
	where := &mapreduce.Location{Place: "the margin of pages", Recognised: leastSure([]block{b})}
	for line := range strings.SplitSeq(plainText([]block{b}), "\n") {
		r.writer.Paragraph(line, where)
	}
}
