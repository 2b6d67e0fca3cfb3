package rules

import (
	"slices"
	"strings"
)

// A cellStyle is how the cells of a line are set apart.
type cellStyle byte

const (
	noCells    cellStyle = 0
	barCells   cellStyle = '|'
	tabCells   cellStyle = '\t'
	commaCells cellStyle = ','
	semiCells  cellStyle = ';'
	gapCells   cellStyle = ' ' // by two spaces or more
)

// styleOf returns how the cells of a line are set apart, noCells if it has no two of
// them.
func styleOf(line string) cellStyle {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.Contains(strings.Trim(trimmed, "|"), "|"):
		return barCells
	case strings.Contains(trimmed, "\t"):
		return tabCells
	case strings.Contains(trimmed, "  "):
		return gapCells
	case strings.Contains(trimmed, ";"):
		return semiCells
	case strings.Contains(trimmed, ","):
		return commaCells
	default:
		return noCells
	}
}

// maxCells bounds the cells of a line.
const maxCells = 1000

// splitCells returns the cells of a line, without white space and quotation marks
// around them. Empty cells count, but not where gaps set cells apart.
func splitCells(text string, line span, style cellStyle) []span {
	if style == tabCells {
		line.end = line.start + len(strings.TrimRight(text[line.start:line.end], "\r"))
	} else {
		line = trimSpan(text, line)
	}
	if style == barCells {
		inner := strings.TrimPrefix(text[line.start:line.end], "|")
		line.start = line.end - len(inner)
		line.end = line.start + len(strings.TrimSuffix(inner, "|"))
	}
	var cells []span
	for at := line.start; len(cells) < maxCells; {
		end, next := cellEnd(text[:line.end], at, style)
		cells = append(cells, trimCell(text, span{at, end}))
		if next < 0 {
			break
		}
		at = next
	}
	return cells
}

// cellEnd returns where the cell that begins at at ends, and where the next begins; -1
// if there is none.
func cellEnd(text string, at int, style cellStyle) (end, next int) {
	quoted := false
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && (style == commaCells || style == semiCells || style == tabCells) && (quoted || strings.TrimSpace(text[at:i]) == ""):
			quoted = !quoted
		case quoted:
		case style == gapCells && c == ' ' && strings.HasPrefix(text[i:], "  "):
			return i, i + len(text[i:]) - len(strings.TrimLeft(text[i:], " "))
		case c == byte(style) && style != gapCells:
			return i, i + 1
		}
	}
	return len(text), -1
}

func trimCell(text string, cell span) span {
	cell = trimSpan(text, cell)
	if s := text[cell.start:cell.end]; len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		cell = trimSpan(text, span{cell.start + 1, cell.end - 1})
	}
	return cell
}

// isRule reports whether a line only separates the head of a table from the rest.
func isRule(line string) bool { return line != "" && strings.Trim(line, "|-:=+ \t\r") == "" }

// cellsIn returns the cells of tables in r that stand in a column with one of the
// headings and in a row that begins with one of the names, if these are given.
func (d *document) cellsIn(r span, columns, rows []string) []span {
	if len(columns) == 0 {
		return d.rowCells(r, rows)
	}
	var found []span
	for i := d.lineAt(r.start); i < len(d.lines) && d.lines[i].start < r.end; i++ {
		line := d.clipLine(i, r)
		style := styleOf(d.text[line.start:line.end])
		if style == noCells {
			continue
		}
		cells := splitCells(d.text, line, style)
		n := slices.IndexFunc(cells, func(c span) bool { return isPhrase(d.text[c.start:c.end], columns) })
		if n >= 0 {
			found = append(found, d.columnCells(i, n, cells[n], style, r, columns, rows)...)
		}
	}
	return found
}

// clipLine returns the part of line i that is in r.
func (d *document) clipLine(i int, r span) span {
	line := d.lines[i]
	start := min(max(line.start, r.start), line.end)
	return span{start, max(min(line.end, r.end), start)}
}

func (d *document) lineText(i int) string { return d.text[d.lines[i].start:d.lines[i].end] }

// isPhrase reports whether s is one of the phrases.
func isPhrase(s string, phrases []string) bool {
	folded := foldStrictly(s)
	return slices.ContainsFunc(phrases, func(p string) bool { return foldStrictly(p) == folded })
}

// rowCells returns the cells of rows that begin with one of the names.
func (d *document) rowCells(r span, rows []string) []span {
	var found []span
	for i := d.lineAt(r.start); i < len(d.lines) && d.lines[i].start < r.end; i++ {
		line := d.clipLine(i, r)
		style := styleOf(d.text[line.start:line.end])
		if style == noCells {
			continue
		}
		cells := splitCells(d.text, line, style)
		if isPhrase(d.text[cells[0].start:cells[0].end], rows) {
			found = append(found, cells[1:]...)
		}
	}
	return found
}

// columnCells returns the cells below a heading, up to the next such heading: those
// with the same number, or with gaps between cells those that stand under it.
func (d *document) columnCells(head, n int, title span, style cellStyle, r span, columns, rows []string) []span {
	var found []span
	from := title.start - d.lines[head].start
	under := span{from, from + title.end - title.start}
	for i := head + 1; i < len(d.lines) && d.lines[i].start < r.end; i++ {
		text := d.lineText(i)
		switch {
		case isRule(strings.TrimSpace(text)):
			continue
		case strings.TrimSpace(text) == "":
			return found
		}
		cells := splitCells(d.text, d.lines[i], style)
		at := n
		if style == gapCells {
			at = slices.IndexFunc(cells, func(c span) bool {
				return c.start-d.lines[i].start < under.end && c.end-d.lines[i].start > under.start
			})
		}
		if at < 0 || at >= len(cells) || cells[at].start >= cells[at].end {
			continue
		}
		if isPhrase(d.text[cells[at].start:cells[at].end], columns) {
			return found
		}
		if len(rows) == 0 || isPhrase(d.text[cells[0].start:cells[0].end], rows) {
			found = append(found, cells[at])
		}
	}
	return found
}

// A grid is a text that is one table, with a head of names: a CSV file.
type grid struct {
	head    int // its line
	style   cellStyle
	columns map[int]int // by field: the number of the column
}

// sampleRows are the lines whose cells are counted to tell a grid from other text.
const sampleRows = 50

// readGrid reads the head of a text that is one table, of which the cells of the
// first line are labels of at least two fields, or all of them. It is nil if the
// text is none.
func (p *Program) readGrid(d *document) *grid {
	head := slices.IndexFunc(d.lines, func(l span) bool { return strings.TrimSpace(d.text[l.start:l.end]) != "" })
	if head < 0 {
		return nil
	}
	g := &grid{head: head, style: styleOf(d.lineText(head)), columns: map[int]int{}}
	if g.style == noCells || g.style == gapCells || g.style == barCells {
		return nil
	}
	names := splitCells(d.text, d.lines[head], g.style)
	byName := make(map[string]int, len(names))
	for n, c := range slices.Backward(names) {
		byName[foldStrictly(d.text[c.start:c.end])] = n
	}
	for i := range p.fields {
		for _, label := range p.fields[i].columnNames() {
			if n, ok := byName[foldStrictly(label)]; ok {
				g.columns[i] = n
				break
			}
		}
	}
	if len(g.columns) < min(2, len(p.fields)) || !d.hasRows(head, len(names), g.style) {
		return nil
	}
	return g
}

// columnNames are the headings that a column with the field's values may have.
func (f *field) columnNames() []string {
	names := slices.Clone(f.labels)
	if within := f.property.Hints.Within; within != nil {
		names = append(names, within.Columns...)
	}
	return names
}

// hasRows reports whether nearly all of the first lines below the head have as many
// cells.
func (d *document) hasRows(head, cells int, style cellStyle) bool {
	rows, even := 0, 0
	for i := head + 1; i < len(d.lines) && rows < sampleRows; i++ {
		if strings.TrimSpace(d.lineText(i)) == "" {
			continue
		}
		rows++
		if len(splitCells(d.text, d.lines[i], style)) == cells {
			even++
		}
	}
	return rows > 0 && even*10 >= rows*9
}

// gridRecords returns a window for each row of the table.
func (d *document) gridRecords(w window) []window {
	var windows []window
	for i := d.grid.head + 1; i < len(d.lines) && d.lines[i].start < w.end; i++ {
		line := d.lines[i]
		if strings.TrimSpace(d.lineText(i)) != "" && line.start >= w.start {
			windows = append(windows, window{start: line.start, end: line.end, first: true, last: true})
		}
	}
	return windows
}

// addFromGrid adds the cells of the field's column, and reports whether it has one.
func (s *search) addFromGrid() bool {
	if s.grid == nil {
		return false
	}
	n, ok := s.grid.columns[s.index]
	if !ok {
		return false
	}
	s.labelSeen = true
	for i := max(s.lineAt(s.area.start), s.grid.head+1); i < len(s.lines) && s.lines[i].start < s.area.end; i++ {
		cells := splitCells(s.text, s.clipLine(i, s.area.span), s.grid.style)
		if n >= len(cells) || cells[n].start >= cells[n].end {
			continue
		}
		cell := cells[n]
		if s.isText() {
			s.candidates = append(s.candidates, candidate{span: cell, matchStart: cell.start, score: scoreEntry, value: -1})
			continue
		}
		for _, c := range s.candidatesIn(cell) {
			c.score = scoreEntry
			s.candidates = append(s.candidates, c)
		}
	}
	return true
}
