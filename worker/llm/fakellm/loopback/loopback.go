// Package loopback carries requests of HTTP to a server within the process, so that tests may
// run in virtual time: no network is waited for. It must import nothing of the project, and
// knows nothing of what is asked.
package loopback

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// New returns a transport to a server. A call that is called off, or whose response is closed, has
// ended when that returns.
func New(server http.Handler) http.RoundTripper { return transport{server} }

type transport struct{ server http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in, err := asReceived(r)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(r.Context())
	a := newAnswer(ctx, cancel)
	// The server runs beside the client, since either may wait for the other.
	go a.serveRequest(t.server, in.WithContext(ctx))

	select {
	case <-a.begun:
	case <-r.Context().Done():
		_ = a.Close() // it always succeeds
		return nil, context.Cause(r.Context())
	}

	if a.status == 0 {
		_ = a.Close() // the same
		return nil, io.ErrUnexpectedEOF
	}

	return &http.Response{
		Status: fmt.Sprint(a.status, " ", http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: a.sent, Body: a, Request: r,
	}, nil
}

// asReceived is a request as a server reads it.
func asReceived(r *http.Request) (*http.Request, error) {
	in := r.Clone(r.Context())

	if r.Body != nil {
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
	}

	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}

	return in, nil
}

// An answer is a response in the making: the server writes it, and it is the body
// that the client reads.
type answer struct {
	cancel context.CancelFunc
	header http.Header
	in     *io.PipeReader
	out    *io.PipeWriter
	done   chan struct{} // closed when the server is done

	begin  sync.Once
	begun  chan struct{} // closed when the fields below are written
	status int           // 0 if the connection broke before there was one
	sent   http.Header
}

var _ interface {
	http.ResponseWriter
	http.Flusher
	io.ReadCloser
} = (*answer)(nil)

func newAnswer(ctx context.Context, cancel context.CancelFunc) *answer {
	a := &answer{cancel: cancel, header: make(http.Header), done: make(chan struct{}), begun: make(chan struct{})}
	a.in, a.out = io.Pipe()
	context.AfterFunc(ctx, func() { _ = a.out.CloseWithError(context.Cause(ctx)) }) // it always succeeds
	return a
}

// serveRequest has a request answered. A server that panics breaks the connection.
func (a *answer) serveRequest(s http.Handler, r *http.Request) {
	defer close(a.done)
	// It is what the client reads at the end: that of a whole answer if the server returns.
	err := io.ErrUnexpectedEOF

	defer func() {
		if e := recover(); e != nil && e != http.ErrAbortHandler { //nolint:errorlint // it is that very value
			panic(e)
		}
		a.startAnswer(0)
		_ = a.out.CloseWithError(err) // it always succeeds
	}()

	s.ServeHTTP(a, r)
	a.startAnswer(http.StatusOK)
	err = io.EOF
}

func (a *answer) startAnswer(status int) {
	a.begin.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.startAnswer(status) }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.startAnswer(http.StatusOK)
	return a.out.Write(p)
}

// Flush implements http.Flusher. Nothing is held back.
func (a *answer) Flush() {}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) { return a.in.Read(p) }

// Close implements io.Closer.
func (a *answer) Close() error {
	a.cancel()
	_ = a.in.Close() // it always succeeds
	<-a.done
	return nil
}
