package compound

import (
	"encoding/binary"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"

	"github.com/coditect/mapreduce/internal/document"
)

// Streams of a document.
const (
	mainStream = "WordDocument"
	dataStream = "Data"
)

// Places in the header of the main stream (the FIB of [MS-DOC]), in bytes, and what it says.
const (
	signature     = 0xa5ec
	signature95   = 0xa5dc // of Word 6 and Word 95
	versionAt     = 0x02
	flagsAt       = 0x0a
	lengthsAt     = 0x4c // of the parts of the text, in characters
	charactersAt  = 0xfa // where the formats of characters are listed
	paragraphsAt  = 0x102
	piecesAt      = 0x1a2
	headerBytes   = 0x1aa
	version97     = 0xc1
	isEncrypted   = 0x0100
	isInTable1    = 0x0200
	isCompressed  = 1 << 30 // of a piece: its characters have one byte
	parts         = 7
	bytesOfPiece  = 8
	formatsOfPage = 512 // bytes of a page of formats
)

// The parts of the text, in their order.
const (
	body = iota
	footnotes
	headers
	_ // macros
	comments
	endnotes
	textBoxes
)

// A file is the streams of a document with what its header says.
type file struct {
	main, table, data []byte
	lengths           [parts]int // of the parts, in characters
	pieces            []piece
}

// A piece is some characters of the text that stand together in the main stream.
type piece struct {
	first, end int // characters of the text: [first, end)
	at         int // byte of the main stream
	width      int // bytes of a character
}

// readFile reads the header and the list of pieces.
func readFile(streams map[string][]byte) (*file, error) {
	f := &file{main: streams[mainStream], data: streams[dataStream]}
	flags, kind := number16(f.main, flagsAt), number16(f.main, 0)

	switch {
	case kind != signature && kind != signature95 || len(f.main) < headerBytes:
		return nil, document.Refuse("a damaged Word document: its header is not one")
	case kind == signature95 || number16(f.main, versionAt) < version97:
		return nil, document.RefuseUnread(document.Conversion{What: "a Word document of before 1997", From: ".doc", To: ".docx"})
	case flags&isEncrypted != 0:
		return nil, document.Refuse("encrypted with a password; of encrypted files only PDF files are read: save it without a password")
	}

	// A bit of the header says which of both streams has the tables.
	f.table = streams["0Table"]
	if flags&isInTable1 != 0 {
		f.table = streams["1Table"]
	}

	for i := range f.lengths {
		f.lengths[i] = number32(f.main, lengthsAt+4*i)
	}

	return f, f.readPieces()
}

// readPieces reads which pieces of the main stream are the text.
func (f *file) readPieces() error {
	list := f.listed(piecesAt)
	for len(list) > 2 && list[0] == 1 { // changes of format, to which pieces refer
		n := 3 + number16(list, 1)
		if n > len(list) {
			return errDamaged
		}
		list = list[n:]
	}

	if len(list) < 5 || list[0] != 2 {
		return errDamaged
	}

	list = list[5:]
	count := (len(list) - 4) / (4 + bytesOfPiece)
	// The list has the first characters of all pieces and the end of the last, then their
	// records.
	for i := range count {
		p := piece{first: number32(list, 4*i), end: number32(list, 4*i+4), width: 2}
		p.at = number32(list, 4*(count+1)+bytesOfPiece*i+2)
		if p.at&isCompressed != 0 {
			p.at, p.width = (p.at&^isCompressed)/2, 1
		}

		if p.end < p.first || i > 0 && p.first != f.pieces[i-1].end || p.at+p.width*(p.end-p.first) > len(f.main) {
			return errDamaged
		}
		f.pieces = append(f.pieces, p)
	}

	if count < 1 || f.pieces[0].first != 0 || f.pieces[count-1].end > len(f.main) { // pieces may stand on each other
		return errDamaged
	}

	return nil
}

// errDamaged is the error of a document whose parts do not fit each other.
var errDamaged = document.Refuse("damaged: the list of the pieces of its text is wrong")

// listed returns a part of the table stream, whose place stands in the header.
func (f *file) listed(at int) []byte {
	from, length := number32(f.main, at), number32(f.main, at+4)
	if from > len(f.table) || length > len(f.table)-from {
		return nil
	}
	return f.table[from : from+length]
}

// A character is one with the byte of the main stream at which it stands.
type character struct {
	r  rune
	at int
}

// characters visits the characters [from, to) of the text.
func (f *file) characters(from, to int, visit func(character)) {
	for _, p := range f.pieces {
		first, end := max(from, p.first), min(to, p.end)
		for i := first; i < end; i++ {
			at := p.at + p.width*(i-p.first)
			if p.width == 1 {
				// A piece has one byte or two for each character.
				visit(character{charmap.Windows1252.DecodeByte(f.main[at]), at})
				continue
			}

			r := rune(number16(f.main, at))
			if utf16.IsSurrogate(r) && i+1 < end {
				if pair := utf16.DecodeRune(r, rune(number16(f.main, at+2))); pair != '\ufffd' {
					r = pair
					i++
				}
			}

			visit(character{r, at})
		}
	}
}

// number16 returns the number of two bytes at a place; 0 beyond the end.
func number16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(b[at:]))
}

// number32 returns the number of four bytes at a place; 0 beyond the end, and of one that no
// part of a file can have.
func number32(b []byte, at int) int {
	if at < 0 || at+4 > len(b) {
		return 0
	}
	n := binary.LittleEndian.Uint32(b[at:])
	if n > 1<<31-1 {
		return 0
	}
	return int(n)
}

// HoldsDoc reports whether a container holds a document of Word.
func HoldsDoc(c *Container) bool { return c.Has(mainStream) }
