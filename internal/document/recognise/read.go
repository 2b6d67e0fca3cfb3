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

// Found is what was found in a page.
type Found struct {
	// Words are those of the page as it was read: straightened, in which their boxes are.
	Words []Word
	from  place
	size  image.Point // of the page as it was given
}

// Place returns what a box of the page as it was read covers of the page as it was given.
func (f *Found) Place(b Box) Box { return f.from.box(b).within(f.size) }

// Read returns the words of a page.
//
// The page is prepared first. One that an engine reads badly may lie on its side, or be upside
// down, as nothing says how somebody held a camera. Then it is turned, and read once more.
func Read(ctx context.Context, e Engine, page Page) (*Found, error) {
	f := &Found{from: same, size: size(page.Picture)}
	if err := f.prepare(ctx, &page); err != nil {
		return nil, err
	}

	words, err := e.Words(ctx, page)
	if err != nil {
		return nil, err
	}
	f.Words = words

	t, ok := e.(turner)
	if !ok || len(words) > 0 && Sure(words) > poor {
		return f, nil
	}
	quarters, err := t.turn(ctx, page)
	if err != nil || quarters == 0 {
		return f, err
	}

	turned := &Found{from: f.from.then(quarter(quarters, size(page.Picture))), size: f.size}
	page.Picture = Turn(page.Picture, quarters)
	if turned.Words, err = e.Words(ctx, page); err != nil {
		return nil, err
	}
	if Sure(turned.Words) <= Sure(words) {
		return f, nil
	}
	return turned, nil
}

// prepare makes of a page what engines are made for.
func (f *Found) prepare(ctx context.Context, page *Page) error {
	picture, from := shrinkPage(page.Picture)
	if from != same {
		page.DPI = int(float64(page.DPI) / from.a)
	}

	picture, turned, err := straightenPage(ctx, evenPaper(positive(picture)))
	if err != nil {
		return err
	}
	page.Picture, f.from = picture, from.then(turned)
	return nil
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
