// Package picture is the formats of pictures: JPEG, PNG, TIFF of many pages, WebP, GIF and BMP. An
// engine of package recognise finds the words in them; the text is in the order in which people
// read it, which package arrange finds. Its layout has a box for each word, in pixels of the
// picture as a viewer shows it, that is turned as its EXIF data say.
//
// A picture is decoded only if its header says that it has no more pixels, and needs no more
// memory, than the configuration allows. What decodes them is Go, so no picture reaches memory that
// is not its own; the engine sees nothing but the shades of decoded pixels.
package picture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// A Config bounds what a picture may take. Zero fields take the defaults.
type Config struct {
	// Engine reads pictures. Nil refuses all.
	Engine    recognise.Engine
	MaxBytes  int64 // of a file. Defaults to 64 MiB
	MaxPixels int64 // of a page. Defaults to 64 million
	MaxMemory int64 // bytes that a page takes while it is decoded. Defaults to 256 MiB
}

func (c Config) withDefaults() Config {
	c.MaxBytes, c.MaxPixels, c.MaxMemory = cmp.Or(c.MaxBytes, document.DefaultMaxBytes), cmp.Or(c.MaxPixels, 64_000_000), cmp.Or(c.MaxMemory, 256<<20)
	return c
}

// A Reader reads pictures. It is safe for concurrent use.
type Reader struct{ config Config }

// New returns a reader of pictures.
func New(c Config) *Reader { return &Reader{c.withDefaults()} }

// Formats returns the formats, whose documents r reads.
func (r *Reader) Formats() []document.Format {
	all := make([]document.Format, 0, len(codecs))
	for i := range codecs {
		c := &codecs[i]
		all = append(all, document.Format{
			Kind: c.kind, MediaTypes: c.mediaTypes, Extensions: c.extensions, Sniff: c.sniff,
			Parse: func(ctx context.Context, in document.Input) (*document.Document, error) { return r.parse(ctx, c, in) },
		})
	}
	return all
}

// parse reads one document.
func (r *Reader) parse(ctx context.Context, c *codec, in document.Input) (*document.Document, error) {
	switch engine := r.config.Engine; {
	case in.Shown: // to whoever is to read it
	case engine == nil:
		return nil, document.Refuse("%s, whose text is not to be recognised (--ocr never)", c.name)
	case engine.Missing() != "":
		return nil, document.Refuse("%s, whose text is to be recognised, but %s", c.name, engine.Missing())
	}

	data, err := io.ReadAll(io.LimitReader(in.Content, r.config.MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("picture: %w", err)
	case int64(len(data)) > r.config.MaxBytes:
		return nil, document.Refuse("%s of more than %d bytes (--document-bytes)", c.name, r.config.MaxBytes)
	}

	d := &reading{reader: r, codec: c, in: in, limits: in.Limits.WithDefaults()}
	if err := d.read(ctx, data); err != nil {
		return nil, err
	}
	return d.result()
}

// Recognise returns the text of a picture within a document: of its first page, if it has several. What an
// engine makes up of a photograph is none. A picture that is not read is a document.RefusedError.
func (r *Reader) Recognise(ctx context.Context, data []byte, wait document.Waiter) (*document.Recognised, error) {
	at := slices.IndexFunc(codecs[:], func(c codec) bool { return c.begins(data) })
	switch engine := r.config.Engine; {
	case at < 0:
		return nil, document.Refuse("a picture of a format that is not read")
	case engine == nil:
		return nil, document.Refuse("text is not to be recognised (--ocr never)")
	case engine.Missing() != "":
		return nil, document.Refuse("%s", engine.Missing())
	}

	d := &reading{reader: r, codec: &codecs[at], in: document.Input{Wait: wait}, limits: document.Limits{}.WithDefaults()}
	pages, err := d.codec.pages(data, d.limits.Pages)
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, document.Refuse("%s without a page", d.codec.name)
	}
	d.pages = 1
	if err := d.readPage(ctx, 1, pages[0]); err != nil {
		return nil, err
	}
	if len(d.damaged) > 0 {
		return nil, document.Refuse("%s that is damaged, or of a kind that is not read: %v", d.codec.name, d.why)
	}

	found := &document.Recognised{Sure: recognise.Sure(d.words)}
	if found.Sure >= madeUp {
		found.Lines = d.lines()
	}
	return found, nil
}

// lines returns the lines of the text, each as sure as its word that is least so.
func (r *reading) lines() []document.RecognisedLine {
	var lines []document.RecognisedLine
	at, parts := 0, r.text.Layout
	for text := range strings.Lines(r.text.String()) {
		line := document.RecognisedLine{Text: strings.TrimSpace(text), Sure: 1}
		at += len(text)
		for ; len(parts) > 0 && parts[0].Start < at; parts = parts[1:] {
			if sure := parts[0].Location.Recognised; sure > 0 {
				line.Sure = min(line.Sure, sure)
			}
		}

		if line.Text != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// A reading is one document that is being read.
type reading struct {
	reader *Reader
	codec  *codec
	in     document.Input
	limits document.Limits

	text    arrange.Text
	pages   int
	empty   []int // pages without text
	damaged []int // pages that were not decoded
	why     error // of the first of them
	moves   bool  // it is the first picture of several that are shown after each other
	words   []recognise.Word
}

// read reads all pages.
func (r *reading) read(ctx context.Context, data []byte) error {
	pages, err := r.codec.pages(data, r.limits.Pages)
	if err != nil {
		return err
	}

	r.pages, r.moves = len(pages), r.codec.kind == "gif" && isAnimation(data)
	for i, p := range pages {
		if err := r.readPage(ctx, i+1, p); err != nil {
			return err
		}
		if int64(r.text.Len()) > r.limits.Bytes {
			return document.Refuse("%s with more than %d bytes of text (--document-bytes), on page %d of %d", r.codec.name, r.limits.Bytes, i+1, r.pages)
		}
	}
	return nil
}

// timeOfPage is the time of a processor that each page adds to that of the document: to decode and
// straighten a picture takes longer than to read a page of text.
const timeOfPage = 5 * time.Second

// readPage adds the text of a page. One that is damaged is left out, as the others may be sound.
func (r *reading) readPage(ctx context.Context, number int, from source) error {
	document.GrantTime(ctx, timeOfPage)
	shades, err := r.reader.decode(ctx, r.codec, from)
	if refused := new(document.RefusedError); errors.As(err, &refused) || ctx.Err() != nil {
		return cmp.Or(r.outOfTime(ctx, number), err)
	}
	if err != nil {
		r.damaged, r.why = append(r.damaged, number), cmp.Or(r.why, err)
		return nil
	}

	engine := r.reader.config.Engine
	if engine == nil || engine.Missing() != "" {
		r.addUnread(number)
		return nil
	}
	page := recognise.Page{Picture: shades}
	if r.in.Wait != nil {
		page.Wait = r.in.Wait
	}
	found, err := recognise.Read(ctx, engine, page)
	switch {
	case ctx.Err() != nil:
		return r.outOfTime(ctx, number)
	case err != nil && r.pages > 1:
		return document.Refuse("%s whose page %d %s did not read: %v", r.codec.name, number, engine.Name(), err)
	case err != nil:
		return document.Refuse("%s, which %s did not read: %v", r.codec.name, engine.Name(), err)
	case len(found.Words) == 0:
		r.addUnread(number)
		return nil
	}

	r.words = append(r.words, found.Words...)
	r.addPage(number, found)
	return nil
}

// addUnread notes a page in which no text was recognised.
func (r *reading) addUnread(number int) {
	r.empty = append(r.empty, number)
	if r.in.Shown {
		r.text.AddUnread(number)
	}
}

// outOfTime returns why ctx has ended; nil if it has not.
func (r *reading) outOfTime(ctx context.Context, number int) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, document.ErrTime):
		return document.Refuse("%s that takes longer than %v to read (--document-time), up to page %d of %d", r.codec.name, r.limits.Time, number, r.pages)
	default:
		return cause
	}
}

// usual is how high a word is, in points, of a page for which package arrange is made.
const usual = 9

// addPage adds the words of a page in the order in which people read them. Package arrange has
// points in mind, so the page has a size at which its words are as high as those of most documents.
func (r *reading) addPage(number int, found *recognise.Found) {
	words := found.Words
	heights := make([]float64, len(words))
	for i, w := range words {
		heights[i] = w.Box.Bottom - w.Box.Top
	}
	slices.Sort(heights)
	scale := usual / heights[len(heights)/2]

	all := make([]arrange.Word, len(words))
	for i, w := range words {
		all[i] = arrange.Word{Text: w.Text, Line: w.Line, Sure: w.Certainty(), Box: mapreduce.Box{
			Page: number, Left: arrange.Within(w.Box.Left * scale), Top: arrange.Within(w.Box.Top * scale),
			Right: arrange.Within(w.Box.Right * scale), Bottom: arrange.Within(w.Box.Bottom * scale),
		}}
	}

	from := len(r.text.Layout)
	r.text.AddPage(number, arrange.Rows(all, nil), nil)
	for i := range r.text.Layout[from:] {
		box := &r.text.Layout[from+i].Box
		at := found.Place(recognise.Box{Left: box.Left / scale, Top: box.Top / scale, Right: box.Right / scale, Bottom: box.Bottom / scale})
		box.Left, box.Top, box.Right, box.Bottom = at.Left, at.Top, at.Right, at.Bottom
	}
}

// How sure words of a document are together below which a note says what may be the reason, and below
// which they are what an engine makes up of photographs without text: fewer than one word in five is right.
const (
	doubtful = 0.5
	madeUp   = 0.3
)

// result returns the document.
func (r *reading) result() (*document.Document, error) {
	switch n := len(r.damaged); {
	case n == r.pages:
		return nil, document.Refuse("%s that is damaged, or of a kind that is not read: %v", r.codec.name, r.why)
	case r.in.Shown && (len(r.words) == 0 || recognise.Sure(r.words) < madeUp):
		return r.unread(), nil
	case len(r.words) > 0 && recognise.Sure(r.words) < madeUp:
		return nil, document.Refuse("%s in which %s found no text that it is sure of (%.2f): it may be blurred, or its text of a language that was not named (--ocr-lang)",
			r.codec.name, r.reader.config.Engine.Name(), recognise.Sure(r.words))
	case len(r.words) == 0:
		return nil, document.Refuse("%s in which %s found no text", r.codec.name, r.reader.config.Engine.Name())
	}

	doc := &document.Document{Text: r.text.String(), Layout: r.text.Layout, Confidence: max(recognise.Sure(r.words), 0.01)}
	doc.Notes = append(doc.Notes, fmt.Sprintf("read by %s, with a confidence of %.2f", r.reader.config.Engine.Name(), doc.Confidence))
	if doc.Confidence < doubtful {
		doc.Notes[0] += ": the picture may be blurred, or its text of a language that was not named (--ocr-lang)"
	}
	if n := len(r.empty); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("no text was found on %d of %d pages, page %d first", n, r.pages, r.empty[0]))
	}
	if n := len(r.damaged); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %d pages are damaged, or of a kind that is not read, page %d first: %v", n, r.pages, r.damaged[0], r.why))
	}
	if r.moves {
		doc.Notes = append(doc.Notes, "of an animation the first picture was read, and none of the others")
	}
	return doc, nil
}

// unread returns a document in which no text was recognised, for whoever is shown its pages. Words that
// an engine makes up of a photograph would only mislead them.
func (r *reading) unread() *document.Document {
	var text arrange.Text
	for page := range r.pages {
		if !slices.Contains(r.damaged, page+1) {
			text.AddUnread(page + 1)
		}
	}
	return &document.Document{
		Text: text.String(), Layout: text.Layout, Confidence: 0.01,
		Notes: []string{"no text was recognised in it; a model may be shown its pages (--see)"},
	}
}
