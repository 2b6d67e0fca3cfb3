package search

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/folder"
	"github.com/coditect/mapreduce/api/shorten"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// freshTime is how long after its last change a file is read again: two changes within the
// resolution of its time cannot be told apart.
const freshTime = 2 * time.Second

// A folderReader reads the documents of one folder, and of no other: files are opened below
// the folder, so that a link which is changed meanwhile leads nowhere else.
type folderReader struct {
	top     string // absolute and without links
	root    *os.Root
	formats *document.Registry
	now     func() time.Time
}

// openFolder opens a store's folder.
func openFolder(dir string, formats *document.Registry, now func() time.Time) (*folderReader, error) {
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	return &folderReader{top: top, root: root, formats: formats, now: now}, nil
}

// walk returns the files of the folder: those that can be read with their size and time, and
// others with the reason.
func (r *folderReader) walk(ctx context.Context) (map[string]*file, map[string]string, error) {
	all, paths := make(map[string]*file), make(map[string]string)
	for e, err := range folder.Walk(ctx, []string{r.top}, folder.Options{HoldsMany: r.formats.HoldsMany}) {
		if err != nil {
			return nil, nil, err
		}
		f := &file{Size: e.Size, Skip: e.Skip}
		rel, err := filepath.Rel(r.top, e.Path)
		if err != nil {
			return nil, nil, err
		}

		if f.Skip == "" {
			// By the root, as a link in the folder may lead out of it.
			info, err := r.root.Stat(rel)
			if err != nil {
				f.Skip = unreadable(err)
			} else {
				f.Size, f.Modified = info.Size(), info.ModTime().UnixNano()
			}
		}

		all[e.Name], paths[e.Name] = f, rel
	}
	return all, paths, nil
}

// read reads a file and its documents. The first result holds the keys of the documents, and
// the reasons why some could not be read. Only the end of ctx is an error.
func (r *folderReader) read(ctx context.Context, name, rel string) (*file, []*stored, error) {
	f, data, err := r.readBytes(rel)
	if err != nil {
		return &file{Skip: unreadable(err)}, nil, ctx.Err()
	}

	docs, err := r.documents(ctx, f, name, data)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		f.Skip = reasonOf(err)
		return f, nil, nil
	}

	read := r.now()
	for _, d := range docs {
		d.Read = read
		d.key = d.newKey()
		f.Keys = append(f.Keys, d.key)
	}
	return f, docs, nil
}

// readTimes is how often a file that changes while it is read is read.
const readTimes = 3

// readBytes returns the bytes of a file with the time of exactly these. If the file keeps
// changing, it is read again next time.
func (r *folderReader) readBytes(rel string) (*file, []byte, error) {
	for n := 1; ; n++ {
		f, data, whole, err := r.readOnce(rel)
		if err != nil || whole || n == readTimes {
			return f, data, err
		}
	}
}

// stillFresh reports whether the bytes of a file are what they were, and may change again
// without a trace.
func (r *folderReader) stillFresh(was *file, rel string) bool {
	now, _, err := r.readBytes(rel)
	return err == nil && now.Sum == was.Sum && now.Fresh
}

func (r *folderReader) readOnce(rel string) (f *file, data []byte, whole bool, err error) {
	in, err := r.root.Open(rel)
	if err != nil {
		return nil, nil, false, err
	}
	defer in.Close()

	before, err := in.Stat()
	if err != nil {
		return nil, nil, false, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, false, errors.New("it is not a regular file")
	}

	begun := r.now()
	if data, err = io.ReadAll(io.LimitReader(in, document.DefaultMaxBytes+1)); err != nil {
		return nil, nil, false, err
	}
	if len(data) > document.DefaultMaxBytes {
		return nil, nil, false, fmt.Errorf("it has more than %d bytes", int64(document.DefaultMaxBytes))
	}

	after, err := in.Stat()
	if err != nil {
		return nil, nil, false, err
	}

	// A change while the file was read shows in its time or size.
	whole = before.ModTime().Equal(after.ModTime()) && before.Size() == after.Size()
	sum := sha256.Sum256(data)
	return &file{
		Size: before.Size(), Modified: before.ModTime().UnixNano(), Sum: hex.EncodeToString(sum[:]),
		Fresh: !whole || begun.Sub(before.ModTime()) < freshTime,
	}, data, whole, nil
}

// maxDocuments bounds the documents in one file.
const maxDocuments = 1_000_000

// documents returns the documents of a file.
func (r *folderReader) documents(ctx context.Context, f *file, name string, data []byte) ([]*stored, error) {
	kind, err := r.formats.Detect(name, data, "")
	if err != nil {
		return nil, err
	}

	format, _ := r.formats.Format(kind)
	switch {
	case kind == plain.JSONLinesKind:
		return r.lines(ctx, f, name, data)
	case format.Archive:
		return nil, document.Refuse("an archive, which stays closed: put its files into the folder")
	case format.Members != nil:
		return r.members(ctx, f, name, data, format)
	}

	d, err := r.parse(ctx, name, data, "")
	if err != nil {
		return nil, err
	}
	return []*stored{d}, nil
}

func (r *folderReader) parse(ctx context.Context, name string, data []byte, media string) (*stored, error) {
	d, err := r.formats.Parse(ctx, document.Input{Name: name, Content: bytes.NewReader(data), MediaType: media})
	if err != nil {
		return nil, err
	}
	format, _ := r.formats.Format(d.Kind)
	return &stored{Name: name, Title: cmp.Or(d.Title, titleOf(d.Text, name)), Media: format.MediaTypes[0], text: d.Text}, nil
}

// lines returns the documents of a file that has one on each line.
func (r *folderReader) lines(ctx context.Context, f *file, name string, data []byte) ([]*stored, error) {
	var all []*stored
	for rec, err := range plain.JSONLines(bytes.NewReader(data), plain.LineOptions{Name: name}) {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			f.note(err.Error())
			continue
		case len(all) >= maxDocuments:
			f.note(fmt.Sprintf("only the first %d documents are read", maxDocuments))
			return all, nil
		}

		d := &stored{Name: fmt.Sprintf("%s#%d", name, rec.Line), Media: "text/plain", text: rec.Text, Metadata: textsOf(rec.Metadata)}
		// A name of its own stays when lines move.
		if rec.Name != "" {
			d.Name = name + "#" + folder.ID(rec.Name)
		}
		d.Title = d.Metadata["title"]
		all = append(all, d)
	}

	if len(all) == 0 {
		return nil, document.ErrNoText
	}
	return all, nil
}

// members returns the documents of a file that has several, such as a message with what is
// attached to it.
func (r *folderReader) members(ctx context.Context, f *file, name string, data []byte, format document.Format) ([]*stored, error) {
	var all []*stored
	for m, err := range format.Members(ctx, document.Input{Name: name, Content: bytes.NewReader(data)}) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			// The documents before the fault stay.
			f.note(reasonOf(err))
			break
		}

		full := document.MemberName(name, m.Name)
		if m.Skip != "" {
			f.note(full + ": " + m.Skip)
			continue
		}

		d, err := r.parse(ctx, full, m.Content, m.MediaType)
		if err != nil {
			f.note(full + ": " + reasonOf(err))
			continue
		}

		d.Metadata = m.Metadata
		if title := m.Metadata["title"]; title != "" {
			d.Title = title
		}
		all = append(all, d)
	}

	if len(all) == 0 {
		return nil, document.ErrNoText
	}
	return all, nil
}

// maxNotes bounds what is remembered of the parts of a file that could not be read.
const maxNotes = 5

func (f *file) note(text string) {
	if len(f.Notes) < maxNotes {
		f.Notes = append(f.Notes, text)
	}
}

// newKey returns the key of the document: the hash of its name, title, media type and text.
func (s *stored) newKey() string {
	sum := sha256.New()
	for _, part := range []string{s.Name, s.Title, s.Media, s.text} {
		_ = binary.Write(sum, binary.BigEndian, uint64(len(part))) // a hash takes all
		_, _ = io.WriteString(sum, part)
	}
	return keyOf(sum.Sum(nil))
}

// titleOf returns the first heading of a text in Markdown near its beginning, or else the
// name of its file.
func titleOf(text, name string) string {
	for line := range strings.Lines(text[:shorten.Boundary(text, 2000)]) {
		if title, ok := strings.CutPrefix(line, "# "); ok && strings.TrimSpace(title) != "" {
			return strings.TrimSpace(title)
		}
	}
	return path.Base(name)
}

// textsOf returns the members of a record that are texts or numbers, as texts.
func textsOf(members map[string]any) map[string]string {
	out := make(map[string]string)
	for name, v := range members {
		switch v := v.(type) {
		case string:
			out[name] = v
		case fmt.Stringer:
			out[name] = v.String()
		case []any:
			var parts []string
			for _, p := range v {
				if text, ok := p.(string); ok {
					parts = append(parts, text)
				}
			}
			if len(parts) > 0 {
				out[name] = strings.Join(parts, "; ")
			}
		}
	}

	return out
}

func unreadable(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return "unreadable: " + err.Error()
}

func reasonOf(err error) string {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return refused.Reason
	}
	return err.Error()
}
