package compound_test

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"

	"github.com/coditect/mapreduce/internal/document/compound"
)

// A run is a part of a text with the changes of its format, as [MS-DOC] has them: a paragraph
// with its mark, or characters.
type run struct {
	text    string
	changes []byte
	style   int // of a paragraph
}

// Changes of formats.
var (
	inTable = []byte{0x16, 0x24, 1}
	endsRow = []byte{0x16, 0x24, 1, 0x17, 0x24, 1}
	deleted = []byte{0x00, 0x08, 1}
	hidden  = []byte{0x3c, 0x08, 1}
)

// rowEnd returns the changes of the mark of a row with cells between edges, of which some go on
// with those of the row above.
func rowEnd(edges []int, goOn ...bool) []byte {
	var cells bytes.Buffer
	cells.WriteByte(byte(len(edges) - 1))
	for _, e := range edges {
		put(&cells, uint16(e))
	}
	for i := range len(edges) - 1 {
		kind := uint16(0)
		if i < len(goOn) && goOn[i] {
			kind = 0x0020
		}
		put(&cells, kind)
		cells.Write(make([]byte, 18))
	}
	var all bytes.Buffer
	all.Write(endsRow)
	put(&all, uint16(0xd608), uint16(cells.Len()+1))
	all.Write(cells.Bytes())
	return all.Bytes()
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // to memory
	}
}

// makeFile returns a document of paragraphs, of which runs of characters have formats of their
// own. notes are how many characters at the end are footnotes.
func makeFile(paragraphs, characters []run, notes int) []byte {
	const textAt = 1024
	text := ""
	for _, p := range paragraphs {
		text += p.text
	}
	units := utf16.Encode([]rune(text))
	main := bytes.NewBuffer(make([]byte, textAt))
	put(main, units)
	main.Write(make([]byte, 511-(main.Len()-1)%512))
	page := func(runs []run, size int, format func(run) []byte) uint32 {
		at := main.Len() / 512
		main.Write(formatsPage(textAt, runs, size, format))
		return uint32(at)
	}
	paragraphPage := page(paragraphs, 13, func(r run) []byte {
		all := append([]byte{byte(r.style), 0}, r.changes...)
		if len(all)%2 == 0 {
			return append([]byte{0, byte(len(all) / 2)}, all...)
		}
		return append([]byte{byte(len(all)+1) / 2}, all...)
	})
	characterPage := page(characters, 1, func(r run) []byte { return append([]byte{byte(len(r.changes))}, r.changes...) })

	var table bytes.Buffer
	list := func(page uint32) (at, length uint32) {
		at = uint32(table.Len())
		put(&table, uint32(textAt), uint32(textAt+2*len(units)), page)
		return at, 12
	}
	head := main.Bytes()
	set := func(at int, values ...uint32) {
		for i, v := range values {
			binary.LittleEndian.PutUint32(head[at+4*i:], v)
		}
	}
	binary.LittleEndian.PutUint16(head, 0xa5ec)
	binary.LittleEndian.PutUint16(head[2:], 0xc1)
	set(0x4c, uint32(len(units)-notes), uint32(notes))
	at, length := list(characterPage)
	set(0xfa, at, length)
	at, length = list(paragraphPage)
	set(0x102, at, length)
	at = uint32(table.Len())
	put(&table, byte(1), uint16(2), uint16(0), byte(2), uint32(4+4+8), uint32(0), uint32(len(units)), uint16(0), uint32(textAt), uint16(0))
	set(0x1a2, at, uint32(table.Len())-at)
	return container(map[string][]byte{"WordDocument": head, "0Table": table.Bytes()})
}

// formatsPage returns a page of formats: where runs end, where the format of each is, and these.
func formatsPage(at int, runs []run, size int, format func(run) []byte) []byte {
	page := make([]byte, 512)
	end := 511
	for i, r := range runs {
		binary.LittleEndian.PutUint32(page[4*i:], uint32(at))
		at += 2 * len(utf16.Encode([]rune(r.text)))
		binary.LittleEndian.PutUint32(page[4*(i+1):], uint32(at))
		f := format(r)
		if len(r.changes)+r.style == 0 {
			continue
		}
		end = (end - len(f)) &^ 1
		copy(page[end:], f)
		page[4*(len(runs)+1)+size*i] = byte(end / 2)
	}
	page[511] = byte(len(runs))
	return page
}

// container returns the bytes of a container of a document.
func container(streams map[string][]byte) []byte {
	return twoStreams("0Table", streams["0Table"], "WordDocument", streams["WordDocument"])
}

// twoStreams returns the bytes of a container of two streams ([MS-CFB]): the header, the table of
// sectors, the directory, and the streams, which end with zeros.
func twoStreams(first string, data []byte, second string, more []byte) []byte {
	const sector, end, free = 512, 0xfffffffe, 0xffffffff
	file, table, directory := make([]byte, sector), bytes.Repeat([]byte{0xff}, sector), make([]byte, sector)
	set := func(b []byte, at int, values ...uint32) {
		for i, v := range values {
			binary.LittleEndian.PutUint32(b[at+4*i:], v)
		}
	}
	copy(file, compound.Signature)
	set(file, 24, 0x3003e, 0x9fffe, 6)
	set(file, 44, 1, 1, 0, 4096, end, 0, end, 0, 0)
	for i := 1; i < 109; i++ {
		set(file, 76+4*i, free)
	}
	set(table, 0, 0xfffffffd, end)
	entry := func(i int, name string, kind byte, right, child, start, size uint32) {
		e := directory[128*i:]
		for k, u := range utf16.Encode([]rune(name)) {
			binary.LittleEndian.PutUint16(e[2*k:], u)
		}
		binary.LittleEndian.PutUint16(e[64:], uint16(2*len(name)+2))
		e[66], e[67] = kind, 1
		set(e, 68, free, right, child)
		set(e, 116, start, size)
	}
	entry(0, "Root Entry", 5, free, 1, end, 0)
	set(directory, 3*128+68, free, free, free)
	var bodies []byte
	next := uint32(2)
	for i, name := range []string{first, second} {
		if i == 1 {
			data = more
		}
		for len(data) < 4096 || len(data)%sector != 0 { // what is shorter stands elsewhere
			data = append(data, 0)
		}
		right := uint32(2)
		if i == 1 {
			right = free
		}
		entry(i+1, name, 2, right, free, next, uint32(len(data)))
		for range len(data) / sector {
			next++
			set(table, 4*int(next-1), next)
		}
		set(table, 4*int(next-1), end)
		bodies = append(bodies, data...)
	}
	return append(append(append(file, table...), directory...), bodies...)
}
