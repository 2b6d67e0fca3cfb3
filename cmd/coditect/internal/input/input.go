// Package input turns the inputs of a user (folders, files, standard input and the records
// of finished jobs) into the documents of a submission. An input that cannot be processed
// becomes a skipped document with the reason, so that the ledger lists it.
//
// It holds one document at a time, and only a few bytes of each other document.
// Errors that the user can fix have the kind errs.Invalid.
package input

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/folder"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// Config holds what to read, and how.
type Config struct {
	// Formats are those that inputs may have. Needed.
	Formats *document.Registry
	// Inputs are folders, files, folder.Stdin, and jobs as JobPrefix and the id.
	// Needed, unless there is a Question.
	Inputs []string
	// Question is the one document, named "question", if there are no Inputs.
	Question string
	// Service has the results of the jobs that Inputs names. Needed if it names any.
	Service Service
	// Partial accepts jobs that are not complete, with what they have found so far.
	Partial bool
	// Include and Exclude are globs over the relative paths of files in
	// folders, see folder.Options.
	Include, Exclude []string
	// FollowLinks reads files outside of folders that links in them lead to.
	FollowLinks bool
	// Archives opens archives: each file in one is a document.
	Archives bool
	// Sample is how many of the documents to choose; 0 means all. The choice
	// depends only on their ids.
	Sample int
	// Encoding is the encoding of plain documents, by its name on the web. Defaults to
	// UTF-8, or what the bytes of a document look like.
	Encoding string
	// Note tells the user something about the inputs, if it is set.
	Note func(message string)
	// MaxBytes bounds a document. Defaults to document.DefaultMaxBytes.
	MaxBytes int64
	// Members bound what is read of files of several documents, but for lines. Its Bytes are
	// MaxBytes.
	Members document.MemberLimits
	// Stdin is standard input. Check peeks at its beginning. Needed if Inputs
	// names it.
	Stdin *bufio.Reader

	files []string // paths without those inside of others; set by withDefaults
}

func (c Config) withDefaults() Config {
	c.MaxBytes = cmp.Or(c.MaxBytes, document.DefaultMaxBytes)
	c.Members = c.Members.WithDefaults()
	c.Members.Bytes = c.MaxBytes
	c.files = outermost(c.paths())
	return c
}

func (c Config) walkInputs(ctx context.Context) iter.Seq2[folder.Entry, error] {
	return folder.Walk(ctx, c.files, folder.Options{
		Include: c.Include, Exclude: c.Exclude, MaxBytes: c.MaxBytes, HoldsMany: c.Formats.HoldsMany, FollowLinks: c.FollowLinks,
	})
}

// Check checks the inputs without reading them. It returns an error if an input is
// missing, if there is nothing to read, or if two documents have one id. CheckJobs
// checks the jobs among them.
func Check(ctx context.Context, c Config) error {
	c = c.withDefaults()
	if err := c.checkNames(); err != nil {
		return err
	}

	if len(c.files) == 0 {
		return nil
	}

	files, why := 0, ""
	for e, err := range c.walkInputs(ctx) {
		switch {
		case err != nil:
			return invalidInput(ctx, err)
		case e.Skip != "":
			why = cmp.Or(why, fmt.Sprintf("%s: %s", e.Name, e.Skip))
			continue
		}
		files++
		if len(c.files) == 1 {
			break // their ids differ
		}
	}

	switch {
	case files > 0 || len(c.Jobs()) > 0:
		return nil
	case why != "":
		return errs.Field("input", "there is nothing to read in %s: every file is skipped, the first is %s", c.inputNames(), why)
	case len(c.Include)+len(c.Exclude) > 0:
		return errs.Field("input", "there is nothing to read in %s: no file is left by --include and --exclude", c.inputNames())
	}
	return errs.Field("input", "there is nothing to read in %s: no file was found, and hidden ones do not count", c.inputNames())
}

func (c Config) inputNames() string { return strings.Join(c.Inputs, ", ") }

func (c Config) checkNames() error {
	if len(c.Inputs) == 0 && c.Question == "" {
		return errs.Field("input", "is missing: name folders, files, job:ID, or - for standard input, as arguments or by --input")
	}
	if err := c.checkEncoding(); err != nil {
		return err
	}
	if err := c.checkJobNames(); err != nil {
		return err
	}

	stdin := false
	for _, name := range c.paths() {
		if name == folder.Stdin {
			if stdin {
				return errs.Field("input", "names standard input twice")
			}
			stdin = true
			// Peek takes nothing, so the document is read whole later.
			switch _, err := c.Stdin.Peek(1); {
			case errors.Is(err, io.EOF):
				return errs.Field("input", "standard input is empty")
			case err != nil:
				return fmt.Errorf("standard input: %w", err)
			}
			continue
		}

		if _, err := os.Stat(name); err != nil {
			return errs.Field("input", "%w", err)
		}
	}
	return nil
}

// invalidInput turns an error of walking the inputs into one of the kind
// errs.Invalid, unless the context has ended.
func invalidInput(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errs.Field("input", "%w", err)
}

// Again reports whether the documents can be read more than once, and are the same then.
func (c Config) Again() bool {
	return !slices.Contains(c.Inputs, folder.Stdin) && (!c.Partial || len(c.Jobs()) == 0)
}

// Documents yields the documents of the inputs in the order of their names and
// lines, and after them those of jobs. An error ends it.
func Documents(ctx context.Context, c Config) iter.Seq2[*mapreduce.Document, error] {
	c = c.withDefaults()
	return func(yield func(*mapreduce.Document, error) bool) {
		r := &reader{config: c}
		take := func(s source) error {
			if !yield(s.read(), nil) {
				return errStopped
			}
			return nil
		}

		var err error
		if c.Sample > 0 {
			err = r.sampleSources(ctx, c.Sample, take)
		} else {
			err = r.eachSource(ctx, take)
		}

		// A caller that has stopped must not be called again.
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// questionID is the name of the document that a question is.
const questionID = "question"

// errStopped means that the caller has stopped the iteration.
var errStopped = errors.New("stopped")

// A source is a document that may not have been read yet.
type source struct {
	id   string
	read func() *mapreduce.Document
}

// A reader is one pass over the inputs.
type reader struct {
	config  Config
	roster  roster
	guessed map[string]bool // encodings of which the user has a note
}

// eachSource calls take for every document.
func (r *reader) eachSource(ctx context.Context, take func(source) error) error {
	if question := r.config.Question; question != "" && len(r.config.Inputs) == 0 {
		return take(source{questionID, func() *mapreduce.Document {
			return &mapreduce.Document{ID: questionID, MediaType: "text/plain", Content: []byte(question), Size: int64(len(question))}
		}})
	}

	if len(r.config.files) > 0 {
		if err := r.eachEntry(ctx, take); err != nil {
			return err
		}
	}

	for _, id := range r.config.Jobs() {
		if err := r.readJob(ctx, id, take); err != nil {
			return err
		}
	}

	return nil
}

// eachEntry calls take for every document of folders, files and standard input.
func (r *reader) eachEntry(ctx context.Context, take func(source) error) error {
	for e, err := range r.config.walkInputs(ctx) {
		if err != nil {
			return invalidInput(ctx, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.readEntry(ctx, e, take); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readEntry(ctx context.Context, e folder.Entry, take func(source) error) error {
	switch {
	case e.Skip != "":
		return r.addSource(e, take, func() *mapreduce.Document { return skippedDocument(e, e.Skip) })
	case e.Path == folder.Stdin:
		return r.readStdin(ctx, e, take)
	}

	f, kind, err := r.openFile(e)
	if err != nil {
		return r.addSource(e, take, func() *mapreduce.Document { return skippedDocument(e, unreadableReason(err)) })
	}

	// A file of several documents is read at once.
	if format, _ := r.config.Formats.Format(kind); kind == plain.JSONLinesKind || format.Members != nil {
		defer f.Close()
		return r.readMany(ctx, e, format, f, take)
	}

	// It is opened again when its turn comes: of a sample, most files are not read.
	if err := f.Close(); err != nil {
		return r.addSource(e, take, func() *mapreduce.Document { return skippedDocument(e, unreadableReason(err)) })
	}

	return r.addSource(e, take, func() *mapreduce.Document { return r.readFile(ctx, e) })
}

// openFile opens a file and detects its kind by its beginning.
func (r *reader) openFile(e folder.Entry) (*os.File, document.Kind, error) {
	f, err := os.Open(e.Path)
	if err != nil {
		return nil, "", err
	}

	begin := make([]byte, document.SniffBytes)
	n, err := io.ReadFull(f, begin)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, "", errors.Join(err, f.Close())
	}

	kind, err := r.config.Formats.Detect(e.Name, begin[:n], "")
	if err != nil {
		kind = "" // reading it gives the reason for the refusal
	}
	return f, kind, nil
}

// addSource passes on a file that holds one document.
func (r *reader) addSource(e folder.Entry, take func(source) error, read func() *mapreduce.Document) error {
	if err := r.roster.add(e.ID, origin{}); err != nil {
		return err
	}
	return take(source{id: e.ID, read: read})
}

// readFile reads a file that holds one document.
func (r *reader) readFile(ctx context.Context, e folder.Entry) *mapreduce.Document {
	f, err := os.Open(e.Path)
	if err != nil {
		return skippedDocument(e, unreadableReason(err))
	}
	defer f.Close()
	return r.readWhole(ctx, e, f)
}

// readWhole reads an input that holds one document.
func (r *reader) readWhole(ctx context.Context, e folder.Entry, in io.Reader) *mapreduce.Document {
	data, err := io.ReadAll(io.LimitReader(in, r.config.MaxBytes+1))
	switch {
	case err != nil:
		return skippedDocument(e, unreadableReason(err))
	case int64(len(data)) > r.config.MaxBytes:
		return skippedDocument(e, fmt.Sprintf("too large: more than %d bytes (--document-bytes)", r.config.MaxBytes))
	}
	e.Size = int64(len(data))
	return r.decodeDocument(ctx, e, data, "")
}

// decodeDocument returns the document in data, of a media type if one is declared. It
// decodes only plain formats, and parses no others: a worker does, so that a hostile page
// harms no more than its unit.
func (r *reader) decodeDocument(ctx context.Context, e folder.Entry, data []byte, declared string) *mapreduce.Document {
	kind, err := r.config.Formats.Detect(e.Name, data, declared)
	if err != nil {
		return skippedDocument(e, refusalReason(err))
	}

	format, _ := r.config.Formats.Format(kind)
	content, mediaType, metadata := data, format.MediaTypes[0], map[string]string(nil)

	// The worker that parses the document needs its encoding.
	if r.config.Encoding != "" && !format.Plain && strings.HasPrefix(mediaType, "text/") {
		mediaType = mime.FormatMediaType(mediaType, map[string]string{"charset": r.config.Encoding})
	}

	if format.Plain {
		in := document.Input{Name: e.Name, Content: bytes.NewReader(data)}
		encoding, guessed := r.encodingOf(e.Name, data)
		if encoding != "" {
			in.MediaType = mime.FormatMediaType(format.MediaTypes[0], map[string]string{"charset": encoding})
		}
		d, err := r.config.Formats.Parse(ctx, in)
		if guessed && err != nil {
			err = charset.RefusedGuess(err, encoding)
		}
		if err != nil {
			return skippedDocument(e, refusalReason(err))
		}
		if guessed {
			r.noteGuess(e.Name, encoding)
		}
		content = []byte(d.Text)
		if d.Title != "" {
			metadata = map[string]string{"title": d.Title} // those of other formats their worker finds
		}
	}

	return &mapreduce.Document{ID: mapreduce.DocumentID(e.ID), MediaType: mediaType, Metadata: metadata, Content: content, Size: e.Size}
}

func refusalReason(err error) string {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return refused.Reason
	}
	return err.Error()
}

func unreadableReason(err error) string {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		err = p.Err
	}
	return "unreadable: " + err.Error()
}

func skippedDocument(e folder.Entry, reason string) *mapreduce.Document {
	return &mapreduce.Document{ID: ledgerID(e.ID), Skip: reason, Size: max(0, e.Size)}
}

// readStdin reads standard input, which is one document or holds one document a line.
func (r *reader) readStdin(ctx context.Context, e folder.Entry, take func(source) error) error {
	in := r.config.Stdin
	begin, err := in.Peek(document.SniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("standard input: %w", err)
	}

	kind, err := r.config.Formats.Detect(e.Name, begin, "")
	if format, _ := r.config.Formats.Format(kind); err == nil && (kind == plain.JSONLinesKind || format.Members != nil) {
		return r.readMany(ctx, e, format, in, take)
	}
	return r.addSource(e, take, func() *mapreduce.Document { return r.readWhole(ctx, e, in) })
}

// readLines passes on the documents of a file that holds one a line. The ledger
// lists a line without a document by its number.
func (r *reader) readLines(ctx context.Context, e folder.Entry, in io.Reader, take func(source) error) error {
	in, err := r.config.decodeLines(in)
	if err != nil {
		return err
	}

	file := r.roster.addFile(e.Name)
	options := plain.LineOptions{Name: e.Name, MaxBytes: int(r.config.MaxBytes)}
	for rec, err := range plain.JSONLines(in, options) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		var line *plain.LineError
		if err != nil && !errors.As(err, &line) {
			return fmt.Errorf("input: %w", err)
		}

		var d *mapreduce.Document
		if line != nil {
			// The document is named by the number of the line.
			rec.Line = line.Line
			id := folder.ID(fmt.Sprintf("%s#%d", e.Name, line.Line))
			d = &mapreduce.Document{ID: ledgerID(id), Skip: fmt.Sprintf("line %d: %s", line.Line, line.Reason)}
		} else {
			d = r.recordDocument(e, rec)
			if rec.Citation && d.Skip == "" {
				r.nameCitation(e, d, rec.Line)
			}
		}

		if err := r.roster.add(string(d.ID), origin{file: file, line: int32(rec.Line)}); err != nil {
			return err
		}
		if err := take(source{id: string(d.ID), read: func() *mapreduce.Document { return d }}); err != nil {
			return err
		}
	}
	return nil
}

// recordDocument returns the document of a line.
func (r *reader) recordDocument(e folder.Entry, rec plain.LineRecord) *mapreduce.Document {
	id := rec.ID
	if len(r.config.files) > 1 && rec.Name != "" {
		base, _, _ := strings.Cut(e.Name, "/")
		id = folder.ID(base + "/" + rec.Name)
	}

	if reason := folder.TooLong(id); reason != "" {
		return &mapreduce.Document{ID: ledgerID(id), Skip: fmt.Sprintf("line %d: %s", rec.Line, reason)}
	}

	d := &mapreduce.Document{ID: mapreduce.DocumentID(id), MediaType: "text/plain", Content: []byte(rec.Text), Size: int64(len(rec.Text))}
	for name, v := range rec.Metadata {
		if v == nil {
			continue // a line without a title has none, rather than one that is "null"
		}
		if d.Metadata == nil {
			d.Metadata = make(map[string]string, len(rec.Metadata))
		}
		d.Metadata[name] = metadataText(v)
	}

	if excess := d.ExcessMetadata(); excess != "" {
		return &mapreduce.Document{ID: d.ID, Skip: fmt.Sprintf("line %d: %s", rec.Line, excess), Size: d.Size}
	}
	return d
}

// nameCitation marks a document as a citation. Several citations may be of one document,
// which all but the first are called by with the number of their line. One that stands
// there twice is skipped the second time.
func (r *reader) nameCitation(e folder.Entry, d *mapreduce.Document, line int) {
	if d.Metadata == nil {
		d.Metadata = make(map[string]string, 1)
	}
	d.Metadata[mapreduce.MetadataCitation] = fmt.Sprintf("%s:%d", e.Name, line)

	whole := digestOf(string(d.ID) + "\x00" + string(d.Content))
	if first, again := r.roster.citations[whole]; again {
		*d = mapreduce.Document{
			ID: ledgerID(folder.ID(fmt.Sprintf("%s#%d", d.ID, line))), Size: d.Size,
			Skip: fmt.Sprintf("line %d: the same passage of the same document stands in %s:%d", line, r.roster.files[first.file-1], first.line),
		}
		return
	}

	r.roster.addCitation(whole, origin{file: int32(len(r.roster.files)), line: int32(line)})
	if _, taken := r.roster.seen[digestOf(string(d.ID))]; taken {
		d.ID = ledgerID(folder.ID(fmt.Sprintf("%s#%d", d.ID, line)))
	}
}

// metadataText returns a value of metadata as text: strings unchanged, other values
// as JSON.
func metadataText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil { // of what was JSON before
		return fmt.Sprint(v)
	}
	return string(b)
}

// outermost returns the paths without those that are equal to another one or inside
// of it, so that each document is read once. A hidden file of a folder stays, as the
// folder does not include it.
func outermost(paths []string) []string {
	real := make([]string, len(paths))
	for i, path := range paths {
		real[i] = path
		if path == folder.Stdin {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			real[i] = abs
		}
		if resolved, err := filepath.EvalSymlinks(real[i]); err == nil {
			real[i] = resolved
		}
	}

	first := make(map[string]int, len(paths)) // the first path of each place
	for i, place := range real {
		if _, there := first[place]; !there {
			first[place] = i
		}
	}

	var out []string
	for i, path := range paths {
		if path == folder.Stdin || first[real[i]] == i && !insideOf(first, real[i]) {
			out = append(out, path)
		}
	}

	return out
}

// insideOf reports whether a place is inside of one of others, and not hidden there.
func insideOf(others map[string]int, place string) bool {
	for at := place; !strings.HasPrefix(filepath.Base(at), "."); {
		above := filepath.Dir(at)
		if above == at {
			return false
		}
		if _, there := others[above]; there {
			return true
		}
		at = above
	}
	return false
}
