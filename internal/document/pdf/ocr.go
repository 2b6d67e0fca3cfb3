package pdf

import (
	"image"
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// Bounds of pictures of pages that OCR reads.
const (
	ocrDPI    = 300  // pixels an inch of the picture
	ocrPixels = 5000 // wide and high, at most
)

// recognise has the engine for OCR read the picture of a page.
func (d *reading) recognise(p *page) ([]arrange.Word, error) {
	picture, scale, err := d.picture(p)
	if err != nil {
		return nil, err
	}

	engine := d.reader.config.OCR
	words, err := recognise.Read(d.ctx, engine, recognise.Page{Picture: picture, DPI: int(math.Round(scale * 72)), Wait: d.wait})
	switch {
	case d.ctx.Err() != nil:
		return nil, d.ctx.Err()
	case err != nil:
		return nil, document.Refuse("a PDF file whose page %d is a picture, and the program for OCR (%s) did not read it: %v", p.number, engine.Name(), err)
	}

	all := make([]arrange.Word, len(words))
	for i, w := range words {
		all[i] = arrange.Word{Text: w.Text, Line: w.Line, Box: mapreduce.Box{
			Page: p.number, Left: arrange.Within(w.Box.Left / scale), Top: arrange.Within(w.Box.Top / scale),
			Right: arrange.Within(w.Box.Right / scale), Bottom: arrange.Within(w.Box.Bottom / scale),
		}}
		d.sure.add(w.Sure)
	}
	return all, nil
}

// picture returns a page in shades of grey, and how many pixels a point has.
func (d *reading) picture(p *page) (*image.Gray, float64, error) {
	dpi := ocrDPI
	// A very large page is drawn with fewer points to the inch, so that the picture stays
	// small.
	if most := max(p.width, p.height) / 72 * ocrDPI; most > ocrPixels {
		dpi = max(1, int(ocrDPI*ocrPixels/most))
	}

	scale := float64(dpi) / 72
	drawn, err := p.draw(int(math.Ceil(p.width*scale)), int(math.Ceil(p.height*scale)), 0)
	if err != nil {
		return nil, 0, err
	}
	return shades(drawn), scale, nil
}

// shades returns a picture that covers all in shades of grey.
func shades(m *image.RGBA) *image.Gray {
	out := image.NewGray(m.Rect)
	for y := range m.Rect.Dy() {
		from, to := m.Pix[y*m.Stride:][:4*m.Rect.Dx()], out.Pix[y*out.Stride:]
		for x := 0; x < len(from); x += 4 {
			// How bright the three are together, as JPEG has it.
			to[x/4] = uint8((19595*uint32(from[x]) + 38470*uint32(from[x+1]) + 7471*uint32(from[x+2]) + 1<<15) >> 16)
		}
	}
	return out
}
