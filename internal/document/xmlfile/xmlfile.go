// Package xmlfile is the format of XML files: articles in JATS, and any other. Their text has no
// tags. Articles have headings, paragraphs, lists, tables and references. Files of data have a
// line for each value, with its name, and a table where elements repeat. Workbooks that Excel 2003
// writes in XML are tables, as other workbooks are. The entities that a document declares are
// bounded, and nothing is fetched.
package xmlfile

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Kind is the name of the format.
const Kind document.Kind = "xml"

// Format returns the format.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Sniff: sniff, Parse: parse,
		Extensions: []string{
			".xml", ".nxml", ".jats", ".svg", ".rss", ".atom", ".rdf", ".kml", ".gpx", ".gml", ".tei", ".dita", ".dbk", ".fb2", ".xbrl", ".xsd", ".xsl", ".xslt", ".wsdl",
		},
		MediaTypes: []string{"application/xml", "text/xml", "image/svg+xml", "*/*+xml"},
	}
}

// sniff tells XML from pages, which may begin like it.
func sniff(begin []byte) document.Match {
	// UTF-16 shows itself by its byte order mark; half a character at the end is cut off.
	if decoded, _, _, err := charset.Decode(begin[:len(begin)&^1], ""); err == nil && (bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff"))) {
		begin = []byte(decoded)
	}

	begin = document.TrimBegin(begin)
	declared := bytes.HasPrefix(begin, []byte("<?xml"))
	name := rootName(begin)

	switch {
	case strings.EqualFold(name, "html"):
		return document.Possible
	case declared, bytes.HasPrefix(begin, []byte("<!DOCTYPE ")) && name != "", strings.HasPrefix(string(begin), "<svg"):
		return document.Begins
	}
	return document.Possible
}

// rootName returns the name of the outermost element, by the document type or the first tag; ""
// if the beginning does not have it.
func rootName(begin []byte) string {
	s := string(begin)
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		end := "?>"

		switch {
		// Instructions and comments may stand in front of what names the element.
		case strings.HasPrefix(s, "<?"):
		case strings.HasPrefix(s, "<!--"):
			end = "-->"
		default:
			s = strings.TrimPrefix(s, "<")
			if declared, ok := strings.CutPrefix(s, "!DOCTYPE"); ok {
				s = strings.TrimLeft(declared, " \t\r\n")
			}
			name := s[:len(s)-len(strings.TrimLeftFunc(s, isNameRune))]
			return name[strings.LastIndexByte(name, ':')+1:]
		}

		_, rest, ok := strings.Cut(s, end)
		if !ok {
			return ""
		}

		s = rest
	}
}

// isNameRune reports whether names of elements have a character.
func isNameRune(r rune) bool {
	return r == '_' || r == ':' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= 0x80
}

// parse implements the Parse of document.Format.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	data, err := io.ReadAll(in.Content)
	if err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}

	decoded, _, name, err := charset.Decode(data, declaredCharset(data, in.MediaType))
	if err != nil {
		return nil, err
	}

	entities, err := entitiesOf(decoded)
	if err != nil {
		return nil, err
	}

	limits := in.Limits.WithDefaults()
	root, err := readTree(ctx, decoded, entities, limits)

	// What is not well-formed is read as text, and a note says so.
	if syntax := new(xml.SyntaxError); errors.As(err, &syntax) {
		return readAsText(ctx, in, data, syntax)
	}

	if err != nil {
		return nil, err
	}

	w := &writer{ctx: ctx, limits: limits, text: &richtext.Writer{MaxBytes: limits.Bytes, MaxCells: limits.Cells}}
	w.writeRoot(root)

	if w.err != nil {
		return nil, w.err
	}

	d, err := w.text.Document()
	if err == nil {
		d.Charset, d.Title, d.Notes = name, w.title, w.notes
	}
	return d, err
}

// readAsText returns a file whose XML is not well-formed as it stands, and says so.
func readAsText(ctx context.Context, in document.Input, data []byte, syntax *xml.SyntaxError) (*document.Document, error) {
	in.Content = bytes.NewReader(data)
	d, err := plain.ParseText(ctx, in)
	if err == nil {
		d.Notes = append(d.Notes, fmt.Sprintf("its XML is not well-formed (line %d: %.200s), so its tags are part of the text", syntax.Line, syntax.Msg))
	}
	return d, err
}

// declaredCharset returns the charset that a file declares, or its media type. Behind a byte
// order mark neither counts.
func declaredCharset(data []byte, mediaType string) string {
	if declared := plain.DeclaredCharset(mediaType); declared != "" {
		return declared
	}

	begin := document.TrimBegin(data[:min(len(data), document.SniffBytes)])
	if !bytes.HasPrefix(begin, []byte("<?xml")) {
		return ""
	}

	head, _, _ := bytes.Cut(begin, []byte("?>"))
	_, value, ok := strings.Cut(string(head), "encoding")
	value = strings.TrimLeft(value, " \t\r\n=")
	if !ok || len(value) < 2 || value[0] != '"' && value[0] != '\'' {
		return ""
	}

	name, _, _ := strings.Cut(value[1:], value[:1])
	if strings.HasPrefix(strings.ToLower(name), "utf-16") || strings.EqualFold(name, "ucs-2") {
		return "" // the declaration was read as bytes, so the file is not UTF-16
	}

	return name
}
