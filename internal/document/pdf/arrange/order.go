package arrange

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// A Row is words that stand beside each other: from left to right, and once the page is
// arranged in the order in which people read them.
type Row struct {
	words []Word
	box   mapreduce.Box
	grid  *grid // the table that stands in place of words, or nil
}

func (r *Row) rowHeight() float64 { return r.box.Bottom - r.box.Top }

func (r *Row) add(w Word) {
	if len(r.words) == 0 {
		r.box = w.Box
	}
	r.words, r.box = append(r.words, w), Union(r.box, w.Box)
}

// Rows returns the words of a page as rows in the order in which people read them.
//
// Producers mostly write a page in that order, and know better than its geometry what
// belongs together. Their order is kept, but for blocks that stand above all that is
// written before them (see upperFirst), unless it goes back and forth: then columns are
// read one after the other, and what stands across them between (see byGeometry).
//
// A page most words of which run from right to left is read in a mirror.
//
// Tables with lines stand in place of their words.
func Rows(words []Word, lattices []*Lattice) []Row {
	t := tallyOf(words)
	page := t.wordDirection(leftToRight)

	if len(lattices) > 0 {
		words = takeTables(words, lattices, page)
	}

	if page == RightToLeft {
		mirror(words)
	}

	if t.rightToLeft > 0 {
		sortLines(words, page == RightToLeft)
	}

	usual := medianWordHeight(words)
	rows := arrangeRows(words, usual)

	if t.rightToLeft == 0 {
		rows = findGrids(rows)
	}

	for i := range rows {
		if rows[i].grid != nil {
			// The rows of a table are in the order of their columns already.
			continue
		}

		if page == RightToLeft {
			rows[i].mirror()
		}
		rows[i].read(page, usual)
	}

	if t.rightToLeft == 0 {
		partBlocks(rows)
	}

	return rows
}

// arrangeRows returns the words of a page that is read from left to right as rows.
func arrangeRows(words []Word, usual float64) []Row {
	rows := rowsOf(words, usual)
	if jumpsUp(rows) || isInterleaved(rows) {
		rows = byGeometry(rows, 0)
	} else {
		rows = upperFirst(pairBlocks(rows))
	}
	return joinBeside(rows)
}

const (
	farBelow  = 3    // how many heights of a row there are between two blocks, at least
	maxBlocks = 1000 // of a page: each is compared with those before it
)

// upperFirst moves blocks of rows that are written late though they stand above what is
// written before, such as the title of a page whose columns are written first, in front of
// that. A block beside what is written before, as a second column is, stays behind it.
func upperFirst(rows []Row) []Row {
	blocks := blocksOf(rows)
	if len(blocks) > maxBlocks {
		return rows
	}

	boxes := make([]mapreduce.Box, len(blocks))
	for i, block := range blocks {
		box := boxOf(block)
		to := i
		for at := i - 1; at >= 0 && box.Bottom <= boxes[at].Top; at-- {
			if box.Left < boxes[at].Right && boxes[at].Left < box.Right {
				to = at
			}
		}
		// The blocks between move back by one place.
		copy(blocks[to+1:], blocks[to:i])
		copy(boxes[to+1:], boxes[to:i])
		blocks[to], boxes[to] = block, box
	}

	return slices.Concat(blocks...)
}

// blocksOf splits rows where one stands above the one before it, or far below.
func blocksOf(rows []Row) [][]Row {
	var blocks [][]Row
	for i, r := range rows {
		if i == 0 || goesUp(rows[i-1].box, r.box) || r.box.Top-rows[i-1].box.Bottom > farBelow*min(r.rowHeight(), rows[i-1].rowHeight()) {
			blocks = append(blocks, nil)
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], r)
	}
	return blocks
}

// maxPairs bounds the blocks of a page that are compared with each other.
const maxPairs = 200

// pairBlocks makes one block of blocks that stand beside each other line by line, as labels and
// their values, or the columns of a table, do that are written one after the other. Columns of
// running text stay apart.
func pairBlocks(rows []Row) []Row {
	blocks := blocksOf(rows)
	if len(blocks) < 2 || len(blocks) > maxPairs {
		return rows
	}

	for i := range blocks {
		for j := i + 1; j < len(blocks); j++ {
			if len(blocks[i]) > 0 && len(blocks[j]) > 0 && arePaired(blocks[i], blocks[j]) {
				blocks[i], blocks[j] = sortDownwards(append(blocks[i], blocks[j]...)), nil
			}
		}
	}

	return slices.Concat(blocks...)
}

// arePaired reports whether two blocks stand beside each other, and most rows of one are level
// with a row of the other.
func arePaired(a, b []Row) bool {
	if len(a) > len(b) {
		a, b = b, a
	}

	left, right := boxOf(a), boxOf(b)
	if left.Left < right.Right && right.Left < left.Right || len(a) < 2 || runs(a) && runs(b) {
		return false
	}

	level := 0
	for i := range a {
		if slices.ContainsFunc(b, func(r Row) bool { return isLevel(a[i].box, r.box) }) {
			level++
		}
	}

	return 5*level >= 4*len(a)
}

// isLevel reports whether one of two boxes is, but for a fifth of it, as high up as the other.
func isLevel(a, b mapreduce.Box) bool {
	return min(a.Bottom, b.Bottom)-max(a.Top, b.Top) > 0.8*min(a.Bottom-a.Top, b.Bottom-b.Top)
}

// goesUp reports whether b stands above a.
func goesUp(a, b mapreduce.Box) bool { return b.Bottom < a.Top }

// boxOf returns the box around rows.
func boxOf(rows []Row) mapreduce.Box {
	box := rows[0].box
	for _, r := range rows[1:] {
		box = Union(box, r.box)
	}
	return box
}

// rowsOf splits words, in the order of the file, where a line ends or a gap is as wide
// as one between columns. Words are mostly as high as usual.
func rowsOf(words []Word, usual float64) []Row {
	var rows []Row
	for i, w := range words {
		if i == 0 || w.Line != words[i-1].Line || standApart(&words[i-1], &w, usual) {
			rows = append(rows, Row{})
		}
		rows[len(rows)-1].add(w)
		rows[len(rows)-1].grid = w.grid
	}
	return rows
}

// standApart reports whether b does not follow on a in the same line. How wide a gap is, their heights
// tell, but not that of a word without tall letters, such as "or": it is as high as usual then.
func standApart(before, w *Word, usual float64) bool {
	a, b := before.Box, w.Box
	if partsWords(before, w) {
		return false
	}
	low, high := min(a.Bottom-a.Top, b.Bottom-b.Top), max(a.Bottom-a.Top, b.Bottom-b.Top)
	height := max(low, min(usual, high), 1)
	return b.Left-a.Right > 2*height || b.Left < a.Left-height || !beside(a, b)
}

// beside reports whether two boxes are at the same height.
func beside(a, b mapreduce.Box) bool {
	return min(a.Bottom, b.Bottom)-max(a.Top, b.Top) > min(a.Bottom-a.Top, b.Bottom-b.Top)/2
}

// jumpsUp reports whether rows go up again, other than to a column at the right, more
// often than a page that is written in reading order does.
func jumpsUp(rows []Row) bool {
	count := 0
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1].box, rows[i].box
		switch {
		case beside(a, b) && b.Left < a.Left: // to the left in one line
			count++
		case goesUp(a, b) && b.Left < a.Right: // and not to the right
			count++
		}
	}

	return count > 2 && count*10 > len(rows)
}

// isInterleaved reports whether many rows stand beside the one before: the cells of a
// table, or columns that are written line by line.
func isInterleaved(rows []Row) bool {
	count := 0
	for i := 1; i < len(rows); i++ {
		if beside(rows[i-1].box, rows[i].box) {
			count++
		}
	}
	return count > 2 && count*4 > len(rows)
}

// maxCuts bounds how often a page is cut.
const maxCuts = 24

// byGeometry orders rows by cutting the page where nothing stands: into columns where a
// gutter parts much text, else into an upper and a lower part, and at last from top to
// bottom. (The recursive X-Y cut of Nagy and Seth.)
func byGeometry(rows []Row, depth int) []Row {
	if len(rows) < 2 || depth > maxCuts {
		return rows
	}

	if at, ok := findGutter(rows); ok {
		left, right := part(rows, func(b mapreduce.Box) bool { return b.Right <= at })
		return append(byGeometry(left, depth+1), byGeometry(right, depth+1)...)
	}

	if at, ok := verticalGap(rows); ok {
		upper, lower := part(rows, func(b mapreduce.Box) bool { return b.Bottom <= at })
		return append(byGeometry(upper, depth+1), byGeometry(lower, depth+1)...)
	}

	return sortDownwards(rows)
}

func part(rows []Row, first func(mapreduce.Box) bool) (a, b []Row) {
	for _, r := range rows {
		if first(r.box) {
			a = append(a, r)
		} else {
			b = append(b, r)
		}
	}
	return a, b
}

// sortDownwards sorts rows from top to bottom, and those of one line from left to right.
func sortDownwards(rows []Row) []Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.box.Top+a.box.Bottom, b.box.Top+b.box.Bottom) })

	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && inLine(rows[from:to], rows[to].box) {
			to++
		}
		slices.SortStableFunc(rows[from:to], func(a, b Row) int { return cmp.Compare(a.box.Left, b.box.Left) })
		from = to
	}
	return rows
}

// inLine reports whether a box is in the line of rows: beside the first, or as high up as one of
// them, of which a letter may go below the line.
func inLine(rows []Row, b mapreduce.Box) bool {
	return beside(rows[0].box, b) || slices.ContainsFunc(rows, func(r Row) bool { return math.Abs(r.box.Top-b.Top) < 0.5 })
}

// An interval is what a row covers in one direction.
type interval struct{ from, to float64 }

// widestGap returns the middle of the widest gap that no interval covers, and its width.
func widestGap(all []interval) (at, width float64) {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	end := all[0].to
	for _, i := range all[1:] {
		if gap := i.from - end; gap > width {
			at, width = end+gap/2, gap
		}
		end = max(end, i.to)
	}
	return at, width
}

// findGutter returns where a gap from the top of the rows to their bottom parts them into
// columns of running text. A table has such gaps too, but short cells.
func findGutter(rows []Row) (float64, bool) {
	all := make([]interval, len(rows))
	for i, r := range rows {
		all[i] = interval{r.box.Left, r.box.Right}
	}
	at, width := widestGap(all)
	if width < medianHeight(rows)/2 {
		return 0, false
	}
	left, right := part(rows, func(b mapreduce.Box) bool { return b.Right <= at })
	return at, runs(left) && runs(right)
}

// runs reports whether rows are running text: at least three, most of several words.
func runs(rows []Row) bool {
	long := 0
	for _, r := range rows {
		if len(r.words) >= 3 {
			long++
		}
	}
	return len(rows) >= 3 && 2*long >= len(rows)
}

// verticalGap returns where a gap from the left of the rows to their right parts them, if it is
// wider than one between lines.
func verticalGap(rows []Row) (float64, bool) {
	all := make([]interval, len(rows))
	for i, r := range rows {
		all[i] = interval{r.box.Top, r.box.Bottom}
	}
	at, width := widestGap(all)
	return at, width > medianHeight(rows)/2
}

func medianHeight(rows []Row) float64 {
	heights := make([]float64, len(rows))
	for i := range rows {
		heights[i] = rows[i].rowHeight()
	}
	slices.Sort(heights)
	return max(heights[len(heights)/2], 1)
}

// joinBeside makes one row of rows that follow each other in one line, if they are short
// as the cells of a table are: running text in columns stays apart.
func joinBeside(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		if n := len(out); n > 0 && r.grid == nil && out[n-1].grid == nil && beside(out[n-1].box, r.box) && r.box.Left >= out[n-1].box.Right {
			for _, w := range r.words {
				out[n-1].add(w)
			}
			continue
		}

		out = append(out, r)
	}

	return out
}

// A Text puts the text of pages together, with its layout.
type Text struct {
	strings.Builder
	Layout layout.Layout
	// The places of the page for words that were recognised, by how sure they are, in hundredths.
	recognised map[int]*mapreduce.Location
}

// AddPage adds the rows of a page, and behind them its notes. Between pages and
// paragraphs stands an empty line, between the cells of a row a tab.
func (b *Text) AddPage(number int, rows []Row, notes []Note) {
	place := &mapreduce.Location{Page: number}
	clear(b.recognised)

	if len(rows)+len(notes) > 0 && b.Len() > 0 {
		b.WriteByte('\n')
	}

	for i := range rows {
		joined := i > 0 && isHyphenated(&rows[i-1], &rows[i])
		if i > 0 && !joined {
			b.WriteByte('\n')
			if newParagraph(&rows[i-1], &rows[i]) {
				b.WriteByte('\n')
			}
		}

		if rows[i].grid != nil {
			b.addGrid(place, rows[i].grid)
			continue
		}

		b.addRow(place, &rows[i], i+1 < len(rows) && isHyphenated(&rows[i], &rows[i+1]))
	}

	if n := len(rows); n > 0 && rows[n-1].grid == nil {
		b.WriteByte('\n')
	}

	for _, n := range notes {
		if n.Name != "" {
			b.WriteString(n.Name + ": ")
		}
		b.addText(place, n.Text, n.Box, 0)
		b.WriteByte('\n')
	}
}

// notRecognised is how sure recognition is of a page in which it found nothing: not at all.
const notRecognised = 0.01

// AddUnread adds a line for a page that is a picture in which no text was recognised, so that whoever is
// shown pages is shown that too.
func (b *Text) AddUnread(number int) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	start := b.Len()
	fmt.Fprintf(b, "[page %d is a picture in which no text was recognised]", number)
	b.Layout = append(b.Layout, layout.Part{Start: start, End: b.Len(), Location: &mapreduce.Location{Page: number, Recognised: notRecognised}})
	b.WriteByte('\n')
}

// addRow adds the words of a row; without the hyphen at its end if it is joined with the
// next.
func (b *Text) addRow(place *mapreduce.Location, r *Row, joined bool) {
	for i, w := range r.words {
		if i > 0 {
			b.WriteString(w.before)
		}

		text := w.Text
		if last := i == len(r.words)-1; strings.HasSuffix(text, "\u00ad") {
			text = strings.TrimSuffix(text, "\u00ad")
			if !last || !joined {
				text += "-"
			}
		} else if last && joined {
			text = strings.TrimRight(text, "-\u2010")
		}

		w.Box.Top, w.Box.Bottom = r.box.Top, r.box.Bottom // as a marker of the line would cover it
		b.addText(place, text, w.Box, w.Sure)
	}
}

// addText adds a text that stands in a box, and how sure it is if it was recognised.
func (b *Text) addText(place *mapreduce.Location, text string, box mapreduce.Box, sure float64) {
	if text == "" {
		return
	}
	from := b.Len()
	b.WriteString(text)
	b.Layout = append(b.Layout, layout.Part{Start: from, End: b.Len(), Location: b.sureOf(place, sure), Box: box})
}

// sureOf returns a place for a text that is as sure. Parts share it, as there are many.
func (b *Text) sureOf(place *mapreduce.Location, sure float64) *mapreduce.Location {
	if sure <= 0 || place == nil {
		return place
	}

	hundredths := max(int(math.Round(100*min(sure, 1))), 1)
	if b.recognised == nil {
		b.recognised = make(map[int]*mapreduce.Location)
	}

	at, ok := b.recognised[hundredths]
	if !ok {
		at = &mapreduce.Location{Page: place.Page, Recognised: float64(hundredths) / 100}
		b.recognised[hundredths] = at
	}
	return at
}

// isHyphenated reports whether the last word of a is continued by the first of b, and the
// hyphen stands only for that.
func isHyphenated(a, b *Row) bool {
	if a.grid != nil || b.grid != nil {
		return false
	}
	before, after := a.words[len(a.words)-1].Text, b.words[0].Text
	stem := strings.TrimRight(before, "-\u00ad\u2010")
	if stem == before || stem == "" || strings.ContainsAny(stem, "-\u2010") {
		return false
	}
	return continues(stem, after)
}

// continues reports whether a text may go on with another without a hyphen between them.
func continues(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return unicode.IsLower(last) && unicode.IsLower(first)
}

// newParagraph reports whether b begins a paragraph: it stands farther below a than a
// line would, or elsewhere. A table is one, and ends with a line of its own.
func newParagraph(a, b *Row) bool {
	if a.grid != nil || b.grid != nil {
		return a.grid == nil
	}
	gap := b.box.Top - a.box.Bottom
	return gap > 0.9*min(a.rowHeight(), b.rowHeight()) || gap < -2*max(a.rowHeight(), b.rowHeight())
}
