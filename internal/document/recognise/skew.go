package recognise

import (
	"context"
	"image"
	"math"
)

// Bounds of how lines are looked for.
const (
	mostSkew    = 20.0    // degrees by which lines may run up or down
	leastSkew   = 0.4     // degrees that engines put up with
	skewWidth   = 700     // pixels of the side of the picture in which lines are looked for
	mostInk     = 400_000 // pixels of ink that count: some of a page's, as often in each row, make slanting lines stand out
	clearlyBest = 1.15    // by how much lines stand out better if they are level
)

// straightenPage returns a page whose lines are level, and where its pixels come from. A page whose lines
// are level, or that seems to have none, is returned as it is.
func straightenPage(ctx context.Context, m *image.Gray) (*image.Gray, place, error) {
	degrees := skewOf(m)
	if math.Abs(degrees) < leastSkew {
		return m, same, nil
	}

	sin, cos := math.Sincos(degrees * math.Pi / 180)
	width, height := float64(m.Rect.Dx()), float64(m.Rect.Dy())
	toWidth, toHeight := math.Ceil(width*cos+height*math.Abs(sin)), math.Ceil(width*math.Abs(sin)+height*cos)
	// The middle stays where it is.
	from := place{a: cos, b: -sin, d: sin, e: cos}
	x, y := from.of(toWidth/2, toHeight/2)
	from.c, from.f = width/2-x, height/2-y

	out := image.NewGray(image.Rect(0, 0, int(toWidth), int(toHeight)))
	for y := range out.Rect.Dy() {
		if y%256 == 0 && ctx.Err() != nil {
			return nil, same, context.Cause(ctx)
		}
		row := out.Pix[y*out.Stride:][:out.Rect.Dx()]
		for x := range row {
			fromX, fromY := from.of(float64(x)+0.5, float64(y)+0.5)
			row[x] = shadeAt(m, fromX-0.5, fromY-0.5)
		}
	}
	return out, from, nil
}

// shadeAt returns the shade of a picture between pixels; outside of it that of its nearest edge, so
// that no edge is taken for a line.
func shadeAt(m *image.Gray, x, y float64) uint8 {
	right, bottom := float64(m.Rect.Dx()-1), float64(m.Rect.Dy()-1)
	x, y = min(max(x, 0), right), min(max(y, 0), bottom)
	i, j := int(x), int(y)
	fx, fy := x-float64(i), y-float64(j)
	upper := m.Pix[j*m.Stride:]
	lower := m.Pix[min(j+1, m.Rect.Dy()-1)*m.Stride:]
	k := min(i+1, m.Rect.Dx()-1)
	above := float64(upper[i])*(1-fx) + float64(upper[k])*fx
	below := float64(lower[i])*(1-fx) + float64(lower[k])*fx
	return uint8(above*(1-fy) + below*fy + 0.5)
}

// skewOf returns by how many degrees the lines of a page run down to the right. At that angle the
// sums of ink along lines differ most from line to line. (The projection profile of Postl.)
func skewOf(m *image.Gray) float64 {
	by := max(min(m.Rect.Dx(), m.Rect.Dy())/skewWidth, 1)
	ink := inkOf(reduce(m, by))
	if len(ink) < 100 {
		return 0
	}

	level := lineContrast(ink, 0)
	best, most := 0.0, level
	try := func(from, to, step float64) {
		for degrees := from; degrees <= to+step/2; degrees += step {
			if c := lineContrast(ink, degrees); c > most {
				best, most = degrees, c
			}
		}
	}
	try(-mostSkew, mostSkew, 1)
	try(best-1, best+1, 0.25)
	try(best-0.25, best+0.25, 0.05)

	if most < clearlyBest*level {
		return 0
	}
	return best
}

// inkOf returns pixels that are darker than what is around them, at most mostInk.
func inkOf(m *image.Gray) []image.Point {
	const reach = 8
	width, height := m.Rect.Dx(), m.Rect.Dy()
	var ink []image.Point
	for y := reach; y < height-reach; y++ {
		sum := 0
		row := m.Pix[y*m.Stride:][:width]
		for x := range width {
			// The mean of the row around it, which slides with it.
			sum += int(row[x])
			if x >= 2*reach+1 {
				sum -= int(row[x-2*reach-1])
			}
			if at := x - reach; x >= 2*reach && int(row[at])*(2*reach+1)*10 < sum*8 {
				ink = append(ink, image.Pt(at, y))
			}
		}
	}

	if len(ink) <= mostInk {
		return ink
	}
	// Every so many of them: the first would be those of the top alone.
	kept := ink[:0]
	for i := range mostInk {
		kept = append(kept, ink[i*len(ink)/mostInk])
	}
	return kept
}

// lineContrast returns how much sums of ink along lines at an angle differ from those of the lines above
// them.
func lineContrast(ink []image.Point, degrees float64) float64 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	ats := make([]int, len(ink))
	low, high := math.MaxInt, math.MinInt
	for i, p := range ink {
		ats[i] = int(math.Floor(cos*float64(p.Y) - sin*float64(p.X)))
		low, high = min(low, ats[i]), max(high, ats[i])
	}

	lines := make([]int, high-low+2)
	for _, at := range ats {
		lines[at-low]++
	}
	sum, above := 0.0, 0
	for _, n := range lines {
		d := float64(n - above)
		sum, above = sum+d*d, n
	}
	return sum
}
