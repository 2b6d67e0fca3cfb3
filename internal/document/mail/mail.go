// Package mail is the formats of mail: messages (EML) and mailboxes (mbox). The text of a
// message is its headers and its text part, or its HTML if it has none. Attachments, and
// the messages of a mailbox, are documents of their own.
package mail

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jhillyerd/enmime/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Kind is the name of the format of messages.
const Kind document.Kind = "eml"

// mediaType is that of messages.
const mediaType = "message/rfc822"

// Format returns the format of messages.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Sniff: sniff, Parse: parse, Members: members,
		Extensions: []string{".eml"},
		MediaTypes: []string{mediaType},
	}
}

// headerPattern finds headers that texts other than messages hardly begin with.
var headerPattern = regexp.MustCompile(`(?mi)^(from|to|subject|date|received|message-id|mime-version|return-path|delivered-to): `)

// sniffHeaders is how many of these headers tell a message.
const sniffHeaders = 3

func sniff(begin []byte) document.Match {
	// A message may be in UTF-16, of which half a character may stand at the end.
	begin = document.TrimBegin(narrow(begin[:len(begin)&^1]))
	if head, _, ok := bytes.Cut(begin, []byte("\n\n")); ok {
		begin = head
	}

	if line, _, _ := bytes.Cut(begin, []byte("\n")); !isHeader(line) {
		return document.Possible
	}

	if len(headerPattern.FindAll(begin, sniffHeaders)) == sniffHeaders {
		return document.Begins
	}
	return document.Possible
}

// isHeader reports whether a line begins with the name of a header.
func isHeader(line []byte) bool {
	name, _, ok := bytes.Cut(line, []byte(":"))
	return ok && len(name) > 0 && !bytes.ContainsAny(name, " \t<>\"{}")
}

// Bounds of messages.
const (
	maxHeader     = 1 << 20 // bytes
	maxBoundaries = 200     // parts that have parts
	maxParts      = 20_000  // the library passes all parts before each
)

// boundaryPattern finds what declares parts that have parts. The library reads each byte
// once for each of those that it is in.
var boundaryPattern = regexp.MustCompile(`(?i)boundary\s*\*?[0-9]*\*?\s*=`)

// readParts returns the parts of a message.
func readParts(content io.Reader) (root *enmime.Part, err error) {
	data, err := io.ReadAll(io.LimitReader(content, document.DefaultMaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("mail: %w", err)
	case len(data) > document.DefaultMaxBytes:
		return nil, document.Refuse("too large: more than %d bytes", document.DefaultMaxBytes)
	}

	data = narrow(data)

	if end := headerEnd(data); end > maxHeader {
		return nil, document.Refuse("damaged: headers of %d bytes", end)
	}

	// The library reads some messages in quadratic time, so what makes it slow is counted
	// before.
	switch n := len(boundaryPattern.FindAllIndex(data, maxBoundaries+1)); {
	case n > maxBoundaries:
		return nil, document.Refuse("damaged: more than %d parts that have parts", maxBoundaries)
	case n > 0 && bytes.Count(data, []byte("\n--")) > maxParts:
		return nil, document.Refuse("damaged: more than %d parts", maxParts)
	}

	defer func() {
		if cause := recover(); cause != nil { // the library is fuzzed, and this is for what was not found
			root, err = nil, document.Refuse("damaged: %v", cause)
		}
	}()

	p := enmime.NewParser(enmime.SkipMalformedParts(true), enmime.MaxStoredPartErrors(1), enmime.DisableTextConversion(true),
		enmime.SetReadPartErrorPolicy(enmime.AllowCorruptTextPartErrorPolicy))
	root, err = p.ReadParts(bytes.NewReader(data))
	if err != nil {
		return nil, document.Refuse("damaged: %v", err)
	}

	return root, nil
}

// narrow returns a message in UTF-16 as UTF-8, and any other as it is. Programs that store
// messages as texts write them so, with a byte order mark or without one: then every other byte
// of the first is zero.
func narrow(data []byte) []byte {
	declared := ""
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
	case len(data) >= 4 && data[0] != 0 && data[1] == 0 && data[2] != 0 && data[3] == 0:
		declared = "utf-16le"
	case len(data) >= 4 && data[0] == 0 && data[1] != 0 && data[2] == 0 && data[3] != 0:
		declared = "utf-16be"
	default:
		return data
	}

	text, _, _, err := charset.Decode(data[:len(data)&^1], declared)
	if err != nil {
		return data
	}
	return []byte(text)
}

// headerEnd returns where the headers of a message end.
func headerEnd(data []byte) int {
	end := len(data)
	for _, gap := range []string{"\n\n", "\n\r\n"} {
		if i := bytes.Index(data[:end], []byte(gap)); i >= 0 {
			end = i
		}
	}
	return end
}

// A message is what is read of one.
type message struct {
	header      textproto.MIMEHeader
	text        []*enmime.Part // that a reader sees, in order
	attachments []*enmime.Part
}

// newMessage sorts the parts of a message.
func newMessage(root *enmime.Part) *message {
	m := &message{header: root.Header}
	m.add(root, false)
	return m
}

// add adds a part. Pictures that are shown in the text are no attachments.
func (m *message) add(p *enmime.Part, related bool) {
	if p.FirstChild != nil {
		switch p.ContentType {
		case "multipart/alternative":
			m.addBest(p)
		default:
			for c := p.FirstChild; c != nil; c = c.NextSibling {
				m.add(c, p.ContentType == "multipart/related")
			}
		}
		return
	}

	// A text that is attached is no text of the message.
	isText := p.ContentType == "text/plain" || p.ContentType == "text/html" || p.ContentType == ""

	switch {
	case strings.HasPrefix(p.ContentType, "multipart/"):
	case isText && p.Disposition != "attachment" && p.FileName == "":
		m.text = append(m.text, p)
	case (related || p.Disposition == "inline") && strings.HasPrefix(p.ContentType, "image/"):
	case p.ContentType == "application/pgp-signature" || p.ContentType == "application/pkcs7-signature" || p.ContentType == "application/x-pkcs7-signature":
	default:
		m.attachments = append(m.attachments, p)
	}
}

// addBest adds, of several parts that say the same, the one that is plain text, or else the
// last one with text: senders put the richest form last.
func (m *message) addBest(p *enmime.Part) {
	var plain, best *message
	for c := p.FirstChild; c != nil; c = c.NextSibling {
		a := new(message)
		a.add(c, false)
		m.attachments = append(m.attachments, a.attachments...)
		switch {
		case plain == nil && c.ContentType == "text/plain" && len(a.text) > 0 && len(bytes.TrimSpace(c.Content)) > 0:
			plain = a
		case len(a.text) > 0:
			best = a
		}
	}

	if plain != nil {
		best = plain
	}

	if best != nil {
		m.text = append(m.text, best.text...)
	}
}

// shown are the headers that the text of a message has.
var shown = []string{"From", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject"}

// value returns a header, decoded.
func (m *message) value(name string) string {
	raw := m.headerText(strings.Join(m.header.Values(name), ", "))
	decoded, err := (&mime.WordDecoder{CharsetReader: charsetReader}).DecodeHeader(raw)
	if err != nil {
		decoded = raw
	}

	return strings.Join(strings.Fields(strings.ToValidUTF8(decoded, "�")), " ")
}

// headerText returns a header as UTF-8. Some programs write it in another charset without saying so:
// then that of the text is taken, else the one that it looks like. A text of ASCII has no charset for
// such bytes: they are taken for Windows-1252 if they look like nothing. What is in none stays as it is.
func (m *message) headerText(raw string) string {
	if utf8.ValidString(raw) {
		return raw
	}

	const guess = ""
	var said, ascii []string
	for _, p := range m.text {
		// What the library detects takes the place of what is declared.
		for _, name := range []string{p.OrigCharset, p.Charset} {
			if strings.EqualFold(name, "us-ascii") {
				ascii = append(ascii, name)
			} else if name != "" {
				said = append(said, name)
			}
		}
	}

	for _, name := range slices.Concat(said, []string{guess}, ascii) {
		if text, _, _, err := charset.Decode([]byte(raw), name); err == nil {
			return text
		}
	}
	return raw
}

// parse implements the Parse of document.Format.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	root, err := readParts(in.Content)
	if err != nil {
		return nil, err
	}

	m := newMessage(root)
	w := &richtext.Writer{MaxBytes: in.Limits.Bytes, MaxCells: in.Limits.Cells}

	headers := 0
	for _, name := range shown {
		if value := m.value(name); value != "" {
			w.Paragraph(name+": "+value, &mapreduce.Location{Header: name})
			headers++
		}
	}

	if headers == 0 && len(m.header) == 0 {
		return nil, document.Refuse("not a message: it has no headers")
	}

	w.Paragraph("", nil)

	for _, p := range m.text {
		if err := writePart(ctx, w, p); err != nil {
			return nil, err
		}
	}

	w.Paragraph("", nil)

	// Attachments are documents of their own; the message names them.
	var names []string
	for i, p := range m.attachments {
		names = append(names, attachmentName(p, i))
	}
	if len(names) > 0 {
		w.Paragraph("Attachments: "+strings.Join(names, ", "), &mapreduce.Location{Header: "Attachments"})
	}

	d, err := w.Document()
	if err == nil {
		d.Title = m.value("Subject")
	}

	return d, err
}

// writePart writes the text of a part.
func writePart(ctx context.Context, w *richtext.Writer, p *enmime.Part) error {
	content := strings.ToValidUTF8(string(p.Content), "\uFFFD")
	if isLatin(p.Charset) {
		content = strings.Map(ofWindows, content)
	}

	where := &mapreduce.Location{Part: "text"}
	if p.PartID != "" && p.PartID != "0" {
		where = &mapreduce.Location{Part: richtext.Clip(p.PartID)}
	}

	if p.ContentType == "text/html" {
		return html.Write(ctx, w, strings.NewReader(content), html.Options{Place: func() *mapreduce.Location { return where }})
	}

	for line := range strings.SplitSeq(strings.ReplaceAll(content, "\r\n", "\n"), "\n") {
		w.Paragraph(line, where)
	}
	return w.Err()
}

// isLatin reports whether a charset is ISO 8859-1, under one of its names, or Windows-1252, which
// pages of the web mean by these names.
func isLatin(name string) bool {
	enc, err := htmlindex.Get(name)
	return err == nil && enc == charmap.Windows1252
}

// ofWindows returns what Windows-1252 has in the place of a control of ISO 8859-1, as quotes and
// dashes. The library decodes it as declared, but texts have no such controls.
func ofWindows(r rune) rune {
	if 0x80 <= r && r <= 0x9f {
		return charmap.Windows1252.DecodeByte(byte(r))
	}
	return r
}

// attachmentName returns the name of an attachment, without folders.
func attachmentName(p *enmime.Part, i int) string {
	name := strings.ToValidUTF8(p.FileName, "_")

	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Join(strings.Fields(name), " ")

	if name == "" || name == "." || name == ".." {
		name = fmt.Sprintf("attachment %d", i+1)
		if p.ContentType == mediaType {
			name += ".eml"
		}
	}

	return name
}
