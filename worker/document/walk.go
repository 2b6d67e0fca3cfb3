package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// DefaultMaxBytes is how large a document may be if nothing else is said.
const DefaultMaxBytes = 64 << 20

// WalkOptions direct a Walk.
type WalkOptions struct {
	// Include names the files of folders to take, as globs over their path
	// relative to the folder. Defaults to all.
	Include []string

	// Exclude names files not to take, and folders not to enter. It goes
	// before Include. Defaults to none.
	Exclude []string

	// MaxBytes bounds the size of a file; larger ones are skipped, but not
	// JSON lines, which are read one by one. Defaults to DefaultMaxBytes.
	MaxBytes int64
}

// An Entry is a file that Walk came upon.
type Entry struct {
	// ID is that of the document; above mapreduce.MaxDocumentID only if Skip
	// says so.
	ID string

	// Name is the path relative to the input, with forward slashes, behind
	// the input's base name if there are several inputs.
	Name string

	// Path is the absolute path, or Stdin.
	Path string

	// Size is in bytes; -1 for standard input.
	Size int64

	// Skip says why the file cannot be read; empty if it is to be read.
	Skip string
}

// Stdin as an input is standard input, read as one document.
const Stdin = "-"

// Walk yields the files that inputs name: those of folders, recursively and
// sorted by name, files themselves, and standard input. Hidden files and
// folders within inputs are passed over, and so is what the globs leave out;
// neither is an Entry. Links to files are followed, links to folders are not,
// so that a walk ends and takes nothing twice.
//
// An error ends the walk: an input that does not exist or is no file, a bad
// glob, or two documents of one id.
func Walk(ctx context.Context, inputs []string, o WalkOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		w := walker{several: len(inputs) > 1, max: cmp.Or(o.MaxBytes, DefaultMaxBytes), yield: yield}
		if err := w.walk(ctx, inputs, o); err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
}

// errStopped says that the caller wants no more.
var errStopped = errors.New("stopped")

// A walker is one walk under way.
type walker struct {
	include, exclude []Glob
	several          bool
	max              int64
	roster           Roster // used if there are several inputs
	yield            func(Entry, error) bool
}

func (w *walker) walk(ctx context.Context, inputs []string, o WalkOptions) (err error) {
	if w.include, err = parseGlobs(o.Include); err != nil {
		return err
	}
	if w.exclude, err = parseGlobs(o.Exclude); err != nil {
		return err
	}
	for _, input := range inputs {
		if err := w.input(ctx, input); err != nil {
			return err
		}
	}
	return nil
}

// input walks one input.
func (w *walker) input(ctx context.Context, input string) error {
	if input == Stdin {
		return w.emit(Entry{Name: "stdin", Path: Stdin, Size: -1})
	}
	abs, err := filepath.Abs(input)
	if err != nil {
		return fmt.Errorf("document: input %s: %w", input, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return fmt.Errorf("document: input: %w", err)
	}
	switch {
	case info.IsDir():
		return w.folder(ctx, abs)
	case !info.Mode().IsRegular():
		return fmt.Errorf("document: input %s is neither a file nor a folder", input)
	}
	return w.file(abs, filepath.Base(abs))
}

// folder walks the folder root.
func (w *walker) folder(ctx context.Context, root string) error {
	top, err := filepath.EvalSymlinks(root) // WalkDir does not follow a root that is a link
	if err != nil {
		return fmt.Errorf("document: input: %w", err)
	}
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if path == top {
			return err
		}
		rel, relErr := filepath.Rel(top, path)
		if relErr != nil {
			return relErr
		}
		rel = filepath.ToSlash(rel)
		switch {
		case strings.HasPrefix(d.Name(), "."), matchAny(w.exclude, rel):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil: // of reading a folder, whose files are then not known
			return w.emit(Entry{Name: w.name(root, rel), Path: path, Skip: unreadable(err)})
		case d.IsDir(), len(w.include) > 0 && !matchAny(w.include, rel):
			return nil
		}
		return w.file(path, w.name(root, rel))
	})
}

// name returns the name of the file rel of the folder root.
func (w *walker) name(root, rel string) string {
	if base := filepath.Base(root); w.several && base != string(filepath.Separator) {
		return base + "/" + rel
	}
	return rel
}

// file emits the file at path, or why it cannot be read.
func (w *walker) file(path, name string) error {
	e := Entry{Name: name, Path: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		e.Skip = unreadable(err)
	case info.IsDir():
		e.Skip = "a link to a folder"
	case !info.Mode().IsRegular():
		e.Skip = "not a regular file"
	default:
		e.Size = info.Size()
		e.Skip = w.check(path, name, e.Size)
	}
	return w.emit(e)
}

// check returns why a regular file cannot be read, if so.
func (w *walker) check(path, name string, size int64) string {
	if size > w.max && kindOfName(name) != JSONL {
		return fmt.Sprintf("too large: %d bytes, more than %d", size, w.max)
	}
	f, err := os.Open(path)
	if err != nil {
		return unreadable(err)
	}
	if err := f.Close(); err != nil {
		return unreadable(err)
	}
	return ""
}

// emit yields e under its id.
func (w *walker) emit(e Entry) error {
	e.ID = ID(e.Name)
	if e.Skip == "" {
		e.Skip = TooLong(e.ID)
	}
	if w.several {
		if err := w.roster.Add(e.ID, e.Path); err != nil {
			return err
		}
	}
	if !w.yield(e, nil) {
		return errStopped
	}
	return nil
}

// unreadable says why a file is skipped, without the path, which its entry has.
func unreadable(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return "unreadable: " + err.Error()
}
