package worker

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

const (
	// transfersAtOnce is how many blobs a session gets at once, and how many it
	// puts: fewer than an orchestrator allows.
	transfersAtOnce = 8
	transferIdle    = time.Minute      // without a byte, after which a transfer starts again
	maxSetbacks     = 10               // in a row and without a byte, after which a transfer fails
	maxUnclear      = 30 * time.Second // of errors in a row of a kind that says nothing, after which it fails for good
)

// transfers carries the session's blobs over its current stream. A transfer that breaks
// off with one stream continues on the next, from where it was.
type transfers struct {
	session mapreduce.SessionID
	gets    chan struct{} // full while as many are under way as may be
	puts    chan struct{} // the same; what is put does not wait for what is got

	mu      sync.Mutex      // guards the variables below
	stream  mapreduce.Blobs // nil while there is none
	changed chan struct{}   // closed, and made anew, when stream changes
}

func newTransfers(id mapreduce.SessionID) *transfers {
	return &transfers{
		session: id, gets: make(chan struct{}, transfersAtOnce), puts: make(chan struct{}, transfersAtOnce),
		changed: make(chan struct{}),
	}
}

// goOver makes transfers go over a stream; nil makes them wait for one.
func (t *transfers) goOver(stream mapreduce.Blobs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream = stream
	close(t.changed)
	t.changed = make(chan struct{})
}

// awaitStream waits for a stream.
func (t *transfers) awaitStream(ctx context.Context) (mapreduce.Blobs, error) {
	for {
		t.mu.Lock()
		stream, changed := t.stream, t.changed
		t.mu.Unlock()
		if stream != nil {
			return stream, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// get calls take with the bytes of a blob, in order and each once.
func (t *transfers) get(ctx context.Context, h mapreduce.Held, b mapreduce.Blob, take func([]byte) error) error {
	if err := enterRoom(ctx, t.gets); err != nil {
		return err
	}
	defer func() { <-t.gets }()
	var refused error // by take
	err := t.retryTransfer(ctx, maxSetbacks, func(ctx context.Context, via mapreduce.Blobs, alive func()) error {
		q := &mapreduce.BlobRequest{Held: h, Session: t.session, Blob: b}
		return via.GetBlob(ctx, q, func(part []byte) error {
			alive()
			b.Start += int64(len(part))
			refused = take(part)
			return refused
		})
	}, func() bool { return refused != nil })
	if refused != nil {
		return refused
	}
	return classified(err)
}

// put stores a blob, and goes on trying until it is stored or refused, or for so
// many setbacks; 0 is no bound.
func (t *transfers) put(ctx context.Context, h mapreduce.Held, b mapreduce.Blob, data []byte, setbacks int) error {
	if err := enterRoom(ctx, t.puts); err != nil {
		return err
	}
	defer func() { <-t.puts }()
	b.Length = int64(len(data))
	begun := false
	err := t.retryTransfer(ctx, setbacks, func(ctx context.Context, via mapreduce.Blobs, alive func()) error {
		q := &mapreduce.BlobRequest{Held: h, Session: t.session, Blob: b}
		if begun && b.Kind == mapreduce.BlobOutput {
			had, err := via.PutBlob(ctx, q, func() ([]byte, error) { return nil, io.EOF })
			if err != nil {
				return err
			}
			q.Blob.Start = min(had.Length, b.Length)
		}
		begun = true
		rest := data[q.Blob.Start:]
		stored, err := via.PutBlob(ctx, q, func() ([]byte, error) {
			alive()
			if len(rest) == 0 {
				return nil, io.EOF
			}
			n := min(len(rest), mapreduce.PartSize)
			part := rest[:n:n]
			rest = rest[n:]
			return part, nil
		})
		if err == nil && stored.Length != b.Length {
			err = errs.New(errs.Aborted, "%d of %d bytes are stored", stored.Length, b.Length)
		}
		return err
	}, func() bool { return false })
	return classified(err)
}

// classified marks the error of a transfer with what it means for the unit: no attempt
// can cure what is damaged where it is stored.
func classified(err error) error {
	if errors.Is(err, errs.DataLoss) {
		return agent.Permanent(err)
	}
	return err
}

func enterRoom(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errIdle is the reason to start a transfer again that makes no progress.
var errIdle = errs.New(errs.Deadline, "the orchestrator neither sent nor took a byte for %v", transferIdle)

// retryTransfer tries until the transfer is done, final says that it cannot be, or
// nothing came of it too often. What the orchestrator answers again and again though
// nobody knows why, no later attempt will get past.
func (t *transfers) retryTransfer(ctx context.Context, most int, try func(ctx context.Context, via mapreduce.Blobs, alive func()) error, final func() bool) error {
	pauses := &backoff.ExponentialBackOff{InitialInterval: 20 * time.Millisecond, RandomizationFactor: .5, Multiplier: 2, MaxInterval: 2 * time.Second}
	var unclear time.Time // since when errors say nothing; zero if the last one did
	for setbacks := 0; ; {
		via, err := t.awaitStream(ctx)
		if err != nil {
			return err
		}
		moved := false
		once, stop := context.WithCancelCause(ctx)
		idle := time.AfterFunc(transferIdle, func() { stop(errIdle) })
		err = try(once, via, func() {
			moved = true
			idle.Reset(transferIdle)
		})
		idle.Stop()
		stop(nil)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final() || !isTransient(err):
			return err
		case errs.KindOf(err) != errs.Internal:
			unclear = time.Time{}
		case unclear.IsZero():
			unclear = time.Now()
		case time.Since(unclear) >= maxUnclear:
			return agent.Permanent(err)
		}
		switch {
		case moved:
			setbacks = 0
			pauses.Reset()
		case errs.KindOf(err) != errs.Exhausted:
			if setbacks++; setbacks == most {
				return err
			}
		}
		if clock.Sleep(ctx, max(pauses.NextBackOff(), retryAfter(err))) != nil {
			return context.Cause(ctx)
		}
	}
}

// isTransient reports whether a transfer that failed may succeed when it is tried
// again. An error of a kind that says nothing may be one of the connection.
func isTransient(err error) bool {
	return slices.Contains([]errs.Kind{
		errs.Unavailable, errs.Aborted, errs.Exhausted, errs.Deadline, errs.Cancelled, errs.Internal,
	}, errs.KindOf(err))
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
