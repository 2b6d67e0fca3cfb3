package compound

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/richardlehane/mscfb"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Kind is the name of the format.
const Kind document.Kind = "msg"

// Format returns the format. The text of a message is its headers and its body, like that of other
// mail. Excel workbooks and Word documents have the same container and are read by ParseXls and
// ParseDoc; other files of it (PowerPoint presentations, encrypted documents) are refused by their
// name.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Parse: parse, Members: members,
		Sniff: func(begin []byte) document.Match {
			if bytes.HasPrefix(begin, []byte(Signature)) {
				return document.Certain
			}
			return document.Excluded
		},
		Extensions: []string{".msg", ".xls", ".xlt", ".doc", ".dot", ".ppt", ".pps", ".pot"},
		MediaTypes: []string{"application/vnd.ms-outlook", "application/vnd.ms-excel", "application/msword", slidesType},
	}
}

// slidesType is the media type of PowerPoint presentations of before 2007.
const slidesType = "application/vnd.ms-powerpoint"

// maxStream bounds one stream of a message, in bytes.
const maxStream = document.DefaultMaxBytes

// Tags of properties.
const (
	subjectTag  = "0037"
	fromTag     = "0C1A"
	addressTag  = "0C1F"
	smtpTag     = "5D01"
	toTag       = "0E04"
	ccTag       = "0E03"
	bodyTag     = "1000"
	htmlTag     = "1013"
	longNameTag = "3707"
	nameTag     = "3704"
	dataTag     = "3701"
)

// A message is what is read of one.
type message struct {
	values      map[string][]byte // by tag and type
	fixed       fixed
	attachments []map[string][]byte
}

// read reads the streams of a message.
func read(ctx context.Context, c *Container) (*message, error) {
	m := &message{values: map[string][]byte{}}
	attachments := map[string]map[string][]byte{}
	err := c.Each(ctx, func(f *mscfb.File) error { return m.add(f, attachments) })
	return m, err
}

// whyForeign returns why a file is not read; nil if it is a message.
func whyForeign(c *Container) error {
	switch {
	case c.Has("EncryptedPackage") || c.Has("EncryptionInfo"):
		return document.Refuse("encrypted with a password; of encrypted files only PDF files are read: save it without a password")
	case c.Has("PowerPoint Document"):
		return document.RefuseUnread(document.Conversion{What: "a PowerPoint presentation of before 2007", From: ".ppt", To: ".pptx"})
	case c.Has("PP40"):
		return document.RefuseUnread(document.Conversion{What: "a PowerPoint presentation of before 1997", From: ".ppt", To: ".pptx"})
	case c.Has("MatOST"):
		return document.RefuseUnread(document.Conversion{What: "a document of Microsoft Works", From: ".wps", To: ".docx"})
	case !c.Has(propertiesStream):
		return document.Refuse("a file of a format of before 2007, which is not read")
	}
	return nil
}

// errWorkbook and errWord are the errors of open for what ParseXls and ParseDoc read.
var (
	errWorkbook = document.Refuse("an Excel workbook of before 2007")
	errWord     = document.Refuse("a Word document of before 2007")
)

// typeOf returns the media type under which a file is submitted that is no message, by the error
// of open; "" if it need not be submitted. Whoever parses what is not read may have it converted.
func typeOf(err error) string {
	refused, ok := errors.AsType[*document.RefusedError](err)
	switch {
	case errors.Is(err, errWorkbook):
		return "application/vnd.ms-excel"
	case errors.Is(err, errWord), ok && refused.Conversion != nil && refused.Conversion.To == ".docx":
		return "application/msword"
	case ok && refused.Conversion != nil:
		return slidesType
	}
	return ""
}

// open opens a message.
func open(ctx context.Context, content io.Reader) (*message, error) {
	c, err := Open(ctx, content)
	if err != nil {
		return nil, err
	}

	switch {
	case HoldsXls(c):
		return nil, errWorkbook
	case HoldsDoc(c):
		return nil, errWord
	}

	if err := whyForeign(c); err != nil {
		return nil, err
	}

	return read(ctx, c)
}

const (
	propertiesStream = "__properties_version1.0"
	valuePrefix      = "__substg1.0_"
	attachmentPrefix = "__attach_version1.0_"
)

// add keeps the value in a stream, if it is one of the message or of an attachment.
func (m *message) add(f *mscfb.File, attachments map[string]map[string][]byte) error {
	values := m.values
	switch {
	case len(f.Path) == 1 && strings.HasPrefix(folded(f.Path[0]), folded(attachmentPrefix)):
		values = attachments[f.Path[0]]
		if values == nil {
			values = map[string][]byte{}
			attachments[f.Path[0]] = values
			m.attachments = append(m.attachments, values)
		}
	case len(f.Path) > 0:
		return nil
	}

	if folded(f.Name) == folded(propertiesStream) && len(f.Path) == 0 {
		data, err := readStream(f)
		m.fixed = readFixed(data)
		return err
	}

	// Each value has a stream, named by its tag and its type.
	tag, ok := strings.CutPrefix(folded(f.Name), folded(valuePrefix))
	if !ok || len(tag) != 8 || f.Size > maxStream {
		return nil
	}

	data, err := readStream(f)
	values[tag] = data
	return err
}

func readStream(f *mscfb.File) ([]byte, error) {
	return io.ReadAll(io.LimitReader(f, maxStream))
}

// A fixed is what counts of the properties of fixed size.
type fixed struct {
	sent      time.Time
	page      int // code page of texts of one byte a character; 0 if it is not said
	pageOfWeb int // likewise, of the page that is the body
}

// readFixed reads the stream of the properties of fixed size.
func readFixed(properties []byte) fixed {
	const header, size = 32, 16
	const submitTime, deliveryTime, codePage, pageOfWeb = 0x00390040, 0x0E060040, 0x3FFD0003, 0x3FDE0003

	var f fixed
	for i := header; i+size <= len(properties); i += size {
		value := binary.LittleEndian.Uint64(properties[i+8:])
		switch tag := binary.LittleEndian.Uint32(properties[i:]); {
		case tag == submitTime || tag == deliveryTime && f.sent.IsZero():
			f.sent = fileTime(value)
		case tag == codePage:
			f.page = int(value & 0xffff)
		case tag == pageOfWeb:
			f.pageOfWeb = int(value & 0xffff)
		}
	}
	return f
}

// fileTime returns a time that is counted in tenths of microseconds from 1601.
func fileTime(ticks uint64) time.Time {
	const toUnix = 11_644_473_600
	seconds := int64(ticks/10_000_000) - toUnix
	if ticks == 0 || seconds > 253_402_300_799 { // behind the year 9999
		return time.Time{}
	}

	return time.Unix(seconds, 0).UTC()
}

// text returns a value that is a string, of the message or of an attachment.
func (m *message) text(values map[string][]byte, tag string) string {
	if b, ok := values[tag+"001F"]; ok {
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		return strings.TrimRight(string(utf16.Decode(units)), "\x00")
	}

	b, ok := values[tag+"001E"]
	if !ok {
		return ""
	}

	s, err := decodePages(bytes.TrimRight(b, "\x00"), m.fixed.page, m.fixed.pageOfWeb)
	if err != nil { // most texts whose charset nothing says are of Windows
		return DecodePage(bytes.TrimRight(b, "\x00"), 1252)
	}
	return s
}

// parse implements the Parse of document.Format.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	c, err := Open(ctx, in.Content)
	if err != nil {
		return nil, err
	}

	switch {
	case HoldsXls(c):
		return ParseXls(ctx, in, c)
	case HoldsDoc(c):
		return ParseDoc(ctx, in, c)
	}
	if err := whyForeign(c); err != nil {
		return nil, err
	}

	m, err := read(ctx, c)
	if err != nil {
		return nil, err
	}

	w := &richtext.Writer{MaxBytes: in.Limits.Bytes, MaxCells: in.Limits.Cells}
	for _, h := range m.shownHeaders() {
		if h.value != "" {
			w.Paragraph(h.name+": "+strings.Join(strings.Fields(h.value), " "), &mapreduce.Location{Header: h.name})
		}
	}

	w.Paragraph("", nil)

	// The plain text goes before the page that says the same.
	where := &mapreduce.Location{Part: "text"}
	if body := m.text(m.values, bodyTag); strings.TrimSpace(body) != "" {
		for line := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
			w.Paragraph(line, where)
		}
	} else if err := m.writeHTML(ctx, w, where); err != nil {
		return nil, err
	}

	w.Paragraph("", nil)

	var names []string
	for i, a := range m.attachments {
		names = append(names, m.attachmentName(a, i))
	}
	if len(names) > 0 {
		w.Paragraph("Attachments: "+strings.Join(names, ", "), &mapreduce.Location{Header: "Attachments"})
	}

	d, err := w.Document()
	if err == nil {
		d.Title = m.text(m.values, subjectTag)
	}

	return d, err
}

// writeHTML writes the body of a message that has no text.
func (m *message) writeHTML(ctx context.Context, w *richtext.Writer, where *mapreduce.Location) error {
	data := m.values[htmlTag+"0102"]
	page := m.text(m.values, htmlTag)

	if data != nil {
		decode := decodePages
		if own := html.DeclaredCharset(data); own != "" && !strings.EqualFold(own, "utf-8") {
			decode = decodeAsSaid // two say the same, or nearly
		}

		decoded, err := decode(data, m.fixed.pageOfWeb, m.fixed.page)
		if err != nil {
			return err
		}
		page = decoded
	}

	return html.Write(ctx, w, strings.NewReader(page), html.Options{Place: func() *mapreduce.Location { return where }})
}

// A header is one with its name.
type header struct{ name, value string }

// shownHeaders returns those that are shown.
func (m *message) shownHeaders() []header {
	address := m.text(m.values, smtpTag)
	if address == "" {
		address = m.text(m.values, addressTag)
	}

	// The address tells people of the same name apart.
	from := m.text(m.values, fromTag)
	if strings.Contains(address, "@") && address != from {
		from = strings.TrimSpace(from + " <" + address + ">")
	}

	date := ""
	if !m.fixed.sent.IsZero() {
		date = m.fixed.sent.Format(time.RFC1123Z)
	}

	return []header{
		{"From", from},
		{"To", m.text(m.values, toTag)},
		{"Cc", m.text(m.values, ccTag)},
		{"Date", date},
		{"Subject", m.text(m.values, subjectTag)},
	}
}

// attachmentName returns the name of an attachment, without folders.
func (m *message) attachmentName(values map[string][]byte, i int) string {
	name := m.text(values, longNameTag)
	if name == "" {
		name = m.text(values, nameTag)
	}

	name = strings.ToValidUTF8(name[strings.LastIndexAny(name, `/\`)+1:], "_")
	if name = strings.Join(strings.Fields(name), " "); name == "" || name == "." || name == ".." {
		name = fmt.Sprintf("attachment %d", i+1)
	}

	return name
}

// members implements the Members of document.Format: the message, and its attachments.
func members(ctx context.Context, in document.Input) document.Members {
	return func(yield func(document.Member, error) bool) {
		limits := in.Members.WithDefaults()

		data, err := io.ReadAll(io.LimitReader(in.Content, limits.Bytes+1))
		switch {
		case err != nil:
			yield(document.Member{}, fmt.Errorf("msg: %w", err))
			return
		case int64(len(data)) > limits.Bytes:
			yield(document.Member{Skip: fmt.Sprintf("too large: more than %d bytes (--document-bytes)", limits.Bytes)}, nil)
			return
		}

		// A file of the same container is one member, which another package reads.
		m, err := open(ctx, bytes.NewReader(data))
		if mediaType := typeOf(err); mediaType != "" {
			yield(document.Member{MediaType: mediaType, Content: data}, nil)
			return
		}
		if err != nil {
			if refused, ok := errors.AsType[*document.RefusedError](err); ok {
				yield(document.Member{Skip: refused.Reason}, nil)
				return
			}
			yield(document.Member{}, err)
			return
		}

		if !yield(document.Member{MediaType: "application/vnd.ms-outlook", Content: data}, nil) {
			return
		}

		seen := map[string]int{}
		for i, a := range m.attachments {
			if i == limits.Attachments {
				yield(document.Member{Name: "more", Skip: fmt.Sprintf("a message of more than %d attachments (--mail-attachments)", i)}, nil)
				return
			}

			name := m.attachmentName(a, i)
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s#%d", name, seen[name])
			}

			member := document.Member{Name: name, Content: a[dataTag+"0102"], Messages: 1}
			if member.Content == nil {
				member.Skip = "a message or object within a message of Outlook, which is not read"
			}

			if !yield(member, nil) {
				return
			}
		}
	}
}
