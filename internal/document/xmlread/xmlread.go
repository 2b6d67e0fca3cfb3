// Package xmlread reads XML of documents, token by token and within bounds. Entities that
// a document declares are never expanded, and nothing that it refers to is fetched. It also reads
// what packed documents say of themselves by Dublin Core, beside their text.
package xmlread

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/coditect/mapreduce/internal/document"
)

// MaxToken bounds one tag or run of text, in bytes.
const MaxToken = 2 << 20

// A Decoder gives the tokens of an XML document.
type Decoder struct {
	name  string
	xml   *xml.Decoder
	in    *meter
	depth int
	most  int  // elements within each other
	bare  bool // errors of the syntax are returned as they are
}

// New returns a decoder of the XML that r holds, within the limits of its document.
// Errors name it.
func New(name string, r io.Reader, limits document.Limits) *Decoder {
	d := &Decoder{name: name, in: &meter{r: &wide{r: r}}, most: limits.WithDefaults().Nesting}

	d.xml = xml.NewDecoder(d.in)
	d.xml.CharsetReader = charsetReader
	return d
}

// NewText returns a decoder of XML that is in UTF-8 whatever it declares, in which references to
// entities stand for what a map says. Next returns the *xml.SyntaxError of XML that is not
// well-formed.
func NewText(r io.Reader, limits document.Limits, entities map[string]string) *Decoder {
	d := New("it", r, limits)
	d.bare = true
	d.xml.Entity = entities
	d.xml.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	return d
}

// charsetReader decodes the charset that the XML declares. UTF-16 and UTF-32 are decoded before their
// declaration can be read.
func charsetReader(charset string, in io.Reader) (io.Reader, error) {
	name := strings.TrimPrefix(strings.ToLower(charset), "iso-10646-")
	for _, decoded := range []string{"utf-16", "utf-32", "ucs-2", "ucs-4"} {
		if strings.HasPrefix(name, decoded) {
			return in, nil
		}
	}

	enc, err := htmlindex.Get(charset)
	if err != nil {
		return nil, err
	}
	return enc.NewDecoder().Reader(in), nil
}

// A wide decodes UTF-16 and UTF-32. It leaves all else as it is.
type wide struct {
	r     io.Reader
	begun bool
}

// Read implements io.Reader.
func (w *wide) Read(p []byte) (int, error) {
	if !w.begun {
		in := bufio.NewReader(w.r)
		w.r, w.begun = in, true
		begin, _ := in.Peek(4)
		if enc := wideEncoding(begin); enc != nil {
			w.r = enc.NewDecoder().Reader(in)
		}
	}
	return w.r.Read(p)
}

// wideEncoding returns the encoding of XML that begins with these bytes, by its byte order mark or by where
// the zeros of its first character are, which is one of ASCII; nil if that has one byte.
func wideEncoding(begin []byte) encoding.Encoding {
	shape := bytes.Repeat([]byte("x"), len(begin))
	for i, b := range begin {
		if b == 0 {
			shape[i] = '0'
		}
	}

	switch mark, zeros := string(begin), string(shape); {
	case mark == "\xff\xfe\x00\x00", zeros == "x000":
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case mark == "\x00\x00\xfe\xff", zeros == "000x":
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case strings.HasPrefix(mark, "\xff\xfe"), strings.HasPrefix(zeros, "x0"):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case strings.HasPrefix(mark, "\xfe\xff"), strings.HasPrefix(zeros, "0x"):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	}
	return nil
}

// A meter ends reading once a token has had its bytes.
type meter struct {
	r    io.Reader
	read int
	err  error
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.read > MaxToken {
		m.err = document.Refuse("damaged: its XML has a tag or text of more than %d bytes", MaxToken)
		return 0, m.err
	}
	n, err := m.r.Read(p)
	m.read += n
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// Next returns the next token: a start or end of an element, or text. A token is valid
// until the next call. At the end the error is io.EOF. XML that is not well-formed or
// exceeds the bounds gives a document.RefusedError, and errors of reading stay as they are.
func (d *Decoder) Next() (xml.Token, error) {
	for {
		// The bound is that of one token.
		d.in.read = 0
		t, err := d.xml.Token()

		switch {
		case d.in.err != nil:
			return nil, d.in.err
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case d.bare && errors.As(err, new(*xml.SyntaxError)):
			return nil, err
		case err != nil:
			return nil, document.Refuse("damaged: %s: %v", d.name, err)
		}

		switch t.(type) {
		case xml.StartElement:
			if d.depth++; d.depth > d.most {
				return nil, document.Refuse("%s has more than %d elements within each other (--document-nesting)", d.name, d.most)
			}
			return t, nil
		case xml.EndElement:
			d.depth--
			return t, nil
		case xml.CharData:
			return t, nil
		}
	}
}

// Skip reads to the end of the element whose start was the last token.
func (d *Decoder) Skip() error {
	for end := d.depth - 1; d.depth > end; {
		if _, err := d.Next(); err != nil {
			return unexpectedEnd(d.name, err)
		}
	}
	return nil
}

// Each calls child for every element within the one whose start was the last token, and
// text for its text. Child reads its element to the end, by Each, Skip or Text. Text may
// be nil.
func (d *Decoder) Each(child func(xml.StartElement) error, text func(string)) error {
	for {
		t, err := d.Next()
		if err != nil {
			return unexpectedEnd(d.name, err)
		}

		switch t := t.(type) {
		case xml.StartElement:
			if err := child(t); err != nil {
				return err
			}
		case xml.CharData:
			if text != nil {
				text(string(t))
			}
		case xml.EndElement:
			return nil
		}
	}
}

// Document calls root for the outermost element, which root reads to its end.
func (d *Decoder) Document(root func(xml.StartElement) error) error {
	for {
		t, err := d.Next()
		if errors.Is(err, io.EOF) {
			return document.Refuse("damaged: %s is empty", d.name)
		}

		if err != nil {
			return err
		}

		if start, ok := t.(xml.StartElement); ok {
			return root(start)
		}
	}
}

// Text returns all the text within the element whose start was the last token.
func (d *Decoder) Text() (string, error) {
	var b strings.Builder
	var inner func(xml.StartElement) error
	write := func(s string) { b.WriteString(s) }

	inner = func(xml.StartElement) error { return d.Each(inner, write) }
	err := d.Each(inner, write)
	return b.String(), err
}

// unexpectedEnd turns the end of the XML into an error of it.
func unexpectedEnd(name string, err error) error {
	if errors.Is(err, io.EOF) {
		return document.Refuse("damaged: %s ends too early", name)
	}
	return err
}

// Attr returns an attribute of an element by its name without prefix, or "".
func Attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// IsOn reports whether a property of Office Open XML with a value is on. Without a value it
// is.
func IsOn(value string) bool { return value != "0" && value != "false" && value != "off" }
