package results

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

// Check returns an error, of the kind errs.Invalid, if results cannot be
// written to dir. It leaves nothing but the folders above dir.
func Check(dir string) error {
	f, err := newFolder(dir)
	if err != nil {
		return err
	}
	return f.discard()
}

// A folder receives files in a place of its own on the same file system, until
// they are complete.
type folder struct {
	dir    string // where the files are to be
	tmp    string // where they are; empty once they are gone
	exists bool   // dir was there before

	mu    sync.Mutex // guards names
	names []string   // of the files
}

func newFolder(dir string) (*folder, error) {
	f := &folder{dir: filepath.Clean(dir)}
	info, err := os.Stat(f.dir)
	above := filepath.Dir(f.dir)
	switch {
	case err == nil && !info.IsDir():
		return nil, errs.Field("output", "%s is a file, not a folder", dir)
	case err == nil:
		f.exists, above = true, f.dir
	case !errors.Is(err, fs.ErrNotExist):
		return nil, unwritable(err)
	}
	if err := os.MkdirAll(above, 0o777); err != nil {
		return nil, unwritable(err)
	}
	tmp := filepath.Join(above, ".coditect-"+strings.ToLower(rand.Text()[:12]))
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return nil, unwritable(err)
	}
	f.tmp = tmp
	return f, nil
}

func unwritable(err error) error {
	return errs.Field("output", "cannot be written to: %w; name another folder", err)
}

// commit puts the files where they are to be: all in one step if there was no
// such folder, else one by one.
func (f *folder) commit() error {
	if !f.exists {
		if err := os.Rename(f.tmp, f.dir); err == nil {
			f.tmp = ""
			return nil
		}
	}
	for _, name := range f.names {
		if err := os.Rename(filepath.Join(f.tmp, name), filepath.Join(f.dir, name)); err != nil {
			return fmt.Errorf("results: %w", err)
		}
	}
	return nil
}

// discard removes what was not committed.
func (f *folder) discard() error {
	if f.tmp == "" {
		return nil
	}
	if err := os.RemoveAll(f.tmp); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	f.tmp = ""
	return nil
}

// A file is one that is being written.
type file struct {
	*bufio.Writer
	f *os.File
}

// create begins a file of the result.
func (f *folder) create(name string) (*file, error) {
	out, err := f.scratch(name)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.names = append(f.names, name)
	}
	return out, err
}

// scratch begins a file that does not go into the result.
func (f *folder) scratch(name string) (*file, error) {
	out, err := os.OpenFile(filepath.Join(f.tmp, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	return &file{Writer: bufio.NewWriterSize(out, 64<<10), f: out}, nil
}

// finish makes what was written durable.
func (f *file) finish() error {
	return errors.Join(f.Flush(), f.f.Sync(), f.f.Close())
}

// into copies what was written to out, and removes f.
func (f *file) into(out *file) error {
	err := f.Flush()
	if err == nil {
		_, err = f.f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = out.ReadFrom(f.f)
	}
	return errors.Join(err, f.f.Close(), os.Remove(f.f.Name()))
}

// fill writes a file of the result with do.
func (f *folder) fill(name string, do func(*file) error) error {
	out, err := f.create(name)
	if err != nil {
		return err
	}
	return errors.Join(do(out), out.finish())
}
