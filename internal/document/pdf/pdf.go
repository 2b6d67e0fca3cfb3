// Package pdf is the format of PDF files. PDFium reads them, in WebAssembly: without file
// system, within bounds of memory and time, an instance a document. The text is in
// reading order, which package arrange finds. Its layout has a box for each word, as a viewer shows the page. Fields
// of forms and annotations follow on the text of their page. An engine of package recognise reads
// pages that are pictures, if there is one.
package pdf

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// Kind is the name of the format.
const Kind document.Kind = "pdf"

// A Config bounds what a document may take. Zero fields take the defaults.
type Config struct {
	Password string           // of encrypted documents
	OCR      recognise.Engine // reads pages that are pictures. Nil if none is to
	// Pictures is the share of a page that a picture covers, at least, to be read beside the text
	// of the page. Defaults to half of it; what is above 1 reads none.
	Pictures  float64
	MaxBytes  int64         // of a document. Defaults to 256 MiB
	MaxPages  int           // of a document. Defaults to 10,000
	MaxText   int64         // bytes of text of a document. Defaults to 64 MiB
	MaxMemory int64         // bytes that PDFium may use for a document. Defaults to 256 MiB
	MaxTime   time.Duration // of a processor, to draw pages of a document. Defaults to 30 s
	CacheDir  string        // of compiled code. Defaults to a folder in the user's cache
	// Turns are those in which pages are drawn: documents are read in those of their registry.
	// Defaults to turns of its own.
	Turns *document.Turns
}

func (c Config) withDefaults() Config {
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.MaxPages = cmp.Or(c.MaxPages, 10_000)
	c.MaxText = cmp.Or(c.MaxText, 64<<20)
	c.MaxMemory = cmp.Or(c.MaxMemory, 256<<20)
	c.MaxTime = cmp.Or(c.MaxTime, 30*time.Second)
	c.Pictures = cmp.Or(c.Pictures, 0.5)
	if c.Turns == nil {
		c.Turns = document.NewTurns(0)
	}
	return c
}

// limits returns those that inputs may lower.
func (c Config) limits() document.Limits {
	return document.Limits{Bytes: c.MaxText, Pages: c.MaxPages}
}

// A Reader reads PDF files. It is safe for concurrent use.
type Reader struct {
	config Config
	engine *engine
}

// New returns a reader of PDF files. PDFium starts with the first.
func New(c Config) *Reader {
	c = c.withDefaults()
	return &Reader{config: c, engine: &engine{config: c}}
}

// Close frees what the reader holds. No document may be being read.
func (r *Reader) Close() error { return r.engine.close() }

// Format returns the format, whose documents r reads.
func (r *Reader) Format() document.Format {
	return document.Format{
		Kind: Kind, MediaTypes: []string{"application/pdf", "application/x-pdf"}, Extensions: []string{".pdf"},
		Sniff: sniff, Parse: r.Parse,
	}
}

// Is reports whether data begin as a PDF file does.
func Is(data []byte) bool {
	return sniff(data[:min(len(data), document.SniffBytes)]) == document.Certain
}

// sniff finds the beginning of a PDF file, before which some producers write other bytes.
func sniff(begin []byte) document.Match {
	switch at := bytes.Index(begin[:min(len(begin), 1024)], []byte("%PDF-")); {
	case at < 0:
		return document.Excluded
	case at == 0 || len(document.TrimBegin(begin[:at])) == 0:
		return document.Certain
	}
	return document.Possible // a text may mention it
}

// Parse reads one document. The error is a document.RefusedError, which says why, of one
// that cannot be read or is beyond the bounds.
func (r *Reader) Parse(ctx context.Context, in document.Input) (*document.Document, error) {
	data, err := io.ReadAll(io.LimitReader(in.Content, r.config.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("pdf: %w", err)
	}

	if int64(len(data)) > r.config.MaxBytes {
		return nil, document.Refuse("a PDF file of more than %d bytes", r.config.MaxBytes)
	}

	limits := in.Limits.Within(r.config.limits())
	d := &reading{reader: r, ctx: ctx, limits: limits, name: in.Name, wait: in.Wait, shown: in.Shown}
	err = d.read(data)
	if why := d.refusal(err); why != nil {
		return nil, why
	}

	return d.result()
}

// refusal returns the error of a document from that of reading it.
func (r *reading) refusal(err error) error {
	refused := new(document.RefusedError)
	switch cause := context.Cause(r.ctx); {
	case err == nil:
		return nil
	case cause != nil && !errors.Is(cause, document.ErrTime):
		return cause
	case cause != nil:
		return document.Refuse("a PDF file that takes longer than %v to read (--document-time), up to page %d of %d", r.limits.Time, r.page, r.pages)
	case errors.As(err, &refused):
		return err
	case errors.Is(err, errPassword) && r.reader.config.Password != "":
		return document.Refuse("an encrypted PDF file, which the password does not open")
	case errors.Is(err, errPassword):
		return document.Refuse("an encrypted PDF file: give its password (--password)")
	case errors.Is(err, errSecurity):
		return document.Refuse("a PDF file encrypted in a way that is not known")
	case errors.Is(err, errFormat), errors.Is(err, errPage):
		return document.Refuse("a damaged PDF file: %v", err)
	}

	// Whatever else PDFium says is of its sandbox: memory that is used up, or a trap.
	return document.Refuse("a PDF file that cannot be read, or not within %d MiB of memory (--document-memory), from page %d of %d on: %.200v",
		r.reader.config.MaxMemory>>20, r.page, r.pages, err)
}

// What PDFium says of a document that it cannot open.
var (
	errFormat   = errors.New("it is cut off, or not of the format")
	errPage     = errors.New("a page is missing")
	errPassword = errors.New("it needs a password")
	errSecurity = errors.New("it is encrypted in an unknown way")
)

// openErrors are these errors by their numbers (FPDF_ERR_… in fpdfview.h).
var openErrors = map[int]error{2: errFormat, 3: errFormat, 4: errPassword, 5: errSecurity, 6: errPage}

// A reading is one document that is being read.
type reading struct {
	reader *Reader
	limits document.Limits // bytes of text, time and pages
	name   string
	ctx    context.Context // of the reading, which is one task
	wait   document.Waiter // runs waits for OCR; may be nil
	shown  bool            // models are shown its pages
	pdfium *instance
	handle uint64 // of the document
	form   uint64 // what knows the fields of its forms; 0 if none was asked for yet
	page   int    // that is being read, counted from 1; 0 before
	pages  int
	title  string // in its properties

	contents uint64 // address of the name of what annotations say; 0 at first

	text     arrange.Text
	before   []arrange.Row // of the page before
	empty    []int         // pages without text
	pictures []int         // pages that OCR has read
	mixed    []int         // pages of which OCR has read pictures beside text
	lying    []int         // pages whose fonts do not say what their glyphs are, and that OCR has not read
	certain  int           // words of the other pages
	outside  int           // words that stand outside of their pages
	undrawn  []int         // pages of whose lines some were not looked at
	sure     confidence
}

// read reads all pages.
func (r *reading) read(data []byte) error {
	end, err := r.open(data)
	if err != nil {
		return err
	}
	defer end()

	r.title = r.readTitle()

	for r.page = 1; r.page <= r.pages; r.page++ {
		if err := r.readPage(); err != nil {
			return err
		}
	}

	return nil
}

// open opens the document. The caller must call end if there is no error.
func (r *reading) open(data []byte) (end func(), err error) {
	if len(data) == 0 {
		return nil, document.ErrNoText
	}

	p, end, err := r.reader.engine.newInstance(r.ctx, data)
	if err != nil {
		return nil, err
	}

	r.pdfium = p

	if err := r.openWith(data); err != nil {
		end()
		return nil, err
	}

	return end, nil
}

// readTitle returns the title in the properties of the file.
func (r *reading) readTitle() string {
	name := r.pdfium.cString("Title")
	defer r.pdfium.call("free", name)
	return r.pdfium.text(func(buffer, size uint64) uint64 {
		return r.pdfium.call("FPDF_GetMetaText", r.handle, name, buffer, size)
	})
}

// openWith opens the document, and counts its pages.
func (r *reading) openWith(data []byte) error {
	password := uint64(0)
	if r.reader.config.Password != "" {
		password = r.pdfium.cString(r.reader.config.Password)
	}

	file := r.pdfium.call("FPDF_FILEACCESS_Create", integer(len(data)), 0)
	if r.handle = r.pdfium.call("FPDF_LoadCustomDocument", file, password); r.handle == 0 {
		why := openErrors[asInteger(r.pdfium.call("FPDF_GetLastError"))]
		return cmp.Or(r.pdfium.gone, why, errFormat)
	}

	r.pages = asInteger(r.pdfium.call("FPDF_GetPageCount", r.handle))
	if r.pages > r.limits.Pages {
		return document.Refuse("a PDF file of %d pages, more than the %d that are read (--document-pages)", r.pages, r.limits.Pages)
	}

	return r.pdfium.gone
}

// readPage adds the text of a page.
func (r *reading) readPage() error {
	p := load(r.pdfium, r.handle, r.page)
	if p == nil {
		r.empty, r.before = append(r.empty, r.page), nil // the others may be readable
		return r.pdfium.gone
	}

	defer p.close()

	if err := p.measure(); err != nil {
		return err
	}

	words, lattices, err := r.readWords(p)
	if err != nil {
		return err
	}

	words, outside := p.onPage(words)
	r.outside += outside
	if words, err = r.readPicture(p, words); err != nil {
		return err
	}

	notes, err := r.readNotes(p)
	if err != nil {
		return err
	}

	if len(words)+len(notes) == 0 {
		r.empty = append(r.empty, r.page)
		if r.shown {
			r.text.AddUnread(r.page)
		}
	}

	rows := arrange.Rows(words, lattices)
	// A table that goes on from the page before takes its heads, so this is done before the
	// rows are written.
	arrange.GoOn(r.before, rows)
	r.before = rows

	from := len(r.text.Layout)
	r.text.AddPage(r.page, rows, notes)
	p.turnBack(r.text.Layout[from:])
	if p.place != nil {
		p.placeBack(r.text.Layout[from:], notes)
	}

	if int64(r.text.Len()) > r.limits.Bytes {
		return document.Refuse("a PDF file with more than %d bytes of text (--document-bytes), on page %d of %d", r.limits.Bytes, r.page, r.pages)
	}

	return nil
}

// readWords returns the words and the tables with lines of a page, which it turns if its text is.
func (r *reading) readWords(p *page) (words []arrange.Word, lattices []*arrange.Lattice, err error) {
	lines := p.readRulings()
	words, err = p.words(lines.Lattices())
	if err == nil && p.askew > 0 && !p.lies {
		p.turn(p.askew)
		lines = p.readRulings()
	}
	if lines.Cut {
		r.undrawn = append(r.undrawn, r.page)
	}

	lattices = lines.Lattices()
	if p.turned > 0 {
		words, err = p.words(lattices)
	}
	return words, lattices, err
}

// readPicture has OCR read a page without text, and one whose fonts lie. It returns the words of
// the page, which are those of the file if there is no program for OCR, or if it finds none.
func (r *reading) readPicture(p *page, words []arrange.Word) ([]arrange.Word, error) {
	if r.sees() && (p.lies || len(words) == 0) {
		document.GrantTime(r.ctx, timeOfPicture)
		seen, err := r.recognise(p)
		if err != nil {
			return nil, err
		}
		if len(seen) > 0 {
			r.pictures = append(r.pictures, r.page)
			return seen, nil
		}
	}

	if p.lies {
		r.lying = append(r.lying, r.page)
		for range words {
			r.sure.add(sureOfLies)
		}
		return words, nil
	}

	r.certain += len(words)
	return r.readImages(p, words)
}

// timeOfPicture is the time of a processor that a page which is a picture adds to that of the
// document: to draw it takes longer than to read a page of text.
const timeOfPicture = 5 * time.Second

// sees reports whether there is what reads pictures.
func (r *reading) sees() bool {
	return r.reader.config.OCR != nil && r.reader.config.OCR.Missing() == ""
}

// adviseReader says why pages that are pictures were not read, and what to do.
func (r *reading) adviseReader() string {
	if engine := r.reader.config.OCR; engine != nil {
		return engine.Missing()
	}
	return "no text is to be recognised (--ocr never)"
}

// sureOfLies is how sure the text of a page is whose fonts lie.
const sureOfLies = 0.05

// confidence returns how sure the text is: that of OCR, or if fonts lie, that of all words.
func (r *reading) confidence() float64 {
	sure := r.sure
	if len(r.lying) > 0 {
		sure.sum, sure.words = sure.sum+float64(r.certain), sure.words+r.certain
	}
	return sure.meanOf()
}

// result returns the document.
func (r *reading) result() (*document.Document, error) {
	switch {
	case r.shown && r.text.Len() > 0: // whoever is shown its pages reads them
	case len(r.empty) == r.pages && r.sees():
		return nil, document.Refuse("a PDF file of %s without text, in which OCR found none", countPages(r.pages))
	case len(r.empty) == r.pages:
		return nil, document.Refuse("a PDF file of %s without text: they may be pictures, but %s", countPages(r.pages), r.adviseReader())
	}

	doc := &document.Document{Text: r.text.String(), Layout: r.text.Layout, Confidence: r.confidence(), Title: r.title}

	if n := len(r.empty); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %s have no text, page %d first", n, countPages(r.pages), r.empty[0]))
	}
	if n := len(r.pictures); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %s were read by OCR, page %d first, with a confidence of %.2f", n, countPages(r.pages), r.pictures[0], doc.Confidence))
	}
	if n := len(r.mixed); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("pictures on %d of %s were read by OCR beside their text, page %d first, with a confidence of %.2f", n, countPages(r.pages), r.mixed[0], doc.Confidence))
	}
	if n := len(r.lying); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("the fonts of %d of %s do not say what their letters are, so that their text is that of no language, page %d first: they can be read as pictures, but %s", n, countPages(r.pages), r.lying[0], r.adviseReader()))
	}
	if n := r.outside; n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d words that stand outside of their pages are left out", n))
	}
	if n := len(r.undrawn); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %s have more lines and figures than are looked at for tables, page %d first", n, countPages(r.pages), r.undrawn[0]))
	}

	return doc, nil
}

func countPages(n int) string {
	if n == 1 {
		return "1 page"
	}
	return fmt.Sprintf("%d pages", n)
}

// A confidence sums up how sure words of OCR are.
type confidence struct {
	sum   float64
	words int
}

func (c *confidence) add(sure float64) { c.sum, c.words = c.sum+sure, c.words+1 }

// meanOf returns the mean; 0, which is certain, of none.
func (c *confidence) meanOf() float64 {
	if c.words == 0 {
		return 0
	}
	return max(c.sum/float64(c.words), 0.01)
}
