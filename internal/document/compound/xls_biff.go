package compound

import (
	"context"
	"encoding/binary"
	"math"
	"unicode/utf16"

	"github.com/coditect/mapreduce/internal/document"
)

// Kinds of records, by [MS-XLS] 2.3.
const (
	recordFormula       = 0x0006
	recordEOF           = 0x000a
	recordDateMode      = 0x0022
	recordFilePass      = 0x002f
	recordContinue      = 0x003c
	recordCodePage      = 0x0042
	recordBoundSheet    = 0x0085
	recordMulRk         = 0x00bd
	recordRString       = 0x00d6
	recordXF            = 0x00e0
	recordMergeCells    = 0x00e5
	recordSST           = 0x00fc
	recordLabelSST      = 0x00fd
	recordNumber        = 0x0203
	recordLabel         = 0x0204
	recordBoolErr       = 0x0205
	recordString        = 0x0207
	recordArray         = 0x0221
	recordTable         = 0x0236
	recordRk            = 0x027e
	recordFormat        = 0x041e
	recordSharedFormula = 0x04bc
	recordBOF           = 0x0809
)

// A record is a part of a stream.
type record struct {
	kind uint16
	data []byte
	more [][]byte // of the records that continue it
}

// number returns two bytes of the record at a position; 0 behind its end.
func (r record) number(at int) int {
	if at+2 > len(r.data) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(r.data[at:]))
}

// bytesFrom returns the bytes of the record from a position on.
func (r record) bytesFrom(at int) []byte { return r.data[min(at, len(r.data)):] }

// eachRecord calls visit for the records of a substream from a position on, with those that
// continue them. Substreams within it, such as charts, are left out. The end of the data ends a
// substream too: what was read of a file that is cut off is not lost.
func eachRecord(ctx context.Context, data []byte, at int, visit func(record) error) error {
	depth := 0
	for n := 0; at >= 0 && at+4 <= len(data); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}

		var r record
		if r, at = nextRecord(data, at); at < 0 {
			return document.Refuse("damaged: a record is longer than the workbook")
		}

		for at+4 <= len(data) && binary.LittleEndian.Uint16(data[at:]) == recordContinue {
			var more record
			if more, at = nextRecord(data, at); at < 0 {
				return document.Refuse("damaged: a record is longer than the workbook")
			}
			r.more = append(r.more, more.data)
		}

		// Records of substreams within the one that is read are passed over.
		switch {
		case r.kind == recordBOF:
			depth++
			if depth == 1 {
				if err := visit(r); err != nil {
					return err
				}
			}
		case r.kind == recordEOF:
			if depth--; depth <= 0 {
				return nil
			}
		case depth == 1:
			if err := visit(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextRecord returns the record at a position, and the position behind it; -1 if the record
// does not fit the data.
func nextRecord(data []byte, at int) (record, int) {
	size := int(binary.LittleEndian.Uint16(data[at+2:]))
	end := at + 4 + size
	if end > len(data) {
		return record{}, -1
	}
	return record{kind: binary.LittleEndian.Uint16(data[at:]), data: data[at+4 : end]}, end
}

// A parts reads the data of a record and of those that continue it.
type xlsParts struct {
	left  [][]byte // the first is being read
	short bool     // more was asked for than there is
}

// newParts returns a reader of a record from a position on.
func newParts(r record, at int) *xlsParts {
	return &xlsParts{left: append([][]byte{r.bytesFrom(at)}, r.more...)}
}

// take returns the next bytes, at most n and at least one, unless there are no more.
func (p *xlsParts) take(n int) []byte {
	for len(p.left) > 0 && len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}

	if len(p.left) == 0 {
		p.short = true
		return nil
	}

	n = min(n, len(p.left[0]))
	b := p.left[0][:n]
	p.left[0] = p.left[0][n:]
	return b
}

// number reads a number of some bytes.
func (p *xlsParts) number(size int) int {
	value, shift := 0, 0
	for size > 0 && !p.short {
		for _, b := range p.take(size) {
			value |= int(b) << shift
			shift, size = shift+8, size-1
		}
	}
	return value
}

// skip skips some bytes.
func (p *xlsParts) skip(n int) {
	for n > 0 && !p.short {
		n -= len(p.take(n))
	}
}

// Bits of the flags of a string.
const (
	flagWide = 1 << iota // two bytes for each character
	_
	flagPhonetic // data of how it is spoken follow
	flagRich     // fonts follow
)

// unicode reads a string whose length has some bytes. Where a record ends within its
// characters, the one that continues it begins with flags of its own.
func (p *xlsParts) unicode(lengthSize int) string {
	length := p.number(lengthSize)
	flags := p.number(1)
	fonts, phonetic := 0, 0
	if flags&flagRich != 0 {
		fonts = p.number(2)
	}
	if flags&flagPhonetic != 0 {
		phonetic = p.number(4)
	}

	var units []uint16
	wide := flags&flagWide != 0
	for length > 0 && !p.short {
		if len(p.left) > 1 && len(p.left[0]) == 0 {
			p.left = p.left[1:]
			wide = p.number(1)&flagWide != 0
			continue
		}
		size := 1
		if wide {
			size = 2
		}
		b := p.take(length * size)
		for i := 0; i+size <= len(b); i += size {
			unit := uint16(b[i])
			if wide {
				unit |= uint16(b[i+1]) << 8
			}
			units, length = append(units, unit), length-1
		}
		// Half a character stands at the end of some records: it belongs to none.
		if len(b)%size != 0 && len(p.left) == 1 {
			p.short = true
		}
	}

	p.skip(4 * fonts)
	p.skip(phonetic)
	return string(utf16.Decode(units))
}

// unpackNumber returns a number of four bytes: an integer or the upper half of a float, or the
// hundredth of either.
func unpackNumber(rk uint32) float64 {
	const hundredth, integer = 1, 2

	value := math.Float64frombits(uint64(rk&^uint32(hundredth|integer)) << 32)
	if rk&integer != 0 {
		value = float64(int32(rk) >> 2)
	}
	if rk&hundredth != 0 {
		value /= 100
	}
	return value
}

// errorName returns how a spreadsheet shows an error.
func errorName(code byte) string {
	switch code {
	case 0x00:
		return "#NULL!"
	case 0x07:
		return "#DIV/0!"
	case 0x0f:
		return "#VALUE!"
	case 0x17:
		return "#REF!"
	case 0x1d:
		return "#NAME?"
	case 0x24:
		return "#NUM!"
	}
	return "#N/A"
}
