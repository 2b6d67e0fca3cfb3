package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/child"
	"github.com/coditect/mapreduce/worker/tool"
)

// A link is a session with a server that is begun when it is needed, and again when it
// was lost. It is safe for concurrent use.
type link struct {
	kit *Kit

	lock     chan struct{} // guards what is below; a channel, as waiting for it has to end with a context
	live     *connection   // nil if there is none
	starts   int           // in a row that were in vain, or lost before they answered a call
	notUntil time.Time     // when the next may be
	late     int           // calls in a row that took too long
	closed   bool
}

// A connection is one session with a server.
type connection struct {
	*sdk.ClientSession
	process *child.Process // nil of an address
	flow    *flow          // nil of an address
}

func newLink(k *Kit) *link { return &link{kit: k, lock: make(chan struct{}, 1)} }

func (l *link) acquire(ctx context.Context) error {
	select {
	case l.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *link) release() { <-l.lock }

// Pauses between starts of a server that does not stay.
const (
	firstPause = time.Second
	longPause  = 30 * time.Second
)

// lateCalls in a row end a session: a server that hangs may be better after a start.
const lateCalls = 2

// connect returns the session, begun if there is none.
func (l *link) connect(ctx context.Context) (*connection, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	defer l.release()

	if l.closed {
		return nil, errors.New("the session is closed")
	}

	if l.live != nil && l.live.ended() {
		l.drop()
		l.pause()
	}
	if l.live != nil {
		return l.live, nil
	}

	if wait := time.Until(l.notUntil); wait > 0 {
		return nil, fmt.Errorf("%s has ended or not started %d times in a row; it is started again in %v", l.kit.Name(), l.starts, wait.Round(100*time.Millisecond))
	}

	select {
	case l.kit.room <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("all %d sessions with %s are in use", cap(l.kit.room), l.kit.Name())
	}

	c, err := l.kit.begin(ctx)
	if err != nil {
		<-l.kit.room
		if ctx.Err() == nil {
			l.starts++
			l.pause()
		}
		return nil, err
	}

	l.live = c
	l.starts++ // until it answers a call
	return c, nil
}

// pause says when the next start may be. The first two follow at once.
func (l *link) pause() {
	if l.starts > 1 {
		l.notUntil = time.Now().Add(min(firstPause<<min(l.starts-2, 20), longPause))
	}
}

// drop ends the session. The caller holds the lock.
func (l *link) drop() {
	if l.live == nil {
		return
	}
	l.live.end()
	l.live, l.late = nil, 0
	<-l.kit.room
}

func (l *link) close() {
	l.lock <- struct{}{}
	defer l.release()
	l.drop()
	l.closed = true
}

// settle notes how a call on a session ended.
func (l *link) settle(c *connection, err error) {
	l.lock <- struct{}{}
	defer l.release()

	if l.live != c {
		return // lost already, to another call
	}

	switch {
	case err == nil, isAnswer(err):
		l.starts, l.late, l.notUntil = 0, 0, time.Time{}
	case errors.Is(err, context.DeadlineExceeded):
		if l.late++; l.late >= lateCalls {
			l.drop()
		}
	case errors.Is(err, context.Canceled):
	default:
		l.drop()
		l.pause()
	}
}

// isAnswer reports whether an error is one that the server answered. The library has codes
// of its own, for what never reached the server or was lost on the way.
func isAnswer(err error) bool {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && answer.Code != codeClientClosing && answer.Code != codeServerClosing && answer.Code != codeRejected
}

// Codes of errors that the library makes itself.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// call calls a tool. A call that the server did not see is made again once, and so is one
// that does no harm. The outcome of any other is not known.
func (l *link) call(ctx context.Context, m *member, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	for try := 1; ; try++ {
		c, err := l.connect(ctx)
		if err != nil {
			return nil, l.kit.explain(ctx, m, err)
		}

		c.refill()
		answer, err := c.CallTool(ctx, &sdk.CallToolParams{Name: m.name, Arguments: arguments})
		// The library reports that a stream has ended; the flow knows why.
		if err != nil && c.flow != nil && c.flow.err() != nil {
			err = c.flow.err()
		}
		l.settle(c, err)
		if err == nil {
			return answer, nil
		}

		lost := !isAnswer(err) && ctx.Err() == nil
		if try == 1 && lost && (m.spec.Idempotent || errors.Is(err, sdk.ErrSessionMissing)) {
			continue
		}

		if end := c.why(); end != nil && lost {
			err = fmt.Errorf("it is not known whether the call was carried out: %w; %w", end, err)
		}
		return nil, l.kit.explain(ctx, m, err)
	}
}

// list asks for all tools.
func (l *link) list(ctx context.Context) ([]*sdk.Tool, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return nil, l.kit.explain(ctx, nil, err)
	}

	ctx, cancel := context.WithTimeout(ctx, l.kit.config.StartTimeout)
	defer cancel()
	c.refill()

	var all []*sdk.Tool
	params := new(sdk.ListToolsParams)
	for page := 1; ; page++ {
		got, err := c.ListTools(ctx, params)
		// The library reports that a stream has ended; the flow knows why.
		if err != nil && c.flow != nil && c.flow.err() != nil {
			err = c.flow.err()
		}
		l.settle(c, err)
		if err != nil {
			return nil, l.kit.explain(ctx, nil, fmt.Errorf("the server does not list its tools: %w", errors.Join(err, c.why())))
		}

		all = append(all, got.Tools...)
		if len(all) > maxTools || page >= maxPages {
			return nil, fmt.Errorf("the server lists more than %d tools, or more than %d pages of them", maxTools, maxPages)
		}
		if got.NextCursor == "" {
			return all, nil
		}
		params.Cursor = got.NextCursor
	}
}

// explain makes an error fit for a model and for people: bounded, without secrets, and
// with the tool and its server.
func (k *Kit) explain(ctx context.Context, m *member, err error) error {
	if refused, ok := errors.AsType[*tool.Refused](err); ok {
		return refused
	}

	what := ""
	if m != nil {
		what = m.spec.Name + ": "
	}

	// The end of the context says more than what the library makes of it.
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Errorf("%sthe server did not answer in time: %w", what, context.DeadlineExceeded)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}

	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && isAnswer(err) {
		return fmt.Errorf("%sthe server answers with error %d: %s", what, answer.Code, shorten.MarkedBytes(printableText(k.withoutSecrets(answer.Message)), maxErrorText))
	}

	text := strings.Join(strings.Fields(printableText(k.withoutSecrets(err.Error()))), " ")
	return errors.New(what + shorten.MarkedBytes(text, maxErrorText))
}

// maxErrorText bounds what a server says of an error, in bytes.
const maxErrorText = 2 << 10

// begin starts a session with the server. A server that knows the latest greeting alone, and
// was too slow for it, is greeted again with all the time there is.
func (k *Kit) begin(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, k.config.StartTimeout)
	defer cancel()
	c, ignored, err := k.startSession(ctx, k.config.GreetTimeout)
	if err != nil && ignored && ctx.Err() == nil {
		c, _, err = k.startSession(ctx, k.config.StartTimeout)
	}
	return c, err
}

// discover is the method of the latest greeting. Servers that do not know it should say so,
// and some ignore it.
const discover = "server/discover"

// startSession starts a session. For an answer to the latest greeting it waits for a time, and
// reports whether the server ignored it; then it greets as servers have long been greeted.
func (k *Kit) startSession(ctx context.Context, wait time.Duration) (_ *connection, ignored bool, _ error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "coditect", Version: k.config.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no files, no models and no people for servers
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	client.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, q sdk.Request) (sdk.Result, error) {
			if method != discover {
				return next(ctx, method, q)
			}
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			res, err := next(ctx, method, q)
			ignored = err != nil && ctx.Err() != nil
			return res, err
		}
	})

	c := new(connection)
	var transport sdk.Transport
	if k.transport != nil {
		transport = &sdk.StreamableClientTransport{
			Endpoint: k.server.URL, HTTPClient: k.transport.guardedClient(), MaxRetries: -1, DisableStandaloneSSE: true, OAuthHandler: k.oauth, MaxEventSize: maxMessage,
		}
	} else {
		process, err := child.Start(child.Config{Path: k.server.Command, Args: k.server.Args, Env: k.server.programEnvironment(), Dir: k.server.Dir})
		if err != nil {
			return nil, false, err
		}
		c.process, c.flow = process, &flow{ReadCloser: process.Stdout}
		c.refill()
		transport = &sdk.IOTransport{Reader: c.flow, Writer: process.Stdin, MaxLineLength: maxMessage}
	}

	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		if c.flow != nil && c.flow.err() != nil {
			err = c.flow.err()
		}
		if c.process != nil {
			c.process.Stop()
			if ctx.Err() != nil {
				err = fmt.Errorf("the program does not answer within %v as an MCP server does: %s", k.config.StartTimeout, c.process.Said())
			} else {
				err = fmt.Errorf("%w; %w", c.process.Err(), err)
			}
		}
		return nil, ignored, fmt.Errorf("the server does not start: %w", err)
	}

	c.ClientSession = session
	return c, ignored, nil
}

// ended reports whether the program of a session has ended.
func (c *connection) ended() bool { return c.process != nil && c.process.Err() != nil }

// why says how the program of a session ended; nil if it has not, or there is none.
func (c *connection) why() error {
	if c.process == nil {
		return nil
	}
	return c.process.Err()
}

// end ends a session.
func (c *connection) end() {
	if c.process != nil {
		c.process.Stop() // first: closing the session waits for calls that the server may never answer
	}
	_ = c.Close() // what a server says to its end changes nothing
}

// refill lets a program write another maxStream bytes.
func (c *connection) refill() {
	if c.flow != nil {
		c.flow.left.Store(maxStream)
	}
}

// A flow is what a program writes. It ends with an error once that is more than any
// answer to the calls that wait for one.
type flow struct {
	io.ReadCloser
	left atomic.Int64
	over atomic.Bool
}

// Read reads no more than may be written.
func (f *flow) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.left.Add(-int64(n)) < 0 {
		f.over.Store(true)
		return 0, f.err()
	}
	return n, err
}

func (f *flow) err() error {
	if f.over.Load() {
		return fmt.Errorf("the server wrote more than %d bytes", maxStream)
	}
	return nil
}
