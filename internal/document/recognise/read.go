package recognise

import (
	"context"
	"image"
)

// poor is how sure words are together, at most, of a page that may lie on its side.
const poor = 0.6

// A turner is an engine that knows by how many quarters of a circle a page must be turned.
type turner interface {
	turn(ctx context.Context, page Page) (quarters int, err error)
}

// Read returns the words of a page, whose boxes are those of the picture as it was given.
//
// A page that an engine reads badly may lie on its side, or be upside down, as nothing says how
// somebody held a camera. Then it is turned, and read once more.
func Read(ctx context.Context, e Engine, page Page) ([]Word, error) {
	words, err := e.Words(ctx, page)
	if err != nil {
		return nil, err
	}

	t, ok := e.(turner)
	if !ok || len(words) == 0 || Sure(words) > poor {
		return words, nil
	}

	quarters, err := t.turn(ctx, page)
	if err != nil || quarters == 0 {
		return words, err
	}

	turned := page
	turned.Picture = Turn(page.Picture, quarters)
	again, err := e.Words(ctx, turned)
	if err != nil || Sure(again) <= Sure(words) {
		return words, err
	}
	for i := range again {
		again[i].Box = again[i].Box.turned(4-quarters, size(turned.Picture)).within(size(page.Picture))
	}
	return again, nil
}

// Turn returns a picture that is turned clockwise by quarters of a circle.
func Turn(m *image.Gray, quarters int) *image.Gray {
	width, height := m.Rect.Dx(), m.Rect.Dy()
	quarters &= 3
	if quarters == 0 {
		return m
	}

	out := image.NewGray(image.Rect(0, 0, width, height))
	if quarters&1 == 1 {
		out = image.NewGray(image.Rect(0, 0, height, width))
	}
	for y := range height {
		row := m.Pix[y*m.Stride:][:width]
		switch quarters {
		case 1:
			for x, shade := range row {
				out.Pix[x*out.Stride+height-1-y] = shade
			}
		case 2:
			to := out.Pix[(height-1-y)*out.Stride:][:width]
			for x, shade := range row {
				to[width-1-x] = shade
			}
		default:
			for x, shade := range row {
				out.Pix[(width-1-x)*out.Stride+y] = shade
			}
		}
	}
	return out
}

// turned returns a box of a picture of a size, as it lies once the picture is turned clockwise by
// quarters of a circle.
func (b Box) turned(quarters int, size image.Point) Box {
	x, y := float64(size.X), float64(size.Y)
	switch quarters & 3 {
	case 1:
		return Box{y - b.Bottom, b.Left, y - b.Top, b.Right}
	case 2:
		return Box{x - b.Right, y - b.Bottom, x - b.Left, y - b.Top}
	case 3:
		return Box{b.Top, x - b.Right, b.Bottom, x - b.Left}
	}
	return b
}
