package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// maxErrorBytes bounds the part of an error that is read.
const maxErrorBytes = 64 << 10

// refusedError returns the error of a response with another status than 200.
func (c *Call) refusedError() *llm.Error {
	raw, _ := io.ReadAll(io.LimitReader(c.body, maxErrorBytes)) // what there is of it
	kind, message := c.d.format.Judge(c.status, raw)

	c.refuse = manners.Refusal{Status: c.status, Param: paramOf(raw), Text: string(raw)}
	if c.d.format.Pause != nil {
		c.pause = min(max(c.d.format.Pause(raw), 0), maxRetryAfter)
	}

	if kind == 0 {
		kind, message = ByStatus(c.status), "the answer is not an error in the form of this API"
		if isPage(raw) {
			message = "a web page came back: something else answers at this address"
			if kind == llm.Invalid || kind == llm.Permission {
				kind = llm.NotAPI
			}
		}
		if c.status/100 == 3 {
			kind, message = llm.NotAPI, "the server redirects to another address, and keys are not sent there"
		}
	}

	return c.responseError(kind, message)
}

// foreignError returns the error of a success that is not in the expected format.
func (c *Call) foreignError(raw []byte, got string) *llm.Error {
	if e := c.insteadError(raw); e != nil {
		return e
	}
	message := fmt.Sprintf("the answer is of type %q: something else answers at %s", got, c.d.Base.Host)
	return c.responseError(llm.NotAPI, message)
}

// insteadError returns the error that a success holds instead of an answer; nil if it holds
// none. Some servers refuse parameters in this way.
func (c *Call) insteadError(raw []byte) *llm.Error {
	kind, message := c.d.format.Judge(c.status, raw)
	if kind == 0 {
		return nil
	}
	c.refuse = manners.Refusal{Status: http.StatusInternalServerError, Param: paramOf(raw), Text: string(raw)}
	return c.responseError(kind, message)
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

// responseError returns an error with all that the response says besides.
func (c *Call) responseError(kind llm.Kind, message string) *llm.Error {
	e := llm.NewError(kind, "%s", c.cleanText(message))
	e.Status = c.status
	now := time.Now()

	if c.header == nil {
		return e
	}

	e.RequestID = c.RequestID()
	e.RetryAfter = max(retryAfter(c.header, now), c.pause)
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
	return c.cleanText(id)
}

// FailError returns the error of a call that broke with err, for whatever reason.
func (c *Call) FailError(err error) *llm.Error {
	e := llm.BrokenError(c.ctx, err)
	// A dialer that has reached its server before is sure that it is there.
	if e.Kind == llm.Network && !c.d.Config.Patient && !c.d.reached.Load() {
		if why := noListener(err); why != "" {
			e = llm.NewError(llm.NotThere, "%s", why)
			e.Err = err
		}
	}

	e.Message = c.cleanText(e.Message)
	e.Status, e.Sent = cmp.Or(e.Status, c.status), c.sent.Load()
	if c.header != nil && e.RequestID == "" {
		e.RequestID = c.RequestID()
		e.Limits = c.d.format.Limits(c.header, time.Now())
	}

	return e
}

// noListener says at which address nobody listens, or which name has none, if err is a connection
// that could not be made for that reason; otherwise it returns "".
func noListener(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return fmt.Sprintf("no host is named %s", name.Name)
	}

	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Addr == nil || !errors.Is(err, syscall.ECONNREFUSED) {
		return ""
	}

	if dial.Op == "proxyconnect" {
		return fmt.Sprintf("nobody listens at %s, the address of the proxy", dial.Addr)
	}
	return fmt.Sprintf("nobody listens at %s", dial.Addr)
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

	// If the call was ended, that is the reason, whatever the stream looks like.
	if context.Cause(c.ctx) != nil {
		return c.FailError(err)
	}

	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return c.FailError(llm.NewError(llm.Garbled, "the stream holds something that is no JSON: %v", err))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return c.FailError(llm.NewError(llm.Garbled, "the answer is not in the vendor's format: %v", err))
	}

	e := c.FailError(llm.NewError(llm.CutOff, "the stream ended before the answer: %v", err))
	e.Err = err
	return e
}

// StreamError returns the error that a server sent in a stream: instead of an answer, or after it had
// begun.
func (c *Call) StreamError(raw []byte, begun bool) *llm.Error {
	if !begun {
		if e := c.insteadError(raw); e != nil {
			return e
		}
	}
	return c.MidstreamError(raw)
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

// cleanText returns a text of a server without keys, on one line and not too
// long. Keys go first, lest half of one be left.
func (c *Call) cleanText(text string) string {
	text = c.d.Config.Key.Scrub(redact.OneLine(text))
	for _, key := range c.proofs {
		text = key.Scrub(text)
	}
	return redact.ShortenLine(text)
}
