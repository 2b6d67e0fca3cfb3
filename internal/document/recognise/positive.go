package recognise

import "image"

// Bounds of pages whose letters are lighter than what they stand on.
const (
	leastPrint  = 80 // shades between paper and letters of a block that has some
	leastBlocks = 10 // blocks with light letters of such a page
	muchMore    = 2  // times as many as with dark ones; also by how much farther letters are from paper than the rest
)

// positive returns a page with dark letters: one whose letters are light nearly everywhere, such as a picture of a dark
// screen, with its shades turned round. What evens the light of a page would take its paper for a shadow.
func positive(m *image.Gray) *image.Gray {
	light, dark := 0, 0
	for top := 0; top < m.Rect.Dy(); top += blockSize {
		for left := 0; left < m.Rect.Dx(); left += blockSize {
			switch lettersIn(m, image.Rect(left, top, left+blockSize, top+blockSize).Intersect(m.Rect)) {
			case lightLetters:
				light++
			case darkLetters:
				dark++
			}
		}
	}
	if light < leastBlocks || light <= muchMore*dark {
		return m
	}

	out := image.NewGray(m.Rect)
	for y := range m.Rect.Dy() {
		to := out.Pix[y*out.Stride:]
		for x, shade := range m.Pix[y*m.Stride:][:m.Rect.Dx()] {
			to[x] = 255 - shade
		}
	}
	return out
}

// What letters of a block look like.
const (
	noLetters = iota
	lightLetters
	darkLetters
)

// lettersIn says what letters a block has. Most of it is paper, so that its median is the shade of that; letters are
// far from it, on one side.
func lettersIn(m *image.Gray, at image.Rectangle) int {
	var counts [256]int
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for _, shade := range m.Pix[y*m.Stride:][at.Min.X:at.Max.X] {
			counts[shade]++
		}
	}

	n := at.Dx() * at.Dy()
	low, middle, high := shadeBelow(&counts, n/20), shadeBelow(&counts, n/2), shadeBelow(&counts, n-n/20-1)
	switch {
	case high-low < leastPrint:
		return noLetters
	case high-middle > muchMore*(middle-low):
		return lightLetters
	case middle-low > muchMore*(high-middle):
		return darkLetters
	}
	return noLetters
}

// shadeBelow returns the shade that so many pixels are darker than, or as dark.
func shadeBelow(counts *[256]int, n int) int {
	for shade, of := range counts {
		if n -= of; n < 0 {
			return shade
		}
	}
	return 255
}
