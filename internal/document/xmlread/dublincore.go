package xmlread

import (
	"encoding/xml"
	"errors"
	"strings"

	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// Entries that hold the properties of files.
const (
	OfficeCore   = "docProps/core.xml" // of Office Open XML
	OpenDocument = "meta.xml"          // of OpenDocument
)

// errFound ends the reading of an entry.
var errFound = errors.New("dublincore: found")

// CoreTitle returns the title in an entry of a file by Dublin Core; "" if there is none, or the
// entry is damaged: the text of a document does not depend on it.
func CoreTitle(z *zipfile.Reader, entry string) (title string) {
	if !z.Has(entry) {
		return ""
	}
	e, err := z.Open(entry)
	if err != nil {
		return ""
	}
	defer e.Close()

	d := New(entry, e, z.Limits())
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		if e.Name.Local != "title" || !strings.Contains(e.Name.Space, "purl.org/dc/") {
			return d.Each(child, nil)
		}

		text, err := d.Text()
		if title = strings.TrimSpace(text); err != nil || title != "" {
			return errors.Join(err, errFound)
		}
		return nil
	}

	// The reading ends at the first title, by an error of its own.
	if err := d.Document(func(xml.StartElement) error { return d.Each(child, nil) }); err != nil && !errors.Is(err, errFound) {
		return ""
	}
	return title
}
