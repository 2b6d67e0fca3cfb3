package document

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Detect returns the kind of a document. Its first bytes decide if they are certain
// to be of a format. Otherwise several formats are possible, and the first of these
// decides: its declared media type, the extension of its name, the format that it
// begins like, the format that it resembles, the first format of the registry. Detect
// refuses formats that are known and not registered. Parse checks the rest of the
// document. Both name and media type may be empty.
func (r *Registry) Detect(name string, begin []byte, mediaType string) (Kind, error) {
	matches := r.sniff(begin[:min(len(begin), SniffBytes)])
	if i := slices.Index(matches, Certain); i >= 0 {
		return r.formats[i].Kind, nil
	}
	for _, f := range foreignFormats {
		if bytes.HasPrefix(begin, []byte(f.magic)) {
			return "", Refuse("%s, not text", f.name)
		}
	}
	switch i, err := r.declaredFormat(mediaType); {
	case err != nil:
		return "", err
	case i >= 0 && matches[i] == Excluded:
		return "", Refuse("declared as %s, but its first bytes are not of that format", r.formats[i].MediaTypes[0])
	case i >= 0:
		return r.formats[i].Kind, nil
	}
	if i := r.formatOfName(name); i >= 0 && matches[i] != Excluded {
		return r.formats[i].Kind, nil
	}
	if i := slices.Index(matches, Begins); i >= 0 {
		return r.formats[i].Kind, nil
	}
	if i := slices.Index(matches, Resembles); i >= 0 && filepath.Ext(name) == "" {
		return r.formats[i].Kind, nil
	}
	for i, m := range matches {
		if m != Excluded {
			return r.formats[i].Kind, nil
		}
	}
	return "", Refuse("of no format that is known")
}

// sniff returns how well the beginning of a document fits each format.
func (r *Registry) sniff(begin []byte) []Match {
	matches := make([]Match, len(r.formats))
	for i, f := range r.formats {
		matches[i] = Possible
		if f.Sniff != nil {
			matches[i] = f.Sniff(begin)
		}
	}
	return matches
}

// foreignFormats may consist of text characters, but are not readable as text.
var foreignFormats = [...]struct{ magic, name string }{
	{"%PDF-", "a PDF file"},
	{"%!PS", "a PostScript file"},
	{`{\rtf`, "an RTF file"},
}

// declaredFormat returns which format a media type declares, or -1 if it says nothing.
func (r *Registry) declaredFormat(mediaType string) (int, error) {
	if mediaType == "" {
		return -1, nil
	}
	m, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return -1, Refuse("declared as %q, which is not a media type", mediaType)
	}
	if m == "application/octet-stream" || m == "text/plain" { // too general to tell anything
		return -1, nil
	}
	if i := slices.IndexFunc(r.formats, func(f Format) bool { return slices.Contains(f.MediaTypes, m) }); i >= 0 {
		return i, nil
	}
	for i, f := range r.formats {
		for _, pattern := range f.MediaTypes {
			if ok, err := path.Match(pattern, m); ok && err == nil {
				return i, nil
			}
		}
	}
	return -1, Refuse("declared as %s, not text", m)
}

// formatOfName returns which format the extension of a name stands for, or -1.
func (r *Registry) formatOfName(name string) int {
	extension := strings.ToLower(filepath.Ext(name))
	if extension == "" {
		return -1
	}
	return slices.IndexFunc(r.formats, func(f Format) bool { return slices.Contains(f.Extensions, extension) })
}

// HoldsMany reports whether a file with a name holds many documents, which are read one
// by one.
func (r *Registry) HoldsMany(name string) bool {
	i := r.formatOfName(name)
	return i >= 0 && r.formats[i].Parse == nil
}

// TrimBegin returns the beginning of a text without a byte order mark and white space.
func TrimBegin(begin []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(begin, []byte("\xef\xbb\xbf")))
}

// peekBegin returns the first bytes of r, and a reader of all of it.
func peekBegin(r io.Reader) ([]byte, io.Reader, error) {
	begin := make([]byte, SniffBytes)
	n, err := io.ReadFull(r, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, err
	}
	begin = begin[:n]
	return begin, io.MultiReader(bytes.NewReader(begin), r), nil
}
