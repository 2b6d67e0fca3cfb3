package pdf

import (
	"image"
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/document/recognise"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// Bounds of pictures of pages that OCR reads.
const (
	ocrDPI    = 300  // pixels an inch of the picture
	ocrPixels = 5000 // wide and high, at most
)

// recognise has the engine for OCR read the picture of a page.
func (r *reading) recognise(p *page) ([]arrange.Word, error) {
	picture, scale, err := r.picture(p)
	if err != nil {
		return nil, err
	}

	found, err := r.recogniseIn(p, picture, scale)
	if err != nil {
		return nil, err
	}

	all := make([]arrange.Word, len(found.Words))
	for i, w := range found.Words {
		all[i] = arrange.Word{Text: w.Text, Line: w.Line, Sure: w.Certainty(), Box: inPoints(w.Box, p.number, scale)}
		r.sure.add(w.Sure)
	}
	p.place = func(b mapreduce.Box) mapreduce.Box {
		return inPoints(found.Place(recognise.Box{Left: b.Left * scale, Top: b.Top * scale, Right: b.Right * scale, Bottom: b.Bottom * scale}), p.number, scale)
	}
	return all, nil
}

// recogniseIn has the engine for OCR read a picture of a page, or of a part of it.
func (r *reading) recogniseIn(p *page, picture *image.Gray, scale float64) (*recognise.Found, error) {
	engine := r.reader.config.OCR
	found, err := recognise.Read(r.ctx, engine, recognise.Page{Picture: picture, DPI: int(math.Round(scale * 72)), Wait: r.wait})
	switch {
	case r.ctx.Err() != nil:
		return nil, r.ctx.Err()
	case err != nil:
		return nil, document.Refuse("a PDF file whose page %d is a picture, and the program for OCR (%s) did not read it: %v", p.number, engine.Name(), err)
	}
	return found, nil
}

// placeBack has boxes of a page that was straightened before it was read stand where a viewer shows
// them. Those of notes, which are last, do so already.
func (p *page) placeBack(parts layout.Layout, notes []arrange.Note) {
	words := len(parts)
	for _, n := range notes {
		if n.Text != "" {
			words--
		}
	}
	for i := range parts[:words] {
		parts[i].Box = p.place(parts[i].Box)
	}
}

// inPoints returns a box of a page in points, of each of which the picture has some pixels.
func inPoints(b recognise.Box, page int, scale float64) mapreduce.Box {
	return mapreduce.Box{
		Page: page, Left: arrange.Within(b.Left / scale), Top: arrange.Within(b.Top / scale),
		Right: arrange.Within(b.Right / scale), Bottom: arrange.Within(b.Bottom / scale),
	}
}

// picture returns a page in shades of grey, and how many pixels a point has.
func (r *reading) picture(p *page) (*image.Gray, float64, error) {
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
