package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Config configures a provider.
type Config struct {
	Key       Key
	BaseURL   string        // defaults to the vendor's
	Window    int64         // tokens of the context window (Ollama's num_ctx). Defaults to DefaultWindow
	ToolMode  bool          // for servers that cannot constrain an answer: force a tool instead
	SendTrace bool          // send Request.Trace as headers, for a server of ours
	First     time.Duration // a response has to begin in that time; some servers queue calls. Defaults to DefaultFirst
	Idle      time.Duration // no byte for so long breaks a response off. Defaults to DefaultIdle
	MaxBytes  int64         // of a response, whatever it is. Defaults to DefaultMaxBytes

	// Transport carries requests. Defaults to one of the package's own.
	Transport http.RoundTripper
}

// Defaults of Config.
const (
	DefaultFirst    = 10 * time.Minute
	DefaultIdle     = 5 * time.Minute
	DefaultMaxBytes = 64 << 20
	DefaultWindow   = 16384
)

// maxErrorBytes bounds the part of an error that is read, maxMessage the part that is
// kept.
const (
	maxErrorBytes = 64 << 10
	maxMessage    = 600
)

// New returns the provider of a name, without its decorators.
func New(name string, cfg Config) (Provider, error) {
	cfg.First = cmp.Or(cfg.First, DefaultFirst)
	cfg.Idle = cmp.Or(cfg.Idle, DefaultIdle)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	cfg.Window = cmp.Or(cfg.Window, DefaultWindow)
	switch name {
	case "anthropic":
		return newAnthropic(cfg)
	case "openai":
		return newOpenAI(cfg)
	case "ollama":
		return newOllama(cfg)
	}
	return nil, newError(Invalid, "no provider is called %q; there are anthropic, openai and ollama", name)
}

// A dialer makes the calls of a provider: what all vendors have in common below
// their formats.
type dialer struct {
	cfg    Config
	base   *url.URL
	client *http.Client
	stream string                                       // the media type of an answer
	limits func(http.Header, time.Time) Limits          // reads the vendor's headers
	judge  func(status int, body []byte) (Kind, string) // reads the vendor's errors; 0 if it cannot
}

// newDialer checks the address. Redirects are not followed: they would carry
// the key to wherever they point.
func newDialer(cfg Config, vendor string) (*dialer, error) {
	base, err := url.Parse(cmp.Or(cfg.BaseURL, vendor))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, newError(Invalid, "the base URL is no http or https address")
	}
	if base.User != nil {
		return nil, newError(Invalid, "the base URL holds a user or password; keys come from the environment")
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	transport := cfg.Transport
	if transport == nil {
		transport = newTransport()
	}
	return &dialer{cfg: cfg, base: base, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// newTransport is like the default one, for many calls to one host.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// A call is one request under way. It is gone when Complete returns, so it may
// hold a context.
type call struct {
	d      *dialer
	ctx    context.Context // the caller's, ended too when the server falls silent
	cancel context.CancelCauseFunc
	trace  Trace

	sent   atomic.Bool // the request was, whole; written by the transport
	header http.Header // of the response; nil before there is one
	status int
	body   *body
}

// beginCall returns a call. Its end must be called.
func (d *dialer) beginCall(ctx context.Context, req *Request) *call {
	ctx, cancel := context.WithCancelCause(ctx)
	return &call{d: d, ctx: ctx, cancel: cancel, trace: req.Trace}
}

// endCall releases the resources of the call.
func (c *call) endCall() {
	if c.body != nil {
		c.body.timer.Stop()
	}
	c.cancel(nil)
}

// doRequest sends a request through next. It returns a response only if that is an
// answer in the format that is expected; errors are read and judged here, so
// that no SDK has to. It is a middleware of the SDKs.
func (c *call) doRequest(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if c.d.cfg.SendTrace && c.trace != (Trace{}) {
		req.Header.Set("X-Coditect-Unit", url.QueryEscape(c.trace.Unit))
		req.Header.Set("X-Coditect-Attempt", strconv.Itoa(c.trace.Attempt))
		req.Header.Set("X-Coditect-Fence", strconv.FormatInt(c.trace.Fence, 10))
	}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) { c.sent.Store(w.Err == nil) },
	}))
	timer := time.AfterFunc(c.d.cfg.First, func() { c.cancel(newError(Timeout, "the server sent nothing in time")) })
	res, err := next(req)
	if err != nil {
		timer.Stop()
		return nil, c.failError(err)
	}
	c.header, c.status = res.Header, res.StatusCode
	timer.Reset(c.d.cfg.Idle)
	c.body = &body{rc: res.Body, timer: timer, idle: c.d.cfg.Idle, left: c.d.cfg.MaxBytes}
	res.Body = c.body
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, c.refusedError(res)
	}
	if got, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); got != c.d.acceptType(req) {
		defer res.Body.Close()
		return nil, c.foreignError(res, got)
	}
	return res, nil
}

// acceptType returns the media type that the answer to a request must have.
func (d *dialer) acceptType(req *http.Request) string {
	if strings.HasSuffix(req.URL.Path, "/count_tokens") {
		return "application/json"
	}
	return d.stream
}

// refusedError returns the error of a response with another status than 200.
func (c *call) refusedError(res *http.Response) *Error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes)) // what there is of it
	kind, message := c.d.judge(res.StatusCode, raw)
	if kind == 0 {
		kind, message = byStatus(res.StatusCode), "the answer was no error of this interface"
		if isPage(raw) {
			message = "a web page came back: something else answers at this address"
			if kind == Invalid || kind == Permission {
				kind = NotAPI
			}
		}
		if res.StatusCode/100 == 3 {
			kind, message = NotAPI, "the server redirects elsewhere, which is not followed with a key"
		}
	}
	return c.responseError(kind, message)
}

// foreignError returns the error of a success that is not in the expected format.
func (c *call) foreignError(res *http.Response, got string) *Error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes)) // what there is of it
	if kind, message := c.d.judge(res.StatusCode, raw); kind != 0 {
		return c.responseError(kind, message)
	}
	message := fmt.Sprintf("the answer is of type %q: something else answers at %s", got, c.d.base.Host)
	return c.responseError(NotAPI, message)
}

// responseError returns an error with all that the response says besides.
func (c *call) responseError(kind Kind, message string) *Error {
	e := newError(kind, "%s", c.d.cleanText(message))
	e.Status = c.status
	now := time.Now()
	if c.header == nil {
		return e
	}
	e.RequestID = c.requestID()
	e.RetryAfter = retryAfter(c.header, now)
	e.Limits = c.d.limits(c.header, now)
	if c.status >= 300 {
		c.applyRetryHeader(e)
	}
	return e
}

// applyRetryHeader obeys a vendor that says whether to try again, but for failures that
// concern the whole job.
func (c *call) applyRetryHeader(e *Error) {
	job := Auth.Class()
	switch c.header.Get("X-Should-Retry") {
	case "true":
		if e.Class != job {
			e.Class = Server.Class()
		}
	case "false":
		if e.Class != job {
			e.Class = Invalid.Class()
		}
	}
}

// requestID returns the vendor's id of the call.
func (c *call) requestID() string {
	id := cmp.Or(c.header.Get("Request-Id"), c.header.Get("X-Request-Id"))
	return c.d.cleanText(id)
}

// failError returns the error of a call that broke with err, for whatever reason.
func (c *call) failError(err error) *Error {
	e := brokenError(c.ctx, err)
	e.Message = c.d.cleanText(e.Message)
	e.Status, e.Sent = cmp.Or(e.Status, c.status), c.sent.Load()
	if c.header != nil && e.RequestID == "" {
		e.RequestID = c.requestID()
		e.Limits = c.d.limits(c.header, time.Now())
	}
	return e
}

// cutError returns the error of a stream that ended, with err or without, before the
// answer did.
func (c *call) cutError(err error) *Error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return c.failError(e)
	}
	if context.Cause(c.ctx) != nil {
		return c.failError(err)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return c.failError(newError(Garbled, "the stream holds something that is no JSON: %v", err))
	}
	e := c.failError(newError(CutOff, "the stream ended before the answer: %v", err))
	e.Err = err
	return e
}

// midstreamError returns the error that a server sent after it had begun to answer.
func (c *call) midstreamError(raw []byte) *Error {
	kind, message := c.d.judge(http.StatusOK, raw)
	if kind == 0 {
		kind, message = Server, "an error in mid-stream, in no known format"
	}
	return c.responseError(kind, message)
}

// byStatus returns the kind of an error by its status alone.
func byStatus(status int) Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return Auth
	case http.StatusPaymentRequired:
		return Billing
	case http.StatusForbidden:
		return Permission
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return NotFound
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return Timeout
	case http.StatusConflict, http.StatusTooEarly:
		return Server
	case http.StatusRequestEntityTooLarge:
		return TooLarge
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusServiceUnavailable, 529:
		return Overloaded
	}
	if status >= 500 {
		return Server
	}
	return Invalid
}

// isPage reports whether raw looks like HTML.
func isPage(raw []byte) bool {
	raw = bytes.ToLower(bytes.TrimSpace(raw[:min(len(raw), 512)]))
	return bytes.HasPrefix(raw, []byte("<!doctype html")) || bytes.HasPrefix(raw, []byte("<html"))
}

// cleanText returns a text of a server without the key, on one line and not too
// long. The key goes first, lest half of it be left.
func (d *dialer) cleanText(text string) string {
	return shortenLine(d.cfg.Key.scrubText(oneLine(text)))
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}

// shortenLine returns a text on one line and not too long.
func shortenLine(text string) string {
	text = oneLine(text)
	if r := []rune(text); len(r) > maxMessage {
		text = string(r[:maxMessage]) + "…"
	}
	return text
}

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
		return 0, newError(Garbled, "the answer is longer than any answer can be")
	}
	n, err := b.rc.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
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

// parseLimits returns the limits that the response states.
func (c *call) parseLimits() Limits { return c.d.limits(c.header, time.Now()) }

// answerOf returns the answer of a response to a schema: the input of the forced tool,
// or the text. Nil means that there is none.
func answerOf(r *Response, tool bool) json.RawMessage {
	if !tool {
		if text := strings.TrimSpace(r.Text()); text != "" {
			return json.RawMessage(text)
		}
		return nil
	}
	for _, c := range r.Calls() {
		if c.Name == answerTool {
			return c.Input
		}
	}
	return nil
}

// toolFields returns a tool's schema, and whether the vendor may be strict about
// it. Tools of others often take what no dialect can express: their input is
// then only checked by us.
func toolFields(t Tool, d Dialect) (fields map[string]any, strict bool, err error) {
	if fields, err = schemaMap(t.Schema, d); err == nil {
		return fields, true, nil
	}
	fields, err = schemaMap(t.Schema, Dialect{Name: "any", All: true})
	return fields, false, err
}

// withAnswer returns the tools and which of them is forced, with the one that
// takes the answer. It is forced if it is alone.
func withAnswer(req *Request) (tools []Tool, force string) {
	if len(req.Tools) == 0 {
		force = answerTool
	}
	one := Tool{Name: answerTool, Description: "Give the answer.", Schema: req.Schema}
	return append(slices.Clip(req.Tools), one), force
}
