package console

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/text/language"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// The most bytes of files that commands read whole.
const (
	MaxSchemaFile = source.MaxBytes
	MaxConfigFile = 1 << 20
)

// PrintWarnings says what a schema has that has no effect, or another than its author may
// think.
func PrintWarnings(out io.Writer, warnings schema.Errors) {
	for _, w := range warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
}

// ReadBounded reads a file or a pipe of at most limit bytes. It does not open devices,
// which may never end. A pipe may have no writer yet: the end of ctx ends the wait.
func ReadBounded(ctx context.Context, name string, limit int64) ([]byte, error) {
	return waitFor(ctx, func() ([]byte, error) {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if err := checkReadable(name, info); err != nil {
			return nil, err
		}

		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()

		if info, err = f.Stat(); err == nil { // another file may have the name by now
			err = checkReadable(name, info)
		}
		if err != nil {
			return nil, err
		}

		data, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(data)) > limit {
			err = fmt.Errorf("%s has more than %d bytes", name, limit)
		}
		return data, err
	})
}

// UnreadableFlag returns the error for a file that a flag names and that cannot be read,
// or err itself if ctx has ended.
func UnreadableFlag(ctx context.Context, flag string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return exit.RefusedError("%s: %w", flag, err)
}

// checkReadable returns an error unless the file is a regular file or a pipe.
func checkReadable(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.Type() == fs.ModeNamedPipe:
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s is a folder, not a file", name)
	}
	return fmt.Errorf("%s is a device or a socket, not a file", name)
}

// waitFor returns what read returns, or the cause of the end of ctx if that comes
// first. A read that waits for a pipe cannot be interrupted: it ends with the process.
func waitFor(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}

	// done has room for the result, so that a read that nobody waits for can end.
	done := make(chan result, 1)
	go func() {
		data, err := read()
		done <- result{data, err}
	}()

	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// An InterruptibleReader reads until ctx ends, even while its input has nothing to read.
// After that it must not be read again.
type InterruptibleReader struct {
	ctx context.Context //nolint:containedctx // io.Reader has no other way to pass one
	in  io.Reader
	buf []byte
}

// NewInterruptibleReader returns a reader of in that stops when ctx ends.
func NewInterruptibleReader(ctx context.Context, in io.Reader) *InterruptibleReader {
	return &InterruptibleReader{ctx: ctx, in: in, buf: make([]byte, 64<<10)}
}

// Read implements io.Reader. It reads into a buffer of its own, as a read that is left
// alone may still write to its buffer.
func (r *InterruptibleReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	buf := r.buf[:min(len(p), len(r.buf))]
	data, err := waitFor(r.ctx, func() ([]byte, error) {
		n, err := r.in.Read(buf)
		return buf[:n], err
	})
	return copy(p, data), err
}

// ReadSchema reads a schema file.
func ReadSchema(ctx context.Context, name string) (*schema.Schema, error) {
	return ReadSchemaIn(ctx, "", name)
}

// ReadSchemaIn reads a schema file for documents of a locale, which the file may state as
// well.
func ReadSchemaIn(ctx context.Context, locale, name string) (*schema.Schema, error) {
	if name == "" {
		return nil, exit.UsageError("--schema is missing: name the file that says what to extract")
	}

	if _, err := language.Parse(locale); locale != "" && err != nil {
		return nil, exit.UsageError("--locale: %q is no language with its region, such as de-DE", locale)
	}

	data, err := ReadBounded(ctx, name, MaxSchemaFile)
	if err != nil {
		return nil, UnreadableFlag(ctx, "--schema", err)
	}

	s, err := schema.ParseIn(locale, name, data)
	if err != nil {
		return nil, exit.RefusedError("--schema: the file is not valid\n%w", err)
	}
	return s, nil
}
