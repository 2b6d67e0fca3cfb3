// Package compound is the format of Office files of before 2007 and of messages of Outlook, which
// have one container (MS-CFB): a file system within a file. A damaged one costs no more than its
// size. Nothing is computed, and no macro is run.
package compound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/richardlehane/mscfb"

	"github.com/coditect/mapreduce/internal/document"
)

// Signature begins the files of the container.
const Signature = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// Bounds of containers.
const (
	maxStreams = 20_000
	readFactor = 20 // bytes that may be read for each of the file: its sectors may form circles
)

// A meter bounds what is read of a file.
type meter struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	data *bytes.Reader
	left int64
}

// ReadAt implements io.ReaderAt.
func (m *meter) ReadAt(p []byte, at int64) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	if m.left -= int64(len(p)) + 64; m.left < 0 {
		return 0, document.Refuse("damaged: its sectors form a circle")
	}
	return m.data.ReadAt(p, at)
}

// A Container is the bytes of a file of streams.
type Container struct {
	data  []byte
	names map[string]bool // of the streams in its root, as folded writes them
}

// Open reads a container. The error is a document.RefusedError if it is damaged, or larger than
// a document may be.
func Open(ctx context.Context, content io.Reader) (*Container, error) {
	data, err := io.ReadAll(io.LimitReader(content, document.DefaultMaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("document: %w", err)
	case len(data) > document.DefaultMaxBytes:
		return nil, document.Refuse("too large: more than %d bytes", document.DefaultMaxBytes)
	}

	c := &Container{data: data, names: map[string]bool{}}

	err = c.Each(ctx, func(f *mscfb.File) error {
		// Streams of folders may have the same names as those in the root.
		if len(f.Path) == 0 {
			c.names[folded(f.Name)] = true
		}
		return nil
	})

	return c, err
}

// Has reports whether there is a stream or a folder in the root.
func (c *Container) Has(name string) bool { return c.names[folded(name)] }

// folded returns a name so that those are equal that the container holds to be the same: it does not
// tell capitals from small letters ([MS-CFB] 2.6.4), and some programs write all in one of them.
func folded(name string) string { return strings.ToUpper(name) }

// Each calls visit for each stream and folder. The error is a document.RefusedError if the
// container is damaged, the cause if ctx has ended, and else that of visit.
func (c *Container) Each(ctx context.Context, visit func(f *mscfb.File) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil { // the library indexes damaged files out of range
			err = document.Refuse("damaged: %v", cause)
		}
	}()

	files, err := mscfb.New(&meter{ctx: ctx, data: bytes.NewReader(c.data), left: readFactor*int64(len(c.data)) + 1<<20})
	if err != nil {
		return damageError(ctx, err)
	}

	for n := 0; ; n++ {
		f, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damageError(ctx, err)
		}
		if n == maxStreams {
			return document.Refuse("damaged: more than %d streams", maxStreams)
		}
		if err := visit(f); err != nil {
			return damageError(ctx, err)
		}
	}
}

// Streams returns the bytes of streams in the root, by their names. Those that are not there
// are left out.
func (c *Container) Streams(ctx context.Context, names ...string) (map[string][]byte, error) {
	streams := map[string][]byte{}

	err := c.Each(ctx, func(f *mscfb.File) error {
		if len(f.Path) > 0 || f.Size == 0 {
			return nil
		}
		for _, name := range names {
			if folded(f.Name) != folded(name) {
				continue
			}

			// The bytes have to be read while the container is walked through.
			data, err := io.ReadAll(io.LimitReader(f, document.DefaultMaxBytes))
			if err != nil {
				return err
			}
			streams[name] = data
		}
		return nil
	})

	return streams, err
}

// damageError tells the errors of the library from those of limits.
func damageError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return refused
	}
	return document.Refuse("damaged: %v", err)
}
