// Package document turns the inputs of users into text. It finds the files that
// inputs name, tells the format of each, and has the format's parser read it. A file
// that is not of a format that is known is refused, with a reason, and never guessed
// at.
//
// To add a format, write a package that returns its Format, and register it where the
// process is wired. Each format has a package below this one: text, markdown, html,
// jsonl. Nothing is registered by importing.
//
// The package imports nothing of the project but the vocabulary, worker/layout
// and worker/offset.
package document

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/layout"
	"github.com/coditect/mapreduce/worker/offset"
)

// A Kind is the name of a format, such as "html".
type Kind string

// A Format is a format of documents with its parser.
type Format struct {
	// Kind names the format and its parser. Needed.
	Kind Kind
	// MediaTypes are those of the format, in lower case and without parameters. The
	// first is the one under which its documents are submitted. Others may be patterns
	// as of path.Match, such as "text/*", which count if no format has the media type
	// itself. At least one is needed.
	MediaTypes []string
	// Extensions are those of the names of files, in lower case and with the dot.
	Extensions []string
	// Sniff says what the first bytes of a document tell, at most SniffBytes. Nil means
	// that they tell nothing: Possible.
	Sniff func(begin []byte) Match
	// Plain says that the bytes are the text but for their charset. Whoever submits a
	// document of such a format decodes it; a worker parses those of the other formats,
	// so that a hostile document harms no more than its unit.
	Plain bool
	// Parse reads one document. Nil means that a file of the format holds many
	// documents, which whoever submits it tells apart.
	Parse func(ctx context.Context, in Input) (*Document, error)
	// Members returns the documents in a file of the format, for whoever submits it. Nil
	// means that it holds none but the one that Parse reads. The Content of the input is
	// an io.ReaderAt and io.Seeker, too, if it is a file.
	Members func(ctx context.Context, in Input) Members
	// Archive says that files of the format are archives, which are opened only if the
	// user wants it.
	Archive bool
}

// Match says how well the first bytes of a document fit a format. See Detect.
type Match int8

// How well bytes fit.
const (
	Excluded  Match = iota // no document of the format begins so
	Possible               // nothing speaks against the format
	Resembles              // they look like it; counts if the name has no extension
	Begins                 // documents of the format begin so, and others may mention it
	Certain                // it is nothing else, whatever its name and media type say
)

// SniffBytes is the length of the beginning of a document by which formats are told.
const SniffBytes = 4096

// An Input is a document to parse.
type Input struct {
	Name      string    // of the file; may be empty
	MediaType string    // as declared, with its parameters; may be empty
	Content   io.Reader // the whole document, from its first byte on
	Limits    Limits    // of what reading it may take
	// PageText is which text of a web page is wanted. The default leaves it to the format.
	PageText mapreduce.PageText
	// Members bound what Format.Members reads.
	Members MemberLimits
}

// A Document is a text and where it came from.
type Document struct {
	Kind    Kind        // of the format; set by Registry.Parse
	Charset string      // charset of the bytes, such as "utf-8"; empty if the format has none
	Text    string      // valid UTF-8
	Source  *offset.Map // from bytes of Text to bytes of the file
	// Layout says where a reader would look for parts of Text. It is nil for formats without
	// such places.
	Layout layout.Layout
	// Confidence is how sure the text itself is, in (0, 1]: of text that was recognised in
	// pictures. 0 means certain.
	Confidence float64
	// Notes are what readers of the document should know, such as that a page has no text.
	Notes []string
}

// A RefusedError tells why bytes are not a document.
type RefusedError struct {
	Reason string // as it stands in the ledger
}

func (e *RefusedError) Error() string { return "document: refused: " + e.Reason }

// ErrNoText is the error of Parse for a document that is empty or has no readable
// text.
var ErrNoText error = &RefusedError{Reason: "no text"}

// Refuse returns a RefusedError with a reason.
func Refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// A Registry holds the formats that a process knows. It does not change, and is safe
// for concurrent use.
type Registry struct{ formats []Format }

// NewRegistry returns a registry of formats. The first is the format of documents that
// nothing tells apart. An error names a format that lacks what it needs, or one that
// is there twice.
func NewRegistry(formats ...Format) (*Registry, error) {
	r := &Registry{formats: slices.Clone(formats)}
	for i, f := range formats {
		if f.Kind == "" || len(f.MediaTypes) == 0 {
			return nil, fmt.Errorf("document: format %q, number %d, lacks its kind or media types", f.Kind, i)
		}
		if j := slices.IndexFunc(formats, func(other Format) bool { return other.Kind == f.Kind }); j != i {
			return nil, fmt.Errorf("document: format %q is registered twice", f.Kind)
		}
	}
	return r, nil
}

// Format returns the format of a kind.
func (r *Registry) Format(kind Kind) (Format, bool) {
	i := slices.IndexFunc(r.formats, func(f Format) bool { return f.Kind == kind })
	if i < 0 {
		return Format{}, false
	}
	return r.formats[i], true
}

// Parsers returns the names of the parsers, sorted: of all formats that have one.
func (r *Registry) Parsers() []string {
	var names []string
	for _, f := range r.formats {
		if f.Parse != nil {
			names = append(names, string(f.Kind))
		}
	}
	slices.Sort(names)
	return names
}

// Parse returns the document in an input, by the parser of its format. The error is a
// RefusedError if the input is not a document of a format that is known, and
// ErrNoText if it has no text. A parser that returns what is not UTF-8, or a layout
// that does not fit its text, is an error too.
func (r *Registry) Parse(ctx context.Context, in Input) (*Document, error) {
	begin, whole, err := peekBegin(in.Content)
	if err != nil {
		return nil, fmt.Errorf("document: read %s: %w", in.Name, err)
	}
	kind, err := r.Detect(in.Name, begin, in.MediaType)
	if err != nil {
		return nil, err
	}
	f, _ := r.Format(kind)
	if f.Parse == nil {
		return nil, fmt.Errorf("document: %s holds many documents", in.Name)
	}
	in.Content = whole
	d, err := f.Parse(ctx, in)
	if err != nil {
		return nil, err
	}
	d.Kind = kind
	if !utf8.ValidString(d.Text) {
		return nil, fmt.Errorf("document: the %s parser made text of %s that is not UTF-8", kind, in.Name)
	}
	if err := d.Layout.Check(len(d.Text)); err != nil {
		return nil, fmt.Errorf("document: the %s parser made a layout of %s that is none: %w", kind, in.Name, err)
	}
	if strings.TrimSpace(d.Text) == "" {
		return nil, ErrNoText
	}
	return d, nil
}
