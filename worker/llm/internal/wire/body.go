package wire

import (
	"bytes"
	"io"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
)

// A body is that of a response, bounded in size, and in how long it may be
// silent. The end of it is kept, where formats say that they are whole.
type body struct {
	rc    io.ReadCloser
	timer *time.Timer
	idle  time.Duration
	left  int64
	tail  []byte
}

// tailBytes is enough for the last words of every format.
const tailBytes = 64

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, llm.NewError(llm.Garbled, "the answer is longer than any answer can be")
	}

	n, err := b.rc.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	// Each piece gives the server time for the next.
	if n > 0 {
		b.timer.Reset(b.idle)
		b.tail = append(b.tail, p[max(0, n-tailBytes):n]...)
		b.tail = b.tail[max(0, len(b.tail)-tailBytes):]
	}

	if err != nil {
		b.timer.Stop()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.timer.Stop()
	return b.rc.Close()
}

// endsWith reports whether the last words were read.
func (b *body) endsWith(with string) bool { return b != nil && bytes.Contains(b.tail, []byte(with)) }
