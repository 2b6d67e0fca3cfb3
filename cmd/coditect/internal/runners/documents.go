package runners

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/document/archive"
	"github.com/coditect/mapreduce/worker/document/csv"
	"github.com/coditect/mapreduce/worker/document/docx"
	"github.com/coditect/mapreduce/worker/document/epub"
	"github.com/coditect/mapreduce/worker/document/html"
	"github.com/coditect/mapreduce/worker/document/jsonl"
	"github.com/coditect/mapreduce/worker/document/mail"
	"github.com/coditect/mapreduce/worker/document/markdown"
	"github.com/coditect/mapreduce/worker/document/msg"
	"github.com/coditect/mapreduce/worker/document/opendocument"
	"github.com/coditect/mapreduce/worker/document/pdf"
	"github.com/coditect/mapreduce/worker/document/pptx"
	"github.com/coditect/mapreduce/worker/document/rtf"
	plaintext "github.com/coditect/mapreduce/worker/document/text"
	"github.com/coditect/mapreduce/worker/document/xlsx"
)

// documentFlags are the flags that say how documents are read, and what each may take.
type documentFlags struct {
	password string
	ocr      string
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
	f.StringVar(&d.password, "password", "", "password of encrypted documents")
	f.StringVar(&d.ocr, "ocr", "", "`command` that reads pages which are pictures, such as \"tesseract - - tsv\": a PNG on its standard input, text or tesseract's table on its output")
	f.StringVar(&d.html, "html", "main", "`text` of web pages: \"main\", without navigation and advertisements, or \"full\"")
	f.IntVar(&d.pages, "document-pages", 10_000, "most pages of a document")
	f.Int64Var(&d.memory, "document-memory", 256, "most memory for reading a document, in MiB")
	f.DurationVar(&d.time, "document-time", 30*time.Second, "longest time for reading a document, beside the --ocr command's")
	f.Int64Var(&d.bytes, "document-bytes", mostBytes, "most bytes of a document, and of its text, in MiB")
	f.IntVar(&d.entries, "document-entries", 10_000, "most entries of a packed document, such as DOCX")
	f.Int64Var(&d.unpacked, "document-unpacked", 256, "most bytes of a packed document once it is unpacked, in MiB")
	f.Int64Var(&d.ratio, "document-ratio", 300, "how many times its size an entry of a packed document may expand to")
	f.IntVar(&d.nesting, "document-nesting", 256, "most elements within each other in a packed document")
	f.IntVar(&d.cells, "document-cells", 4_000_000, "most cells of a spreadsheet, the empty ones counted")
}

// mostBytes is the largest document that a server accepts, in MiB.
const mostBytes = document.DefaultMaxBytes >> 20

// check returns an error that names a flag with a value that makes no sense.
func (d *documentFlags) check() error {
	switch {
	case d.html != "main" && d.html != "full":
		return exit.UsageError("--html: must be main or full")
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

// reading returns what the text of documents depends on beside their bytes. It tells no
// password.
func (d *documentFlags) reading() string {
	password := sha256.Sum256([]byte(d.password))
	return fmt.Sprintf("html %s, ocr %q, pages %d, limits %v, password %x", d.html, d.ocr, d.pages, d.limits(), password[:8])
}

// limits returns what reading one document may take.
func (d *documentFlags) limits() document.Limits {
	return document.Limits{Bytes: d.bytes << 20, Entries: d.entries, Unpacked: d.unpacked << 20, Ratio: d.ratio, Nesting: d.nesting, Cells: d.cells}
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
	if r.pdfs == nil {
		r.pdfs = pdf.New(pdf.Config{
			Password: d.password, OCR: strings.Fields(d.ocr), MaxPages: d.pages, MaxMemory: d.memory << 20, MaxTime: d.time,
			MaxText: d.bytes << 20,
		})
	}
	pages := html.Format()
	if d.html == "full" {
		pages = html.FullFormat()
	}
	formats := []document.Format{
		plaintext.Format(), markdown.Format(), pages, jsonl.Format(), csv.Format(),
		docx.Format(), xlsx.Format(), pptx.Format(), opendocument.Format(), rtf.Format(), epub.Format(), mail.Format(), mail.MailboxFormat(), msg.Format(),
		archive.ZipFormat(), archive.TarFormat(),
	}
	for i := range formats {
		formats[i] = bounded(formats[i], d.time, d.limits())
	}
	return document.NewRegistry(append(formats, r.pdfs.Format())...) // which bounds its time itself
}

// PageDrawer returns what draws pages of documents for reports, or nil if it would take
// long to begin.
func (r *Runners) PageDrawer() (PageDrawer, error) {
	if _, err := r.DocumentFormats(); err != nil || !r.pdfs.CanDraw() {
		return nil, err
	}
	return r.pdfs, nil
}

// A PageDrawer draws pages of PDF files; see pdf.Reader.
type PageDrawer interface {
	Draw(ctx context.Context, data []byte, pages []int, drawn func(document.Picture) error) error
}

// errDocumentTime is the cause by which a parser ends that takes too long.
var errDocumentTime = errors.New("the time for a document is over")

// bounded returns a format whose parser ends after a time, and keeps to limits.
func bounded(f document.Format, most time.Duration, limits document.Limits) document.Format {
	parse := f.Parse
	if parse == nil {
		return f
	}
	f.Parse = func(ctx context.Context, in document.Input) (*document.Document, error) {
		within, cancel := context.WithTimeoutCause(ctx, most, errDocumentTime)
		defer cancel()
		in.Limits = limits
		d, err := parse(within, in)
		if err != nil && ctx.Err() == nil && within.Err() != nil {
			return nil, document.Refuse("%s that takes longer than %v to read (--document-time)", "a document of the format "+string(f.Kind), most)
		}
		return d, err
	}
	return f
}
