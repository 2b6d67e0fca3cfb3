package layout

import (
	"encoding/binary"
	"math"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// The stored form of a layout is the length of its index (4 bytes, the highest first),
// the index, and the blocks that the index lists, one behind the other. A block is read
// without the others.

// MaxStored bounds the stored form of a layout, in bytes.
const MaxStored = 64 << 20

// blockParts is how many parts a block has, but for the last.
const blockParts = 1024

// headerBytes is the length of the length of the index.
const headerBytes = 4

// Encode returns the stored form of a layout, the same for equal ones. It is empty for
// the empty layout. The error is ErrInvalid if the layout is not one of any text.
func Encode(l Layout) ([]byte, error) {
	if len(l) == 0 {
		return nil, nil
	}

	if err := l.Check(math.MaxInt); err != nil {
		return nil, err
	}

	index, blocks := new(storagev1.LayoutIndex), []byte(nil)
	for at, end := 0, 0; at < len(l); at += blockParts {
		// Places are numbered anew in each block, so that it can be read without the
		// others.
		some := l[at:min(at+blockParts, len(l))]
		begin := len(blocks)

		var err error
		if blocks, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(blocks, encodeBlock(some, end)); err != nil {
			return nil, invalidError("%v", err)
		}

		end = some[len(some)-1].End
		index.Ends = append(index.Ends, int64(end))
		index.Lengths = append(index.Lengths, int64(len(blocks)-begin))
	}

	head, err := proto.MarshalOptions{Deterministic: true}.Marshal(index)
	if err != nil {
		return nil, invalidError("%v", err)
	}

	data := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	if data = append(append(data, head...), blocks...); len(data) > MaxStored {
		return nil, invalidError("it has %d bytes; at most %d are kept", len(data), MaxStored)
	}
	return data, nil
}

// A placeKey tells places of a block apart.
type placeKey struct {
	place, sheet, cell, part, header, chapter string
	page, slide, paragraph                    int
	recognised                                int64
	boxed                                     bool
}

// encodeBlock returns the block of some parts, which follow on byte end of the text.
func encodeBlock(parts []Part, end int) *storagev1.LayoutBlock {
	b := new(storagev1.LayoutBlock)

	places := make(map[placeKey]uint32)
	var last [4]int64
	for i := range parts {
		p, l := &parts[i], parts[i].Location
		boxed := p.Box != mapreduce.Box{}
		key := placeKey{l.Place, l.Sheet, l.Cell, l.Part, l.Header, l.Chapter, l.Page, l.Slide, l.Paragraph, hundredths(l.Recognised), boxed}

		n, known := places[key]
		if !known {
			n = uint32(len(b.Places))
			places[key] = n
			b.Places = append(b.Places, &storagev1.LayoutPlace{Location: StoredLocation(l), Boxed: boxed})
		}

		b.Parts = append(b.Parts, uint64(p.Start-end), uint64(p.End-p.Start), uint64(n))
		end = p.End

		if !boxed {
			continue
		}
		// Boxes are kept as differences, which are small for neighbours.
		for i, length := range [4]float64{p.Box.Left, p.Box.Top, p.Box.Right, p.Box.Bottom} {
			at := tenths(length)
			b.Boxes = append(b.Boxes, at-last[i])
			last[i] = at
		}
	}
	return b
}

// tenths returns a length in points as a number of tenths.
func tenths(points float64) int64 { return int64(math.Round(points * 10)) }

// decodeBlock returns the parts of a block, which follow on byte end of a text of so many
// bytes.
func decodeBlock(data []byte, end, text int) ([]Part, error) {
	var b storagev1.LayoutBlock
	if err := proto.Unmarshal(data, &b); err != nil {
		return nil, invalidError("%v", err)
	}

	places := make([]*mapreduce.Location, len(b.Places))
	for i, p := range b.Places {
		places[i] = LocationOf(p.Location)
	}

	if n := len(b.Parts); n == 0 || n%3 != 0 || n/3 > blockParts {
		return nil, invalidError("a block has %d numbers", n)
	}

	parts := make([]Part, len(b.Parts)/3)
	var last [4]int64
	for i := range parts {
		gap, length, n := b.Parts[3*i], b.Parts[3*i+1], b.Parts[3*i+2]
		// Numbers are checked before they are added, as their sum may overflow.
		if gap > uint64(text) || length > uint64(text) || n >= uint64(len(places)) || places[n] == nil {
			return nil, invalidError("a part of %d bytes after %d is in place %d of %d", length, gap, n, len(places))
		}

		p := Part{Start: end + int(gap), Location: places[n]}
		p.End = p.Start + int(length)

		if b.Places[n].Boxed {
			if len(b.Boxes) < 4 {
				return nil, invalidError("a block lacks boxes")
			}
			for j := range last {
				last[j] += b.Boxes[j]
			}
			b.Boxes = b.Boxes[4:]
			p.Box = mapreduce.Box{Page: places[n].Page, Left: points(last[0]), Top: points(last[1]), Right: points(last[2]), Bottom: points(last[3])}
		}

		if err := p.check(end, text); err != nil {
			return nil, err
		}
		parts[i], end = p, p.End
	}

	if len(b.Boxes) > 0 {
		return nil, invalidError("a block has boxes of no parts")
	}
	return parts, nil
}

// hundredths returns how sure recognition was as a number of hundredths, which is not 0 if any was.
func hundredths(sure float64) int64 {
	if sure <= 0 {
		return 0
	}
	return max(int64(math.Round(sure*100)), 1)
}

func points(tenths int64) float64 { return float64(tenths) / 10 }

// A Fetch returns bytes [from, to) of a stored layout.
type Fetch func(from, to int64) ([]byte, error)

// A Reader reads a stored layout, block by block as far as it is needed. It holds one
// block. It is for one goroutine.
type Reader struct {
	text   int
	ends   []int64 // of blocks: bytes of the text
	starts []int64 // of blocks: bytes of the stored form; one more is the end
	block  int     // that parts are of, or -1
	parts  Layout
}

// NewReader returns a reader of a stored layout of size bytes, of a text of so many bytes.
// Errors of fetch are returned as they are. Others are ErrInvalid.
func NewReader(size int64, text int, fetch Fetch) (*Reader, error) {
	r := &Reader{text: text, block: -1}

	if size == 0 {
		r.starts = []int64{0}
		return r, nil
	}
	if size < headerBytes || size > MaxStored {
		return nil, invalidError("it has %d bytes", size)
	}

	head, err := fetch(0, headerBytes)
	if err != nil {
		return nil, err
	}

	// What the index says of itself is checked before anything is read by it.
	at := headerBytes + int64(binary.BigEndian.Uint32(head))
	if at > size {
		return nil, invalidError("its index has %d of %d bytes", at-headerBytes, size)
	}

	if head, err = fetch(headerBytes, at); err != nil {
		return nil, err
	}

	var index storagev1.LayoutIndex
	if err := proto.Unmarshal(head, &index); err != nil {
		return nil, invalidError("%v", err)
	}

	if n := len(index.Ends); n == 0 || n != len(index.Lengths) || n > (MaxParts+blockParts-1)/blockParts {
		return nil, invalidError("its index has %d blocks and %d lengths", n, len(index.Lengths))
	}

	end := int64(0)
	for i, length := range index.Lengths {
		if length <= 0 || length > size-at || index.Ends[i] <= end || index.Ends[i] > int64(text) {
			return nil, invalidError("its block %d has %d bytes, up to byte %d of the text", i, length, index.Ends[i])
		}
		r.starts = append(r.starts, at)
		end = index.Ends[i]
		at += length
	}

	if r.starts, r.ends = append(r.starts, at), index.Ends; at != size {
		return nil, invalidError("it has %d bytes, of which %d are in blocks", size, at)
	}
	return r, nil
}

// load makes a block the one that is held.
func (r *Reader) load(fetch Fetch, block int) error {
	if r.block == block {
		return nil
	}

	data, err := fetch(r.starts[block], r.starts[block+1])
	if err != nil {
		return err
	}

	// A block counts from the end of the one before.
	end := 0
	if block > 0 {
		end = int(r.ends[block-1])
	}

	parts, err := decodeBlock(data, end, r.text)
	if err != nil {
		return err
	}

	if last := parts[len(parts)-1].End; int64(last) != r.ends[block] {
		return invalidError("block %d ends at byte %d of the text, and not at %d", block, last, r.ends[block])
	}

	r.block, r.parts = block, parts
	return nil
}

// Locate returns where a reader would look for bytes [start, end) of the text: see
// Layout.Locate. It fetches of the layout what it lacks.
func (r *Reader) Locate(fetch Fetch, start, end int) (*mapreduce.Location, error) {
	var s span
	for b := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > int64(start) }); b < len(r.ends); b++ {
		if err := r.load(fetch, b); err != nil {
			return nil, err
		}

		from := sort.Search(len(r.parts), func(i int) bool { return r.parts[i].End > start })
		for i := from; i < len(r.parts); i++ {
			if r.parts[i].Start >= end {
				return s.wholeLocation(), nil
			}
			s.add(&r.parts[i])
		}
	}
	return s.wholeLocation(), nil
}

// Visit calls take with the location of each part that bytes [start, end) of the text touch, in order.
func (r *Reader) Visit(fetch Fetch, start, end int, take func(*mapreduce.Location)) error {
	for b := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > int64(start) }); b < len(r.ends); b++ {
		if err := r.load(fetch, b); err != nil {
			return err
		}

		from := sort.Search(len(r.parts), func(i int) bool { return r.parts[i].End > start })
		for i := from; i < len(r.parts); i++ {
			if r.parts[i].Start >= end {
				return nil
			}
			take(r.parts[i].Location)
		}
	}
	return nil
}

// Check reads all of a stored layout, and returns an error if it is not one of a text of
// so many bytes.
func Check(data []byte, text int) error {
	return visit(data, text, func([]Part) {})
}

// Decode returns the layout with a stored form, of a text of so many bytes.
func Decode(data []byte, text int) (Layout, error) {
	var l Layout
	err := visit(data, text, func(parts []Part) { l = append(l, parts...) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

// visit calls take with the parts of each block.
func visit(data []byte, text int, take func([]Part)) error {
	fetch := func(from, to int64) ([]byte, error) { return data[from:to], nil }
	r, err := NewReader(int64(len(data)), text, fetch)
	if err != nil {
		return err
	}

	for b := range r.ends {
		if err := r.load(fetch, b); err != nil {
			return err
		}
		take(r.parts)
	}
	return nil
}

// StoredLocation returns the stored form of a location; nil of none.
func StoredLocation(l *mapreduce.Location) *storagev1.Location {
	if l == nil {
		return nil
	}

	m := &storagev1.Location{
		Place: l.Place, Page: int64(l.Page), Sheet: l.Sheet, Cell: l.Cell, Slide: int64(l.Slide), Paragraph: int64(l.Paragraph),
		Part: l.Part, Header: l.Header, Chapter: l.Chapter, Recognised: hundredths(l.Recognised),
	}

	for _, b := range l.Boxes {
		m.Boxes = append(m.Boxes, int64(b.Page), tenths(b.Left), tenths(b.Top), tenths(b.Right), tenths(b.Bottom))
	}
	return m
}

// LocationOf returns a location from its stored form; nil of none.
func LocationOf(m *storagev1.Location) *mapreduce.Location {
	if m == nil {
		return nil
	}

	l := &mapreduce.Location{
		Place: m.Place, Page: int(m.Page), Sheet: m.Sheet, Cell: m.Cell, Slide: int(m.Slide), Paragraph: int(m.Paragraph),
		Part: m.Part, Header: m.Header, Chapter: m.Chapter, Recognised: float64(m.Recognised) / 100,
	}

	for b := m.Boxes; len(b) >= 5; b = b[5:] {
		l.Boxes = append(l.Boxes, mapreduce.Box{Page: int(b[0]), Left: points(b[1]), Top: points(b[2]), Right: points(b[3]), Bottom: points(b[4])})
	}
	return l
}
