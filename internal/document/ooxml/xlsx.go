package ooxml

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/sheet"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// XlsxKind is the name of the format.
const XlsxKind document.Kind = "xlsx"

// XlsxFormat returns the format of workbooks. Their text is a table for each sheet, with dates and
// numbers as they are shown, and as they are stored where that says more. Formulas have the values
// that were computed last.
func XlsxFormat() document.Format {
	return document.Format{
		Kind: XlsxKind, Parse: parseXlsx,
		Sniff:      func(begin []byte) document.Match { return zipfile.SniffFolder(begin, "xl/") },
		Extensions: []string{".xlsx", ".xlsm", ".xltx", ".xltm", ".xlsb"},
		MediaTypes: []string{
			"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
			"application/vnd.openxmlformats-officedocument.spreadsheetml.template",
			"application/vnd.ms-excel.sheet.macroenabled.12", "application/vnd.ms-excel.template.macroenabled.12",
		},
	}
}

const workbook = "xl/workbook.xml"

// Bounds of workbooks.
const (
	maxStrings    = 3_000_000
	maxXlsxStyles = 100_000
	maxSheets     = 2000
)

// parseXlsx implements the Parse of document.Format.
func parseXlsx(ctx context.Context, in document.Input) (*document.Document, error) {
	z, err := zipfile.Open(ctx, in)
	if err != nil {
		return nil, err
	}
	if !z.Has(workbook) && z.Has("xl/workbook.bin") {
		return nil, document.RefuseUnread(document.Conversion{What: "a binary Excel workbook (.xlsb)", From: ".xlsb", To: ".xlsx"})
	}

	text := &richtext.Writer{MaxBytes: in.Limits.Bytes}
	r := &xlsxReader{zip: z, text: text, sheets: &sheet.Writer{Text: text, Limits: in.Limits}}
	sheets, err := r.readWorkbook()
	if err != nil {
		return nil, err
	}

	// Cells refer to strings and styles, which are read before the sheets.
	if err := r.readStrings(); err != nil {
		return nil, err
	}
	if err := r.readStyles(); err != nil {
		return nil, err
	}

	for _, s := range sheets {
		if err := r.readSheet(s); err != nil {
			return nil, err
		}
	}

	for _, c := range r.comments {
		text.Note(c.mark, c.text, c.place)
	}

	d, err := text.Document()
	if err != nil {
		return nil, err
	}
	d.Title = xmlread.CoreTitle(z, xmlread.OfficeCore)
	if r.unknown > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%s no stored result, and no value here; open the file in a spreadsheet program and save it", plural(r.unknown)))
	}

	if n := len(r.absent); n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of %d sheets are not in the file: first %q", n, len(sheets), richtext.Clip(r.absent[0])))
	}

	return d, nil
}

// plural returns a count of formulas with its verb.
func plural(n int) string {
	if n == 1 {
		return "1 formula has"
	}
	return strconv.Itoa(n) + " formulas have"
}

// A reader reads one workbook.
type xlsxReader struct {
	zip       *zipfile.Reader
	folder    string              // of the workbook
	relations map[string]relation // of it
	text      *richtext.Writer
	sheets    *sheet.Writer
	from1904  bool // days are counted from 1904 and not from 1900
	strings   []string
	formats   []string // of numbers, by style of cells
	numbers   sheet.Formatter
	comments  []xlsxComment
	unknown   int           // formulas without a stored result
	absent    []string      // sheets that the file does not have
	merges    *sheet.Merges // of the sheet that is read
}

// A comment is one on a cell.
type xlsxComment struct {
	mark, text string
	place      *mapreduce.Location
}

// open calls child for the elements within the outermost one of an entry.
func (r *xlsxReader) open(name string, child func(*xmlread.Decoder, xml.StartElement) error) error {
	e, err := r.zip.Open(name)
	if err != nil {
		return err
	}
	defer e.Close()

	d := xmlread.New(name, e, r.zip.Limits())
	return d.Document(func(xml.StartElement) error {
		return d.Each(func(e xml.StartElement) error { return child(d, e) }, nil)
	})
}

// A sheetRef is a sheet with its entry.
type sheetRef struct {
	name, entry string
	cells       bool // and not a chart, which has none
}

// readWorkbook returns the sheets in their order.
func (r *xlsxReader) readWorkbook() ([]sheetRef, error) {
	main, err := mainPart(r.zip, workbook)
	if err != nil {
		return nil, err
	}

	r.folder = path.Dir(main)
	if r.relations, err = relationsOf(r.zip, main); err != nil {
		return nil, err
	}

	var sheets []sheetRef
	err = r.open(main, func(d *xmlread.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			v := xmlread.Attr(e, "date1904")
			r.from1904 = v == "1" || v == "true"
		case "sheets":
			return d.Each(func(e xml.StartElement) error {
				if len(sheets) == maxSheets {
					return document.Refuse("more than %d sheets", maxSheets)
				}

				// The entry of a sheet is known by its relation, and its kind by that or by its folder.
				rel := r.relations[xmlread.Attr(e, "id")]
				cells := rel.kind == "worksheet" || strings.HasPrefix(path.Base(path.Dir(rel.target)), "worksheet")
				sheets = append(sheets, sheetRef{xmlread.Attr(e, "name"), rel.target, cells})
				return d.Skip()
			}, nil)
		}
		return d.Skip()
	})

	return sheets, err
}

// readStrings reads the strings that cells share.
func (r *xlsxReader) readStrings() error {
	name := partOf(r.zip, r.relations, "sharedStrings", path.Join(r.folder, "sharedStrings.xml"))
	if !r.zip.Has(name) {
		return nil
	}

	return r.open(name, func(d *xmlread.Decoder, _ xml.StartElement) error {
		if len(r.strings) == maxStrings {
			return document.Refuse("more than %d strings", maxStrings)
		}
		s, err := readString(d)
		r.strings = append(r.strings, s)
		return err
	})
}

// readString reads a string, whose letters may look differently.
func readString(d *xmlread.Decoder) (string, error) {
	var text richtext.Runs
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "t":
			s, err := d.Text()
			text.WriteString(unescape(s))
			return err
		case "r":
			text.At(richtext.OnLine)
		case "vertAlign":
			text.At(richtext.PositionOf(xmlread.Attr(e, "val")))
		case "rPh": // how it is pronounced
			return d.Skip()
		}
		return d.Each(child, nil)
	}

	err := d.Each(child, nil)
	return text.String(), err
}

// readStyles reads the formats of numbers.
func (r *xlsxReader) readStyles() error {
	name := partOf(r.zip, r.relations, "styles", path.Join(r.folder, "styles.xml"))
	if !r.zip.Has(name) {
		return nil
	}
	codes := map[string]string{}

	return r.open(name, func(d *xmlread.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmts":
			return d.Each(func(e xml.StartElement) error {
				if len(codes) < maxXlsxStyles {
					codes[xmlread.Attr(e, "numFmtId")] = xmlread.Attr(e, "formatCode")
				}
				return d.Skip()
			}, nil)
		case "cellXfs":
			return d.Each(func(e xml.StartElement) error {
				if len(r.formats) == maxXlsxStyles {
					return document.Refuse("more than %d styles", maxXlsxStyles)
				}
				id := xmlread.Attr(e, "numFmtId")

				// Formats of the file go before those that every program knows.
				code, own := codes[id]
				if !own {
					code = sheet.BuiltinFormat(id)
				}
				r.formats = append(r.formats, code)
				return d.Skip()
			}, nil)
		}
		return d.Skip()
	})
}

// readSheet reads a sheet and the comments on it.
func (r *xlsxReader) readSheet(s sheetRef) error {
	if s.entry != "" && !s.cells {
		return nil
	}
	if !r.zip.Has(s.entry) {
		r.absent = append(r.absent, s.name)
		return nil
	}

	var err error
	if r.merges, err = r.readMerges(s.entry); err != nil {
		return err
	}

	r.sheets.Begin(s.name)
	row := 0
	err = r.open(s.entry, func(d *xmlread.Decoder, e xml.StartElement) error {
		if e.Name.Local != "sheetData" {
			return d.Skip()
		}
		return d.Each(func(e xml.StartElement) error {
			before := row
			if n, err := strconv.Atoi(xmlread.Attr(e, "r")); err == nil && n > 0 {
				row = n
			} else {
				row++
			}
			if row > before+1 { // rows without cells are left out
				if err := r.sheets.Row(before+1, nil); err != nil {
					return err
				}
			}
			cells, err := r.readRow(d)
			if err != nil {
				return err
			}
			cells, spans := r.merges.Apply(row, cells)
			return r.sheets.MergedRow(row, cells, spans)
		}, nil)
	})
	if err != nil {
		return err
	}

	r.sheets.End()
	return r.readComments(s)
}

// readRow reads the cells of a row.
func (r *xlsxReader) readRow(d *xmlread.Decoder) ([]string, error) {
	var cells []string
	next := 0 // column of a cell that does not say its own

	err := d.Each(func(e xml.StartElement) error {
		if e.Name.Local != "c" {
			return d.Skip()
		}

		column := columnOf(xmlread.Attr(e, "r"))
		if column < 0 {
			column = next
		}
		next = column + 1
		if column >= sheet.MaxColumns {
			return document.Refuse("more than %d columns", sheet.MaxColumns)
		}

		value, err := r.readCell(d, xmlread.Attr(e, "t"), xmlread.Attr(e, "s"))
		if err != nil || value == "" {
			return err
		}

		for len(cells) <= column {
			cells = append(cells, "")
		}
		cells[column] = value
		return nil
	}, nil)

	return cells, err
}

// columnOf returns the number from 0 of the column of a cell such as "B7"; -1 if it says
// none. Some programs write small letters.
func columnOf(cell string) int {
	n := 0
	for i := range len(cell) {
		c := cell[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c < 'A' || c > 'Z' {
			break
		}
		if n = n*26 + int(c-'A'+1); n > sheet.MaxColumns {
			break
		}
	}

	return n - 1
}

// readCell returns the value of a cell of a type and style.
func (r *xlsxReader) readCell(d *xmlread.Decoder, kind, style string) (string, error) {
	value, inline, formula, known := "", "", "", false
	err := d.Each(func(e xml.StartElement) (err error) {
		switch e.Name.Local {
		case "v":
			known = true
			value, err = d.Text()
		case "f": // its value stands beside it
			formula, err = d.Text()
			formula = "=" + cmp.Or(strings.TrimSpace(formula), "…")
		case "is":
			inline, err = readString(d)
		default:
			err = d.Skip()
		}
		return err
	}, nil)
	if err != nil {
		return "", err
	}

	if formula != "" && !known && inline == "" {
		r.unknown++
		return formula, nil
	}

	switch kind {
	case "s":
		// A cell of an empty value is an empty one.
		if strings.TrimSpace(value) == "" {
			return "", nil
		}
		if i, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && 0 <= i && i < len(r.strings) {
			return r.strings[i], nil
		}
		return "", document.Refuse("damaged: a cell has the string %.20q of %d", value, len(r.strings))
	case "inlineStr":
		return inline, nil
	case "b":
		return map[string]string{"1": "TRUE", "0": "FALSE"}[strings.TrimSpace(value)], nil
	case "str", "e", "d":
		return unescape(value), nil
	}

	number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return value, nil
	}

	code := ""
	if i, err := strconv.Atoi(style); err == nil && 0 <= i && i < len(r.formats) {
		code = r.formats[i]
	}

	return r.numbers.Value(number, code, r.from1904), nil
}

// readComments reads the comments on a sheet.
func (r *xlsxReader) readComments(s sheetRef) error {
	relations, err := relationsOf(r.zip, s.entry)
	if err != nil {
		return err
	}

	for _, id := range slices.Sorted(maps.Keys(relations)) {
		// A relation may lead to an entry that is not there; the cells are read all the same.
		entry := relations[id].target
		if relations[id].kind != "comments" || !r.zip.Has(entry) {
			continue
		}
		err := r.open(entry, func(d *xmlread.Decoder, e xml.StartElement) error {
			if e.Name.Local != "commentList" {
				return d.Skip()
			}
			return d.Each(func(e xml.StartElement) error {
				cell := xmlread.Attr(e, "ref")
				text, err := readString(d)
				r.comments = append(r.comments, xlsxComment{
					mark: "Comment on " + s.name + "!" + cell + ":", text: text,
					place: &mapreduce.Location{Sheet: richtext.Clip(s.name), Cell: richtext.Clip(cell)},
				})
				return err
			}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
