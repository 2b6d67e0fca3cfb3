package pdf

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"os"

	"github.com/coditect/mapreduce/internal/document"
)

// drawDPI is how many pixels an inch has of a page at its own size, which nobody asks for more than.
const drawDPI = 300

// CanDraw reports whether pages can be drawn without PDFium being compiled first, which
// takes longer than pictures are worth.
func (r *Reader) CanDraw() bool { return r.engine.isCompiled() }

// Draw calls drawn with pictures of pages of a document, whose numbers count from 1, in
// their order, each as large as fit says, once it is its turn. A page that cannot be drawn is left out. All together have
// the time of the configuration, and the error is that of Parse if the document cannot be read.
func (r *Reader) Draw(ctx context.Context, data []byte, pages []int, fit document.Fit, drawn func(document.Picture) error) error {
	if err := r.engine.open(); err != nil {
		return err
	}
	var err error
	waited := r.config.Turns.Once(ctx, r.config.MaxTime, func(within context.Context) {
		d := &reading{reader: r, ctx: within, limits: r.config.limits()}
		d.limits.Time = r.config.MaxTime
		err = d.drawPages(data, pages, fit, drawn)
	})
	return cmp.Or(waited, err)
}

// drawPages draws pages of a document.
func (r *reading) drawPages(data []byte, pages []int, fit document.Fit, drawn func(document.Picture) error) error {
	end, err := r.open(data)
	if err != nil {
		return r.refusal(err)
	}

	defer end()

	for _, r.page = range pages {
		if r.page < 1 || r.page > r.pages {
			continue
		}

		picture, err := r.draw(fit)
		if err != nil {
			// A page that cannot be drawn is left out, unless the time is over.
			if r.ctx.Err() != nil {
				return r.refusal(err)
			}
			continue
		}

		if err := drawn(*picture); err != nil {
			return err
		}
	}

	return nil
}

// draw returns the picture of the page.
func (r *reading) draw(fit document.Fit) (*document.Picture, error) {
	p := load(r.pdfium, r.handle, r.page)
	if p == nil {
		return nil, errPage
	}
	defer p.close()

	if err := p.measure(); err != nil {
		return nil, err
	}

	if r.form == 0 {
		r.form = r.pdfium.call("FPDFDOC_InitFormFillEnvironment", r.handle, r.pdfium.call("FPDF_FORMFILLINFO_Create"))
	}

	// A page that says it is larger than any that is printed is drawn with fewer pixels to the inch.
	scale := min(drawDPI/72., ocrPixels/max(p.width, p.height))
	across, down := fit(max(1, int(math.Round(p.width*scale))), max(1, int(math.Round(p.height*scale))))
	drawn, err := p.draw(across, down, r.form)
	if err != nil {
		return nil, err
	}

	picture := &document.Picture{Page: r.page, Width: p.width, Height: p.height, Across: across, Down: down}
	picture.MediaType, picture.Data, err = encodePicture(drawn)
	return picture, err
}

// draw returns a picture of a page on white, of a size in pixels, with the fields of a form if
// it is not 0.
func (p *page) draw(width, height int, form uint64) (*image.RGBA, error) {
	const redFirst = 0x10 // FPDF_REVERSE_BYTE_ORDER
	const white = 0xffffffff

	bitmap := p.pdfium.call("FPDFBitmap_Create", integer(width), integer(height), 0)
	if bitmap == 0 {
		return nil, cmp.Or(p.pdfium.gone, errMemory)
	}
	defer p.pdfium.call("FPDFBitmap_Destroy", bitmap)

	p.pdfium.call("FPDFBitmap_FillRect", bitmap, 0, 0, integer(width), integer(height), white)
	p.pdfium.call("FPDF_RenderPageBitmap", bitmap, p.handle, 0, 0, integer(width), integer(height), 0, redFirst)
	if form != 0 {
		p.pdfium.call("FPDF_FFLDraw", form, bitmap, p.handle, 0, 0, integer(width), integer(height), 0, redFirst)
	}

	at, stride := p.pdfium.call("FPDFBitmap_GetBuffer", bitmap), asInteger(p.pdfium.call("FPDFBitmap_GetStride", bitmap))
	pixels, ok := p.pdfium.memory.Read(uint32(at), uint32(stride*height))
	if p.pdfium.gone != nil || !ok || stride < 4*width {
		return nil, cmp.Or(p.pdfium.gone, errMemory)
	}

	drawn := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		row := drawn.Pix[y*drawn.Stride:][:4*width]
		copy(row, pixels[y*stride:])
		for x := 3; x < len(row); x += 4 {
			row[x] = 0xff // which nothing has drawn
		}
	}
	return drawn, nil
}

// jpegQuality is that of pages which are pictures: their text stays readable.
const jpegQuality = 70

// encodePicture returns a picture in the format that makes less of it: PNG of text, and
// JPEG of what was scanned.
func encodePicture(m image.Image) (mediaType string, data []byte, err error) {
	var asPNG, asJPEG bytes.Buffer
	if err := png.Encode(&asPNG, m); err != nil {
		return "", nil, fmt.Errorf("pdf: %w", err)
	}
	if err := jpeg.Encode(&asJPEG, m, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return "", nil, fmt.Errorf("pdf: %w", err)
	}

	if asJPEG.Len() < asPNG.Len() {
		return "image/jpeg", asJPEG.Bytes(), nil
	}
	return "image/png", asPNG.Bytes(), nil
}

// isCompiled reports whether PDFium runs, or was compiled before and is in the cache.
func (e *engine) isCompiled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.module != nil {
		return true
	}

	dir := cacheDir(e.config.CacheDir)
	if dir == "" {
		return false
	}

	found, err := os.ReadDir(dir)
	return err == nil && len(found) > 0
}
