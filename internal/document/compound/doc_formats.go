package compound

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// A paragraph is what is known of the format of one, or of the row of a table that it ends.
type paragraph struct {
	style   int    // 1 to 9 are those of headings
	inTable bool   // it stands in a cell
	endsRow bool   // it is no paragraph, but the end of a row
	edges   []int  // of the cells of the row that it ends, in twentieths of a point
	goOn    []bool // whether each of these cells goes on with that of the row above
}

// A formatted is bytes [from, to) of the main stream with their format.
type formatted[T any] struct {
	from, to int
	format   T
}

// formats are those of the bytes of the main stream, sorted.
type formats[T any] []formatted[T]

// at returns the format of a byte; the zero one if none is known.
func (f formats[T]) at(place int) (format T) {
	i := sort.Search(len(f), func(i int) bool { return f[i].to > place })
	if i < len(f) && f[i].from <= place {
		return f[i].format
	}
	return format
}

// Bounds of formats.
const (
	maxPages = 1 << 17 // of formats
	runBytes = 4
)

// readFormats reads the formats that the header lists at a place. size is how many bytes stand
// behind the runs of a page for each of them, of which the first says where its format is.
func readFormats[T any](f *file, at, size int, read func(at []byte) T) formats[T] {
	list := f.listed(at)
	count := min((len(list)-4)/8, maxPages)

	var all formats[T]
	for i := range max(count, 0) {
		from := formatsOfPage * number32(list, 4*(count+1)+4*i)
		if from+formatsOfPage > len(f.main) {
			continue
		}

		page := f.main[from : from+formatsOfPage]
		runs := int(page[formatsOfPage-1])
		if (runs+1)*runBytes+runs*size > formatsOfPage-1 {
			continue // damaged
		}

		for k := range runs {
			one := formatted[T]{from: number32(page, runBytes*k), to: number32(page, runBytes*(k+1))}
			if place := 2 * int(page[(runs+1)*runBytes+size*k]); place > 0 {
				one.format = read(page[place:])
			}
			all = append(all, one)
		}
	}

	slices.SortStableFunc(all, func(a, b formatted[T]) int { return cmp.Compare(a.from, b.from) })
	return all
}

// paragraphFormats returns the formats of the paragraphs.
func (f *file) paragraphFormats() formats[paragraph] {
	const size = 13
	return readFormats(f, paragraphsAt, size, func(at []byte) (p paragraph) {
		n := 2*int(at[0]) - 1 // behind the byte that says so
		at = at[1:]
		if n < 0 {
			n = 2 * int(at[0])
			at = at[1:]
		}

		if n < 2 || n > len(at) {
			return p
		}

		p.style = number16(at, 0)
		f.apply(&p, at[2:n], true)
		return p
	})
}

// Changes of formats, by their numbers ([MS-DOC] 2.6).
const (
	changeInTable = 0x2416
	changeEndsRow = 0x2417
	changeCells   = 0xd608
	changeFar     = 0x6646 // what else changes stands in the data stream
	changeDeleted = 0x0800
	changeHidden  = 0x083c
	changeTabs    = 0xc615
)

// apply changes the format of a paragraph.
func (f *file) apply(p *paragraph, changes []byte, mayBeFar bool) {
	eachChange(changes, func(change int, of []byte) {
		switch change {
		case changeInTable:
			p.inTable = of[0] != 0
		case changeEndsRow:
			p.endsRow = of[0] != 0
		case changeCells:
			p.readCells(of)
		case changeFar:
			// A format may stand in the data stream, but not point on from there: that
			// could go in a ring.
			if at := number32(of, 0); mayBeFar && at+2 <= len(f.data) {
				far := f.data[at+2:]
				f.apply(p, far[:min(len(far), number16(f.data, at))], false)
			}
		}
	})
}

// readCells reads where the cells of a row are.
func (p *paragraph) readCells(of []byte) {
	const (
		bytesOfCell = 20
		mergedAbove = 0x0020
		beginsMerge = 0x0040
	)

	if len(of) < 1 {
		return
	}

	n := int(of[0])
	if len(of) < 1+2*(n+1) {
		return
	}

	p.edges, p.goOn = make([]int, n+1), make([]bool, n)
	for i := range p.edges {
		p.edges[i] = int(int16(number16(of, 1+2*i)))
	}

	for i := range p.goOn {
		kind := number16(of, 1+2*(n+1)+bytesOfCell*i)
		p.goOn[i] = kind&mergedAbove != 0 && kind&beginsMerge == 0
	}
}

// unseen returns which characters are not shown: those that a tracked change deletes, and hidden
// ones.
func (f *file) unseen() formats[bool] {
	return readFormats(f, charactersAt, 1, func(at []byte) (hidden bool) {
		eachChange(at[1:min(len(at), 1+int(at[0]))], func(change int, of []byte) {
			if change == changeDeleted || change == changeHidden {
				hidden = hidden || of[0] == 1
			}
		})
		return hidden
	})
}

// eachChange visits changes of a format with what they set.
func eachChange(changes []byte, visit func(change int, of []byte)) {
	for len(changes) > 2 {
		change := number16(changes, 0)
		changes = changes[2:]

		n := 1

		// The upper bits say how many bytes the change sets: a length of its own stands
		// before them for kind 6.
		switch change >> 13 {
		case 2, 4, 5:
			n = 2
		case 3:
			n = 4
		case 7:
			n = 3
		case 6:
			n = 1 + int(changes[0])
			switch {
			case change == changeCells && len(changes) > 1:
				n = 1 + int(binary.LittleEndian.Uint16(changes))
			case change == changeTabs && changes[0] == 255:
				return // its length is not known
			}
		}

		if n < 1 || n > len(changes) {
			return
		}

		of := changes[:n]
		if change>>13 == 6 {
			of = of[1:]
			if change == changeCells && len(of) > 0 {
				of = of[1:]
			}
		}

		if len(of) > 0 {
			visit(change, of)
		}

		changes = changes[n:]
	}
}
