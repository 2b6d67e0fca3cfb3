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

	if name := r.foreignName(begin, matches); name != "" {
		return "", Refuse("%s, not text", name)
	}

	if isSigned(begin) { // whatever the name says, it is none of the formats of text
		for i, f := range r.formats {
			if f.Sniff == nil || f.Sniff([]byte("text")) != Excluded {
				matches[i] = Excluded
			}
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

	// The name goes before what the document looks like: a text may begin like anything.
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

// foreignFormats begin with a signature, and are not text, whatever their name says. Those that
// a registered format may be are refused only if none of the formats takes them. The first
// ofText of them may consist of text.
var foreignFormats = [...]struct{ magic, name string }{
	{"%PDF-", "a PDF file"},
	{"%!PS", "a PostScript file"},
	{`{\rtf`, "an RTF file"},
	{"PK\x03\x04", "a zip file"},
	{"PK\x05\x06", "an empty zip file"},
	{"\x1f\x8b", "a file packed by gzip"},
	{"BZh", "a file packed by bzip2"},
	{"\xfd7zXZ\x00", "a file packed by xz"},
	{"\x28\xb5\x2f\xfd", "a file packed by zstd"},
	{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"},
	{"Rar!\x1a\x07", "a RAR archive"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office file of before 2007"},
	{"\x89PNG\r\n\x1a\n", "a PNG picture"},
	{"\xff\xd8\xff", "a JPEG picture"},
	{"GIF87a", "a GIF picture"},
	{"GIF89a", "a GIF picture"},
	{"II*\x00", "a TIFF picture"},
	{"MM\x00*", "a TIFF picture"},
	{"8BPS\x00", "a Photoshop picture"},
	{"RIFF", "a RIFF file: a WebP picture, sound or a video"},
	{"OggS\x00", "an Ogg file: sound or a video"},
	{"fLaC\x00", "a FLAC sound"},
	{"ID3\x02", "an MP3 sound"},
	{"ID3\x03", "an MP3 sound"},
	{"ID3\x04", "an MP3 sound"},
	{"\x1aE\xdf\xa3", "a Matroska or WebM video"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"PAR1", "a Parquet file"},
	{"Obj\x01", "an Avro file"},
	{"ARROW1\x00", "an Arrow file"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 file"},
	{"\x7fELF", "a program"},
	{"\x00asm", "a WebAssembly module"},
	{"\xca\xfe\xba\xbe", "a Java class or a program"},
	{"\xfe\xed\xfa", "a program"},
	{"\xcf\xfa\xed\xfe", "a program"},
	{"wOFF", "a font"},
	{"wOF2", "a font"},
	{"\x00\x01\x00\x00\x00", "a font"},
}

// cameraBrands are the main brands of files in the form of MP4 that are pictures.
var cameraBrands = [...]string{"heic", "heix", "heim", "heis", "hevc", "mif1", "msf1", "avif", "avis"}

// binaryName returns the name of a foreign format that a beginning without text has; "" if it
// has none.
func binaryName(begin []byte) string {
	switch {
	case len(begin) > 12 && string(begin[4:8]) == "ftyp" && slices.Contains(cameraBrands[:], string(begin[8:12])):
		return "a HEIC or AVIF picture, which is not read (save it as JPEG or PNG)"
	case len(begin) > 12 && string(begin[4:8]) == "ftyp":
		return "a video, or a picture of a camera"
	case bytes.HasPrefix(begin, []byte("MZ")) && bytes.IndexByte(begin, 0) >= 0:
		return "a program"
	case bytes.HasPrefix(begin, []byte("BM")) && len(begin) > 14 && bytes.Equal(begin[6:10], make([]byte, 4)):
		return "a BMP picture"
	}
	return ""
}

// foreignName returns the name of the format by whose signature a document begins, unless a
// registered format that excludes text begins so, too; "" if there is none.
func (r *Registry) foreignName(begin []byte, matches []Match) string {
	name, signed := formatBySignature(begin)
	switch {
	case !signed:
		return binaryName(begin)
	case r.isOfBinary(matches):
		return ""
	}
	return name
}

// isSigned reports whether a document begins with the signature of a format that is not text.
func isSigned(begin []byte) bool {
	_, signed := formatBySignature(begin)
	return signed
}

// formatBySignature returns the name of the format by whose signature a document begins. A text may begin
// with the letters of some of them, and has no zeros.
func formatBySignature(begin []byte) (name string, signed bool) {
	for i, f := range foreignFormats {
		if !bytes.HasPrefix(begin, []byte(f.magic)) {
			continue
		}
		readable := strings.IndexFunc(f.magic, func(r rune) bool { return r < ' ' || r > '~' }) < 0
		if i < ofText || !readable || bytes.IndexByte(begin, 0) >= 0 {
			return f.name, true
		}
	}
	return "", false
}

// ofText is how many of the foreign formats, the first, consist of text.
const ofText = 3

// isOfBinary reports whether a document may be of a format that tells its documents by their
// first bytes, and excludes all text.
func (r *Registry) isOfBinary(matches []Match) bool {
	for i, f := range r.formats {
		if matches[i] != Excluded && f.Sniff != nil && f.Sniff([]byte("text")) == Excluded {
			return true
		}
	}
	return false
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

	// Patterns count only if no format has the media type itself.
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
