package ooxml

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// Pictures are what reads the text of pictures within documents. The zero Pictures read none.
type Pictures struct {
	// Read recognises the text of a picture. The error is a document.RefusedError of one that is not
	// read.
	Read func(ctx context.Context, data []byte, wait document.Waiter) (*document.Recognised, error)

	// Share is the share of a page, or of a slide, that a picture has at least which is read.
	Share float64
}

// Bounds of the pictures of one document.
const (
	maxPictures   = 500
	maxPicture    = 64 << 20 // bytes of one
	timeOfPicture = 5 * time.Second
)

// pageArea is the area of a page of A4, in square EMU: that of most pages, or nearly so.
const pageArea = 7560310 * 10692130

// A pictureRef is a picture that stands somewhere in a document.
type pictureRef struct {
	id   string // of the relation of its entry
	area int64  // in square EMU; 0 if it is not said
}

// A pictureShelf reads the pictures of one document, each of them once: a logo on every page is one.
type pictureShelf struct {
	pictures Pictures
	ctx      context.Context //nolint:containedctx // of the reading of one document, which has no other way through its parsers
	wait     document.Waiter
	zip      *zipfile.Reader
	page     int64 // area of a page
	seen     map[string]bool

	read      int   // pictures with text
	unread    int   // pictures that were not read
	why       error // of the first of them
	sum       float64
	runes     float64 // that sum is of
	relations map[string]map[string]relation
}

func newShelf(ctx context.Context, p Pictures, in document.Input, z *zipfile.Reader) *pictureShelf {
	return &pictureShelf{pictures: p, ctx: ctx, wait: in.Wait, zip: z, page: pageArea, seen: make(map[string]bool), relations: make(map[string]map[string]relation)}
}

// textOf returns the text of a picture that an entry shows; nil if it has none, is too small or was read
// before. Only what ends the reading of the document is an error: it was read without its pictures once.
func (s *pictureShelf) textOf(entry string, ref pictureRef) (*document.Recognised, error) {
	if s.pictures.Read == nil || entry == "" || ref.id == "" || ref.area > 0 && float64(ref.area) < s.pictures.Share*float64(s.page) {
		return nil, nil
	}
	if s.relations[entry] == nil {
		s.relations[entry] = map[string]relation{}
		if found, err := relationsOf(s.zip, entry); err == nil {
			s.relations[entry] = found
		}
	}

	target := s.relations[entry][ref.id].target
	if target == "" || s.seen[target] || len(s.seen) == maxPictures || !s.zip.Has(target) {
		return nil, nil
	}
	s.seen[target] = true

	found, err := s.recognise(target)
	switch refused := new(document.RefusedError); {
	case s.ctx.Err() != nil:
		return nil, context.Cause(s.ctx)
	case errors.As(err, &refused):
		if s.unread++; s.why == nil {
			s.why = errors.New(refused.Reason)
		}
		return nil, nil
	case err != nil || len(found.Lines) == 0:
		return nil, err
	}

	s.read++
	for _, line := range found.Lines {
		n := float64(utf8.RuneCountInString(line.Text))
		s.sum, s.runes = s.sum+found.Sure*n, s.runes+n
	}
	return found, nil
}

func (s *pictureShelf) recognise(target string) (*document.Recognised, error) {
	data, err := s.zip.ReadAside(target, maxPicture)
	if err != nil {
		return nil, err
	}
	document.GrantTime(s.ctx, timeOfPicture)
	return s.pictures.Read(s.ctx, data, s.wait)
}

// note says on a document what was read of its pictures, and how sure its text is with them.
func (s *pictureShelf) note(d *document.Document) {
	if s.read > 0 {
		all := max(float64(utf8.RuneCountInString(d.Text)), s.runes)
		d.Confidence = min((all-s.runes+s.sum)/all, 0.99)
		d.Notes = append(d.Notes, fmt.Sprintf("text was recognised in %d of its pictures, with a confidence of %.2f", s.read, s.sum/s.runes))
	}
	if s.unread > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of its pictures were not read: %v", s.unread, s.why))
	}
}

// areaOf returns the area of an element with an extent; 0 if it has none.
func areaOf(e xml.StartElement) int64 {
	side := func(name string) int64 {
		n, err := strconv.ParseInt(xmlread.Attr(e, name), 10, 64)
		if err != nil || n < 0 || n > 1<<30 {
			return 0
		}
		return n
	}
	return side("cx") * side("cy")
}
