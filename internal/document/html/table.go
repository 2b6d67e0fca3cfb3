package html

import (
	"slices"
	"strconv"
	"strings"

	xhtml "golang.org/x/net/html"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/text/offset"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A grid is a table of values in a page. A table that lays the page out is none: its cells
// are read like other text.
type grid struct {
	from, to int    // bytes of the page, with its tags
	caption  extent // between the tags of its caption
	rows     []gridRow
	inner    []*grid // tables within its cells, in order
	values   bool    // it is a table of values
	said     bool    // by its tags
	laidOut  bool    // it says that it is none
}

// An extent is a part of a page: bytes [from, to).
type extent struct{ from, to int }

// A gridRow is a row of a grid.
type gridRow struct {
	cells []gridCell
	head  bool // it is in the head of the table
	foot  bool // it is in its foot
	part  int  // of the table that it is in, such as a tbody

	hidden bool // it does not show
}

// A gridCell is a cell of a grid.
type gridCell struct {
	extent
	across, down int // columns and rows that it covers
	head         bool
	hidden       bool // it does not show
	blocks       int  // paragraphs and the like in it
}

// Bounds of tables. What is beyond them covers no more.
const (
	maxAcross = 1000
	maxDown   = 65_534
	maxDeep   = 50 // tables within each other
)

// A gridReader reads the tables that begin at one place of a page, with those within.
type gridReader struct {
	open []*openGrid
	all  *grid // the outermost
	deep int   // tables that are too deep, and are text of their cell
}

// An openGrid is a table whose end has not come.
type openGrid struct {
	*grid
	group string // thead, tbody or tfoot
	part  int    // how many of these have begun or ended
	cell  bool   // the last cell is open
}

// readGrids reads the table whose tag begins at byte at of a page.
func readGrids(page string, at int) *grid {
	z := xhtml.NewTokenizer(strings.NewReader(page[at:]))
	var r gridReader
	pos := at

	for r.all == nil || len(r.open) > 0 {
		kind := z.Next()
		if kind == xhtml.ErrorToken {
			break
		}

		end := pos + len(z.Raw())

		switch kind {
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			name, more := z.TagName()
			r.begin(string(name), z, more, pos, end)
		case xhtml.EndTagToken:
			name, _ := z.TagName()
			r.end(string(name), pos, end)
		}

		pos = end
	}

	// Tables that never end, end with the page.
	for len(r.open) > 0 {
		r.endTable(pos, pos)
	}

	return r.all
}

// begin takes the start tag [pos, end) of an element.
func (r *gridReader) begin(name string, z *xhtml.Tokenizer, more bool, pos, end int) {
	if name == "table" {
		r.beginTable(z, more, pos)
		return
	}

	if len(r.open) == 0 || r.deep > 0 {
		return
	}

	t := r.open[len(r.open)-1]
	switch name {
	case "thead", "tbody", "tfoot":
		t.endCell(pos)
		t.group = name
		t.part++
		t.said = t.said || name == "thead"
	case "tr":
		t.endCell(pos)
		t.rows = append(t.rows, gridRow{head: t.group == "thead", foot: t.group == "tfoot", part: t.part, hidden: isHidden(name, tagAttributes(z, more))})
	case "td", "th":
		t.endCell(pos)
		if len(t.rows) == 0 {
			t.rows = append(t.rows, gridRow{})
		}

		// A cell ends where the next one begins, as most pages leave out its end tag.
		c := gridCell{extent: extent{end, end}, across: 1, down: 1, head: name == "th"}
		c.spans(z, more)
		t.said = t.said || c.head
		row := &t.rows[len(t.rows)-1]
		row.cells = append(row.cells, c)
		t.cell = true
	case "caption":
		t.endCell(pos)
		t.caption, t.said = extent{end, end}, true
	default:
		if t.cell && layoutOf(name) == paragraph {
			row := &t.rows[len(t.rows)-1]
			row.cells[len(row.cells)-1].blocks++
		}
	}
}

// beginTable takes the start tag of a table at pos.
func (r *gridReader) beginTable(z *xhtml.Tokenizer, more bool, pos int) {
	if len(r.open) == maxDeep {
		r.deep++
		return
	}

	g := &grid{from: pos}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "role":
			role := strings.ToLower(string(value))
			g.laidOut = g.laidOut || role == "presentation" || role == "none"
		case "summary":
			g.said = g.said || len(value) > 0
		}
	}

	// A table within a cell is kept with the table around it.
	if len(r.open) > 0 {
		outer := r.open[len(r.open)-1]
		outer.inner = append(outer.inner, g)
	} else {
		r.all = g
	}

	r.open = append(r.open, &openGrid{grid: g})
}

// spans reads how many columns and rows a cell covers, and whether it shows.
func (c *gridCell) spans(z *xhtml.Tokenizer, more bool) {
	attrs := tagAttributes(z, more)
	c.hidden = isHidden("td", attrs)

	if n, err := strconv.Atoi(strings.TrimSpace(attrs["colspan"])); err == nil && n > 0 {
		c.across = min(n, maxAcross)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(attrs["rowspan"])); err == nil && n >= 0 {
		if c.down = min(n, maxDown); n == 0 { // to the end of its part of the table
			c.down = maxDown
		}
	}
}

// end takes the end tag [pos, end) of an element.
func (r *gridReader) end(name string, pos, end int) {
	if len(r.open) == 0 {
		return
	}

	// Tables that are too deep are text, so only their ends count.
	if r.deep > 0 {
		if name == "table" {
			r.deep--
		}
		return
	}

	t := r.open[len(r.open)-1]
	switch name {
	case "table":
		r.endTable(pos, end)
	case "td", "th", "tr":
		t.endCell(pos)
	case "thead", "tbody", "tfoot":
		t.endCell(pos)
		t.group = ""
		t.part++
	case "caption":
		if t.caption.to == t.caption.from {
			t.caption.to = pos
		}
	}
}

// endCell ends the cell that is open.
func (t *openGrid) endCell(pos int) {
	if t.cell {
		row := &t.rows[len(t.rows)-1]
		row.cells[len(row.cells)-1].to = pos
	}
	if t.caption.from > 0 && t.caption.to == t.caption.from {
		t.caption.to = pos
	}
	t.cell = false
}

// endTable ends the innermost table.
func (r *gridReader) endTable(pos, end int) {
	t := r.open[len(r.open)-1]
	t.endCell(pos)
	t.to = end
	r.open = r.open[:len(r.open)-1]
	t.judge()
}

// judge decides whether the table is one of values.
func (g *grid) judge() {
	cells, blocks, columns := 0, 0, 0
	for _, row := range g.rows {
		cells += len(row.cells)
		columns = max(columns, len(row.cells))
		for _, c := range row.cells {
			if c.blocks > 1 {
				blocks++
			}
		}
	}

	// What nothing says is judged by its shape: layouts have tables or several paragraphs
	// in their cells.
	switch {
	case g.laidOut || cells < 2:
	case g.said:
		g.values = true
	default:
		g.values = 4*len(g.inner) <= cells && len(g.rows) > 1 && columns > 1 && 3*blocks <= cells
	}
}

// A textCell is what a cell of a table says, and where that stands in the page.
type textCell struct {
	text   string
	source *offset.Map // from text to the page; nil if it says nothing
	joined bool        // it belongs to the cell at its left
	tall   bool        // it is the cell of the row above, which covers both rows
}

// maxRepeated bounds what cells that cover several rows or columns say again, in bytes.
const maxRepeated = 4 << 20

// The tables of a page.
type pageTables struct {
	grids    map[int]*grid // by where they begin
	to       int           // up to where the page was looked through for them
	cells    int           // that were read
	most     int           // that the page may have
	repeated int           // bytes that cells say again
	refused  error         // it has more
}

// find returns the table that begins with the tag at pos. The page is looked through once.
func (t *pageTables) find(page string, pos int) *grid {
	if pos >= t.to {
		t.keep(readGrids(page, pos))
	}
	return t.grids[pos]
}

// keep keeps what was read of a table and those within it.
func (t *pageTables) keep(g *grid) {
	if t.grids == nil {
		t.grids = make(map[int]*grid)
	}
	t.grids[g.from] = g
	t.to = max(t.to, g.to)
	for _, inner := range g.inner {
		t.keep(inner)
	}
}

// count counts cells, and refuses more than the page may have.
func (t *pageTables) count(n int) {
	if t.cells += n; t.cells > t.most && t.refused == nil {
		t.refused = richtext.TooManyCells(t.most)
	}
}

// readTable writes the table that begins with the tag at pos, and says that the page goes on
// behind it. It returns false if the table is to be read like other text.
func (p *htmlParser) readTable(pos int) bool {
	g := p.tables.find(p.page, pos)
	if g == nil || !g.values {
		return false
	}
	p.next = g.to
	if !p.inCell {
		p.writeGrid(g)
	}
	return true
}

// writeGrid writes a table of values, and then those within its cells.
func (p *htmlParser) writeGrid(g *grid) {
	if title := p.readApart(g.caption); title.text != "" {
		p.breaks, p.tabs = 2, 0
		p.flushHeld(g.caption.from)
		p.copyLine(title, false)
	}

	if rows, heads, columns := p.gridRows(g); len(rows) > 0 {
		p.breaks, p.tabs = 2, 0
		p.flushHeld(g.from)
		p.writeRows(g.from, rows, heads, columns)
	}

	p.writeInner(g)
	p.breaks = 2
	p.row = tableRow{text: true, broken: true}
}

// writeInner writes the tables of values within the cells of a table.
func (p *htmlParser) writeInner(g *grid) {
	for _, inner := range g.inner {
		if inner.values {
			p.writeGrid(inner)
		} else {
			p.writeInner(inner)
		}
	}
}

// readApart reads a part of the page apart, without the tables of values in it.
func (p *htmlParser) readApart(e extent) textCell {
	if strings.TrimSpace(p.page[e.from:max(e.from, e.to)]) == "" {
		return textCell{}
	}

	one := &htmlParser{page: p.page[:e.to], at: e.from, visible: p.visible, parts: p.parts, tables: p.tables, inCell: true, allLeftOut: p.allLeftOut}
	from, _ := slices.BinarySearchFunc(p.allLeftOut, e.from, func(left part, at int) int { return left.to - at })
	one.leftOut = p.allLeftOut[from:]

	// Most cells have no tags, and need no tokenizer.
	if strings.IndexByte(p.page[e.from:e.to], '<') >= 0 {
		one.parse()
	} else if !one.isLeftOut(e.from) {
		one.writeText(e.from, e.to)
		p.parts.text(one.out.Len())
	}

	if strings.TrimSpace(one.out.String()) == "" {
		return textCell{}
	}

	return textCell{text: one.out.String(), source: one.back.Map()}
}

// headEvery is the bytes of a table behind which its head stands again.
const headEvery = 8 << 10

// writeRows writes rows of which the first are the head. The page has none of the signs
// between their cells, which count as of pos.
func (p *htmlParser) writeRows(pos int, rows [][]textCell, heads, columns int) {
	begin := func() {
		for _, row := range rows[:heads] {
			p.writeCells(pos, row, columns, true)
			p.insertText("\n", pos)
		}
		p.insertText(table.Rule(columns), pos)
	}

	before := p.out.Len()
	begin()
	since := p.out.Len()
	// The head of a long table stands again, so that each part of the table can be read by
	// itself.
	short := since-before < headEvery

	for _, row := range rows[heads:] {
		if short && p.out.Len()-since > headEvery {
			p.insertText("\n\n", pos)
			begin()
			since = p.out.Len()
		}
		p.insertText("\n", pos)
		p.writeCells(pos, row, columns, false)
	}
}

// writeCells writes one row.
func (p *htmlParser) writeCells(pos int, row []textCell, columns int, head bool) {
	p.insertText("|", pos)
	for _, c := range row {
		if c.joined && !head && c.text != "" {
			p.insertText(table.Join, pos)
			continue
		}
		p.insertText(" ", pos)
		p.copyLine(c, true)
		p.insertText(" |", pos)
	}

	p.insertText(strings.Repeat("  |", columns-len(row)), pos)
}

// copyLine writes what was read apart, on one line and, in a table, with its bars marked.
func (p *htmlParser) copyLine(c textCell, inTable bool) {
	if c.source == nil || c.text == "" {
		return
	}

	back := c.source
	begun, space := false, -1

	for i, r := range c.text {
		size := len(string(r))

		if strings.ContainsRune(" \t\r\n", r) {
			if begun && space < 0 {
				space = i
			}
			continue
		}

		// White space at the ends of the line is left out.
		if space >= 0 {
			p.copyPiece(" ", back, space, space+1)
			space = -1
		}
		begun = true

		if r == '|' && inTable {
			from, _ := back.Source(i, i+1)
			p.insertText(`\`, from)
		}

		p.copyPiece(c.text[i:i+size], back, i, i+size)
	}
}

// copyPiece writes a piece of text that was read apart at [at, end).
func (p *htmlParser) copyPiece(s string, back *offset.Map, at, end int) {
	from, to := back.Source(at, end)
	p.out.WriteString(s)
	p.back.Step(len(s), from, to-from)
}
