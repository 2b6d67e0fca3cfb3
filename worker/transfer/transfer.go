// Package transfer carries what is too large for messages between a worker and its
// orchestrators. A transfer outlives the stream that it began on: it continues on the next,
// from where it was.
//
// It knows nothing of what it carries, nor of the units that it is for.
package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/worker/agent"
)

const (
	// atOnce is how many blobs a session gets at once, and how many it puts: fewer than
	// an orchestrator allows.
	atOnce      = 8
	idleLimit   = time.Minute      // without a byte, after which a transfer starts again
	maxSetbacks = 10               // in a row and without a byte, after which a transfer fails
	maxUnclear  = 30 * time.Second // of errors in a row of a kind that says nothing, after which it fails for good
)

// A Carrier carries the blobs of a session over its current stream. It is safe for
// concurrent use.
type Carrier struct {
	session mapreduce.SessionID
	most    int           // bytes of a blob that is collected
	gets    chan struct{} // full while as many are under way as may be
	puts    chan struct{} // the same; what is put does not wait for what is got

	mu      sync.Mutex    // guards the variables below
	now     *route        // nil while there is no stream
	changed chan struct{} // closed, and made anew, when now changes
}

// A route is a stream that transfers go over.
type route struct {
	protocol.Blobs
	life context.Context // ends when transfers go over this stream no more
	end  context.CancelCauseFunc
}

// errLeft is the reason to end what goes over a stream that the session has left.
var errLeft = errs.New(errs.Unavailable, "the stream to the orchestrator has ended")

// follow returns a context that ends with ctx, with the stream, or by end, which is to be called: a
// connection may be silent for long before its system says that it is dead.
func (r *route) follow(ctx context.Context) (over context.Context, end context.CancelCauseFunc) {
	over, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(context.Cause(r.life)) })
	return over, func(why error) {
		stop()
		cancel(why)
	}
}

// New returns a Carrier for a session that has no stream yet, and collects blobs of up to
// most bytes.
func New(id mapreduce.SessionID, most int) *Carrier {
	return &Carrier{
		session: id, most: most, gets: make(chan struct{}, atOnce), puts: make(chan struct{}, atOnce),
		changed: make(chan struct{}),
	}
}

// GoOver makes transfers go over a stream; nil makes them wait for one. What is under way over the
// stream before ends there, and begins again over this one.
func (t *Carrier) GoOver(stream protocol.Blobs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now != nil {
		t.now.end(errLeft)
		t.now = nil
	}

	if stream != nil {
		life, end := context.WithCancelCause(context.Background())
		t.now = &route{stream, life, end}
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// awaitStream waits for a stream.
func (t *Carrier) awaitStream(ctx context.Context) (*route, error) {
	for {
		t.mu.Lock()
		now, changed := t.now, t.changed
		t.mu.Unlock()

		if now != nil {
			return now, nil
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// GetBlob implements protocol.Blobs for others who work for an attempt of the session: it
// makes one transfer over the current stream, and leaves it to them to try again.
func (t *Carrier) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	via, err := t.awaitStream(ctx)
	if err != nil {
		return err
	}
	ctx, end := via.follow(ctx)
	defer end(nil)
	own := *q
	own.Session = t.session
	return via.GetBlob(ctx, &own, take)
}

// PutBlob implements protocol.Blobs as GetBlob does.
func (t *Carrier) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	via, err := t.awaitStream(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := via.follow(ctx)
	defer end(nil)
	own := *q
	own.Session = t.session
	return via.PutBlob(ctx, &own, next)
}

// Get calls take with the bytes of a blob that the orchestrator keeps for an attempt, in
// order and each once. An error of take ends it, and is returned as it is.
func (t *Carrier) Get(ctx context.Context, h protocol.Held, b protocol.Blob, take func([]byte) error) error {
	if err := enterRoom(ctx, t.gets); err != nil {
		return err
	}
	defer func() { <-t.gets }()

	var refused error // by take
	err := t.retryTransfer(ctx, maxSetbacks, func(ctx context.Context, via protocol.Blobs, alive func()) error {
		q := &protocol.BlobRequest{Held: h, Session: t.session, Blob: b}
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

// Collect gets a blob whose length is known, or a range of one, and checks that it is all
// there. Of one that is larger than the session takes, the error is payload.ErrInputsTooLarge.
func (t *Carrier) Collect(ctx context.Context, h protocol.Held, b protocol.Blob) ([]byte, error) {
	end := b.End
	if end == 0 {
		end = b.Length
	}

	size := end - b.Start
	if size > int64(t.most) {
		return nil, fmt.Errorf("%w: a blob of %d bytes; at most %d are taken", payload.ErrInputsTooLarge, size, t.most)
	}

	data := make([]byte, 0, size)
	err := t.Get(ctx, h, b, func(part []byte) error {
		// The memory was set aside for the length that was announced, and no more is taken.
		if int64(len(data)+len(part)) > size {
			return errs.New(errs.DataLoss, "more than the %d bytes of the blob came", size)
		}
		data = append(data, part...)
		return nil
	})

	switch sum := sha256.Sum256(data); {
	case err != nil:
		return nil, err
	case int64(len(data)) < size:
		return nil, errs.New(errs.DataLoss, "%d of %d bytes of the blob came", len(data), size)
	case size == b.Length && !bytes.Equal(sum[:], b.SHA256):
		return nil, errs.New(errs.DataLoss, "the %d bytes that came have another SHA-256 than the blob", size)
	}
	return data, nil
}

// Put stores a blob for an attempt, and goes on trying until it is stored or refused, or for
// so many setbacks; 0 is no bound.
func (t *Carrier) Put(ctx context.Context, h protocol.Held, b protocol.Blob, data []byte, setbacks int) error {
	if err := enterRoom(ctx, t.puts); err != nil {
		return err
	}
	defer func() { <-t.puts }()

	b.Length = int64(len(data))
	begun := false
	err := t.retryTransfer(ctx, setbacks, func(ctx context.Context, via protocol.Blobs, alive func()) error {
		q := &protocol.BlobRequest{Held: h, Session: t.session, Blob: b}

		// An output may be there in part from a transfer that broke off: an empty one asks
		// how far it came.
		if begun && b.Kind == protocol.BlobOutput {
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
			n := min(len(rest), protocol.PartSize)
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
var errIdle = errs.New(errs.Deadline, "the orchestrator neither sent nor took a byte for %v", idleLimit)

// retryTransfer tries until the transfer is done, final says that it cannot be, or
// nothing came of it too often. What the orchestrator answers again and again though
// nobody knows why, no later attempt will get past.
func (t *Carrier) retryTransfer(ctx context.Context, most int, try func(ctx context.Context, via protocol.Blobs, alive func()) error, final func() bool) error {
	pauses := &backoff.ExponentialBackOff{InitialInterval: 20 * time.Millisecond, RandomizationFactor: .5, Multiplier: 2, MaxInterval: 2 * time.Second}
	var unclear time.Time // since when errors say nothing; zero if the last one did
	for setbacks := 0; ; {
		via, err := t.awaitStream(ctx)
		if err != nil {
			return err
		}

		moved := false
		once, stop := via.follow(ctx)
		idle := time.AfterFunc(idleLimit, func() { stop(errIdle) })
		// Each byte that moves begins the time for the next.
		err = try(once, via, func() {
			moved = true
			idle.Reset(idleLimit)
		})

		idle.Stop()
		stop(nil)

		// The first switch tells errors that end the transfer from those that may pass.
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final() || !IsTransient(err):
			return err
		case errs.KindOf(err) != errs.Internal:
			unclear = time.Time{}
		case unclear.IsZero():
			unclear = time.Now()
		case time.Since(unclear) >= maxUnclear:
			return agent.Permanent(err)
		}

		// What moved bytes is progress, and an orchestrator that is full says nothing
		// against the transfer: neither is a setback.
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

// IsTransient reports whether a transfer that failed may succeed when it is tried
// again. An error of a kind that says nothing may be one of the connection.
func IsTransient(err error) bool {
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
