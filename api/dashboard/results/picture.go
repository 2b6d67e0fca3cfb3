package results

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/visit"
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

// PictureType returns the type of a picture that browsers show, by its first bytes; "" of any other file.
func PictureType(begin []byte) string {
	if kind := http.DetectContentType(begin); slices.Contains(browserPictures, kind) {
		return kind
	}
	return ""
}

// IsShown reports whether browsers show a page of a file as it is.
func IsShown(begin []byte, page int) bool { return page == 1 && PictureType(begin) != "" }

// IsDrawn reports whether a file has pages that can be drawn: it is a PDF or TIFF file.
func IsDrawn(begin []byte) bool {
	const header = 1024 // bytes in which readers of PDF look for its name
	return bytes.HasPrefix(begin, []byte("II*\x00")) || bytes.HasPrefix(begin, []byte("MM\x00*")) ||
		bytes.Contains(begin[:min(len(begin), header)], []byte("%PDF-"))
}

// pictureOf returns the page that a passage begins on; nil if it has no box, or is in a file without
// pages that can be shown.
func (c *Contents) pictureOf(v *visit.Visit, job mapreduce.JobID, document mapreduce.DocumentID, at *mapreduce.Citation) (*shownPicture, error) {
	if at == nil {
		return nil, nil
	}
	page, edges := at.Location.FirstBoxes()
	if page == 0 {
		return nil, nil
	}

	// Its first part tells what it is.
	begin, err := ReadBegin(v, job, document)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !IsShown(begin, page) && !(IsDrawn(begin) && c.Draws):
		return nil, nil
	}

	boxes := make([]string, len(edges))
	for i, n := range edges {
		boxes[i] = strconv.FormatFloat(n, 'f', 1, 64)
	}
	query := url.Values{"document": {string(document)}, "page": {strconv.Itoa(page)}}
	return &shownPicture{Path: visit.Address(visit.JobPath(v.Prefix, job, "picture"), query), Page: page, Quote: at.Quote, Boxes: strings.Join(boxes, " ")}, nil
}

// ReadBegin returns the first part of a document as it was submitted. It is an error of a caller who
// may not read it.
func ReadBegin(v *visit.Visit, job mapreduce.JobID, document mapreduce.DocumentID) (begin []byte, err error) {
	err = v.Jobs.ReadText(v, job, mapreduce.ParseUnit(document), document, func(part []byte) error {
		begin = bytes.Clone(part)
		return ErrEnough
	})
	if errors.Is(err, ErrEnough) {
		err = nil
	}
	return begin, err
}
