package compound

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/sheet"
)

// XlsKind is the name of the format.
const XlsKind document.Kind = "xls"

// Streams that hold a workbook, the newer one first.
var streams = [...]string{"Workbook", "Book"}

// HoldsXls reports whether a container holds a workbook.
func HoldsXls(c *Container) bool {
	return slices.ContainsFunc(streams[:], c.Has)
}

// Bounds of workbooks.
const (
	maxStrings = 3_000_000
	maxStyles  = 100_000
	maxSheets  = 2000
	maxMerges  = 100_000
)

// versionUnicode is the version of files whose strings are Unicode.
const versionUnicode = 0x0600

// ParseXls reads the Excel workbook of 1993 to 2003 in a container (BIFF5 and BIFF8, [MS-XLS]). Its
// text is that of newer workbooks: a table for each sheet, with dates and numbers as they are shown,
// and as they are stored where that says more. Formulas have the values that were computed last.
func ParseXls(ctx context.Context, in document.Input, c *Container) (*document.Document, error) {
	found, err := c.Streams(ctx, append(streams[:], Summary)...)
	if err != nil {
		return nil, err
	}

	// Files may hold the workbook in both forms, for older programs.
	data := found[streams[0]]
	if data == nil {
		data = found[streams[1]]
	}

	text := &richtext.Writer{MaxBytes: in.Limits.Bytes}
	b := &book{
		ctx: ctx, data: data, limits: in.Limits.WithDefaults(), page: 1252, codes: map[int]string{},
		sheets: &sheet.Writer{Text: text, Limits: in.Limits},
	}

	if err := eachRecord(ctx, data, 0, b.readGlobal); err != nil {
		return nil, err
	}

	for _, s := range b.list {
		if err := b.readSheet(s); err != nil {
			return nil, err
		}
	}

	d, err := text.Document()
	if err != nil {
		return nil, err
	}

	d.Kind, d.Title = XlsKind, Title(found[Summary])
	if b.doubtful {
		d.Notes = append(d.Notes, fmt.Sprintf("its texts are in the code page %d, which is not known, and were read as windows-1252: letters beyond those of English may be wrong", b.page))
	}
	return d, nil
}

// A book is a workbook that is read.
type book struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call
	data     []byte
	limits   document.Limits
	sheets   *sheet.Writer
	version  int
	page     int  // code page of strings before Unicode
	doubtful bool // they have letters of a page that is not known
	from1904 bool
	strings  []string
	codes    map[int]string // of formats of numbers, by id
	styles   []int          // ids of formats, by style
	numbers  sheet.Formatter
	list     []sheetRef

	cells  []cell // of the sheet that is read
	merged []sheet.Merge
	await  *cell // the formula whose text comes next
}

// A sheetRef says where a sheet begins.
type sheetRef struct {
	name string
	at   int
}

// A cell is one with a value.
type cell struct {
	row, column int // from 0
	value       string
}

// readGlobal reads a record that is about the whole workbook.
func (b *book) readGlobal(r record) error {
	switch r.kind {
	case recordBOF:
		b.version = r.number(0)
	case recordFilePass:
		return document.Refuse("encrypted with a password; of encrypted files only PDF files are read: save it without a password")
	case recordCodePage:
		b.page = r.number(0)
	case recordDateMode:
		b.from1904 = r.number(0) == 1
	case recordFormat:
		b.codes[r.number(0)] = b.text(r, 2, 1)
	case recordXF:
		if len(b.styles) == maxStyles {
			return document.Refuse("more than %d styles", maxStyles)
		}
		b.styles = append(b.styles, r.number(2))
	case recordBoundSheet:
		return b.addSheet(r)
	case recordSST:
		return b.readStrings(r)
	}

	return nil
}

// text returns the string in a record at a position. Before Unicode its length has so many
// bytes; since then, two where it is not that of a name.
func (b *book) text(r record, at, oldSize int) string {
	if b.version >= versionUnicode {
		size := 2
		if r.kind == recordBoundSheet {
			size = 1
		}
		return newParts(r, at).unicode(size)
	}

	length, at := int(0), at
	if oldSize == 1 && at < len(r.data) {
		length = int(r.data[at])
	} else if oldSize == 2 {
		length = r.number(at)
	}

	data := r.bytesFrom(at + oldSize)
	data = data[:min(length, len(data))]

	if !b.doubtful && !isKnownPage(b.page) {
		b.doubtful = slices.ContainsFunc(data, func(c byte) bool { return c >= utf8.RuneSelf })
	}
	return DecodePage(data, b.page)
}

// addSheet adds a sheet to the list, unless it is one of charts or macros.
func (b *book) addSheet(r record) error {
	const worksheet = 0

	if len(r.data) < 8 || r.data[5] != worksheet {
		return nil
	}

	if len(b.list) == maxSheets {
		return document.Refuse("more than %d sheets", maxSheets)
	}

	b.list = append(b.list, sheetRef{name: b.text(r, 6, 1), at: int(binary.LittleEndian.Uint32(r.data))})
	return nil
}

// readStrings reads the strings that cells refer to.
func (b *book) readStrings(r record) error {
	p := newParts(r, 8)

	for {
		if len(b.strings)%4096 == 0 && b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}

		s := p.unicode(2)
		if p.short {
			return nil // at the end, or where the file is cut off
		}
		if len(b.strings) == maxStrings {
			return document.Refuse("more than %d strings", maxStrings)
		}
		b.strings = append(b.strings, s)
	}
}

// readSheet reads and writes a sheet.
func (b *book) readSheet(s sheetRef) error {
	b.cells, b.merged, b.await = nil, nil, nil
	if err := eachRecord(b.ctx, b.data, s.at, b.readCells); err != nil {
		return err
	}

	// Records of cells may stand in any order.
	slices.SortStableFunc(b.cells, func(x, y cell) int { return cmp.Or(cmp.Compare(x.row, y.row), cmp.Compare(x.column, y.column)) })
	merges := sheet.NewMerges(b.merged)

	b.sheets.Begin(s.name)
	for last := 0; len(b.cells) > 0; {
		row := b.cells[0].row
		n := 1
		for n < len(b.cells) && b.cells[n].row == row {
			n++
		}
		values := make([]string, b.cells[n-1].column+1)
		for _, c := range b.cells[:n] {
			values[c.column] = c.value // of two, the later one stands
		}
		b.cells = b.cells[n:]
		if row > last {
			if err := b.sheets.Row(last+1, nil); err != nil { // rows without cells are left out
				return err
			}
		}

		last = row + 1

		cells, spans := merges.Apply(row+1, values)
		if err := b.sheets.MergedRow(row+1, cells, spans); err != nil {
			return err
		}
	}

	b.sheets.End()
	return nil
}

// readCells reads a record of a sheet.
func (b *book) readCells(r record) error {
	row, column, style := r.number(0), r.number(2), r.number(4)

	// The text of a formula stands behind it, or behind what says how several share it.
	switch r.kind {
	case recordString, recordSharedFormula, recordArray, recordTable:
	default:
		b.await = nil
	}

	switch r.kind {
	case recordNumber:
		return b.addNumber(row, column, style, float64At(r, 6))
	case recordRk:
		return b.addNumber(row, column, style, packedAt(r, 6))
	case recordMulRk:
		for at := 4; at+6 <= len(r.data)-2; at += 6 {
			if err := b.addNumber(row, column, r.number(at), packedAt(r, at+2)); err != nil {
				return err
			}
			column++
		}
	case recordLabelSST:
		return b.addShared(row, column, r)
	case recordLabel, recordRString:
		return b.add(row, column, b.text(r, 6, 2))
	case recordBoolErr:
		if len(r.data) >= 8 {
			return b.add(row, column, constantName(r.data[6], r.data[7] != 0))
		}
	case recordFormula:
		return b.addFormula(row, column, style, r)
	case recordString:
		if b.await != nil {
			// The text of a formula stands in the record behind it.
			found := *b.await
			b.await = nil
			return b.add(found.row, found.column, b.text(r, 0, 2))
		}
	case recordMergeCells:
		b.addMerges(r)
	}
	return nil
}

// add adds a cell with a value.
func (b *book) add(row, column int, value string) error {
	if value == "" || column >= sheet.MaxColumns {
		return nil
	}

	if len(b.cells) >= b.limits.Cells {
		return sheet.TooManyCells(b.limits)
	}
	b.cells = append(b.cells, cell{row, column, value})
	return nil
}

// addShared adds a cell whose string stands among those of the workbook.
func (b *book) addShared(row, column int, r record) error {
	if len(r.data) < 10 {
		return nil
	}

	i := binary.LittleEndian.Uint32(r.data[6:])
	if int64(i) >= int64(len(b.strings)) {
		return document.Refuse("damaged: a cell has the string %d of %d", i, len(b.strings))
	}

	return b.add(row, column, b.strings[i])
}

// addNumber adds a cell with a number, as its style shows it.
func (b *book) addNumber(row, column, style int, value float64) error {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}

	code := ""
	if style < len(b.styles) {
		id, own := b.styles[style], false
		if code, own = b.codes[id]; !own {
			code = sheet.BuiltinFormat(strconv.Itoa(id))
		}
	}

	return b.add(row, column, b.numbers.Value(value, code, b.from1904))
}

// addFormula adds a cell with what a formula came to.
func (b *book) addFormula(row, column, style int, r record) error {
	if len(r.data) < 14 {
		return nil
	}

	result := r.data[6:14]
	// A result with this mark is no number: its first byte says what it is.
	if binary.LittleEndian.Uint16(result[6:]) != 0xffff {
		return b.addNumber(row, column, style, float64At(r, 6))
	}

	const text, boolean, failure = 0, 1, 2
	switch result[0] {
	case text:
		b.await = &cell{row: row, column: column}
	case boolean, failure:
		return b.add(row, column, constantName(result[2], result[0] == failure))
	}

	return nil
}

// constantName returns how a truth or an error is shown.
func constantName(value byte, isError bool) string {
	switch {
	case isError:
		return errorName(value)
	case value != 0:
		return "TRUE"
	}
	return "FALSE"
}

// addMerges adds cells that are shown as one.
func (b *book) addMerges(r record) {
	for at := 2; at+8 <= len(r.data) && len(b.merged) < maxMerges; at += 8 {
		m := sheet.Merge{Top: r.number(at) + 1, Bottom: r.number(at+2) + 1, Left: r.number(at + 4), Right: r.number(at + 6)}
		if m.Top <= m.Bottom && m.Left <= m.Right && m.Right < sheet.MaxColumns {
			b.merged = append(b.merged, m)
		}
	}
}

func float64At(r record, at int) float64 {
	if at+8 > len(r.data) {
		return math.NaN()
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(r.data[at:]))
}

func packedAt(r record, at int) float64 {
	if at+4 > len(r.data) {
		return math.NaN()
	}
	return unpackNumber(binary.LittleEndian.Uint32(r.data[at:]))
}
