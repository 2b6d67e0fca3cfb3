package results

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/page"
	"github.com/coditect/mapreduce/internal/document"
)

// A PageDrawer draws pages of documents. It calls drawn with each that can be drawn, in
// the order of their numbers, which count from 1.
type PageDrawer interface {
	Draw(ctx context.Context, data []byte, pages []int, fit document.Fit, drawn func(document.Picture) error) error
}

// Bounds of the pictures of pages in report.html.
const (
	maxDrawnPages    = 300
	maxPagesBytes    = 16 << 20 // of all, as text of the page
	maxPagesTime     = 20 * time.Second
	maxDrawnDocument = 64 << 20 // of a document
	drawnPixels      = 1170     // how wide and high a picture is: a page of A4 has 100 pixels an inch
)

// maxBoxes is how many boxes of a citation are marked.
const maxBoxes = 24

// A citedPage is a page of a document that citations are on.
type citedPage struct{ document, page int }

// addBoxes notes where on its pages a citation stands.
func (b *pageBuilder) addBoxes(c *page.Citation, at *mapreduce.Location) {
	if at == nil {
		return
	}
	for _, box := range at.Boxes[:min(len(at.Boxes), maxBoxes)] {
		c.Boxes = append(c.Boxes, []float64{float64(box.Page), box.Left, box.Top, box.Right, box.Bottom})
		on := citedPage{c.Document, box.Page}
		if !b.cited[on] && len(b.pages) < maxDrawnPages {
			b.cited[on] = true
			b.pages = append(b.pages, on)
		}
	}
}

// addDrawnPages adds pictures of the pages that citations are on, as many as have room and
// time, in the order of the citations' documents. Documents that are not at hand have
// none.
func (w *writer) addDrawnPages(ctx context.Context, b *pageBuilder) error {
	if w.config.Pages == nil || len(b.pages) == 0 {
		return nil
	}

	within, cancel := context.WithTimeout(ctx, maxPagesTime)
	defer cancel()
	room := maxPagesBytes
	for left := b.pages; len(left) > 0 && room > 0 && within.Err() == nil; {
		of := left[0].document
		var pages []int
		left = slices.DeleteFunc(slices.Clone(left), func(p citedPage) bool {
			if p.document == of {
				pages = append(pages, p.page)
			}
			return p.document == of
		})

		// Documents are read without the bound of time: a service refuses calls for which
		// little time is left, and the results would not be written.
		data, err := w.submitted(ctx, mapreduce.DocumentID(b.data.Documents[of]))
		if err != nil {
			return err
		}

		if data == nil {
			continue
		}

		slices.Sort(pages)
		err = w.config.Pages.Draw(within, data, pages, document.Within(drawnPixels), func(p document.Picture) error {
			url := "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
			if room -= len(url); room < 0 {
				return errNoRoom
			}
			b.data.Pages = append(b.data.Pages, page.DrawnPage{Document: of, Page: p.Page, Width: p.Width, Height: p.Height, URL: url})
			return nil
		})
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		} // a document that cannot be drawn has its text
	}
	return nil
}

// errNoRoom ends the drawing of pages for which the report has no room.
var errNoRoom = errors.New("the report has no room for more pictures")

// submitted returns a document as it was submitted, or nil if it is not there, or large.
func (w *writer) submitted(ctx context.Context, id mapreduce.DocumentID) ([]byte, error) {
	var data []byte
	err := w.service.ReadText(ctx, w.config.Job, mapreduce.ParseUnit(id), id, func(part []byte) error {
		if data = append(data, part...); len(data) > maxDrawnDocument {
			return errTextTooLong
		}
		return nil
	})
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, errTextTooLong), errs.KindOf(err) == errs.NotFound:
		return nil, nil
	}
	return nil, fmt.Errorf("document %s: %w", id, err)
}
