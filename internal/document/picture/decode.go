package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// A source is one page of a file.
type source struct {
	data  []byte
	first int64 // where the directory of a page of TIFF is; 0 of other formats
}

// decode returns a page in shades of grey, upright, on white. The error is a RefusedError if the page
// is beyond bounds.
func (r *Reader) decode(ctx context.Context, c *codec, from source) (*image.Gray, error) {
	picture, err := r.open(ctx, c, from)
	if err != nil {
		return nil, err
	}
	shades, err := shadesOf(ctx, picture)
	if err != nil {
		return nil, err
	}
	return turnUpright(shades, c.orientation(from)), nil
}

// open returns a page as it is in its file. The error is a RefusedError if the page is beyond bounds.
func (r *Reader) open(ctx context.Context, c *codec, from source) (image.Image, error) {
	config, err := runGuarded(func() (image.Config, error) { return c.config(from.reader(ctx)) })
	if err != nil {
		return nil, err
	}
	if err := r.allow(c, from, config); err != nil {
		return nil, err
	}

	picture, err := runGuarded(func() (image.Image, error) { return c.decode(from.reader(ctx)) })
	if err != nil {
		return nil, err
	}
	if got := picture.Bounds(); got.Dx() > config.Width || got.Dy() > config.Height || got.Empty() {
		return nil, errors.New("its header says another size than its data")
	}
	return picture, nil
}

// allow refuses a page that is beyond bounds, by what its header says.
func (r *Reader) allow(c *codec, from source, config image.Config) error {
	width, height := int64(config.Width), int64(config.Height)
	if width <= 0 || height <= 0 {
		return errors.New("its header says that it has no pixels")
	}

	if width > r.config.MaxPixels/height {
		return document.Refuse("%s of %d by %d pixels, more than the %d million that are read", c.name, width, height, r.config.MaxPixels/1_000_000)
	}
	if need := width * height * (bytesOf(config.ColorModel) + c.beside(from.data)); need > r.config.MaxMemory {
		return document.Refuse("%s of %d by %d pixels, which takes %d MiB of memory to decode, more than the %d that are allowed (--document-memory)",
			c.name, width, height, need>>20, r.config.MaxMemory>>20)
	}
	if from.first > 0 {
		return checkTiles(from, r.config.MaxPixels)
	}
	return nil
}

// bytesOf returns how many bytes a pixel takes, with that of the shade that is made of it.
func bytesOf(m color.Model) int64 {
	switch m {
	case color.GrayModel:
		return 2
	case color.Gray16Model:
		return 3
	case color.YCbCrModel:
		return 4
	case color.RGBA64Model, color.NRGBA64Model:
		return 9
	}

	if _, ok := m.(color.Palette); ok {
		return 2
	}
	return 5
}

// runGuarded runs a decoder, in which a picture may find a mistake.
func runGuarded[T any](decode func() (T, error)) (made T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it cannot be decoded: %v", v)
		}
	}()
	return decode()
}

// reader returns the page as a file of its own. Reads fail once ctx ends, and with them the decoder.
func (s source) reader(ctx context.Context) io.Reader {
	if s.first == 0 {
		return untilEnd{ctx, bytes.NewReader(s.data)}
	}
	return struct {
		io.Reader
		io.ReaderAt
	}{failing{}, pageOf{ctx, s}}
}

// An untilEnd reads until its context ends.
type untilEnd struct {
	ctx  context.Context
	from *bytes.Reader
}

// Read implements io.Reader.
func (u untilEnd) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.from.Read(b)
}

// failing is the Reader of what is read by ReadAt.
type failing struct{}

// Read implements io.Reader.
func (failing) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// shadesOf returns a picture in shades of grey, on white.
func shadesOf(ctx context.Context, m image.Image) (*image.Gray, error) {
	b := m.Bounds()
	out := image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
	shade := shaderOf(m)
	for y := range b.Dy() {
		if y%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		shade(out.Pix[y*out.Stride:][:b.Dx()], y)
	}
	return out, nil
}

// shaderOf returns what sets the shades of a row of a picture.
func shaderOf(m image.Image) func(out []uint8, y int) {
	b := m.Bounds()
	switch m := m.(type) {
	case *image.YCbCr: // luminance is one of its parts
		return func(out []uint8, y int) { copy(out, m.Y[m.YOffset(b.Min.X, b.Min.Y+y):]) }
	case *image.Gray:
		return func(out []uint8, y int) { copy(out, m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]) }
	case *image.Paletted:
		shades := make([]uint8, 256)
		for i, c := range m.Palette[:min(len(m.Palette), 256)] {
			shades[i] = shadeOf(color.NRGBAModel.Convert(c).(color.NRGBA)) //nolint:forcetypeassert // the model makes no other
		}
		return func(out []uint8, y int) {
			for x, i := range m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):][:len(out)] {
				out[x] = shades[i]
			}
		}
	case *image.NRGBA:
		return func(out []uint8, y int) {
			row := m.Pix[m.PixOffset(b.Min.X, b.Min.Y+y):]
			for x := range out {
				p := row[4*x:][:4]
				out[x] = shadeOf(color.NRGBA{p[0], p[1], p[2], p[3]})
			}
		}
	}

	// Every other model of colours, by the interface that all of them have.
	return func(out []uint8, y int) {
		for x := range out {
			r, g, blue, a := m.At(b.Min.X+x, b.Min.Y+y).RGBA() // with alpha in it, so white is added
			white := 0xffff - a
			out[x] = uint8(luminance(r+white, g+white, blue+white) >> 8)
		}
	}
}

// shadeOf returns the shade of a colour on white.
func shadeOf(c color.NRGBA) uint8 {
	shade := luminance(uint32(c.R), uint32(c.G), uint32(c.B))
	return uint8((shade*uint32(c.A) + 255*(255-uint32(c.A))) / 255)
}

// luminance returns how bright red, green and blue together are, as JPEG has it.
func luminance(r, g, b uint32) uint32 { return (19595*r + 38470*g + 7471*b + 1<<15) >> 16 }

// turnUpright returns a picture as a viewer shows it that has an orientation as EXIF numbers it.
func turnUpright(m *image.Gray, orientation int) *image.Gray {
	quarters, mirrored := turnsOf(orientation)
	if mirrored {
		mirror(m)
	}
	return recognise.Turn(m, quarters)
}

// turnsOf returns by how many quarters of a circle a viewer turns a picture of an orientation
// clockwise, and whether it exchanges left and right before.
func turnsOf(orientation int) (quarters int, mirrored bool) {
	switch orientation {
	case 2, 4, 5, 7:
		mirrored = true
	}
	return [...]int{1: 0, 2: 0, 3: 2, 4: 2, 5: 3, 6: 1, 7: 1, 8: 3}[orientation], mirrored
}

// mirror exchanges left and right.
func mirror(m *image.Gray) {
	for y := range m.Rect.Dy() {
		row := m.Pix[y*m.Stride:][:m.Rect.Dx()]
		for i, j := 0, len(row)-1; i < j; i, j = i+1, j-1 {
			row[i], row[j] = row[j], row[i]
		}
	}
}
