package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
)

// A body is the body of one answer, read within the bounds of the kit.
type body struct {
	kit     *Kit
	session *session
	taken   int64  // bytes of Kit.held
	packed  int64  // bytes that came
	cut     string // why its end is missing; empty if it is there
}

// Bounds of what is unpacked. Pages unpack to ten times their size, tables to fifty times;
// no text of anybody to a thousand times.
const (
	maxRatio   = 200
	leastRatio = 4 << 20 // bytes above which the ratio counts
	piece      = 64 << 10

	// maxText is the most bytes of a page of text: no more than tool.MaxEvidence of them can
	// be shown, and the others of a page of HTML are its marks.
	maxText = 2 * tool.MaxEvidence
)

// errIdle and errBodyTime are why a body ends that does not end by itself.
var (
	errIdle     = errors.New("nothing more came for too long")
	errBodyTime = errors.New("it did not end in time")
)

// read returns the body of an answer, or the beginning of it, and why the rest is missing
// in b.cut. The connection is closed if the body did not end.
func (b *body) read(ctx context.Context, end context.CancelCauseFunc, resp *http.Response) ([]byte, error) {
	c := b.kit.config

	// One timer bounds the whole, the other the time in which nothing comes. Both end the
	// request.
	whole := time.AfterFunc(c.BodyTime, func() { end(errBodyTime) })
	defer whole.Stop()
	idle := time.AfterFunc(c.IdleTime, func() { end(errIdle) })
	defer idle.Stop()

	from, err := b.unpackBody(resp, idle)
	if err != nil {
		return nil, b.notRead(ctx, err)
	}

	most := c.MaxBody
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/") {
		most = min(most, maxText)
	}

	var data []byte
	for {
		if err := b.grow(&data, most); err != nil {
			return nil, err
		}
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]

		switch {
		case int64(len(data)) > leastRatio && int64(len(data)) > maxRatio*b.packed:
			return nil, fmt.Errorf("is a decompression bomb: of %d bytes came more than %d", b.packed, len(data))
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil && len(data) > 0 && ctx.Err() != nil && (errors.Is(context.Cause(ctx), errIdle) || errors.Is(context.Cause(ctx), errBodyTime)):
			b.cut = fmt.Sprintf("%v, after %d bytes", context.Cause(ctx), len(data))
			return data, nil
		case err != nil:
			return nil, b.notRead(ctx, err)
		case int64(len(data)) > most:
			b.cut = fmt.Sprintf("it has more than the %d bytes that are read of a page", most)
			return data[:most], nil
		case b.session.bytes.Load() > c.MaxBytes:
			b.cut = fmt.Sprintf("a unit reads at most %d bytes", c.MaxBytes)
			return data, nil
		}
	}
}

// notRead returns why a body cannot be read.
func (b *body) notRead(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("cannot be read to its end: %w", err)
}

// grow makes room for the next bytes. The room of all pages together is bounded.
func (b *body) grow(data *[]byte, most int64) error {
	if len(*data) < cap(*data) {
		return nil
	}

	size := min(max(2*int64(cap(*data)), piece), most+1)
	more := size - int64(cap(*data))
	if now := b.kit.held.Add(more); now > b.kit.config.MaxHeld {
		b.kit.held.Add(-more)
		return errors.New("cannot be read now: the pages that this worker is reading are too large together; try it again later")
	}

	b.taken += more
	larger := make([]byte, len(*data), size)
	copy(larger, *data)
	*data = larger
	return nil
}

// release gives back what grow took.
func (b *body) release() { b.kit.held.Add(-b.taken) }

// unpackBody returns a reader of the body as it is when it is unpacked.
func (b *body) unpackBody(resp *http.Response, idle *time.Timer) (io.Reader, error) {
	var from io.Reader = &counted{body: b, from: resp.Body, idle: idle}
	switch encoding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ","))); encoding {
	case "", "identity":
		return from, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(from)
	default:
		return nil, fmt.Errorf("it is packed as %.40q, which was not asked for", encoding)
	}
}

// A counted reader counts what comes, and notes that something came.
type counted struct {
	body *body
	from io.Reader
	idle *time.Timer
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.body.packed += int64(n)
	c.body.session.bytes.Add(int64(n))
	if n > 0 {
		c.idle.Reset(c.body.kit.config.IdleTime)
	}
	return n, err
}

// getRobots returns the status and the first bytes of a robots.txt. Its redirects lead only
// to where the policy allows.
func (k *Kit) getRobots(ctx context.Context, address string) (status int, data []byte, err error) {
	ctx, end := context.WithTimeout(ctx, robotsTime)
	defer end()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil) //nolint:gosec // of a host that the policy allows
	if err != nil {
		return 0, nil, fmt.Errorf("fetch: %w", err)
	}

	req.Header.Set("User-Agent", k.config.UserAgent) // no packed answer is asked for: it could be a bomb
	resp, err := k.client.Do(req)                    //nolint:gosec // the client reaches what the policy allows
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()

	data, err = io.ReadAll(io.LimitReader(resp.Body, maxRobots))
	return resp.StatusCode, data, err
}

// Bounds of a robots.txt; RFC 9309 asks for at least 500 KiB.
const (
	maxRobots  = 500 << 10
	robotsTime = 15 * time.Second
)
