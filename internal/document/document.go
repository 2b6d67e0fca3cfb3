// Package document turns the inputs of users into text. It tells the format of
// a file by its bytes, and has the format's parser read it. A file that is not of a
// format that is known is refused, with a reason, and never guessed at.
//
// To add a format, write a package that returns its Format, and register it where the
// process is wired. Each format has a package below this one, such as text, html or pdf.
// Nothing is registered by importing.
//
// The package imports nothing of the project but the vocabulary, internal/text/layout
// and internal/text/offset.
package document

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/layout"
	"github.com/coditect/mapreduce/internal/text/offset"
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

// SniffBytes is the length of the beginning of a document by which its format is
// recognised.
const SniffBytes = 4096

// An Input is a document to parse.
type Input struct {
	Name      string    // of the file; may be empty
	MediaType string    // as declared, with its parameters; may be empty
	Content   io.Reader // the whole document, from its first byte on
	Limits    Limits    // of what reading it may take
	// Wait runs the waits for turns at reading, so that whoever limits the time of the caller
	// need not count them. Nil runs them as they are.
	Wait Waiter
	// PageText is which text of a web page is wanted. The default leaves it to the format.
	PageText mapreduce.PageText
	// Shown says that models are shown pages that are pictures. A page in which no text is recognised
	// has a line that says so then, and a document of such pages is not refused.
	Shown bool
	// Members bound what Format.Members reads.
	Members MemberLimits
}

// A Document is a text and where it came from.
type Document struct {
	Kind    Kind        // of the format; Registry.Parse sets it, unless a parser of several has
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
	// Title is what the document calls itself; empty if it does not say.
	Title string
}

// A Recognised is what was recognised in a picture.
type Recognised struct {
	Lines []RecognisedLine // in reading order; none of a picture without text
	Sure  float64          // how sure its words are together, in (0, 1]
}

// A RecognisedLine is a line of text that was recognised in a picture.
type RecognisedLine struct {
	Text string
	Sure float64 // how sure the word is that is least so, in (0, 1]
}

// A RefusedError tells why bytes are not a document.
type RefusedError struct {
	Reason string // as people read it
	// Conversion is what would make the document readable; nil if nothing is known to.
	Conversion *Conversion
}

func (e *RefusedError) Error() string { return "document: refused: " + e.Reason }

// ErrNoText is the error of Parse for a document that is empty or has no readable
// text.
var ErrNoText error = &RefusedError{Reason: "no text"}

// Refuse returns a RefusedError with a reason.
func Refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// A Registry holds the formats that a process knows, and reads documents of them in turns. It
// does not change, and is safe for concurrent use.
type Registry struct {
	formats   []Format
	most      Limits
	turns     *Turns
	converter Converter // of what no parser reads; may be nil
}

// NewRegistry returns a registry of formats. The first is the format of documents that
// nothing tells apart. An error names a format that lacks what it needs, or one that
// is there twice.
func NewRegistry(formats ...Format) (*Registry, error) {
	r := &Registry{formats: slices.Clone(formats), most: Limits{Time: Limits{}.WithDefaults().Time}, turns: NewTurns(0)}

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

// Within returns a registry of the same formats that reads documents within limits, or lower
// ones of an input, and in turns that it shares with others.
func (r *Registry) Within(most Limits, turns *Turns) *Registry {
	return &Registry{formats: r.formats, most: most.Within(Limits{Time: most.WithDefaults().Time}), turns: turns, converter: r.converter}
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

// Parse returns the document in an input, by the parser of its format, once it is its turn. The
// error is a RefusedError if the input is not a document of a format that is known, and
// ErrNoText if it has no text. A parser that returns what is not UTF-8, or a layout
// that does not fit its text, is an error too.
//
// The limits are those of the document's own work. So what else is being read has no part in
// whether it is refused.
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

	in.Limits = in.Limits.Within(r.most)
	d, err := r.parse(ctx, f, in, whole)
	if err != nil {
		return nil, err
	}

	d.Kind, d.Title = cmp.Or(d.Kind, kind), cleanTitle(d.Title)
	// A parser may be wrong, so what it made is checked before anybody uses it.
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

// parse has the parser of a format read a document, in its turn.
func (r *Registry) parse(ctx context.Context, f Format, in Input, whole io.Reader) (d *Document, err error) {
	again, err := rereadable(in.Content, whole) // a turn waits for no network
	if err != nil {
		return nil, fmt.Errorf("document: read %s: %w", in.Name, err)
	}

	waited := r.turns.Do(ctx, in.Limits.Time, in.Wait, func(within context.Context) {
		if in.Content, err = again(); err != nil {
			return
		}

		// A parser that stops for want of time may say so in any words.
		d, err = f.Parse(within, in)
		refused := new(RefusedError)
		if errors.As(err, &refused) && refused.Conversion != nil && r.converter != nil {
			d, err = r.convertFirst(within, *refused.Conversion, in, again)
		}
		if err != nil && errors.Is(context.Cause(within), ErrTime) && !errors.As(err, &refused) {
			err = Refuse("a document of the format %s that takes longer than %v to read (--document-time)", f.Kind, in.Limits.Time)
		}
	})

	if waited != nil {
		return nil, waited
	}
	return d, err
}

// rereadable returns a function that returns the content of an input from its first byte on,
// as often as it is called. whole is what is left to be read of it.
func rereadable(content, whole io.Reader) (func() (io.Reader, error), error) {
	if at, ok := content.(io.ReadSeeker); ok {
		if _, err := at.Seek(0, io.SeekStart); err == nil { // a pipe cannot go back
			return func() (io.Reader, error) {
				_, err := at.Seek(0, io.SeekStart)
				return at, err
			}, nil
		}
	}

	// A stream can be read once, so it is held.
	data, err := io.ReadAll(whole)
	return func() (io.Reader, error) { return bytes.NewReader(data), nil }, err
}
