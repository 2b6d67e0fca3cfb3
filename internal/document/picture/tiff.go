package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/coditect/mapreduce/internal/document"
)

// Tags of a directory of TIFF.
const (
	subfileTag    = 0x00fe
	tileWidthTag  = 0x0142
	tileLengthTag = 0x0143
)

// reduced is the bit of subfileTag that says that a picture is a smaller form of another one.
const reduced = 1

// pages returns the pages of a file. Only TIFF has several: each has a directory that says where the
// next one is.
func (c *codec) pages(data []byte, most int) ([]source, error) {
	if c.kind != "tiff" {
		return []source{{data: data}}, nil
	}

	order, at, ok := tiffHeader(data)
	if !ok {
		return nil, document.Refuse("%s that is cut off", c.name)
	}

	var pages []source
	seen := make(map[int64]bool)
	for at != 0 && !seen[at] { // directories may refer to each other in a circle
		count, ok := countOf(data, order, at)
		next := at + 2 + 12*int64(count)
		if !ok || next > int64(len(data)) {
			break
		}
		seen[at] = true
		if kind, ok := entryOf(data, order, at, subfileTag); !ok || kind&reduced == 0 {
			pages = append(pages, source{data: data, first: at})
		}

		if len(pages) > most {
			return nil, document.Refuse("%s of more than the %d pages that are read (--document-pages)", c.name, most)
		}
		if next+4 > int64(len(data)) {
			break
		}
		at = int64(order.Uint32(data[next:]))
	}

	if len(pages) == 0 {
		return nil, document.Refuse("%s without a page, or cut off", c.name)
	}
	return pages, nil
}

// entryOf returns the value of an entry of the directory at an offset, which is one number.
func entryOf(data []byte, order binary.ByteOrder, at int64, tag uint16) (value int64, ok bool) {
	count, ok := countOf(data, order, at)
	if !ok {
		return 0, false
	}

	for i := range count {
		entry := at + 2 + 12*int64(i)
		if entry+12 > int64(len(data)) {
			return 0, false
		}

		e := data[entry:]
		if order.Uint16(e) != tag {
			continue
		}

		switch order.Uint16(e[2:]) {
		case 3: // a short
			return int64(order.Uint16(e[8:])), true
		case 4: // a long
			return int64(order.Uint32(e[8:])), true
		}
		return 0, false
	}
	return 0, false
}

// checkTiles returns an error if tiles of a page are larger than any page may be: as much is
// unpacked of a tile as it may have.
func checkTiles(from source, most int64) error {
	order, _, ok := tiffHeader(from.data)
	if !ok {
		return errors.New("it is cut off")
	}
	width, _ := entryOf(from.data, order, from.first, tileWidthTag)
	length, _ := entryOf(from.data, order, from.first, tileLengthTag)
	if width > 0 && length > most/width {
		return errors.New("its tiles are larger than any page")
	}
	return nil
}

// A pageOf is a TIFF whose header says that a page is the first.
type pageOf struct {
	ctx context.Context
	source
}

// ReadAt implements io.ReaderAt.
func (p pageOf) ReadAt(b []byte, at int64) (int, error) {
	const offset, header = 4, 8
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	if at < 0 || at >= int64(len(p.data)) {
		return 0, io.EOF
	}

	n := copy(b, p.data[at:])
	if at < header { // where the first directory is
		begin := bytes.Clone(p.data[:header])
		order, _, ok := tiffHeader(p.data)
		if !ok {
			return 0, io.ErrUnexpectedEOF
		}
		order.PutUint32(begin[offset:], uint32(p.first))
		copy(b[:n], begin[at:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// orientation returns how a page is turned and mirrored, as EXIF numbers it.
func (c *codec) orientation(from source) int {
	if from.first > 0 {
		return orientationOf(from.data, from.first)
	}
	return c.turned(from.data)
}

// isAnimation reports whether a GIF says that its pictures are shown again and again, or has a
// second one.
func isAnimation(data []byte) bool { return bytes.Contains(data, []byte("NETSCAPE2.0")) }
