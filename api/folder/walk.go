// Package folder finds the files that inputs name, in folders or one by one, and gives each
// the id of a document. It reads none of them.
package folder

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

// DefaultMaxBytes is the default bound on the size of a document.
const DefaultMaxBytes = 64 << 20

// Options configure Walk.
type Options struct {
	// Include selects files of folders, as globs over their path relative to the
	// folder. Defaults to all.
	Include []string

	// Exclude names files to leave out and folders not to enter. It takes
	// precedence over Include. Defaults to none.
	Exclude []string

	// MaxBytes bounds the size of a file. Larger files are skipped. Defaults to DefaultMaxBytes.
	MaxBytes int64

	// HoldsMany reports whether a file of that name holds many documents. Such files are
	// read document by document, so MaxBytes does not bound them. Defaults to none.
	HoldsMany func(name string) bool

	// FollowLinks reads files outside of a folder that links in it lead to.
	// Defaults to false: such links are skipped.
	FollowLinks bool
}

// An Entry is a file that Walk found.
type Entry struct {
	// ID is the id of the document. If it is longer than
	// mapreduce.MaxDocumentID, Skip tells so.
	ID string

	// Name is the path relative to the input, with forward slashes. If there are
	// several inputs, the input's base name precedes it.
	Name string

	// Path is the absolute path, or Stdin.
	Path string

	// Size is in bytes; -1 for standard input.
	Size int64

	// Skip is the reason why the file cannot be read, or "" if it can.
	Skip string
}

// Stdin as an input is standard input, read as one document.
const Stdin = "-"

// Walk yields the files that inputs name: files, standard input, and the files of
// folders, recursively and sorted by name. It passes over hidden files and folders
// within inputs, and over files that the globs leave out, and yields no Entry for
// them. It follows links to files within the folder but not links to folders, so that
// a walk ends and visits nothing twice. A link that leads out of the folder is skipped
// unless FollowLinks is set.
//
// An error ends the walk: an input that does not exist or is not a file, a bad
// glob, or two documents with one id.
func Walk(ctx context.Context, inputs []string, o Options) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		w := walker{
			several: len(inputs) > 1, max: cmp.Or(o.MaxBytes, DefaultMaxBytes), many: o.HoldsMany, followLinks: o.FollowLinks, yield: yield,
		}
		if err := w.walkInputs(ctx, inputs, o); err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
}

// errStopped means that the caller has stopped the iteration.
var errStopped = errors.New("stopped")

// A walker is one walk under way.
type walker struct {
	include, exclude []Glob
	several          bool
	max              int64
	many             func(name string) bool // or nil
	followLinks      bool
	roster           Roster // used if there are several inputs
	yield            func(Entry, error) bool
}

func (w *walker) walkInputs(ctx context.Context, inputs []string, o Options) (err error) {
	if w.include, err = parseGlobs(o.Include); err != nil {
		return err
	}
	if w.exclude, err = parseGlobs(o.Exclude); err != nil {
		return err
	}

	for _, input := range inputs {
		if err := w.walkInput(ctx, input); err != nil {
			return err
		}
	}

	return nil
}

// walkInput walks one input.
func (w *walker) walkInput(ctx context.Context, input string) error {
	if input == Stdin {
		return w.emitEntry(Entry{Name: "stdin", Path: Stdin, Size: -1})
	}

	abs, err := filepath.Abs(input)
	if err != nil {
		return fmt.Errorf("document: input %s: %w", input, err)
	}

	// What the user names is read, wherever a link leads.
	info, err := os.Stat(abs)
	if err != nil {
		return fmt.Errorf("document: input: %w", err)
	}

	switch {
	case info.IsDir():
		return w.walkFolder(ctx, abs)
	case !info.Mode().IsRegular():
		return fmt.Errorf("document: input %s is neither a file nor a folder", input)
	}
	return w.emitFile(abs, filepath.Base(abs))
}

// walkFolder walks the folder root.
func (w *walker) walkFolder(ctx context.Context, root string) error {
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
		case err != nil: // a folder could not be read, so its files are unknown
			return w.emitEntry(Entry{Name: w.entryName(root, rel), Path: path, Skip: unreadableReason(err)})
		case d.IsDir(), len(w.include) > 0 && !matchAny(w.include, rel):
			return nil
		}

		if d.Type() == fs.ModeSymlink && !w.followLinks {
			return w.emitLink(top, path, w.entryName(root, rel))
		}
		return w.emitFile(path, w.entryName(root, rel))
	})
}

// emitLink emits the file that the link at path leads to, if that is in the folder top.
// The entry has the path of the file, so that a link that changes later is not followed.
func (w *walker) emitLink(top, path, name string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return w.emitEntry(Entry{Name: name, Path: path, Skip: unreadableReason(err)})
	}

	if rel, err := filepath.Rel(top, target); err != nil || !filepath.IsLocal(rel) {
		return w.emitEntry(Entry{Name: name, Path: path, Skip: "a link that leads out of the folder; --follow-symlinks reads it"})
	}

	return w.emitFile(target, name)
}

// entryName returns the name of the file rel of the folder root.
func (w *walker) entryName(root, rel string) string {
	if base := filepath.Base(root); w.several && base != string(filepath.Separator) {
		return base + "/" + rel
	}
	return rel
}

// emitFile emits the file at path, with the reason if it cannot be read.
func (w *walker) emitFile(path, name string) error {
	e := Entry{Name: name, Path: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		e.Skip = unreadableReason(err)
	case info.IsDir():
		e.Skip = "a link to a folder"
	case !info.Mode().IsRegular():
		e.Skip = "not a regular file"
	default:
		e.Size = info.Size()
		e.Skip = w.skipReason(path, name, e.Size)
	}

	return w.emitEntry(e)
}

// skipReason returns why a regular file cannot be read, or "" if it can.
func (w *walker) skipReason(path, name string, size int64) string {
	if size > w.max && !w.holdsMany(name) {
		return fmt.Sprintf("too large: %d bytes, more than %d (--document-bytes)", size, w.max)
	}

	f, err := os.Open(path)
	if err != nil {
		return unreadableReason(err)
	}
	if err := f.Close(); err != nil {
		return unreadableReason(err)
	}
	return ""
}

func (w *walker) holdsMany(name string) bool { return w.many != nil && w.many(name) }

// emitEntry yields e under its id.
func (w *walker) emitEntry(e Entry) error {
	e.ID = ID(e.Name)
	if e.Skip == "" {
		e.Skip = TooLong(e.ID)
	}

	// Names are unique within one input.
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

// unreadableReason tells why a file is skipped, without the path, which its entry
// has.
func unreadableReason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return "unreadable: " + err.Error()
}
