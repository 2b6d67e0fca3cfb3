package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"

	"golang.org/x/image/draw"

	"github.com/coditect/mapreduce/internal/document"
)

// jpegQuality is that of pictures that are drawn: their text stays readable.
const jpegQuality = 70

// Is reports whether data begin as a picture does.
func Is(data []byte) bool {
	for i := range codecs {
		if codecs[i].sniff(data[:min(len(data), document.SniffBytes)]) == document.Certain {
			return true
		}
	}
	return false
}

// Draw calls drawn with pages of a picture, whose numbers count from 1, as a viewer shows them, each
// as large as fit says. A page that cannot be drawn is left out.
func (r *Reader) Draw(ctx context.Context, data []byte, pages []int, fit document.Fit, drawn func(document.Picture) error) error {
	for i := range codecs {
		c := &codecs[i]
		if c.sniff(data[:min(len(data), document.SniffBytes)]) != document.Certain {
			continue
		}
		all, err := c.pages(data, document.Limits{}.WithDefaults().Pages)
		if err != nil {
			return err
		}
		return r.drawPages(ctx, c, all, pages, fit, drawn)
	}
	return document.Refuse("no picture")
}

// drawPages draws pages, of all that there are.
func (r *Reader) drawPages(ctx context.Context, c *codec, all []source, pages []int, fit document.Fit, drawn func(document.Picture) error) error {
	for _, n := range pages {
		if n < 1 || n > len(all) {
			continue
		}
		m, err := r.open(ctx, c, all[n-1])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			continue
		}

		shown, size := scaled(m, c.orientation(all[n-1]), fit)
		var b bytes.Buffer
		if err := jpeg.Encode(&b, shown, &jpeg.Options{Quality: jpegQuality}); err != nil {
			return fmt.Errorf("picture: %w", err)
		}
		p := document.Picture{Page: n, Width: float64(size.X), Height: float64(size.Y), Across: shown.Rect.Dx(), Down: shown.Rect.Dy(), MediaType: "image/jpeg", Data: b.Bytes()}
		if err := drawn(p); err != nil {
			return err
		}
	}
	return nil
}

// scaled returns a picture on white as a viewer shows it, as large as fit says, and its size
// before it was made smaller. Its orientation is as EXIF numbers it.
func scaled(m image.Image, orientation int, fit document.Fit) (*image.RGBA, image.Point) {
	size := m.Bounds().Size()
	width, height := fit(size.X, size.Y)
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(small, small.Rect, image.White, image.Point{}, draw.Src)
	draw.ApproxBiLinear.Scale(small, small.Rect, m, m.Bounds(), draw.Over, nil)

	quarters, mirrored := turnsOf(orientation)
	if quarters&1 == 1 {
		width, height, size = height, width, image.Pt(size.Y, size.X)
	}
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			at := image.Pt(x, y)
			if mirrored {
				at.X = small.Rect.Dx() - 1 - x
			}
			// Clockwise, a quarter of a circle at a time.
			of := small.Rect.Size()
			for range quarters {
				at, of = image.Pt(of.Y-1-at.Y, at.X), image.Pt(of.Y, of.X)
			}
			out.SetRGBA(at.X, at.Y, small.RGBAAt(x, y))
		}
	}
	return out, size
}
