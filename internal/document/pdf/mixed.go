package pdf

import (
	"image"
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// A page may have text and be a scan, too: a stamp or a number of the page that somebody added, or
// a form that was filled in on paper. What the picture shows is read beside the text then, unless
// the text is that of the picture, as in a scan that a program has made searchable.

// searchable is the share of a picture that words cover, at least, whose text they are.
const searchable = 0.02

// readImages has OCR read the pictures of a page that have no text. It returns the words of the page
// with those that were found.
func (r *reading) readImages(p *page, words []arrange.Word) ([]arrange.Word, error) {
	if !r.sees() || p.turned > 0 || len(words) == 0 {
		return words, nil
	}
	unread := p.unread(words, r.reader.config.Pictures)
	if len(unread) == 0 {
		return words, nil
	}

	document.GrantTime(r.ctx, timeOfPicture)
	picture, scale, err := r.picture(p)
	if err != nil {
		return nil, err
	}
	known := words
	for _, at := range unread {
		found, err := r.readImage(p, picture, scale, at)
		if err != nil {
			return nil, err
		}
		// The picture of the page shows its text, too.
		found = slices.DeleteFunc(found, func(w arrange.Word) bool {
			return slices.ContainsFunc(known, func(k arrange.Word) bool { return overlaps(w.Box, k.Box) })
		})
		words = appendLines(words, found)
	}

	if len(words) > len(known) {
		r.mixed = append(r.mixed, r.page)
	}
	return words, nil
}

// unread returns the pictures of a page that cover a share of it at least, and have no text.
func (p *page) unread(words []arrange.Word, share float64) []mapreduce.Box {
	var unread []mapreduce.Box
	for _, b := range p.images {
		b.Left, b.Top, b.Right, b.Bottom = max(b.Left, 0), max(b.Top, 0), min(b.Right, p.width), min(b.Bottom, p.height)
		if b.Right <= b.Left || b.Bottom <= b.Top || areaOf(b) < share*p.width*p.height {
			continue
		}

		covered := 0.0
		for _, w := range words {
			if overlaps(w.Box, b) {
				covered += areaOf(w.Box)
			}
		}
		// A picture may be cut into stripes, or drawn twice.
		inside := slices.ContainsFunc(unread, func(other mapreduce.Box) bool { return overlaps(b, other) })
		if covered < searchable*areaOf(b) && !inside {
			unread = append(unread, b)
		}
	}
	return unread
}

// readImage has OCR read what the picture of a page shows in a box.
func (r *reading) readImage(p *page, picture *image.Gray, scale float64, at mapreduce.Box) ([]arrange.Word, error) {
	part := image.Rect(int(at.Left*scale), int(at.Top*scale), int(math.Ceil(at.Right*scale)), int(math.Ceil(at.Bottom*scale))).Intersect(picture.Rect)
	if part.Empty() {
		return nil, nil
	}
	cut := image.NewGray(image.Rect(0, 0, part.Dx(), part.Dy()))
	for y := range part.Dy() {
		copy(cut.Pix[y*cut.Stride:], picture.Pix[(part.Min.Y+y)*picture.Stride+part.Min.X:][:part.Dx()])
	}

	found, err := r.recogniseIn(p, cut, scale)
	if err != nil {
		return nil, err
	}
	all := make([]arrange.Word, len(found.Words))
	for i, w := range found.Words {
		b := found.Place(w.Box)
		b = recognise.Box{Left: b.Left + float64(part.Min.X), Top: b.Top + float64(part.Min.Y), Right: b.Right + float64(part.Min.X), Bottom: b.Bottom + float64(part.Min.Y)}
		all[i] = arrange.Word{Text: w.Text, Line: w.Line, Sure: w.Certainty(), Box: inPoints(b, p.number, scale)}
		r.sure.add(w.Sure)
	}
	return all, nil
}

// appendLines returns words, and behind them others in lines of their own.
func appendLines(words, more []arrange.Word) []arrange.Word {
	words = slices.Clip(words)
	from := words[len(words)-1].Line + 1
	for _, w := range more {
		w.Line += from
		words = append(words, w)
	}
	return words
}

// overlaps reports whether the middle of a box is in another one.
func overlaps(a, b mapreduce.Box) bool {
	x, y := (a.Left+a.Right)/2, (a.Top+a.Bottom)/2
	return x >= b.Left && x <= b.Right && y >= b.Top && y <= b.Bottom
}

// areaOf returns what a box covers, in square points.
func areaOf(b mapreduce.Box) float64 { return (b.Right - b.Left) * (b.Bottom - b.Top) }
