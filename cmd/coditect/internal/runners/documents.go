package runners

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/compound"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/mail"
	"github.com/coditect/mapreduce/internal/document/ooxml"
	"github.com/coditect/mapreduce/internal/document/opendocument"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/program"
	"github.com/coditect/mapreduce/internal/document/recognise"
	"github.com/coditect/mapreduce/internal/document/rtf"
	"github.com/coditect/mapreduce/internal/document/xmlfile"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// documentFlags are the flags that say how documents are read, and what each may take.
type documentFlags struct {
	password string
	ocr      string
	ocrLang  string
	images   string
	convert  string
	html     string
	pages    int
	memory   int64 // MiB
	time     time.Duration
	bytes    int64 // MiB
	entries  int
	unpacked int64 // MiB
	ratio    int64
	nesting  int
	cells    int
}

// AddFlags adds the flags of commands whose process may parse documents.
func (d *documentFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&d.password, "password", "", "password of encrypted PDF files")

	f.StringVar(&d.ocr, "ocr", ocrAuto, "`what` recognises text in pictures and scanned pages: \"auto\" (Tesseract, where it is installed), \"tesseract\" (which must be), \"never\", or a command such as \"tesseract - - tsv\", which gets a PNG on standard input, and writes text or Tesseract's TSV to standard output")
	f.StringVar(&d.ocrLang, "ocr-lang", "", "`languages` of text in pictures, as Tesseract names them, such as \"deu\" or \"eng+fra\" (default eng)")
	f.StringVar(&d.images, "images", "scans", "`which` pictures within PDF pages that have text, DOCX documents and slides are read, too: \"scans\" (those that cover most of the page), \"all\" (but for small ones) or \"never\"")

	f.StringVar(&d.convert, "convert", "never", "`when` LibreOffice converts documents that are not read otherwise, such as .ppt: \"auto\" (where it is installed) or \"never\"")
	f.StringVar(&d.html, "html", "main", "`part` of web pages to read: \"main\" (without navigation and advertisements) or \"full\"")

	// Documents come from anybody: these bound what one may take of the process that reads it.
	f.IntVar(&d.pages, "document-pages", 10_000, "largest number of pages of a document")
	f.Int64Var(&d.memory, "document-memory", 256, "largest amount of memory for reading a document, in MiB")
	f.DurationVar(&d.time, "document-time", 30*time.Second, "longest time of a processor for reading a document, without waits and the work of --ocr")
	f.Int64Var(&d.bytes, "document-bytes", mostBytes, "largest size of a document, and of its text, in MiB")
	f.IntVar(&d.entries, "document-entries", 10_000, "largest number of entries of a packed document, such as DOCX")
	f.Int64Var(&d.unpacked, "document-unpacked", 256, "largest size of a packed document when it is unpacked, in MiB")
	f.Int64Var(&d.ratio, "document-ratio", 300, "largest ratio of the unpacked size to the packed size of an entry of a packed document")
	f.IntVar(&d.nesting, "document-nesting", 256, "largest depth of nested elements in a packed document")
	f.IntVar(&d.cells, "document-cells", 4_000_000, "largest number of cells of a spreadsheet or of the tables of a document, including empty ones")
}

// mostBytes is the largest document that a server accepts, in MiB.
const mostBytes = document.DefaultMaxBytes >> 20

// check returns an error that names a flag with a value that makes no sense.
func (d *documentFlags) check() error {
	switch {
	case d.convert != "never" && d.convert != "auto":
		return exit.UsageError("--convert: must be never or auto")
	case d.html != "main" && d.html != "full":
		return exit.UsageError("--html: must be main or full")
	case imageShares[d.images] == 0:
		return exit.UsageError("--images: must be scans, all or never")
	case d.pages < 1:
		return exit.UsageError("--document-pages: must be at least 1")
	case d.memory < 32 || d.memory > 4096:
		return exit.UsageError("--document-memory: must be from 32 to 4096")
	case d.time <= 0:
		return exit.UsageError("--document-time: must be above 0")
	case d.bytes < 1 || d.bytes > mostBytes:
		return exit.UsageError("--document-bytes: must be from 1 to %d", mostBytes)
	case d.entries < 1 || d.entries > 1_000_000:
		return exit.UsageError("--document-entries: must be from 1 to 1000000")
	case d.unpacked < 1 || d.unpacked > 4096:
		return exit.UsageError("--document-unpacked: must be from 1 to 4096")
	case d.ratio < 1 || d.ratio > 1_000_000:
		return exit.UsageError("--document-ratio: must be from 1 to 1000000")
	case d.nesting < 8 || d.nesting > 10_000:
		return exit.UsageError("--document-nesting: must be from 8 to 10000")
	case d.cells < 1 || d.cells > 100_000_000:
		return exit.UsageError("--document-cells: must be from 1 to 100000000")
	}
	return nil
}

// imageShares are the values of --images, and the share of a page that a picture has at least which is
// read beside the text of the page.
var imageShares = map[string]float64{"scans": 0.5, "all": 0.01, "never": 2}

// Values of --ocr that are no commands.
const (
	ocrAuto      = "auto"
	ocrTesseract = "tesseract"
	ocrNever     = "never"
)

// engine returns what recognises text in pictures; nil if nothing is to. It returns an error if
// there is no such program, or no data of a language: documents would be read for long before the
// first picture shows it.
func (d *documentFlags) engine() (recognise.Engine, error) {
	switch d.ocr {
	case ocrNever, "":
		return nil, nil
	case ocrAuto, ocrTesseract:
		return d.tesseract()
	}

	command := strings.Fields(d.ocr)
	if len(command) == 0 {
		return nil, exit.UsageError("--ocr: must be auto, tesseract, never or a command")
	}
	if d.ocrLang != "" {
		return nil, exit.UsageError("--ocr-lang: is for Tesseract as --ocr auto runs it; name the languages in the command of --ocr")
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, exit.UsageError("--ocr: %q is no program that can be run here: install it, or name its path", command[0])
	}
	return recognise.NewCommand(command), nil
}

// tesseract returns Tesseract as an engine. Without flags that ask for it nobody looks for it before
// the first picture.
func (d *documentFlags) tesseract() (recognise.Engine, error) {
	t := recognise.NewTesseract(d.ocrLang)
	if why := t.Missing(); d.ocr == ocrTesseract && why != "" {
		return nil, exit.UsageError("--ocr: %s", why)
	}
	if d.ocrLang == "" {
		return t, nil
	}

	within, cancel := context.WithTimeout(context.Background(), languagesTime)
	defer cancel()
	if err := t.CheckLanguages(within); err != nil {
		return nil, exit.UsageError("--ocr-lang: %v", err)
	}
	return t, nil
}

// languagesTime is how long Tesseract may take to say of which languages it has data.
const languagesTime = 30 * time.Second

// reading returns what the text of documents depends on beside their bytes, with a hash in
// place of the password.
func (d *documentFlags) reading() string {
	password, limits := sha256.Sum256([]byte(d.password)), d.limits()
	limits.Time = 0 // a document that takes longer has no text
	engine := d.ocr
	if engine == ocrAuto { // what it reads depends on whether it is there
		engine += " " + recognise.NewTesseract("").Path()
	}
	return fmt.Sprintf("html %s, ocr %q %q, images %s, convert %s, limits %v, password %x", d.html, engine, d.ocrLang, d.images, d.convert, limits, password[:8])
}

// limits returns what reading one document may take.
func (d *documentFlags) limits() document.Limits {
	return document.Limits{
		Bytes: d.bytes << 20, Time: d.time, Pages: d.pages, Entries: d.entries, Unpacked: d.unpacked << 20,
		Ratio: d.ratio, Nesting: d.nesting, Cells: d.cells,
	}
}

// Flags of reading that jobs carry to the process that reads their documents, and flags of
// that process alone: secrets, programs, and what it has set up before any document comes.
var (
	carriedFlags = []string{
		"html", "document-bytes", "document-time", "document-pages", "document-entries", "document-unpacked", "document-ratio",
		"document-nesting", "document-cells",
	}
	readersFlags = []string{"password", "ocr", "ocr-lang", "images", "convert", "document-memory"}
)

// Reading returns how the documents of a job are read, as far as flags say it: the job
// carries it to the worker that reads them. The flags have been checked.
func (d *documentFlags) Reading(flags *pflag.FlagSet) mapreduce.Reading {
	var r mapreduce.Reading
	l, all := &r.Limits, d.limits()
	for name, set := range map[string]func(){
		"html":              func() { r.PageText = pageTexts[d.html] },
		"document-bytes":    func() { l.Bytes = all.Bytes },
		"document-time":     func() { l.Time = all.Time },
		"document-pages":    func() { l.Pages = all.Pages },
		"document-entries":  func() { l.Entries = all.Entries },
		"document-unpacked": func() { l.Unpacked = all.Unpacked },
		"document-ratio":    func() { l.Ratio = all.Ratio },
		"document-nesting":  func() { l.Nesting = all.Nesting },
		"document-cells":    func() { l.Cells = all.Cells },
	} {
		if flags.Changed(name) {
			set()
		}
	}

	return r
}

// pageTexts are the values of --html.
var pageTexts = map[string]mapreduce.PageText{"main": mapreduce.PageTextMain, "full": mapreduce.PageTextFull}

// CheckElsewhere refuses flags of reading that have no effect because another process
// reads the documents of a job: the process that where names. A submitted job has carried
// its own flags there already.
func (d *documentFlags) CheckElsewhere(flags *pflag.FlagSet, where string, submitted bool) error {
	for _, name := range readersFlags {
		if flags.Changed(name) {
			return exit.UsageError("--%s: is not sent to %s, which reads the documents: start that with --%s, or leave it out here", name, where, name)
		}
	}

	for _, name := range carriedFlags {
		if submitted && flags.Changed(name) {
			return exit.UsageError("--%s: has no effect now, as %s reads the documents as the flags said when the job was submitted; leave it out", name, where)
		}
	}

	return nil
}

// CheckResumed refuses --html if a job says otherwise.
func (d *documentFlags) CheckResumed(flags *pflag.FlagSet, spec *mapreduce.JobSpec) error {
	asked := spec.Reading.PageText
	if !flags.Changed("html") || asked == mapreduce.PageTextDefault || asked == pageTexts[d.html] {
		return nil
	}
	return exit.UsageError("--html: the job was submitted with the other value, and all its documents are read in the same way; leave it out")
}

// allow refuses a job with a limit above that of this process.
func (d *documentFlags) allow(spec *mapreduce.JobSpec) error {
	asked, most := spec.Reading.Limits, d.limits()

	// A limit that the job leaves open is 0, and exceeds none.
	if asked.Time > most.Time {
		return errs.Field("reading.max_time", "%v is more than the %v that the service allows (its --document-time)", asked.Time, most.Time)
	}

	for _, l := range []struct {
		field, flag string
		asked, most int64
	}{
		{"max_bytes", "document-bytes", asked.Bytes, most.Bytes},
		{"max_pages", "document-pages", int64(asked.Pages), int64(most.Pages)},
		{"max_entries", "document-entries", int64(asked.Entries), int64(most.Entries)},
		{"max_unpacked_bytes", "document-unpacked", asked.Unpacked, most.Unpacked},
		{"max_ratio", "document-ratio", asked.Ratio, most.Ratio},
		{"max_nesting", "document-nesting", int64(asked.Nesting), int64(most.Nesting)},
		{"max_cells", "document-cells", int64(asked.Cells), int64(most.Cells)},
	} {
		if l.asked > l.most {
			return errs.Field("reading."+l.field, "%d is more than the %d that the service allows (its --%s)", l.asked, l.most, l.flag)
		}
	}

	return nil
}

// MaxBytes returns the bytes that a document may have; 0, the default, of a command without
// the flags.
func (d *documentFlags) MaxBytes() int64 { return d.bytes << 20 }

// DocumentFormats returns the formats of documents that the program reads. This is the
// only place that lists them.
func (r *Runners) DocumentFormats() (*document.Registry, error) {
	d := &r.Documents
	if *d == (documentFlags{}) { // of a command that parses none
		d.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	}

	if err := d.check(); err != nil {
		return nil, err
	}

	// One reader and its turns serve all registries, so that together they stay within what
	// may be read at a time.
	if r.pdfs == nil {
		engine, err := d.engine()
		if err != nil {
			return nil, err
		}
		r.turns = document.NewTurns(0)
		r.pictures = picture.New(picture.Config{Engine: engine, MaxBytes: d.bytes << 20, MaxMemory: d.memory << 20})
		r.pdfs = pdf.New(pdf.Config{
			Password: d.password, OCR: engine, Pictures: imageShares[d.images], MaxPages: d.pages, MaxMemory: d.memory << 20, MaxTime: d.time,
			MaxText: d.bytes << 20, Turns: r.turns,
		})
	}

	// Pictures within office documents are read if text is recognised at all.
	within := ooxml.Pictures{Share: imageShares[d.images]}
	if d.ocr != ocrNever && d.ocr != "" && d.images != "never" {
		within.Read = r.pictures.Recognise
	}

	pages := html.Format()
	if d.html == "full" {
		pages = html.FullFormat()
	}

	formats := []document.Format{
		plain.TextFormat(), plain.MarkdownFormat(), pages, xmlfile.Format(), plain.JSONLinesFormat(), plain.CSVFormat(),
		ooxml.DocxFormat(within), ooxml.XlsxFormat(), ooxml.PptxFormat(within), opendocument.Format(), rtf.Format(), html.EpubFormat(), mail.Format(), mail.MailboxFormat(), compound.Format(),
		zipfile.ZipFormat(), zipfile.TarFormat(), program.OlderFormat(),
	}

	all, err := document.NewRegistry(slices.Concat(formats, []document.Format{r.pdfs.Format()}, r.pictures.Formats())...)
	if err != nil {
		return nil, err
	}
	if d.convert == "auto" {
		all = all.Converting(program.NewLibreOffice(program.Config{}))
	}
	return all.Within(d.limits(), r.turns), nil
}
