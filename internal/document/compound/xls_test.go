package compound_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/compound"
)

// A stream is a workbook that is being made.
type stream struct{ bytes.Buffer }

// record adds a record of some numbers: bytes, words of two bytes, and texts as they are.
func (s *stream) record(kind uint16, parts ...any) {
	var data bytes.Buffer
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			data.WriteString(p)
		case int:
			_ = binary.Write(&data, binary.LittleEndian, uint16(p)) // to memory
		default:
			_ = binary.Write(&data, binary.LittleEndian, p)
		}
	}
	_ = binary.Write(s, binary.LittleEndian, []uint16{kind, uint16(data.Len())})
	s.Write(data.Bytes())
}

// wide returns a text in two bytes a character.
func wide(text string) string {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, utf16.Encode([]rune(text)))
	return b.String()
}

// xlsContainer returns the bytes of a xlsContainer with one stream, as [MS-CFB] has it: the header, a
// sector of the table of sectors, one of the directory, and those of the stream.
func xlsContainer(name string, data []byte) []byte {
	const sector, end, free = 512, 0xfffffffe, 0xffffffff
	for len(data) < 4096 || len(data)%sector != 0 { // what is shorter stands elsewhere
		data = append(data, 0)
	}
	sectors := len(data) / sector
	tables := (sectors + 2 + sector/4 - 1 + 1) / (sector / 4)
	for (sectors+1+tables)*4 > tables*sector {
		tables++
	}
	header := make([]byte, sector)
	copy(header, compound.Signature)
	put := func(b []byte, at int, values ...uint32) {
		for i, v := range values {
			binary.LittleEndian.PutUint32(b[at+4*i:], v)
		}
	}
	binary.LittleEndian.PutUint16(header[24:], 0x3e)
	binary.LittleEndian.PutUint16(header[26:], 3)
	binary.LittleEndian.PutUint16(header[28:], 0xfffe)
	binary.LittleEndian.PutUint16(header[30:], 9)
	binary.LittleEndian.PutUint16(header[32:], 6)
	put(header, 44, uint32(tables), uint32(tables), 0, 4096, end, 0, end, 0)
	for i := range 109 {
		put(header, 76+4*i, free)
	}
	for i := range tables {
		put(header, 76+4*i, uint32(i))
	}

	table := bytes.Repeat([]byte{0xff}, tables*sector)
	for i := range tables {
		put(table, 4*i, 0xfffffffd)
	}
	put(table, 4*tables, end)
	for i := range sectors {
		next := uint32(tables + 2 + i)
		if i == sectors-1 {
			next = end
		}
		put(table, 4*(tables+1+i), next)
	}

	directory := make([]byte, sector)
	entry := func(i int, name string, kind byte, child, start, size uint32) {
		e := directory[128*i:]
		encoded := wide(name)
		copy(e, encoded)
		binary.LittleEndian.PutUint16(e[64:], uint16(len(encoded)+2))
		e[66], e[67] = kind, 1
		put(e, 68, free, free, child)
		put(e, 116, start, size)
	}
	entry(0, "Root Entry", 5, 1, end, 0)
	entry(1, name, 2, free, uint32(tables+1), uint32(len(data)))
	for i := 2; i < 4; i++ {
		put(directory, 128*i+68, free, free, free)
	}
	return append(append(append(header, table...), directory...), data...)
}

func xlsRead(t testing.TB, file []byte) (*document.Document, error) {
	t.Helper()
	in := document.Input{Name: "a.xls", Content: bytes.NewReader(file)}
	c, err := compound.Open(t.Context(), in.Content)
	if err != nil {
		return nil, err
	}
	if !compound.HoldsXls(c) {
		return nil, document.Refuse("no workbook")
	}
	return compound.ParseXls(t.Context(), in, c)
}

// workbook returns a workbook with a string that two records hold, a date, formulas, cells that are
// one, and cells that are not in their order.
func workbook() []byte {
	var s stream
	s.record(0x0809, 0x0600, 5)
	s.record(0x0022, 0)
	s.record(0x041e, 164, 8, uint8(0), `0.00" m"`)
	for _, format := range []int{0, 14, 164, 9} {
		s.record(0x00e0, 0, format)
	}
	at := s.Len() + 4
	s.record(0x0085, uint32(0), uint8(0), uint8(0), uint8(5), uint8(1), wide("Größe"))
	s.record(0x00fc, uint32(5), uint32(5), 4, uint8(0), "Name", 4, uint8(1), wide("Da"))
	s.record(0x003c, uint8(0), "te", 6, uint8(0), "Length", 3, uint8(8), 1, "Bob", "\x00\x00\x05\x00", 5, uint8(0), "Total")
	s.record(0x000a)
	sheet := s.Len()

	s.record(0x0809, 0x0600, 0x10)
	s.record(0x00fd, 0, 0, 0, uint32(0))
	s.record(0x00fd, 0, 1, 0, uint32(1))
	s.record(0x00fd, 0, 2, 0, uint32(2))
	s.record(0x00fd, 1, 0, 0, uint32(3))
	s.record(0x0203, 1, 1, 1, 45000.0)
	s.record(0x027e, 1, 2, 2, uint32(1250<<2|3))
	s.record(0x00bd, 2, 1, 1, uint32(45001<<2|2), 2, uint32(7<<2|2), 2)
	s.record(0x0006, 3, 2, 0, uint16(0), uint16(0), uint16(0), uint16(0xffff), uint32(0))
	s.record(0x04bc, 3, 3, uint8(2), uint8(2), 1, 0) // other formulas share it
	s.record(0x0207, 3, uint8(0), "sum")
	s.record(0x0006, 3, 1, 3, math.Float64bits(0.25))
	s.record(0x00fd, 3, 0, 0, uint32(4))
	s.record(0x0205, 4, 0, 0, uint8(7), uint8(1))
	s.record(0x0205, 4, 1, 0, uint8(1), uint8(0))
	s.record(0x00e5, 1, 1, 2, 0, 0)
	s.record(0x0809, 0x0600, 0x20) // a chart within the sheet
	s.record(0x0203, 9, 9, 0, 1.0)
	s.record(0x000a)
	s.record(0x000a)
	data := s.Bytes()
	binary.LittleEndian.PutUint32(data[at:], uint32(sheet))
	return data
}

func TestWorkbook(t *testing.T) {
	const want = "## Größe\n\n" +
		"| Name | Date | Length |\n| --- | --- | --- |\n" +
		"| Bob | 03-15-23 (=2023-03-15) | 12.50 m |\n| Bob | 03-16-23 (=2023-03-16) | 7.00 m |\n| Total | 25% (=0.25) | sum |\n| #DIV/0! | TRUE |  |\n"
	// The names of streams do not tell capitals from small letters.
	for _, name := range []string{"Workbook", "WORKBOOK", "workbook"} {
		d, err := xlsRead(t, xlsContainer(name, workbook()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, d.Text); diff != "" || d.Kind != compound.XlsKind {
			t.Errorf("%s: a document of kind %q (-want +got):\n%s", name, d.Kind, diff)
		}
	}
}

// oldWorkbook returns a workbook of before Unicode, with a code page, and a sheet of a name and two texts.
func oldWorkbook(page int, name, first, second string) []byte {
	var s stream
	s.record(0x0809, 0x0500, 5)
	s.record(0x0042, page)
	at := s.Len() + 4
	s.record(0x0085, uint32(0), uint8(0), uint8(0), uint8(len(name)), name)
	s.record(0x000a)

	sheet := s.Len()
	s.record(0x0809, 0x0500, 0x10)
	s.record(0x0204, 0, 0, 0, len(first), first)
	s.record(0x0204, 0, 1, 0, len(second), second)
	s.record(0x000a)

	data := s.Bytes()
	binary.LittleEndian.PutUint32(data[at:], uint32(sheet))
	return xlsContainer("Book", data)
}

// TestBeforeUnicode: the strings of older workbooks have a code page.
func TestBeforeUnicode(t *testing.T) {
	for _, test := range []struct {
		page                      int
		first, second, want, note string
	}{
		{1251, "\xc4\xe0", "b", "| Да | b |", ""},
		{852, "\x98al", "b", "| śal | b |", ""},
		{10000, "\x9fber", "\xdb", "| über | € |", ""},
		{10001, "\x93\xfa\x96\x7b", "b", "| 日本 | b |", ""},
		{10006, "\xb0\xf5\xdc\xee\xe1", "b", "| Αθήνα | b |", ""},
		{10029, "P\xde\x92li\xe4 \xeclu\xe9ou\x8bk\xf9", "\xfc\x97d\x90", "| Příliš žluťoučký | Łódź |", ""},
		{10081, "\xdc\xdbne", "b", "| İğne | b |", ""},
		{10082, "\xd0ura \xa9\xe6", "b", "| Đura Šć | b |", ""},
		{10007, "\x84\xe0", "b", "| Да | b |", ""},
		{10004, "\xc7\xe4", "b", "| Çä | b |", "code page 10004, which is not known"},
		{10004, "a", "b", "| a | b |", ""},
	} {
		d, err := xlsRead(t, oldWorkbook(test.page, "S", test.first, test.second))
		if err != nil || d.Text != "## S\n\n"+test.want+"\n| --- | --- |\n" {
			t.Errorf("%d: %+v, %v", test.page, d, err)
			continue
		}
		if notes := strings.Join(d.Notes, "; "); (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
			t.Errorf("%d: notes %q, want %q", test.page, notes, test.note)
		}
	}

	d, err := xlsRead(t, oldWorkbook(1251, "\xcb\xe8\xf1\xf2", "a", "b"))
	if err != nil || !strings.HasPrefix(d.Text, "## Лист\n") {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestContinuedStrings: a string goes on in the next record also behind records that hold nothing or
// only flags, and behind half a character.
func TestContinuedStrings(t *testing.T) {
	for name, pieces := range map[string][][]any{
		"two records":       {{4, uint8(1), wide("Bo")}, {uint8(1), wide("lt")}},
		"an empty record":   {{4, uint8(1), wide("Bo")}, {}, {uint8(1), wide("lt")}},
		"a record of flags": {{4, uint8(1), wide("Bo")}, {uint8(1)}, {uint8(0), "lt"}},
		"half a character":  {{4, uint8(1), wide("Bo"), "\x00"}, {uint8(0), "lt"}},
	} {
		var s stream
		s.record(0x0809, 0x0600, 5)
		at := s.Len() + 4
		s.record(0x0085, uint32(0), uint8(0), uint8(0), uint8(1), uint8(0), "S")
		s.record(0x00fc, append([]any{uint32(2), uint32(2)}, pieces[0]...)...)
		for _, piece := range pieces[1:] {
			s.record(0x003c, piece...)
		}
		s.record(0x003c, 3, uint8(0), "Nut")
		s.record(0x000a)
		sheet := s.Len()
		s.record(0x0809, 0x0600, 0x10)
		s.record(0x00fd, 0, 0, 0, uint32(0))
		s.record(0x00fd, 0, 1, 0, uint32(1))
		s.record(0x000a)
		data := s.Bytes()
		binary.LittleEndian.PutUint32(data[at:], uint32(sheet))

		d, err := xlsRead(t, xlsContainer("Workbook", data))
		if err != nil || d.Text != "## S\n\n| Bolt | Nut |\n| --- | --- |\n" {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	var locked stream
	locked.record(0x0809, 0x0600, 5)
	locked.record(0x002f, 1)
	beyond := workbook()
	i := bytes.Index(beyond, []byte{0xfd, 0, 10, 0})
	beyond[i+10] = 0xff
	for name, tt := range map[string]struct {
		file   []byte
		reason string
	}{
		"encrypted":           {xlsContainer("Workbook", locked.Bytes()), "encrypted with a password"},
		"a string of no text": {xlsContainer("Workbook", beyond), "a cell has the string 255 of 5"},
		"another file":        {xlsContainer("Other", workbook()), "no workbook"},
		"cut off":             {xlsContainer("Workbook", workbook())[:700], "damaged"},
	} {
		_, err := xlsRead(t, tt.file)
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v, want %q", name, err, tt.reason)
		}
	}
}

// FuzzWorkbook: any records are text, or refused.
func FuzzWorkbook(f *testing.F) {
	f.Add(workbook())
	f.Add(workbook()[:200])
	f.Add([]byte("\x09\x08\x04\x00\x00\x06\x05\x00\xfc\x00\x0b\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x09\x08\x04\x00\x00\x05\x05\x00\x85\x00\x08\x00\x00\x00\x00\x00\x00\x00\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			t.Skip("larger files find no more")
		}
		_, err := xlsRead(t, xlsContainer("Workbook", data))
		if refused := new(document.RefusedError); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	})
}

// FuzzContainer: any xlsContainer is xlsRead, or refused.
func FuzzContainer(f *testing.F) {
	f.Add(xlsContainer("Workbook", workbook()))
	f.Add([]byte(compound.Signature))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, err := xlsRead(t, file)
		if refused := new(document.RefusedError); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		compound.Title(file)
	})
}
