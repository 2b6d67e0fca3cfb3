package transport

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// lookEvery is the least time between two looks at files that nothing has asked for.
const lookEvery = time.Second

// MaxFile bounds a file, in bytes.
const MaxFile = 4 << 20

// Files hold a value of type T that is made of some files. Its methods may be called at
// the same time.
//
// A change that cannot be read, such as a certificate whose key is yet to be replaced,
// leaves the value as it was: each later look tries again.
type Files[T any] struct {
	names []string
	parse func(contents [][]byte) (T, error)
	told  func(error)

	mu         sync.Mutex // guards the variables below
	looked     time.Time
	seen       [sha256.Size]byte // of the contents that were looked at last
	value      T
	generation int
}

// NewFiles reads files and returns what parse makes of their contents, which are in the order
// of names. After each change of the files, told is called with what parse says then: nil
// if the new value is in force. It may be nil.
func NewFiles[T any](parse func(contents [][]byte) (T, error), told func(error), names ...string) (*Files[T], error) {
	if told == nil {
		told = func(error) {}
	}

	f := &Files[T]{names: names, parse: parse, told: told}
	contents, err := f.read()
	if err != nil {
		return nil, err
	}

	f.seen, f.looked = digest(contents), time.Now()
	if f.value, err = parse(contents); err != nil {
		return nil, err
	}
	return f, nil
}

// Get returns the value, and a number that grows with each new one. It looks at the files
// if nobody has for a second.
func (f *Files[T]) Get() (T, int) {
	f.mu.Lock()
	if time.Since(f.looked) >= lookEvery {
		f.look()
	}
	defer f.mu.Unlock()
	return f.value, f.generation
}

// Look looks at the files now.
func (f *Files[T]) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
}

// look reads the files, and makes the value again if they have changed. The caller holds mu.
func (f *Files[T]) look() {
	f.looked = time.Now()
	contents, err := f.read()
	now := digest(contents)
	if err != nil {
		// The same error is not reported with each look.
		now = sha256.Sum256([]byte(err.Error()))
	}
	if now == f.seen {
		return
	}

	f.seen = now
	var value T
	if err == nil {
		value, err = f.parse(contents)
	}
	if err == nil {
		f.value = value
		f.generation++
	}

	f.told(err)
}

func (f *Files[T]) read() ([][]byte, error) {
	contents := make([][]byte, len(f.names))
	for i, name := range f.names {
		var err error
		if contents[i], err = readBounded(name); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = errs.New(errs.Invalid, "%s: has more than %d bytes, which is too much for such a file", name, MaxFile)
	}
	return data, err
}

func digest(contents [][]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, c := range contents {
		fmt.Fprintf(h, "%d\n", len(c))
		h.Write(c)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
