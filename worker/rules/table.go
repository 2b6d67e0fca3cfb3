package rules

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/rules/span"
	"github.com/coditect/mapreduce/worker/rules/table"
)

// cellsIn returns the cells of tables in r that stand in a column with one of the
// headings and in a row that begins with one of the names, if these are given.
func (d *document) cellsIn(r span.Span, columns, rows []string) []span.Span {
	if len(columns) == 0 {
		return d.rowCells(r, rows)
	}
	var found []span.Span
	for i := d.lineAt(r.Start); i < len(d.lines) && d.lines[i].Start < r.End; i++ {
		line := d.clipLine(i, r)
		style := table.StyleOf(d.text[line.Start:line.End])
		if style == table.None {
			continue
		}
		cells := table.Split(d.text, line, style)
		n := slices.IndexFunc(cells, func(c span.Span) bool { return isPhrase(d.text[c.Start:c.End], columns) })
		if n >= 0 {
			found = append(found, d.columnCells(i, n, cells[n], style, r, columns, rows)...)
		}
	}
	return found
}

// clipLine returns the part of line i that is in r.
func (d *document) clipLine(i int, r span.Span) span.Span {
	line := d.lines[i]
	start := min(max(line.Start, r.Start), line.End)
	return span.New(start, max(min(line.End, r.End), start))
}

func (d *document) lineText(i int) string { return d.text[d.lines[i].Start:d.lines[i].End] }

// isPhrase reports whether s is one of the phrases, perhaps with the mark of a note.
func isPhrase(s string, phrases []string) bool {
	folded, bare := foldStrictly(s), foldStrictly(withoutMarks(s))
	return slices.ContainsFunc(phrases, func(p string) bool {
		f := foldStrictly(p)
		return f == folded || f == bare
	})
}

// rowCells returns the cells of rows that begin with one of the names.
func (d *document) rowCells(r span.Span, rows []string) []span.Span {
	var found []span.Span
	for i := d.lineAt(r.Start); i < len(d.lines) && d.lines[i].Start < r.End; i++ {
		line := d.clipLine(i, r)
		style := table.StyleOf(d.text[line.Start:line.End])
		if style == table.None {
			continue
		}
		cells := table.Split(d.text, line, style)
		if isPhrase(d.text[cells[0].Start:cells[0].End], rows) {
			found = append(found, cells[1:]...)
		}
	}
	return found
}

// columnCells returns the cells below a heading, up to the next such heading: those
// with the same number, or with gaps between cells those that stand under it.
func (d *document) columnCells(head, n int, title span.Span, style table.Style, r span.Span, columns, rows []string) []span.Span {
	var found []span.Span
	from := title.Start - d.lines[head].Start
	under := span.New(from, from+title.End-title.Start)
	for i := head + 1; i < len(d.lines) && d.lines[i].Start < r.End; i++ {
		text := d.lineText(i)
		switch {
		case table.IsRule(strings.TrimSpace(text)):
			continue
		case strings.TrimSpace(text) == "":
			return found
		}
		cells := table.Split(d.text, d.lines[i], style)
		at := n
		if style == table.Gaps {
			at = slices.IndexFunc(cells, func(c span.Span) bool {
				return c.Start-d.lines[i].Start < under.End && c.End-d.lines[i].Start > under.Start
			})
		}
		if at < 0 || at >= len(cells) || cells[at].Start >= cells[at].End {
			continue
		}
		if isPhrase(d.text[cells[at].Start:cells[at].End], columns) {
			return found
		}
		if len(rows) == 0 || isPhrase(d.text[cells[0].Start:cells[0].End], rows) {
			found = append(found, cells[at])
		}
	}
	return found
}

// headCells returns the cells below a label that is the head of a column, in a table that
// stands among other text and has a line below its heads, as tables of office files and of
// Markdown do. sure says that most of the heads are labels of fields. In a table of names and
// values without heads, the first row looks like heads, too, but half of it are values.
func (s *search) headCells(m mark) (cells []span.Span, sure bool) {
	head := s.lineAt(m.Start)
	if head+1 >= len(s.lines) || table.StyleOf(s.lineText(head)) != table.Bars {
		return nil, false
	}
	if rule := strings.TrimSpace(s.lineText(head + 1)); !table.IsRule(rule) || !strings.Contains(rule, "|") {
		return nil, false
	}
	column, labels, named := -1, 0, 0
	for n, c := range table.Split(s.text, s.lines[head], table.Bars) {
		if c.Start < c.End {
			named++
		}
		if slices.ContainsFunc(marksBetween(s.allLabels, c.Start, c.Start+1), func(l mark) bool { return l.End == c.End }) {
			labels++
		}
		if c == m.Span {
			column = n
		}
	}
	if column < 0 {
		return nil, false
	}
	for i := head + 2; i < len(s.lines) && s.lines[i].Start < s.area.End && table.StyleOf(s.lineText(i)) == table.Bars; i++ {
		if row := table.Split(s.text, s.clipLine(i, s.area.Span), table.Bars); column < len(row) && row[column].Start < row[column].End {
			cells = append(cells, row[column])
		}
	}
	return cells, 2*labels > named
}

// addFromCells adds the values of cells, and reports whether there are any.
func (s *search) addFromCells(cells []span.Span) bool {
	before := len(s.candidates)
	for _, cell := range cells {
		if s.isText() {
			s.candidates = append(s.candidates, candidate{Span: cell, score: scoreEntry, value: -1})
			continue
		}
		for _, c := range s.candidatesIn(cell) {
			c.score = scoreEntry
			s.candidates = append(s.candidates, c)
		}
	}
	return len(s.candidates) > before
}

// A grid is a text that is one table, with a head of names: a CSV file.
type grid struct {
	head    int // its line
	style   table.Style
	columns map[int]int // by field: the number of the column
}

// sampleRows are the lines whose cells are counted to tell a grid from other text.
const sampleRows = 50

// readGrid reads the head of a text that is one table, of which the cells of the
// first line are labels of at least two fields, or all of them. It is nil if the
// text is none.
func (p *Program) readGrid(d *document) *grid {
	head := slices.IndexFunc(d.lines, func(l span.Span) bool { return !isBlankOrHeading(l.Of(d.text)) })
	if head < 0 {
		return nil
	}
	g := &grid{head: head, style: table.StyleOf(d.lineText(head)), columns: map[int]int{}}
	if g.style == table.None || g.style == table.Gaps {
		return nil
	}
	names := table.Split(d.text, d.lines[head], g.style)
	byName := make(map[string]int, len(names))
	for n, c := range slices.Backward(names) {
		byName[foldStrictly(withoutMarks(d.text[c.Start:c.End]))] = n
	}
	for n, c := range slices.Backward(names) {
		byName[foldStrictly(d.text[c.Start:c.End])] = n
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

// isBlankOrHeading reports whether a line may stand above a table that is otherwise all
// of a text, such as the name of a sheet.
func isBlankOrHeading(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")
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
func (d *document) hasRows(head, cells int, style table.Style) bool {
	rows, even := 0, 0
	for i := head + 1; i < len(d.lines) && rows < sampleRows; i++ {
		if !d.isRow(i) {
			continue
		}
		rows++
		if len(table.Split(d.text, d.lines[i], style)) == cells {
			even++
		}
	}
	return rows > 0 && even*10 >= rows*9
}

// isRow reports whether line i is neither blank nor the line below the head of a table.
func (d *document) isRow(i int) bool {
	line := strings.TrimSpace(d.lineText(i))
	return line != "" && !table.IsRule(line)
}

// gridRecords returns a window for each row of the table.
func (d *document) gridRecords(w window) []window {
	var windows []window
	for i := d.grid.head + 1; i < len(d.lines) && d.lines[i].Start < w.End; i++ {
		line := d.lines[i]
		if d.isRow(i) && line.Start >= w.Start {
			windows = append(windows, window{Span: span.New(line.Start, line.End), first: true, last: true})
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
	for i := max(s.lineAt(s.area.Start), s.grid.head+1); i < len(s.lines) && s.lines[i].Start < s.area.End; i++ {
		if !s.isRow(i) {
			continue
		}
		cells := table.Split(s.text, s.clipLine(i, s.area.Span), s.grid.style)
		if n >= len(cells) || cells[n].Start >= cells[n].End {
			continue
		}
		cell := cells[n]
		if s.isText() {
			s.candidates = append(s.candidates, candidate{Span: cell, matchStart: cell.Start, score: scoreEntry, value: -1})
			continue
		}
		for _, c := range s.candidatesIn(cell) {
			c.score = scoreEntry
			s.candidates = append(s.candidates, c)
		}
	}
	return true
}
