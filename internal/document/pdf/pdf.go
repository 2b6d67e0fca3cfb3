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
func (d *reading) refusal(err error) error {
	refused := new(document.RefusedError)
	switch cause := context.Cause(d.ctx); {
	case err == nil:
		return nil
	case cause != nil && !errors.Is(cause, document.ErrTime):
		return cause
	case cause != nil:
		return document.Refuse("a PDF file that takes longer than %v to read (--document-time), up to page %d of %d", d.limits.Time, d.page, d.pages)
	case errors.As(err, &refused):
		return err
	case errors.Is(err, errPassword) && d.reader.config.Password != "":
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
		d.reader.config.MaxMemory>>20, d.page, d.pages, err)
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
func (d *reading) read(data []byte) error {
	end, err := d.open(data)
	if err != nil {
		return err
	}
	defer end()

	d.title = d.readTitle()

	for d.page = 1; d.page <= d.pages; d.page++ {
		if err := d.readPage(); err != nil {
			return err
		}
	}

	return nil
}

// open opens the document. The caller must call end if there is no error.
func (d *reading) open(data []byte) (end func(), err error) {
	if len(data) == 0 {
		return nil, document.ErrNoText
	}

	p, end, err := d.reader.engine.newInstance(d.ctx, data)
	if err != nil {
		return nil, err
	}

	d.pdfium = p

	if err := d.openWith(data); err != nil {
		end()
		return nil, err
	}

	return end, nil
}

// readTitle returns the title in the properties of the file.
func (d *reading) readTitle() string {
	name := d.pdfium.cString("Title")
	defer d.pdfium.call("free", name)
	return d.pdfium.text(func(buffer, size uint64) uint64 {
		return d.pdfium.call("FPDF_GetMetaText", d.handle, name, buffer, size)
	})
}

// openWith opens the document, and counts its pages.
func (d *reading) openWith(data []byte) error {
	password := uint64(0)
	if d.reader.config.Password != "" {
		password = d.pdfium.cString(d.reader.config.Password)
	}

	file := d.pdfium.call("FPDF_FILEACCESS_Create", integer(len(data)), 0)
	if d.handle = d.pdfium.call("FPDF_LoadCustomDocument", file, password); d.handle == 0 {
		why := openErrors[asInteger(d.pdfium.call("FPDF_GetLastError"))]
		return cmp.Or(d.pdfium.gone, why, errFormat)
	}

	d.pages = asInteger(d.pdfium.call("FPDF_GetPageCount", d.handle))
	if d.pages > d.limits.Pages {
		return document.Refuse("a PDF file of %d pages, more than the %d that are read (--document-pages)", d.pages, d.limits.Pages)
	}

	return d.pdfium.gone
}

// readPage adds the text of a page.
func (d *reading) readPage() error {
	p := load(d.pdfium, d.handle, d.page)
	if p == nil {
		d.empty, d.before = append(d.empty, d.page), nil // the others may be readable
		return d.pdfium.gone
	}

	defer p.close()

	if err := p.measure(); err != nil {
		return err
	}

	words, lattices, err := d.readWords(p)
	if err != nil {
		return err
	}

	words, outside := p.onPage(words)
	d.outside += outside
	if words, err = d.readPicture(p, words); err != nil {
		return err
	}

	notes, err := d.readNotes(p)
	if err != nil {
		return err
	}

	if len(words)+len(notes) == 0 {
		d.empty = append(d.empty, d.page)
		if d.shown {
			d.text.AddUnread(d.page)
		}
	}

	rows := arrange.Rows(words, lattices)
	// A table that goes on from the page before takes its heads, so this is done before the
	// rows are written.
	arrange.GoOn(d.before, rows)
	d.before = rows

	from := len(d.text.Layout)
	d.text.AddPage(d.page, rows, notes)
	p.turnBack(d.text.Layout[from:])
	if p.place != nil {
		p.placeBack(d.text.Layout[from:], notes)
	}

	if int64(d.text.Len()) > d.limits.Bytes {
		return document.Refuse("a PDF file with more than %d bytes of text (--document-bytes), on page %d of %d", d.limits.Bytes, d.page, d.pages)
	}

	return nil
}

// readWords returns the words and the tables with lines of a page, which it turns if its text is.
func (d *reading) readWords(p *page) (words []arrange.Word, lattices []*arrange.Lattice, err error) {
	lines := p.readRulings()
	words, err = p.words(lines.Lattices())
	if err == nil && p.askew > 0 && !p.lies {
		p.turn(p.askew)
		lines = p.readRulings()
	}
	if lines.Cut {
		d.undrawn = append(d.undrawn, d.page)
	}

	lattices = lines.Lattices()
	if p.turned > 0 {
		words, err = p.words(lattices)
	}
	return words, lattices, err
}

// readPicture has OCR read a page without text, and one whose fonts lie. It returns the words of
// the page, which are those of the file if there is no program for OCR, or if it finds none.
func (d *reading) readPicture(p *page, words []arrange.Word) ([]arrange.Word, error) {
	if d.sees() && (p.lies || len(words) == 0) {
		document.GrantTime(d.ctx, timeOfPicture)
		seen, err := d.recognise(p)
		if err != nil {
			return nil, err
		}
		if len(seen) > 0 {
			d.pictures = append(d.pictures, d.page)
			return seen, nil
		}
	}

	if p.lies {
		d.lying = append(d.lying, d.page)
		for range words {
			d.sure.add(sureOfLies)
		}
		return words, nil
	}

	d.certain += len(words)
	return d.readImages(p, words)
}

// timeOfPicture is the time of a processor that a page which is a picture adds to that of the
// document: to draw it takes longer than to read a page of text.
const timeOfPicture = 5 * time.Second

// sees reports whether there is what reads pictures.
func (d *reading) sees() bool {
	return d.reader.config.OCR != nil && d.reader.config.OCR.Missing() == ""
}

// adviseReader says why pages that are pictures were not read, and what to do.
func (d *reading) adviseReader() string {
	if engine := d.reader.config.OCR; engine != nil {
		return engine.Missing()
	}
	return "no text is to be recognised (--ocr never)"
}

// sureOfLies is how sure the text of a page is whose fonts lie.
const sureOfLies = 0.05

// confidence returns how sure the text is: that of OCR, or if fonts lie, that of all words.
func (d *reading) confidence() float64 {
	sure := d.sure
	if len(d.lying) > 0 {
		sure.sum, sure.words = sure.sum+float64(d.certain), sure.words+d.certain
	}
	return sure.meanOf()
}

// result returns the document.
func (d *reading) result() (*document.Document, error) {
	switch {
	case d.shown && d.text.Len() > 0: // whoever is shown its pages reads them
	case len(d.empty) == d.pages && d.sees():
		return nil, document.Refuse("a PDF file of %s without text, in which OCR found none", countPages(d.pages))
	case len(d.empty) == d.pages:
		return nil, document.Refuse("a PDF file of %s without text: they may be pictures, but %s", countPages(d.pages), d.adviseReader())
	}

	doc := &document.Document{Text: d.text.String(), Layout: d.text.Layout, Confidence: d.confidence(), Title: d.title}

	if n := len(d.empty); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %s have no text, page %d first", n, countPages(d.pages), d.empty[0]))
	}
	if n := len(d.pictures); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %s were read by OCR, page %d first, with a confidence of %.2f", n, countPages(d.pages), d.pictures[0], doc.Confidence))
	}
	if n := len(d.mixed); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("pictures on %d of %s were read by OCR beside their text, page %d first, with a confidence of %.2f", n, countPages(d.pages), d.mixed[0], doc.Confidence))
	}
	if n := len(d.lying); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("the fonts of %d of %s do not say what their letters are, so that their text is that of no language, page %d first: they can be read as pictures, but %s", n, countPages(d.pages), d.lying[0], d.adviseReader()))
	}
	if n := d.outside; n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d words that stand outside of their pages are left out", n))
	}
	if n := len(d.undrawn); n > 0 {
		doc.Notes = append(doc.Notes, fmt.Sprintf("%d of %s have more lines and figures than are looked at for tables, page %d first", n, countPages(d.pages), d.undrawn[0]))
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
