package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"mime"
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

// A Call is one request under way. It is gone when Complete returns, so it may
// hold a context.
type Call struct {
	d      *Dialer
	ctx    context.Context // the caller's, ended too when the server falls silent
	cancel context.CancelCauseFunc
	trace  llm.Trace
	most   int64 // bytes of the response

	opened atomic.Bool  // there was a connection for the request; written by the transport
	sent   atomic.Bool  // the request was, whole; written by the transport
	proofs []redact.Key // other than the key of the configuration, which the request was sent with
	header http.Header  // of the response; nil before there is one
	status int
	body   *body
	refuse manners.Refusal // of a response with another status than 200
	pause  time.Duration   // that its body asks for
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

// EndCall releases the resources of the call, among them the answer that it returned.
func (c *Call) EndCall() {
	if c.body != nil {
		_ = c.body.Close() // it was read as far as anybody wants
	}
	c.cancel(nil)
}

// A Request is what a call sends.
type Request struct {
	Path   string      // below the base, escaped as in an address; it may have a query
	Body   any         // is posted as JSON
	Raw    []byte      // is posted as it is, in place of Body; not nil
	Type   string      // the media type of Raw. Defaults to JSON
	Header http.Header // besides those of all requests
	Post   bool        // without a body, too, of which there is none if both are nil

	// Address is absolute, and stands in place of Path. The server named it; it has to be its own.
	Address string
}

// SendStream sends a request whose answer comes in pieces, and returns these, once. It returns them
// only if that is an answer in the format that was asked for; it is bounded in size and in how
// long it may be silent, and lives until EndCall. The error is an *llm.Error, with all that the
// response says besides; errors within the stream are for CutError.
//
// A call sends one request.
func (c *Call) SendStream(r Request) (iter.Seq2[Event, error], error) {
	body, whole, err := c.send(r, c.d.format.Stream)
	if err != nil || whole != nil {
		return OneByOne(whole), err
	}
	return c.d.format.Events(body), nil
}

// SendFor sends a request whose answer is one JSON document, and decodes that: see SendStream. An
// answer that is none, or not of the types of answer, is an error of the kind Garbled.
func (c *Call) SendFor(r Request, answer any) error {
	body, _, err := c.send(r, "application/json")
	if err != nil {
		return err
	}
	if err := json.NewDecoder(body).Decode(answer); err != nil {
		return c.CutError(err)
	}
	return nil
}

// send sends a request. It returns the body of the answer, or, of one that came whole and was to
// be a stream, its events.
func (c *Call) send(r Request, want string) (io.Reader, []Event, error) {
	req, payload, err := c.newRequest(r, want)
	if err != nil {
		return nil, nil, err
	}

	timer := time.AfterFunc(c.d.Config.First, func() { c.cancel(llm.NewError(llm.Timeout, "the server sent nothing in time")) })
	if err := c.sign(req, payload); err != nil {
		timer.Stop()
		return nil, nil, err
	}
	res, err := c.d.Client.Do(req) //nolint:bodyclose // EndCall closes it, as the body of the call
	if err != nil {
		timer.Stop()
		return nil, nil, c.FailError(err)
	}

	c.header, c.status = res.Header, res.StatusCode
	timer.Reset(c.d.Config.Idle)
	c.body = &body{rc: res.Body, timer: timer, idle: c.d.Config.Idle, left: c.most}
	if res.StatusCode/100 != 2 { // some servers say 201 of what they make
		return nil, nil, c.refusedError()
	}
	if got, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); got != want && want != anyType {
		return c.readOtherType(got, want)
	}
	return c.body, nil, nil
}

// newRequest returns a request and its body.
func (c *Call) newRequest(r Request, want string) (*http.Request, []byte, error) {
	at, err := c.d.placeOf(r)
	if err != nil {
		return nil, nil, err
	}
	method, payload, err := r.payload()
	if err != nil {
		return nil, nil, err
	}

	// Whether the request was sent decides whether the vendor may have charged it.
	traced := httptrace.WithClientTrace(c.ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { c.d.reached.Store(true); c.opened.Store(true) },
		WroteRequest: func(w httptrace.WroteRequestInfo) { c.sent.Store(w.Err == nil) },
	})
	req, err := http.NewRequestWithContext(traced, method, at.String(), bytes.NewReader(payload))
	if err != nil {
		return nil, nil, llm.WrapError(llm.Invalid, err)
	}
	c.setHeader(req, want, r)
	return req, payload, nil
}

// payload returns how a request is made, and its body, which is empty but not nil without one.
func (r *Request) payload() (method string, payload []byte, err error) {
	switch {
	case r.Raw != nil:
		return http.MethodPost, r.Raw, nil
	case r.Body != nil:
		if payload, err = json.Marshal(r.Body); err != nil {
			return "", nil, llm.WrapError(llm.Invalid, err)
		}
		return http.MethodPost, payload, nil
	case r.Post:
		return http.MethodPost, []byte{}, nil
	}
	return http.MethodGet, []byte{}, nil
}

// userAgent names the program: gateways refuse what they take for a script.
const userAgent = "coditect-mapreduce"

// setHeader sets the headers of requests to all vendors.
func (c *Call) setHeader(req *http.Request, want string, r Request) {
	maps.Copy(req.Header, r.Header)
	req.Header.Set("Accept", want)
	req.Header.Set("User-Agent", userAgent)
	if req.Method == http.MethodPost {
		req.Header.Set("Content-Type", cmp.Or(r.Type, "application/json"))
	}

	if c.d.Config.SendTrace && c.trace != (llm.Trace{}) {
		req.Header.Set("X-Coditect-Job", c.trace.Job)
		req.Header.Set("X-Coditect-Unit", url.QueryEscape(c.trace.Unit))
		req.Header.Set("X-Coditect-Attempt", strconv.Itoa(c.trace.Attempt))
		req.Header.Set("X-Coditect-Fence", strconv.FormatInt(c.trace.Fence, 10))
	}
}

// placeOf returns where a request goes. An address that is not the server's own is refused: it would
// get the key.
func (d *Dialer) placeOf(r Request) (*url.URL, error) {
	if r.Address == "" {
		at, err := d.addressOf(r.Path)
		if err != nil {
			return nil, llm.WrapError(llm.Invalid, err)
		}
		return at, nil
	}

	at, err := url.Parse(r.Address)
	if err != nil || at.Scheme != d.Base.Scheme || at.Host != d.Base.Host {
		return nil, llm.NewError(llm.NotAPI, "the server names an address that is not its own, and keys are not sent there")
	}
	return at, nil
}

// addressOf returns the address of a path below the base. A query of the base is kept.
func (d *Dialer) addressOf(path string) (*url.URL, error) {
	at, err := d.Base.Parse("./" + strings.TrimPrefix(path, "/"))
	if err != nil {
		return nil, err
	}
	if d.Base.RawQuery != "" && at.RawQuery != "" {
		at.RawQuery = d.Base.RawQuery + "&" + at.RawQuery
	} else {
		at.RawQuery = cmp.Or(at.RawQuery, d.Base.RawQuery)
	}
	return at, nil
}

// sign signs a request, and notes what proves who asks: it is taken out of texts of the server.
func (c *Call) sign(req *http.Request, payload []byte) error {
	if err := c.d.format.Sign(req, payload); err != nil {
		if _, ok := errors.AsType[*llm.Error](err); ok || context.Cause(c.ctx) != nil {
			return c.FailError(err)
		}
		return c.FailError(llm.WrapError(llm.Auth, err))
	}

	token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	for _, secret := range []string{token, req.Header.Get("X-Amz-Security-Token")} {
		key := redact.NewKey(secret)
		if key.IsZero() || key == c.d.Config.Key || strings.Contains(secret, " ") { // a signature is no secret
			continue
		}
		c.proofs = append(c.proofs, key)
	}
	return nil
}

// readOtherType returns an answer of another type than the one that is expected, if it is one
// all the same: a stream whose type is not named, or an answer that came whole.
func (c *Call) readOtherType(got, want string) (io.Reader, []Event, error) {
	read := bufio.NewReaderSize(c.body, maxErrorBytes)
	begin, _ := read.Peek(64) // what there is of it
	begin = bytes.TrimLeft(begin, " \t\r\n\ufeff")

	switch {
	case len(begin) == 0:
		return nil, nil, c.responseError(llm.Server, "the answer is empty")
	case want == eventStream && startsAny(begin, "data:", "event:", ":"):
		return read, nil, nil
	case begin[0] == '{' && want != "application/json":
		events, err := c.readWhole(got, read)
		return nil, events, err
	}

	raw, _ := io.ReadAll(io.LimitReader(read, maxErrorBytes)) // what there is of it
	return nil, nil, c.foreignError(raw, got)
}

func startsAny(raw []byte, marks ...string) bool {
	return slices.ContainsFunc(marks, func(m string) bool { return bytes.HasPrefix(raw, []byte(m)) })
}

// readWhole returns an answer that came whole as the events of the stream that was asked for.
func (c *Call) readWhole(got string, read io.Reader) ([]Event, error) {
	raw, err := io.ReadAll(read) // bounded by the body
	if err != nil {
		return nil, c.CutError(err)
	}

	if e := c.insteadError(raw); e != nil {
		return nil, e
	}

	events, ok := []Event{{Data: raw}}, json.Valid(raw)
	if c.d.format.Whole != nil {
		events, ok = c.d.format.Whole(raw)
	}

	if !ok {
		return nil, c.foreignError(raw, got)
	}
	return events, nil
}

// EndsWith reports whether with is among the last words of the response that were read.
func (c *Call) EndsWith(with string) bool { return c.body.endsWith(with) }

// CleanText returns a text of the server as it may be shown: without keys, on one line and not
// too long.
func (c *Call) CleanText(text string) string { return c.cleanText(text) }

// Header returns a header of the response.
func (c *Call) Header(name string) string { return c.header.Get(name) }

// ParseLimits returns the limits that the response states.
func (c *Call) ParseLimits() llm.Limits { return c.d.format.Limits(c.header, time.Now()) }
