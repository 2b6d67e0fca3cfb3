package dashboard

import (
	"net/http"
	"strconv"

	"github.com/coditect/mapreduce/api/dashboard/drawn"
	"github.com/coditect/mapreduce/api/dashboard/results"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// sendPicture sends a page of a document: as it was submitted, if browsers show it, or drawn.
func (d *Dashboard) sendPicture(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}
	page, err := v.Number("page", 1)
	if err != nil {
		return err
	}

	// Whoever may not read the document sees no page of it either, also if it was drawn before.
	document := mapreduce.DocumentID(v.Query.Get("document"))
	begin, err := results.ReadBegin(v, id, document)
	switch {
	case err != nil:
		return err
	case results.IsShown(begin, page):
		return sendSubmitted(w, r, v, id, document, results.PictureType(begin))
	case !results.IsDrawn(begin):
		return errs.New(errs.Precondition, "the document %s is no file whose pages are shown: a picture or PDF", document)
	case d.pages == nil:
		return errs.New(errs.Precondition, "this server draws no pages; report.html of the job has them")
	}
	return d.sendPage(w, v, drawn.Key{Job: id, Document: document, Page: page})
}

// sendSubmitted sends a picture as it was submitted.
func sendSubmitted(w http.ResponseWriter, r *http.Request, v *visit.Visit, id mapreduce.JobID, document mapreduce.DocumentID, kind string) error {
	beginPicture(w, kind)
	if r.Method == http.MethodHead {
		return nil
	}

	err := v.Jobs.ReadText(v, id, mapreduce.ParseUnit(document), document, func(part []byte) error {
		_, err := w.Write(part)
		return err
	})
	if err != nil {
		panic(http.ErrAbortHandler) // the browser must see that the picture is not whole
	}
	return nil
}

// beginPicture writes the head of an answer that is a picture, and nothing that could run.
func beginPicture(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
}

// Headers of the picture of a page: its size in the unit of boxes.
const (
	pageWidth  = "Page-Width"
	pageHeight = "Page-Height"
)

// sendPage sends a page that is drawn, to a caller who may read the document.
func (d *Dashboard) sendPage(w http.ResponseWriter, v *visit.Visit, key drawn.Key) error {
	p, err := d.pages.Get(v, key, func() ([]byte, error) {
		var data []byte
		err := v.Jobs.ReadText(v, key.Job, mapreduce.ParseUnit(key.Document), key.Document, func(part []byte) error {
			if len(data)+len(part) > results.MaxBytes {
				return errs.New(errs.Exhausted, "the document is larger than the %d bytes of which pages are drawn", results.MaxBytes)
			}
			data = append(data, part...)
			return nil
		})
		return data, err
	})
	if err != nil {
		return err
	}

	beginPicture(w, p.MediaType)
	w.Header().Set(pageWidth, strconv.FormatFloat(p.Width, 'f', -1, 64))
	w.Header().Set(pageHeight, strconv.FormatFloat(p.Height, 'f', -1, 64))
	_, err = w.Write(p.Data)
	return err
}
