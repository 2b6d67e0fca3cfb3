// Package folder writes the files of a result to a folder so that they are all there or
// none is, also if the process is killed. It knows the names of the files and nothing of
// what is in them.
package folder

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
)

// Check returns an error of the kind errs.Invalid if results cannot be written to
// dir. It leaves nothing behind but the folders above dir.
func Check(dir string) error {
	f, err := New(dir)
	if err != nil {
		return err
	}
	return f.Discard()
}

// A Folder collects files in a temporary folder on the same file system until they
// are complete.
type Folder struct {
	dir    string   // the final folder
	tmp    string   // the temporary folder; empty once it is gone
	exists bool     // dir existed before
	lock   *os.File // says that its writer lives

	mu    sync.Mutex // guards names
	names []string   // of the files
}

// New returns a folder whose files are to be in dir, in which files may be already. The error
// is of the kind errs.Invalid if they cannot be written there.
func New(dir string) (*Folder, error) {
	f := &Folder{dir: filepath.Clean(dir)}

	info, err := os.Stat(f.dir)
	above := filepath.Dir(f.dir)
	switch {
	case err == nil && !info.IsDir():
		return nil, errs.Field("output", "%s is a file, not a folder", dir)
	case err == nil:
		if err := checkReplaceable(f.dir); err != nil {
			return nil, err
		}
		f.exists, above = true, f.dir
	case isLink(f.dir): // a folder cannot take its place
		return nil, errs.Field("output", "%s is a link that leads nowhere", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, unwritableError(err)
	}

	if err := os.MkdirAll(above, 0o777); err != nil { //nolint:gosec // results are the user's, whose umask says who may read them
		return nil, unwritableError(err)
	}

	_, _ = Sweep(above) // what is left there is in nobody's way

	// Between the two steps of makeTemporary, another process that sweeps may take the folder for
	// that of a writer that was killed.
	for try := 1; ; try++ {
		err := f.makeTemporary(above)
		if err == nil {
			return f, nil
		}
		if try == makeTries {
			return nil, unwritableError(err)
		}
	}
}

// makeTries is how often a temporary folder is made until it is locked.
const makeTries = 5

// makeTemporary makes and locks the temporary folder.
func (f *Folder) makeTemporary(above string) (err error) {
	f.tmp = filepath.Join(above, temporaryPrefix+strings.ToLower(rand.Text()[:12]))
	if err := os.Mkdir(f.tmp, 0o777); err != nil { //nolint:gosec // results are the user's, whose umask says who may read them
		return err
	}

	if f.lock, err = lockFolder(f.tmp); err != nil {
		return errors.Join(err, os.RemoveAll(f.tmp))
	}
	return nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}

// NewScratch returns a folder for scratch files alone, among the temporary files
// of the system.
func NewScratch() (*Folder, error) {
	tmp, err := os.MkdirTemp("", "coditect")
	return &Folder{dir: tmp, tmp: tmp, exists: true}, err
}

// resultFiles are the names of the files of a result.
var resultFiles = [...]string{
	"records.csv", "records.jsonl", "records.json", "records.parquet", "result.json", "report.md", "report.html", "units.jsonl", "metrics.json", "trace.json", "dag.json", "dag.svg", "audit.jsonl", "bibliography.json", "bibliography.bib",
}

// checkReplaceable refuses a folder in which a folder has the name of a result's file:
// the file could not replace it.
func checkReplaceable(dir string) error {
	for _, name := range resultFiles {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return errs.Field("output", "%s is a folder, and the result has a file of this name; name another folder", filepath.Join(dir, name))
		}
	}
	return nil
}

func unwritableError(err error) error {
	return errs.Field("output", "cannot be written to: %w; name another folder", err)
}

// Commit moves the files to their final folder: all in one step if it did not exist,
// otherwise one by one.
func (f *Folder) Commit() error {
	if !f.exists {
		// The rename fails if the folder has been made meanwhile. The files then go there
		// one by one.
		if err := os.Rename(f.tmp, f.dir); err == nil {
			f.tmp = ""
			return f.lock.Close()
		}
	}

	for _, name := range f.names {
		if err := os.Rename(filepath.Join(f.tmp, name), filepath.Join(f.dir, name)); err != nil {
			return fmt.Errorf("results: %w", err)
		}
	}
	return nil
}

// Discard removes the files that were not committed.
func (f *Folder) Discard() error {
	if f.tmp == "" {
		return nil
	}

	if err := os.RemoveAll(f.tmp); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	f.tmp = ""
	return f.lock.Close()
}

// Path returns the final folder.
func (f *Folder) Path() string { return f.dir }

// A File is a file that is being written. One without a place on the disk is only written
// to.
type File struct {
	*bufio.Writer
	f *os.File
}

// Create creates a file of the result.
func (f *Folder) Create(name string) (*File, error) {
	out, err := f.CreateScratch(name)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.names = append(f.names, name)
	}
	return out, err
}

// CreateScratch creates a file that is not part of the result.
func (f *Folder) CreateScratch(name string) (*File, error) {
	out, err := os.OpenFile(filepath.Join(f.tmp, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666) //nolint:gosec // it takes its place among the results, see above
	if err != nil {
		return nil, err
	}
	return &File{Writer: bufio.NewWriterSize(out, 64<<10), f: out}, nil
}

// CloseDurably syncs and closes the file.
func (f *File) CloseDurably() error {
	return errors.Join(f.Flush(), f.f.Sync(), f.f.Close())
}

// MoveTo copies the content of f to out, and removes f.
func (f *File) MoveTo(out io.Writer) error {
	err := f.Flush()
	if err == nil {
		_, err = f.f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = io.Copy(out, f.f)
	}
	return errors.Join(err, f.f.Close(), os.Remove(f.f.Name()))
}

// Keep returns the content of a scratch file, which has no name any more and ends when it is
// closed, whatever becomes of its folder.
func (f *File) Keep() (io.ReadCloser, error) {
	err := errors.Join(f.Flush(), os.Remove(f.f.Name()))
	if err == nil {
		_, err = f.f.Seek(0, io.SeekStart)
	}

	if err != nil {
		return nil, errors.Join(err, f.f.Close())
	}
	return f.f, nil
}

// WriteFile creates a file of the result and writes it with do.
func (f *Folder) WriteFile(name string, do func(*File) error) error {
	out, err := f.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(do(out), out.CloseDurably())
}
