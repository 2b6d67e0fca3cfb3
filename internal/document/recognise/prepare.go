package recognise

import (
	"image"
	"math"
	"slices"
)

// What follows makes of a photograph what engines are made for: dark letters on even, white paper,
// in level lines. Each step leaves pictures alone that have that already, such as printed pages.

// A place is where the pixels of a page come from that was made of another one: (x, y) of the page
// was at (a·x + b·y + c, d·x + e·y + f).
type place struct{ a, b, c, d, e, f float64 }

// same is the place of a page that was not changed.
var same = place{a: 1, e: 1}

// then returns the place of a page that was made of a page which has p.
func (p place) then(q place) place {
	return place{
		p.a*q.a + p.b*q.d, p.a*q.b + p.b*q.e, p.a*q.c + p.b*q.f + p.c,
		p.d*q.a + p.e*q.d, p.d*q.b + p.e*q.e, p.d*q.c + p.e*q.f + p.f,
	}
}

// of returns where a point was.
func (p place) of(x, y float64) (float64, float64) {
	return p.a*x + p.b*y + p.c, p.d*x + p.e*y + p.f
}

// box returns the smallest box around what was in a box.
func (p place) box(b Box) Box {
	out := Box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, corner := range [4][2]float64{{b.Left, b.Top}, {b.Right, b.Top}, {b.Left, b.Bottom}, {b.Right, b.Bottom}} {
		x, y := p.of(corner[0], corner[1])
		out = Box{min(out.Left, x), min(out.Top, y), max(out.Right, x), max(out.Bottom, y)}
	}
	return out
}

// quarter returns the place of a page that was turned clockwise by quarters of a circle, and was of
// a size before.
func quarter(quarters int, size image.Point) place {
	x, y := float64(size.X), float64(size.Y)
	switch quarters & 3 {
	case 1:
		return place{b: 1, d: -1, f: y}
	case 2:
		return place{a: -1, c: x, e: -1, f: y}
	case 3:
		return place{b: -1, c: x, d: 1}
	}
	return same
}

// mostPixels is how many pixels a page has at most that an engine gets: A4 with 400 to the inch has
// 15 million.
const mostPixels = 20_000_000

// shrinkPage returns a page of no more than mostPixels, each of which is the mean of those that it
// stands for.
func shrinkPage(m *image.Gray) (*image.Gray, place) {
	width, height := m.Rect.Dx(), m.Rect.Dy()
	by := int(math.Ceil(math.Sqrt(float64(width) * float64(height) / mostPixels)))
	if by <= 1 {
		return m, same
	}
	return reduce(m, by), place{a: float64(by), e: float64(by)}
}

// reduce returns a picture whose pixels are the means of squares.
func reduce(m *image.Gray, by int) *image.Gray {
	width, height := max(m.Rect.Dx()/by, 1), max(m.Rect.Dy()/by, 1)
	out := image.NewGray(image.Rect(0, 0, width, height))
	sums := make([]int, width)

	for y := range height {
		clear(sums)
		rows := min(by, m.Rect.Dy()-y*by)
		columns := min(by, m.Rect.Dx())
		for i := range rows {
			row := m.Pix[(y*by+i)*m.Stride:]
			for x := range width {
				for _, shade := range row[x*by:][:columns] {
					sums[x] += int(shade)
				}
			}
		}

		for x, sum := range sums {
			out.Pix[y*out.Stride+x] = uint8(sum / (rows * columns))
		}
	}
	return out
}

// Bounds of paper that is evenly lit.
const (
	blockSize = 32   // pixels of a block of paper, whose light is measured
	paper     = 0.9  // share of the pixels of a block that are darker than its paper
	uneven    = 0.25 // how much of the light the darkest blocks lack, at least, if it is not even
	darkest   = 40   // shade of paper below which nothing is paper
)

// evenPaper returns a page whose paper is white all over: each shade is divided by that of the paper
// around it. A shadow over a page would be taken for ink.
func evenPaper(m *image.Gray) *image.Gray {
	lights, columns, rows := lightsOf(m)
	sorted := slices.Sorted(slices.Values(lights))
	bright, dim := sorted[len(sorted)*9/10], sorted[len(sorted)/10]
	if bright < darkest || dim > bright*(1-uneven) {
		return m
	}

	// A picture or a black bar is no paper, so what is far darker than all of it counts as a fifth.
	least := max(bright/5, darkest)
	for i := range lights {
		lights[i] = max(lights[i], least)
	}
	lights = smoothBlocks(lights, columns, rows)

	out := image.NewGray(m.Rect)
	for y := range m.Rect.Dy() {
		row, to := m.Pix[y*m.Stride:][:m.Rect.Dx()], out.Pix[y*out.Stride:]
		at, below, down := between(y, rows)
		for x, shade := range row {
			left, right, across := between(x, columns)
			upper := lights[at*columns+left]*(1-across) + lights[at*columns+right]*across
			lower := lights[below*columns+left]*(1-across) + lights[below*columns+right]*across
			to[x] = uint8(min(255*float64(shade)/(upper*(1-down)+lower*down), 255))
		}
	}
	return out
}

// between returns the blocks before and behind a pixel, and how far it is to the second.
func between(pixel, blocks int) (before, behind int, share float64) {
	at := (float64(pixel) + 0.5) / blockSize
	before = min(max(int(at-0.5), 0), blocks-1)
	behind = min(before+1, blocks-1)
	return before, behind, min(max(at-0.5-float64(before), 0), 1)
}

// lightsOf returns the shade of the paper in each block of a page, row by row.
func lightsOf(m *image.Gray) (lights []float64, columns, rows int) {
	columns, rows = (m.Rect.Dx()+blockSize-1)/blockSize, (m.Rect.Dy()+blockSize-1)/blockSize
	lights = make([]float64, 0, columns*rows)

	for j := range rows {
		for i := range columns {
			var counts [256]int
			n := 0
			for y := j * blockSize; y < min((j+1)*blockSize, m.Rect.Dy()); y++ {
				for _, shade := range m.Pix[y*m.Stride:][i*blockSize : min((i+1)*blockSize, m.Rect.Dx())] {
					counts[shade]++
					n++
				}
			}

			// The paper is lighter than most of its block, but less so than its brightest spots.
			shade, left := 0, int(paper*float64(n))
			for ; shade < 255 && left >= counts[shade]; shade++ {
				left -= counts[shade]
			}
			lights = append(lights, float64(shade))
		}
	}
	return lights, columns, rows
}

// smoothBlocks returns the median of each block and those around it: letters that fill a block are no
// shadow.
func smoothBlocks(lights []float64, columns, rows int) []float64 {
	out := make([]float64, 0, len(lights))
	var around []float64
	for j := range rows {
		for i := range columns {
			around = around[:0]
			for y := max(j-1, 0); y <= min(j+1, rows-1); y++ {
				around = append(around, lights[y*columns+max(i-1, 0):y*columns+min(i+1, columns-1)+1]...)
			}
			slices.Sort(around)
			out = append(out, around[len(around)/2])
		}
	}
	return out
}
