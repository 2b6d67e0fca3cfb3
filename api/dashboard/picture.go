package dashboard

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/drawn"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A shownPicture is a page of a document that a passage stands on. A picture that browsers show is sent as
// it was submitted: they have no script of its own there. Any other page is drawn, not in this process.
type shownPicture struct {
	Path  string
	Page  int
	Quote string // what stands in the boxes, for those who do not see it
	Boxes string // of the passage, in pixels or points: left, top, right and bottom of each, with blanks between
}

// browserPictures are the types of pictures that every browser shows.
var browserPictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}

// pictureType returns the type of a picture that browsers show, by its first bytes; "" of any other file.
func pictureType(begin []byte) string {
	if kind := http.DetectContentType(begin); slices.Contains(browserPictures, kind) {
		return kind
	}
	return ""
}

// isShown reports whether browsers show a page of a file as it is.
func isShown(begin []byte, page int) bool { return page == 1 && pictureType(begin) != "" }

// isDrawn reports whether a file has pages that can be drawn: it is a PDF or TIFF file.
func isDrawn(begin []byte) bool {
	const header = 1024 // bytes in which readers of PDF look for its name
	return bytes.HasPrefix(begin, []byte("II*\x00")) || bytes.HasPrefix(begin, []byte("MM\x00*")) ||
		bytes.Contains(begin[:min(len(begin), header)], []byte("%PDF-"))
}

// pictureOf returns the page that a passage begins on; nil if it has no box, or is in a file without
// pages that can be shown.
func (d *Dashboard) pictureOf(v *visit, job mapreduce.JobID, document mapreduce.DocumentID, at *mapreduce.Citation) (*shownPicture, error) {
	if at == nil {
		return nil, nil
	}
	page, edges := at.Location.FirstBoxes()
	if page == 0 {
		return nil, nil
	}

	// Its first part tells what it is.
	begin, err := readBegin(v, job, document)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !isShown(begin, page) && !(isDrawn(begin) && d.pages != nil):
		return nil, nil
	}

	boxes := make([]string, len(edges))
	for i, n := range edges {
		boxes[i] = strconv.FormatFloat(n, 'f', 1, 64)
	}
	query := url.Values{"document": {string(document)}, "page": {strconv.Itoa(page)}}
	return &shownPicture{Path: address(jobPath(v.prefix, job, "picture"), query), Page: page, Quote: at.Quote, Boxes: strings.Join(boxes, " ")}, nil
}

// readBegin returns the first part of a document as it was submitted. It is an error of a caller who
// may not read it.
func readBegin(v *visit, job mapreduce.JobID, document mapreduce.DocumentID) (begin []byte, err error) {
	err = v.jobs.ReadText(v, job, mapreduce.ParseUnit(document), document, func(part []byte) error {
		begin = bytes.Clone(part)
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return begin, err
}

// sendPicture sends a page of a document: as it was submitted, if browsers show it, or drawn.
func (d *Dashboard) sendPicture(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.job()
	if err != nil {
		return err
	}
	page, err := v.number("page", 1)
	if err != nil {
		return err
	}

	// Whoever may not read the document sees no page of it either, also if it was drawn before.
	document := mapreduce.DocumentID(v.query.Get("document"))
	begin, err := readBegin(v, id, document)
	switch {
	case err != nil:
		return err
	case isShown(begin, page):
		return sendSubmitted(w, r, v, id, document, pictureType(begin))
	case !isDrawn(begin):
		return errs.New(errs.Precondition, "the document %s is no file whose pages are shown: a picture or PDF", document)
	case d.pages == nil:
		return errs.New(errs.Precondition, "this server draws no pages; report.html of the job has them")
	}
	return d.sendPage(w, v, drawn.Key{Job: id, Document: document, Page: page})
}

// sendSubmitted sends a picture as it was submitted.
func sendSubmitted(w http.ResponseWriter, r *http.Request, v *visit, id mapreduce.JobID, document mapreduce.DocumentID, kind string) error {
	beginPicture(w, kind)
	if r.Method == http.MethodHead {
		return nil
	}
	err := v.jobs.ReadText(v, id, mapreduce.ParseUnit(document), document, func(part []byte) error {
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
func (d *Dashboard) sendPage(w http.ResponseWriter, v *visit, key drawn.Key) error {
	p, err := d.pages.Get(v, key, func() ([]byte, error) {
		var data []byte
		err := v.jobs.ReadText(v, key.Job, mapreduce.ParseUnit(key.Document), key.Document, func(part []byte) error {
			if len(data)+len(part) > maxBytes {
				return errs.New(errs.Exhausted, "the document is larger than the %d bytes of which pages are drawn", maxBytes)
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
