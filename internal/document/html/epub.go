package html

import (
	"bytes"
	"context"
	"encoding/xml"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// EpubKind is the name of the format.
const EpubKind document.Kind = "epub"

const mediaType = "application/epub+zip"

// EpubFormat returns the format of e-books. Their text is that of the chapters in the order in
// which they are read.
func EpubFormat() document.Format {
	return document.Format{
		Kind: EpubKind, Parse: parseBook,
		Sniff:      func(begin []byte) document.Match { return zipfile.SniffMimetype(begin, mediaType) },
		Extensions: []string{".epub"},
		MediaTypes: []string{mediaType},
	}
}

// maxChapter bounds a chapter, in bytes.
const maxChapter = 32 << 20

// parseBook implements the Parse of document.Format.
func parseBook(ctx context.Context, in document.Input) (*document.Document, error) {
	z, err := zipfile.Open(ctx, in)
	if err != nil {
		return nil, err
	}

	r := &bookReader{zip: z, writer: &richtext.Writer{MaxBytes: in.Limits.Bytes, MaxCells: in.Limits.Cells}, encrypted: map[string]bool{}}
	if err := r.readEncryption(); err != nil {
		return nil, err
	}

	spine, err := r.readSpine()
	if err != nil {
		return nil, err
	}

	for _, name := range spine {
		if r.encrypted[name] {
			return nil, document.Refuse("encrypted: only the reader that it was sold for can read it")
		}

		// A chapter that is missing leaves the others readable.
		if !z.Has(name) {
			continue
		}
		if err := r.writeChapter(ctx, name); err != nil {
			return nil, err
		}
	}

	d, err := r.writer.Document()
	if err == nil {
		d.Title = xmlread.CoreTitle(z, r.packageFile)
	}

	return d, err
}

// A reader reads one book.
type bookReader struct {
	zip         *zipfile.Reader
	packageFile string // entry that lists the others
	writer      *richtext.Writer
	encrypted   map[string]bool // entries
	chapter     *mapreduce.Location
	level       int               // of the heading that named the chapter
	titles      map[string]string // of entries, by the table of contents
}

// open calls child for the elements within the outermost one of an entry.
func (r *bookReader) open(name string, child func(*xmlread.Decoder, xml.StartElement) error) error {
	e, err := r.zip.Open(name)
	if err != nil {
		return err
	}
	defer e.Close()

	d := xmlread.New(name, e, r.zip.Limits())
	return d.Document(func(xml.StartElement) error {
		return d.Each(func(e xml.StartElement) error { return child(d, e) }, nil)
	})
}

// readEncryption reads which entries are encrypted. Some books encrypt their fonts alone.
func (r *bookReader) readEncryption() error {
	const name = "META-INF/encryption.xml"

	if !r.zip.Has(name) {
		return nil
	}
	return r.open(name, func(d *xmlread.Decoder, _ xml.StartElement) error {
		var child func(xml.StartElement) error
		child = func(e xml.StartElement) error {
			if e.Name.Local == "CipherReference" {
				r.encrypted[resolve("", xmlread.Attr(e, "URI"))] = true
			}
			return d.Each(child, nil)
		}
		return d.Each(child, nil)
	})
}

// resolve returns the entry that a reference in a folder leads to.
func resolve(folder, reference string) string {
	reference, _, _ = strings.Cut(reference, "#")
	if decoded, err := url.PathUnescape(reference); err == nil {
		reference = decoded
	}
	return strings.TrimPrefix(path.Join("/", folder, reference), "/")
}

// readSpine returns the entries of the chapters in their order.
func (r *bookReader) readSpine() ([]string, error) {
	err := r.open("META-INF/container.xml", func(d *xmlread.Decoder, _ xml.StartElement) error {
		return d.Each(func(e xml.StartElement) error {
			if file := xmlread.Attr(e, "full-path"); r.packageFile == "" {
				r.packageFile = resolve("", file)
			}
			return d.Skip()
		}, nil)
	})
	if err != nil {
		return nil, err
	}

	// The manifest names the entries, and the spine their order, by ids.
	items, spine, contents := map[string]string{}, []string(nil), ""
	seen := map[string]bool{}

	err = r.open(r.packageFile, func(d *xmlread.Decoder, e xml.StartElement) error {
		if e.Name.Local != "manifest" && e.Name.Local != "spine" {
			return d.Skip()
		}
		return d.Each(func(e xml.StartElement) error {
			switch e.Name.Local {
			case "item":
				if t := xmlread.Attr(e, "media-type"); strings.Contains(t, "html") {
					items[xmlread.Attr(e, "id")] = resolve(path.Dir(r.packageFile), xmlread.Attr(e, "href"))
				} else if t == "application/x-dtbncx+xml" {
					contents = resolve(path.Dir(r.packageFile), xmlread.Attr(e, "href"))
				}
			case "itemref":
				if name := items[xmlread.Attr(e, "idref")]; name != "" && !seen[name] {
					seen[name] = true
					spine = append(spine, name)
				}
			}
			return d.Skip()
		}, nil)
	})

	if err == nil && len(spine) == 0 {
		err = document.Refuse("damaged: %s names no chapters", r.packageFile)
	}

	if err == nil {
		r.readTitles(contents)
	}

	return spine, err
}

// readTitles reads the titles of chapters. A damaged table of contents is as none.
func (r *bookReader) readTitles(contents string) {
	r.titles = map[string]string{}

	if !r.zip.Has(contents) {
		return
	}

	label := ""
	titles := map[string]string{}

	// The label of an entry stands before its address.
	err := r.open(contents, func(d *xmlread.Decoder, _ xml.StartElement) error {
		var child func(xml.StartElement) error
		child = func(e xml.StartElement) (err error) {
			switch e.Name.Local {
			case "navLabel":
				label, err = d.Text()
				return err
			case "content":
				if name := resolve(path.Dir(contents), xmlread.Attr(e, "src")); titles[name] == "" {
					titles[name] = strings.Join(strings.Fields(label), " ")
				}
			}
			return d.Each(child, nil)
		}
		return d.Each(child, nil)
	})

	if err == nil {
		r.titles = titles
	}
}

// encodingPattern finds the charset that XML declares.
var encodingPattern = regexp.MustCompile(`^\s*<\?xml[^>]*encoding=["']([A-Za-z0-9._-]+)["']`)

// writeChapter writes an entry. Its first heading names the chapter, and so does each
// other of the same level or above.
func (r *bookReader) writeChapter(ctx context.Context, name string) error {
	data, err := r.zip.ReadAll(name, maxChapter)
	if err != nil {
		return err
	}

	// A declaration that can be read byte by byte is not in UTF-16, whatever it says.
	declared := ""
	if m := encodingPattern.FindSubmatch(data[:min(len(data), 200)]); m != nil && !strings.HasPrefix(strings.ToLower(string(m[1])), "utf-16") {
		declared = string(m[1])
	}

	page, _, _, err := charset.Decode(data, declared)
	if err != nil {
		return err
	}

	if title := richtext.Clip(r.titles[name]); title != "" {
		r.chapter = &mapreduce.Location{Chapter: title}
	} else if r.chapter == nil {
		r.chapter = &mapreduce.Location{Chapter: richtext.Clip(path.Base(name))}
	}

	r.level = 7 // below all headings

	return Write(ctx, r.writer, bytes.NewReader([]byte(page)), Options{
		Title: r.titles[name],
		Place: func() *mapreduce.Location { return r.chapter },
		Heading: func(level int, text string) {
			if title := richtext.Clip(text); level <= r.level && title != "" {
				r.level, r.chapter = level, &mapreduce.Location{Chapter: title}
			}
		},
	})
}
