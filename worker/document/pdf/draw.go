package pdf

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"os"

	"github.com/klippa-app/go-pdfium/requests"

	"github.com/coditect/mapreduce/worker/document"
)

// drawPixels is how wide and high pictures of pages are at most: a page of A4 has 100
// pixels an inch.
const drawPixels = 1170

// CanDraw reports whether pages can be drawn without PDFium being compiled first, which
// takes longer than pictures are worth.
func (r *Reader) CanDraw() bool { return r.engine.isCompiled() }

// Draw calls drawn with pictures of pages of a document, whose numbers count from 1, in
// their order. A page that cannot be drawn is left out. The time of all is that of reading
// a document, and the error is that of Parse if the document cannot be read.
func (r *Reader) Draw(ctx context.Context, data []byte, pages []int, drawn func(document.Picture) error) error {
	if _, err := r.engine.open(); err != nil {
		return err
	}
	d := &reading{reader: r, limits: r.config.limits(), clock: newStopwatch(ctx, r.config.MaxTime)}
	defer d.clock.end()
	end, err := d.open(data)
	if err != nil {
		return d.refusal(ctx, err)
	}
	defer end()
	for _, d.page = range pages {
		if d.page < 1 || d.page > d.pages {
			continue
		}
		picture, err := d.draw()
		if err != nil {
			if d.clock.ctx.Err() != nil {
				return d.refusal(ctx, err)
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
func (d *reading) draw() (*document.Picture, error) {
	loaded, err := d.pdfium.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.handle, Index: d.page - 1})
	if err != nil {
		return nil, err
	}
	p := &page{pdfium: d.pdfium, handle: loaded.Page, number: d.page}
	defer p.close()
	if err := p.measure(); err != nil {
		return nil, err
	}
	image, err := d.pdfium.RenderPageInPixels(&requests.RenderPageInPixels{
		Page: p.ref(), Width: drawPixels, Height: drawPixels, RenderForm: true, Document: &d.handle,
	})
	if err != nil {
		return nil, err
	}
	defer image.Cleanup()
	picture := &document.Picture{Page: d.page, Width: p.width, Height: p.height}
	picture.MediaType, picture.Data, err = encodePicture(image.Result.RenderedImage)
	return picture, err
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
	if e.pool != nil {
		return true
	}
	dir := cacheDir(e.config.CacheDir)
	if dir == "" {
		return false
	}
	found, err := os.ReadDir(dir)
	return err == nil && len(found) > 0
}
