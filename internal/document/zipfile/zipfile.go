// Package zipfile reads zip files within bounds. Formats whose files are zip files (DOCX,
// XLSX, ODT, EPUB) rest on it, and so do the formats of archives, which it has: zip and tar files,
// the latter also packed by gzip, whose members are documents of their own. Nothing is ever written to a disk, and
// names of entries are only compared.
package zipfile

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
)

// ratioFree is how many bytes any entry may expand to: a short text of one letter packs
// a thousandfold and harms nobody.
const ratioFree = 1 << 20

// Flags are the names of the flags that set limits. Refusals name those that are there.
type Flags struct{ Bytes, Entries, Unpacked, Ratio string }

// ofDocuments are the flags that set the limits of documents.
var ofDocuments = Flags{"document-bytes", "document-entries", "document-unpacked", "document-ratio"}

// A Reader has the entries of a zip file. It is used by one goroutine.
type Reader struct {
	ctx    context.Context //nolint:containedctx // a reader lives as long as one call of a parser
	files  []*zip.File
	byName map[string]*zip.File
	folded map[string]*zip.File // by names as some programs write them, see foldName
	size   int64                // bytes of the zip file
	limits document.Limits
	flags  Flags
	left   int64 // bytes that may still be unpacked
}

// directoryRecord begins the record of an entry in the directory of a zip file.
var directoryRecord = []byte("PK\x01\x02")

// Open reads a document that is a zip file, within the limits of the document.
func Open(ctx context.Context, in document.Input) (*Reader, error) {
	r := &Reader{ctx: ctx, flags: ofDocuments, limits: in.Limits.WithDefaults()}
	return r, r.readDirectory(in.Content)
}

// New reads a zip file from its first to its last byte. What is read of it ends when ctx
// does. The error is a document.RefusedError if it is none, or exceeds the limits, which
// flags set.
func New(ctx context.Context, content io.Reader, limits document.Limits, flags Flags) (*Reader, error) {
	r := &Reader{ctx: ctx, flags: flags, limits: limits.WithDefaults()}
	return r, r.readDirectory(content)
}

// readDirectory reads what the file has.
func (r *Reader) readDirectory(content io.Reader) error {
	data, size, err := r.readerAt(content)
	if err != nil {
		return err
	}
	// The directory is counted before it is read, as each record of 46 bytes takes several
	// hundred in memory. Packed data may hold such bytes too, hence the factor.
	switch n, err := countRecords(io.NewSectionReader(data, 0, size)); {
	case err != nil:
		return fmt.Errorf("zipfile: %w", err)
	case n > 4*r.limits.Entries:
		return r.tooManyEntries()
	}

	z, err := zip.NewReader(data, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // such names are known to none that asks
		return document.Refuse("a damaged zip file: %v", err)
	}

	if len(z.File) > r.limits.Entries {
		return r.tooManyEntries()
	}

	r.files, r.size, r.left = z.File, size, r.limits.Unpacked
	r.byName, r.folded = make(map[string]*zip.File, len(z.File)), make(map[string]*zip.File, len(z.File))

	// Of two entries of a name the first is read, however often it is asked for.
	for _, f := range z.File {
		if _, twice := r.byName[f.Name]; !twice {
			r.byName[f.Name] = f
		}
		if name := foldName(f.Name); r.folded[name] == nil {
			r.folded[name] = f
		}
	}
	return nil
}

// foldName returns a name without what programs do differently: some part folders by backslashes, and
// Office finds parts in whatever case their names are.
func foldName(name string) string { return strings.ToLower(withSlashes(name)) }

// withSlashes returns a name whose folders are parted by slashes.
func withSlashes(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// find returns the entry of a name, or else one whose name is the same but for case and slashes; nil
// if there is none.
func (r *Reader) find(name string) *zip.File {
	if f := r.byName[name]; f != nil {
		return f
	}
	return r.folded[foldName(name)]
}

// readerAt returns a file as it is, and reads all of another reader. It also returns the
// number of bytes.
func (r *Reader) readerAt(content io.Reader) (io.ReaderAt, int64, error) {
	limit := r.limits.Bytes

	if file, ok := content.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		// An archive may be larger than the memory, and is read where it is.
		size, err := file.Seek(0, io.SeekEnd)
		if err == nil && size > limit {
			err = document.Refuse("too large: more than %d bytes%s", limit, flagAdvice(r.flags.Bytes))
		}
		return file, size, err
	}

	data, err := io.ReadAll(io.LimitReader(content, limit+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("zipfile: %w", err)
	case int64(len(data)) > limit:
		return nil, 0, document.Refuse("too large: more than %d bytes%s", limit, flagAdvice(r.flags.Bytes))
	}

	return bytes.NewReader(data), int64(len(data)), nil
}

// countRecords counts what may be records of a directory.
func countRecords(r io.Reader) (int, error) {
	buffer := make([]byte, 1<<18)
	n, kept := 0, 0
	for {
		read, err := io.ReadFull(r, buffer[kept:])
		n += bytes.Count(buffer[:kept+read], directoryRecord)

		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}

		// A record may begin in one part of the file and end in the next.
		kept = copy(buffer, buffer[len(buffer)-len(directoryRecord)+1:])
	}
}

func (r *Reader) tooManyEntries() error {
	return document.Refuse("a zip file of more than %d entries%s", r.limits.Entries, flagAdvice(r.flags.Entries))
}

// flagAdvice returns the end of a refusal: the flag that sets the limit, if one does.
func flagAdvice(name string) string {
	if name == "" {
		return ""
	}
	return " (--" + name + ")"
}

// Limits returns the limits of the document.
func (r *Reader) Limits() document.Limits { return r.limits }

// Names returns the names of all entries in the order of the file. They are as hostile
// as the file, and may stand twice.
func (r *Reader) Names() []string {
	names := make([]string, len(r.files))
	for i, f := range r.files {
		names[i] = f.Name
	}
	return names
}

// Has reports whether there is an entry of a name. Case and the kind of slashes do not count, unless two
// names differ in them alone; so it is with Match and Open, too.
func (r *Reader) Has(name string) bool { return r.find(name) != nil }

// Match returns the names of the entries that fit a pattern of path.Match, sorted, with slashes. Of
// entries that Open takes for one, it returns the name of the one that Open opens.
func (r *Reader) Match(pattern string) []string {
	var names []string
	for name := range r.byName {
		if ok, err := path.Match(foldName(pattern), foldName(name)); !ok || err != nil {
			continue
		}

		name = withSlashes(name)
		if withSlashes(r.find(name).Name) == name {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// Open opens an entry. It and the reads from it give a document.RefusedError if there is
// no such entry, if it is encrypted or damaged, or if it exceeds the limits.
func (r *Reader) Open(name string) (io.ReadCloser, error) {
	f := r.find(name)
	if f == nil {
		return nil, document.Refuse("damaged: it lacks %s", name)
	}
	return r.open(f)
}

// OpenAt opens an entry by its number in Names.
func (r *Reader) OpenAt(i int) (io.ReadCloser, error) { return r.open(r.files[i]) }

// encryptedFlag is set in the flags of entries that are encrypted.
const encryptedFlag = 1

func (r *Reader) open(f *zip.File) (io.ReadCloser, error) {
	if f.Flags&encryptedFlag != 0 {
		return nil, document.Refuse("encrypted: %s needs a password; of encrypted files only PDF files are read", f.Name)
	}

	content, err := f.Open()
	if err != nil {
		return nil, document.Refuse("damaged: %s: %v", f.Name, err)
	}

	// A size that the directory states is not believed beyond the size of the file.

	packed := min(int64(min(f.CompressedSize64, 1<<62)), r.size)
	return &entry{reader: r, name: f.Name, content: content, max: max(ratioFree, packed*r.limits.Ratio)}, nil
}

// ReadAll returns the content of an entry of at most max bytes.
func (r *Reader) ReadAll(name string, max int64) ([]byte, error) {
	e, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer e.Close()

	data, err := io.ReadAll(io.LimitReader(e, max+1))
	if err != nil {
		return nil, err
	}

	if int64(len(data)) > max {
		return nil, document.Refuse("too large: %s has more than %d bytes", name, max)
	}

	return data, nil
}

// ReadAside is ReadAll for an entry that the text of the document does without, such as a picture: what
// it has does not count as unpacked, as none of it is kept.
func (r *Reader) ReadAside(name string, max int64) ([]byte, error) {
	left := r.left
	defer func() { r.left = left }()
	r.left = max + 1
	return r.ReadAll(name, max)
}

// An entry is one that is open.
type entry struct {
	reader  *Reader
	name    string
	content io.ReadCloser
	read    int64
	max     int64 // by the ratio
}

// Read implements io.Reader.
func (e *entry) Read(p []byte) (int, error) {
	if e.reader.ctx.Err() != nil {
		return 0, context.Cause(e.reader.ctx)
	}

	n, err := e.content.Read(p)
	e.read += int64(n)
	e.reader.left -= int64(n)

	switch {
	case e.read > e.max:
		return 0, document.Refuse("%s expands to more than %d times its size%s", e.name, e.reader.limits.Ratio, flagAdvice(e.reader.flags.Ratio))
	case e.reader.left < 0:
		return 0, document.Refuse("expands to more than %d bytes%s", e.reader.limits.Unpacked, flagAdvice(e.reader.flags.Unpacked))
	case err != nil && !errors.Is(err, io.EOF):
		return n, document.Refuse("damaged: %s: %v", e.name, err)
	}
	return n, err
}

// Close implements io.Closer.
func (e *entry) Close() error { return e.content.Close() }

// localHeader begins the header in front of each entry.
const localHeader = "PK\x03\x04"

// BeginsOf returns the names of the entries whose headers stand in the beginning of a zip
// file, and the content of the first one that is called mimetype, if it is there and not
// packed. Formats are recognised by them. Both are empty if it is no zip file.
func BeginsOf(begin []byte) (names []string, mimetype string) {
	if !bytes.HasPrefix(begin, []byte(localHeader)) {
		return nil, ""
	}

	const headerSize = 30

	for at := 0; ; {
		if len(begin)-at < headerSize {
			return names, mimetype
		}

		h := begin[at:]
		nameSize, extraSize := int(h[26])|int(h[27])<<8, int(h[28])|int(h[29])<<8
		size := int(h[18]) | int(h[19])<<8 | int(h[20])<<16
		if len(h) < headerSize+nameSize {
			return names, mimetype
		}

		name := string(h[headerSize : headerSize+nameSize])
		names = append(names, name)

		data := headerSize + nameSize + extraSize
		if name == "mimetype" && mimetype == "" && h[8] == 0 && h[9] == 0 {
			mimetype = storedText(h[min(len(h), data):], size, h[6]&descriptorFlag != 0)
		}

		// Sizes may stand behind the data, so the next header is looked for.
		next := bytes.Index(h[headerSize+nameSize:], []byte(localHeader))
		if next < 0 {
			return names, mimetype
		}
		at += headerSize + nameSize + next
	}
}

// descriptorFlag is set in the flags of entries whose size stands behind them.
const descriptorFlag = 8

// storedText returns the content of an entry that is not packed, from its first byte on.
func storedText(data []byte, size int, sizeBehind bool) string {
	if size == 0 && sizeBehind {
		size = max(0, bytes.Index(data, []byte("PK")))
	}
	if size > len(data) {
		return ""
	}
	return strings.TrimSpace(string(data[:size]))
}

// SniffFolder tells a zip file with entries in a folder, such as "word/", from others.
func SniffFolder(begin []byte, folder string) document.Match {
	if !bytes.HasPrefix(begin, []byte(localHeader)) {
		return document.Excluded
	}

	names, mimetype := BeginsOf(begin)

	switch {
	case mimetype != "":
		return document.Excluded
	case slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(foldName(n), folder) }):
		return document.Certain
	}
	return document.Possible
}

// SniffMimetype tells a zip file whose entry mimetype is one of some from others.
func SniffMimetype(begin []byte, mimetypes ...string) document.Match {
	names, mimetype := BeginsOf(begin)
	switch {
	case slices.Contains(mimetypes, mimetype):
		return document.Certain
	case names == nil || mimetype != "":
		return document.Excluded
	}
	return document.Possible
}
