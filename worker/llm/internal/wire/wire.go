// Package wire is what the vendors have in common below their formats: one request and its
// response by HTTP, with its time, its size and its failures, and the parts of formats that
// several vendors share.
package wire

import (
	"bufio"
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

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// maxErrorBytes bounds the part of an error that is read.
const maxErrorBytes = 64 << 10

// A Format says how a vendor's responses are read.
type Format struct {
	Stream string                                           // the media type of an answer
	Limits func(http.Header, time.Time) llm.Limits          // reads the vendor's headers
	Judge  func(status int, body []byte) (llm.Kind, string) // reads the vendor's errors; 0 if it cannot

	// Whole turns an answer that came whole into the stream that was asked for; false if it is
	// none. Nil takes what comes whole as a stream of one.
	Whole func(body []byte) ([]byte, bool)
}

// A Dialer makes the calls of a provider: what all vendors have in common below
// their formats.
type Dialer struct {
	Config llm.Config   // with the defaults for what was left out
	Base   *url.URL     // ends with a slash
	Client *http.Client // follows no redirect
	format Format
}

// NewDialer returns the dialer of a vendor. It checks the address, which defaults to the vendor's. Redirects are not
// followed: they would carry the key to wherever they point.
func NewDialer(cfg llm.Config, vendor string, format Format) (*Dialer, error) {
	cfg.First = cmp.Or(cfg.First, llm.DefaultFirst)
	cfg.Idle = cmp.Or(cfg.Idle, llm.DefaultIdle)
	cfg.Window = cmp.Or(cfg.Window, llm.DefaultWindow)
	if cfg.Manners == nil {
		cfg.Manners = manners.NewStore(nil)
	}
	base, err := url.Parse(cmp.Or(cfg.BaseURL, vendor))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, llm.NewError(llm.Invalid, "the base URL is no http or https address")
	}
	if base.User != nil {
		return nil, llm.NewError(llm.Invalid, "the base URL holds a user or password; keys come from the environment")
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	transport := cfg.Transport
	if transport == nil {
		transport = newTransport()
	}
	return &Dialer{Config: cfg, Base: base, format: format, Client: &http.Client{
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

// A Call is one request under way. It is gone when Complete returns, so it may
// hold a context.
type Call struct {
	d      *Dialer
	ctx    context.Context // the caller's, ended too when the server falls silent
	cancel context.CancelCauseFunc
	trace  llm.Trace
	most   int64 // bytes of the response

	sent   atomic.Bool // the request was, whole; written by the transport
	header http.Header // of the response; nil before there is one
	status int
	body   *body
	refuse manners.Refusal // of a response with another status than 200
}

// frameBytes is what a token of an answer takes if a server sends each in a frame of its own,
// with its own names, ids and probabilities.
const frameBytes = 1 << 10

// BeginCall returns a call. Its EndCall must be called.
func (d *Dialer) BeginCall(ctx context.Context, req *llm.Request) *Call {
	ctx, cancel := context.WithCancelCause(ctx)
	most := cmp.Or(d.Config.MaxBytes, max(llm.DefaultMaxBytes, frameBytes*req.AnswerBound()))
	return &Call{d: d, ctx: ctx, cancel: cancel, trace: req.Trace, most: most}
}

// EndCall releases the resources of the call.
func (c *Call) EndCall() {
	if c.body != nil {
		c.body.timer.Stop()
	}
	c.cancel(nil)
}

// DoRequest sends a request through next. It returns a response only if that is an
// answer in the format that is expected; errors are read and judged here, so
// that no SDK has to. It is a middleware of the SDKs.
func (c *Call) DoRequest(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if c.d.Config.SendTrace && c.trace != (llm.Trace{}) {
		req.Header.Set("X-Coditect-Unit", url.QueryEscape(c.trace.Unit))
		req.Header.Set("X-Coditect-Attempt", strconv.Itoa(c.trace.Attempt))
		req.Header.Set("X-Coditect-Fence", strconv.FormatInt(c.trace.Fence, 10))
	}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) { c.sent.Store(w.Err == nil) },
	}))
	timer := time.AfterFunc(c.d.Config.First, func() { c.cancel(llm.NewError(llm.Timeout, "the server sent nothing in time")) })
	res, err := next(req)
	if err != nil {
		timer.Stop()
		return nil, c.FailError(err)
	}
	c.header, c.status = res.Header, res.StatusCode
	timer.Reset(c.d.Config.Idle)
	c.body = &body{rc: res.Body, timer: timer, idle: c.d.Config.Idle, left: c.most}
	res.Body = c.body
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, c.refusedError(res)
	}
	if got, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); got != c.d.acceptType(req) {
		return c.otherType(res, got, c.d.acceptType(req))
	}
	return res, nil
}

// otherType returns a response of another type than the one that is expected, if it is an answer
// all the same: a stream whose type is not named, or an answer that came whole.
func (c *Call) otherType(res *http.Response, got, want string) (*http.Response, error) {
	read := bufio.NewReaderSize(res.Body, maxErrorBytes)
	begin, _ := read.Peek(64) // what there is of it
	begin = bytes.TrimLeft(begin, " \t\r\n\ufeff")
	switch {
	case len(begin) == 0:
		defer res.Body.Close()
		return nil, c.responseError(llm.Server, "the answer is empty")
	case want == "text/event-stream" && startsAny(begin, "data:", "event:", ":"):
		return c.asType(res, want, read), nil
	case begin[0] == '{' && want != "application/json":
		defer res.Body.Close()
		return c.wholeAnswer(res, got, want, read)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(read, maxErrorBytes)) // what there is of it
	return nil, c.foreignError(raw, got)
}

func startsAny(raw []byte, marks ...string) bool {
	return slices.ContainsFunc(marks, func(m string) bool { return bytes.HasPrefix(raw, []byte(m)) })
}

// wholeAnswer returns an answer that came whole as the stream that was asked for.
func (c *Call) wholeAnswer(res *http.Response, got, want string, read io.Reader) (*http.Response, error) {
	raw, err := io.ReadAll(read) // bounded by the body
	if err != nil {
		return nil, c.CutError(err)
	}
	if kind, message := c.d.format.Judge(res.StatusCode, raw); kind != 0 {
		return nil, c.responseError(kind, message)
	}
	stream, ok := append(raw, '\n'), json.Valid(raw)
	if c.d.format.Whole != nil {
		stream, ok = c.d.format.Whole(raw)
	}
	if !ok {
		return nil, c.foreignError(raw, got)
	}
	c.body.tail = bytes.Clone(stream[max(0, len(stream)-tailBytes):])
	return c.asType(res, want, bytes.NewReader(stream)), nil
}

// asType returns a response with another body, of the type that is expected.
func (*Call) asType(res *http.Response, want string, body io.Reader) *http.Response {
	out := *res
	out.Header = res.Header.Clone()
	out.Header.Set("Content-Type", want)
	out.Body = struct {
		io.Reader
		io.Closer
	}{body, res.Body}
	return &out
}

// acceptType returns the media type that the answer to a request must have.
func (d *Dialer) acceptType(req *http.Request) string {
	if strings.HasSuffix(req.URL.Path, "/count_tokens") || slices.ContainsFunc(embedPaths, func(p string) bool { return strings.HasSuffix(req.URL.Path, p) }) {
		return "application/json"
	}
	return d.format.Stream
}

// refusedError returns the error of a response with another status than 200.
func (c *Call) refusedError(res *http.Response) *llm.Error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes)) // what there is of it
	kind, message := c.d.format.Judge(res.StatusCode, raw)
	c.refuse = manners.Refusal{Status: res.StatusCode, Param: paramOf(raw), Text: string(raw)}
	if kind == 0 {
		kind, message = ByStatus(res.StatusCode), "the answer is not an error in the form of this API"
		if isPage(raw) {
			message = "a web page came back: something else answers at this address"
			if kind == llm.Invalid || kind == llm.Permission {
				kind = llm.NotAPI
			}
		}
		if res.StatusCode/100 == 3 {
			kind, message = llm.NotAPI, "the server redirects to another address, and keys are not sent there"
		}
	}
	return c.responseError(kind, message)
}

// foreignError returns the error of a success that is not in the expected format.
func (c *Call) foreignError(raw []byte, got string) *llm.Error {
	if kind, message := c.d.format.Judge(c.status, raw); kind != 0 {
		return c.responseError(kind, message)
	}
	message := fmt.Sprintf("the answer is of type %q: something else answers at %s", got, c.d.Base.Host)
	return c.responseError(llm.NotAPI, message)
}

// paramOf returns the parameter that an error names.
func paramOf(raw []byte) string {
	var body struct {
		Param string
		Error struct{ Param string }
	}
	if json.Unmarshal(raw, &body) != nil {
		return ""
	}
	return cmp.Or(body.Error.Param, body.Param)
}

// Learn returns the manners to try next, after a request failed with err that was made by the
// manners with, where known was known. It is false if the failure stands: nothing was refused, or it has nothing to do with what
// can be left out.
func (c *Call) Learn(err error, model llm.Model, known, with manners.Manners, sent manners.Sent) (manners.Manners, bool) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || c.refuse.Status == 0 || e.Kind == llm.TooLarge || e.Kind == llm.Auth || e.Kind == llm.Billing || e.Kind == llm.RateLimited {
		return with, false
	}
	return c.d.Config.Manners.Refused(c.d.Base.Host+strings.TrimSuffix(c.d.Base.Path, "/"), string(model), known, with, c.refuse, sent)
}

// Manners returns what is known of a model.
func (d *Dialer) Manners(model llm.Model) manners.Manners {
	return d.Config.Manners.Of(d.Base.Host+strings.TrimSuffix(d.Base.Path, "/"), string(model))
}

// Works notes that a model answers.
func (d *Dialer) Works(model llm.Model) {
	d.Config.Manners.Works(d.Base.Host+strings.TrimSuffix(d.Base.Path, "/"), string(model))
}

// MaxRefusals bounds how often one request is made again without what was refused.
const MaxRefusals = 8

// responseError returns an error with all that the response says besides.
func (c *Call) responseError(kind llm.Kind, message string) *llm.Error {
	e := llm.NewError(kind, "%s", c.d.cleanText(message))
	e.Status = c.status
	now := time.Now()
	if c.header == nil {
		return e
	}
	e.RequestID = c.RequestID()
	e.RetryAfter = retryAfter(c.header, now)
	e.Limits = c.d.format.Limits(c.header, now)
	if c.status >= 300 {
		c.applyRetryHeader(e)
	}
	return e
}

// applyRetryHeader obeys a vendor that says whether to try again, but for failures that
// concern the whole job.
func (c *Call) applyRetryHeader(e *llm.Error) {
	job := llm.Auth.Class()
	switch c.header.Get("X-Should-Retry") {
	case "true":
		if e.Class != job {
			e.Class = llm.Server.Class()
		}
	case "false":
		if e.Class != job {
			e.Class = llm.Invalid.Class()
		}
	}
}

// RequestID returns the vendor's id of the call.
func (c *Call) RequestID() string {
	id := cmp.Or(c.header.Get("Request-Id"), c.header.Get("X-Request-Id"))
	return c.d.cleanText(id)
}

// FailError returns the error of a call that broke with err, for whatever reason.
func (c *Call) FailError(err error) *llm.Error {
	e := llm.BrokenError(c.ctx, err)
	e.Message = c.d.cleanText(e.Message)
	e.Status, e.Sent = cmp.Or(e.Status, c.status), c.sent.Load()
	if c.header != nil && e.RequestID == "" {
		e.RequestID = c.RequestID()
		e.Limits = c.d.format.Limits(c.header, time.Now())
	}
	return e
}

// CutError returns the error of a stream that ended, with err or without, before the
// answer did.
func (c *Call) CutError(err error) *llm.Error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return c.FailError(e)
	}
	if context.Cause(c.ctx) != nil {
		return c.FailError(err)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return c.FailError(llm.NewError(llm.Garbled, "the stream holds something that is no JSON: %v", err))
	}
	e := c.FailError(llm.NewError(llm.CutOff, "the stream ended before the answer: %v", err))
	e.Err = err
	return e
}

// MidstreamError returns the error that a server sent after it had begun to answer.
func (c *Call) MidstreamError(raw []byte) *llm.Error {
	kind, message := c.d.format.Judge(http.StatusOK, raw)
	if kind == 0 {
		kind, message = llm.Server, "an error in mid-stream, in no known format"
	}
	return c.responseError(kind, message)
}

// ByStatus returns the kind of an error by its status alone.
func ByStatus(status int) llm.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return llm.Auth
	case http.StatusPaymentRequired:
		return llm.Billing
	case http.StatusForbidden:
		return llm.Permission
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return llm.NotFound
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return llm.Timeout
	case http.StatusConflict, http.StatusTooEarly:
		return llm.Server
	case http.StatusRequestEntityTooLarge:
		return llm.TooLarge
	case http.StatusTooManyRequests:
		return llm.RateLimited
	case http.StatusServiceUnavailable, 529, http.StatusFailedDependency, 498: // the last two are of capacity
		return llm.Overloaded
	}
	if status >= 500 {
		return llm.Server
	}
	return llm.Invalid
}

// isPage reports whether raw looks like HTML.
func isPage(raw []byte) bool {
	raw = bytes.ToLower(bytes.TrimSpace(raw[:min(len(raw), 512)]))
	return bytes.HasPrefix(raw, []byte("<!doctype html")) || bytes.HasPrefix(raw, []byte("<html"))
}

// cleanText returns a text of a server without the key, on one line and not too
// long. The key goes first, lest half of it be left.
func (d *Dialer) cleanText(text string) string {
	return redact.ShortenLine(d.Config.Key.Scrub(redact.OneLine(text)))
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
		return 0, llm.NewError(llm.Garbled, "the answer is longer than any answer can be")
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

// EndsWith reports whether with is among the last words of the response that were read.
func (c *Call) EndsWith(with string) bool { return c.body.endsWith(with) }

// Context returns the context of the call: it ends with the caller's, and when the
// server falls silent.
func (c *Call) Context() context.Context { return c.ctx }

// CleanText returns a text of the server as it may be shown: without the key, on one
// line and not too long.
func (c *Call) CleanText(text string) string { return c.d.cleanText(text) }

// ParseLimits returns the limits that the response states.
func (c *Call) ParseLimits() llm.Limits { return c.d.format.Limits(c.header, time.Now()) }
