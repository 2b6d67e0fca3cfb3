package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A shownPicture is a document that is a picture, as it was submitted. The server never decodes one, as
// only workers read what somebody else has made: the browser shows it, and has no script of its own there.
type shownPicture struct {
	Path  string
	Quote string // what stands in the boxes, for those who do not see it
	Boxes string // of the passage, in pixels: left, top, right and bottom of each, with blanks between
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

// pictureOf returns the picture that a passage stands in; nil if it stands in none that a browser shows.
func pictureOf(v *visit, job mapreduce.JobID, document mapreduce.DocumentID, at *mapreduce.Citation) (*shownPicture, error) {
	if at == nil || at.Location == nil || at.Location.Page != 1 || at.Location.Recognised == 0 || len(at.Location.Boxes) == 0 {
		return nil, nil
	}

	// Its first part tells what it is.
	kind := ""
	err := v.jobs.ReadText(v, job, mapreduce.ParseUnit(document), document, func(part []byte) error {
		kind = pictureType(part)
		return errEnough
	})
	if errs.KindOf(err) == errs.NotFound || err == nil || errors.Is(err, errEnough) && kind == "" {
		return nil, nil
	}
	if !errors.Is(err, errEnough) {
		return nil, err
	}

	var boxes []string
	for _, b := range at.Location.Boxes {
		for _, n := range []float64{b.Left, b.Top, b.Right, b.Bottom} {
			boxes = append(boxes, strconv.FormatFloat(n, 'f', 1, 64))
		}
	}
	path := address(jobPath(v.prefix, job, "picture"), url.Values{"document": {string(document)}})
	return &shownPicture{Path: path, Quote: at.Quote, Boxes: strings.Join(boxes, " ")}, nil
}

// sendPicture sends a document that is a picture, as it was submitted.
func (d *Dashboard) sendPicture(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.job()
	if err != nil {
		return err
	}

	document, began := mapreduce.DocumentID(v.query.Get("document")), false
	err = v.jobs.ReadText(v, id, mapreduce.ParseUnit(document), document, func(part []byte) error {
		if !began {
			kind := pictureType(part)
			if kind == "" {
				return errs.New(errs.Precondition, "the document %s is no picture that browsers show", document)
			}
			began = true
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
		}
		_, err := w.Write(part)
		return err
	})
	if err != nil && began {
		panic(http.ErrAbortHandler) // the browser must see that the picture is not whole
	}
	return err
}
