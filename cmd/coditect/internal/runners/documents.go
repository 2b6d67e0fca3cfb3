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
}

// AddFlags adds the flags of commands whose process may parse documents.
func (d *documentFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&d.password, "password", "", "password of encrypted documents")
	f.StringVar(&d.ocr, "ocr", "", "`command` that reads pages which are pictures, such as \"tesseract - - tsv\": a PNG on its standard input, text or tesseract's table on its output")
	f.StringVar(&d.html, "html", "main", "`text` of web pages: \"main\", without navigation and advertisements, or \"full\"")
	f.IntVar(&d.pages, "document-pages", 10_000, "most pages of a document")
	f.Int64Var(&d.memory, "document-memory", 256, "most memory for reading a document, in MiB")
	f.DurationVar(&d.time, "document-time", time.Minute, "longest time for reading a document, beside the --ocr command's")
}

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
	}
	return nil
}

// reading returns what the text of documents depends on beside their bytes. It tells no
// password.
func (d *documentFlags) reading() string {
	password := sha256.Sum256([]byte(d.password))
	return fmt.Sprintf("html %s, ocr %q, pages %d, password %x", d.html, d.ocr, d.pages, password[:8])
}

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
	pdfs := pdf.New(pdf.Config{
		Password: d.password, OCR: strings.Fields(d.ocr), MaxPages: d.pages, MaxMemory: d.memory << 20, MaxTime: d.time,
	})
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
		formats[i] = bounded(formats[i], d.time)
	}
	return document.NewRegistry(append(formats, pdfs.Format())...) // which bounds its time itself
}

// errDocumentTime is the cause by which a parser ends that takes too long.
var errDocumentTime = errors.New("the time for a document is over")

// bounded returns a format whose parser ends after a time.
func bounded(f document.Format, most time.Duration) document.Format {
	parse := f.Parse
	if parse == nil {
		return f
	}
	f.Parse = func(ctx context.Context, in document.Input) (*document.Document, error) {
		within, cancel := context.WithTimeoutCause(ctx, most, errDocumentTime)
		defer cancel()
		d, err := parse(within, in)
		if err != nil && ctx.Err() == nil && within.Err() != nil {
			return nil, document.Refuse("%s that takes longer than %v to read (--document-time)", fmt.Sprintf("a document of the format %s", f.Kind), most)
		}
		return d, err
	}
	return f
}
