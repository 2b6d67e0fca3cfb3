package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A call is one request and its answer. It bounds how long the peer may take for each part
// of them, and counts what is held of them here.
type call struct {
	writer  http.ResponseWriter
	request *http.Request

	connection *connection
	wait       time.Duration

	mu      sync.Mutex               // guards the variables below
	control *http.ResponseController // nil when the call has ended: what reads the request may go on for longer
	held    int64                    // bytes of the message that comes
	wrong   error                    // with what the peer has sent; nil while there is nothing
	unread  bool                     // reading the request has failed: its deadline stays
}

// refuse notes what is wrong with what the peer sends. The code that is generated for
// streams both ways does not report it, and would go on with what came before.
func (c *call) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = err
}

// refused returns what is wrong with what the peer has sent, or else err.
func (c *call) refused(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong != nil {
		return c.wrong
	}
	return err
}

type callKey struct{}

// newCall wraps a request and what it is answered by.
func newCall(w http.ResponseWriter, r *http.Request, wait time.Duration) *call {
	connection, _ := r.Context().Value(connectionKey{}).(*connection)
	c := &call{connection: connection, wait: wait, control: http.NewResponseController(w)}
	c.writer = &writer{w, c}
	c.request = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	c.request.Body = &body{r.Body, c}
	return c
}

// noteUnread notes that the request cannot be read to its end.
func (c *call) noteUnread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = true
}

// isUnread reports whether the request could not be read to its end.
func (c *call) isUnread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread
}

// end gives back what the call holds, and bounds how long the peer may take for the rest of
// the request and of the answer. A peer that was waited for in vain is not waited for
// again: the answer would come just before its own deadline, and on a busy machine behind
// it.
func (c *call) end() {
	c.release()
	if !c.isUnread() {
		c.setReadDeadline(time.Now().Add(c.wait))
	}
	c.setWriteDeadline(time.Now().Add(2 * c.wait)) // what is left of the request is read first
	c.mu.Lock()
	defer c.mu.Unlock()
	c.control = nil
}

// setReadDeadline reports whether the call is still under way.
func (c *call) setReadDeadline(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control != nil {
		_ = c.control.SetReadDeadline(t) // of a closed connection, reading says so
	}
	return c.control != nil
}

func (c *call) setWriteDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control != nil {
		_ = c.control.SetWriteDeadline(t) // of a closed connection, writing says so
	}
}

// heldFactor is about what a byte of a request takes while its message is read, decoded and
// encoded again.
const heldFactor = 3

// hold notes that bytes of a message have come.
func (c *call) hold(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control != nil {
		c.held += n
		c.connection.hold(n)
	}
}

// release notes that the message that has come is with the server.
func (c *call) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connection.hold(-c.held)
	c.held = 0
}

// A body is what a peer sends.
type body struct {
	io.ReadCloser
	call *call
}

// Read implements io.Reader. After an error the deadline stays, so that the rest is not
// waited for either.
func (b *body) Read(p []byte) (int, error) {
	if !b.call.setReadDeadline(time.Now().Add(b.call.wait)) {
		return 0, http.ErrBodyReadAfterClose
	}

	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		b.call.setReadDeadline(time.Time{})
	} else {
		b.call.noteUnread()
	}

	b.call.hold(int64(n) * heldFactor)
	return n, err
}

// A writer is what a peer reads.
type writer struct {
	http.ResponseWriter
	call *call
}

// Unwrap lets a http.ResponseController see what is wrapped.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	w.call.connection.hold(int64(len(p)))
	defer w.call.connection.hold(-int64(len(p)))
	err = w.inTime(func() error {
		n, err = w.ResponseWriter.Write(p)
		return err
	})
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() {
	_ = w.FlushError() // the next Write says it again
}

// FlushError sends what was written.
func (w *writer) FlushError() error {
	return w.inTime(http.NewResponseController(w.ResponseWriter).Flush)
}

// inTime bounds how long the peer may take to read.
func (w *writer) inTime(do func() error) error {
	w.call.setWriteDeadline(time.Now().Add(w.call.wait))
	err := do()
	w.call.setWriteDeadline(time.Time{})
	return err
}

// A relay is a connection to the server for each call over that of its peer: the context of
// a request says which.
type relay struct{}

var _ grpc.ClientConnInterface = relay{}

func (relay) of(ctx context.Context) (*call, *grpc.ClientConn, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return nil, nil, status.Error(codes.Internal, "a call without a request")
	}
	conn, err := c.connection.dial(c.request)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "the connection has ended: %v", err)
	}
	return c, conn, nil
}

// Invoke implements grpc.ClientConnInterface.
func (r relay) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	c, conn, err := r.of(ctx)
	if err != nil {
		return err
	}
	err = conn.Invoke(ctx, method, args, reply, opts...)
	c.release()
	return err
}

// NewStream implements grpc.ClientConnInterface.
func (r relay) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c, conn, err := r.of(ctx)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	s, err := conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{s, c, cancel}, nil
}

// A stream is that of a call to the server.
type stream struct {
	grpc.ClientStream
	call   *call
	cancel context.CancelFunc // of its context, which ends with the request too
}

// CloseSend implements grpc.ClientStream. A stream of which something could not be read is
// not whole: it is cut off and never closed, as a server that saw it closed before it was
// cut off would take the messages that came for all of them.
func (s *stream) CloseSend() error {
	if s.call.refused(nil) != nil {
		s.cancel()
		return nil
	}
	return s.ClientStream.CloseSend()
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		err = s.call.refused(err)
	}
	return err
}

// Header implements grpc.ClientStream. If the call has failed before anything was sent, it
// says so.
func (s *stream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	switch {
	case err != nil:
		err = s.call.refused(err)
	case header == nil:
		if err = s.RecvMsg(new(anypb.Any)); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return header, err
}

// SendMsg implements grpc.ClientStream. Documents that are larger than a message should be
// are sent in several.
func (s *stream) SendMsg(m any) error {
	defer s.call.release()

	switch m := m.(type) {
	case *pb.SubmitJobRequest:
		for pieces := range parts.GroupPieces(m.GetDocuments()) {
			m.Documents = pieces
			if err := s.ClientStream.SendMsg(m); err != nil {
				return err
			}
			m = &pb.SubmitJobRequest{} // the spec is in the first message only
		}
		return nil
	case *pb.PlanJobRequest:
		for pieces := range parts.GroupPieces(m.GetDocuments()) {
			m.Documents = pieces
			if err := s.ClientStream.SendMsg(m); err != nil {
				return err
			}
			m = &pb.PlanJobRequest{}
		}
		return nil
	}
	return s.ClientStream.SendMsg(m)
}
