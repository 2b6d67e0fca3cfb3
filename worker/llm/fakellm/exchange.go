package fakellm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// A wire is a format: how a request is read, and how an answer is written.
type wire interface {
	// readCall fills in a call.
	readCall(c *Call, body []byte) error

	// mediaType is the type of an answer.
	mediaType() string

	// openAnswer, openPart, writePiece, closePart and closeAnswer write an answer.
	// Piece is called for each bit of the text of a part, the nth of the answer. An
	// error is written by writeBroken, in mid-stream.
	openAnswer(x *exchange)
	openPart(x *exchange, n int, p part)
	writePiece(x *exchange, n int, p part, text string)
	closePart(x *exchange, n int, p part)
	closeAnswer(x *exchange, r Reply)
	writeBroken(x *exchange)

	// errorBody returns an error's status and body.
	errorBody(status int, kind, message string) (int, any)

	// stopReason is the vendor's word for how an answer ended.
	stopReason(f Fault, tool bool) string
}

// An exchange is one call being answered.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	wire  wire
	left  bool  // guarded by the server's lock
	items []any // of the output so far; of Responses alone

	reckoned meter.Input // as the input was when the call was let in

	calls     int    // of tools, that were written; of OpenAI's format
	signature string // of what was thought, until it was written; of Google's format
	style     Style
	Entry
}

// serveCall answers, or does what the script has instead.
func (x *exchange) serveCall() {
	if x.s.cfg.Fault != nil {
		x.Fault = x.s.cfg.Fault(x.Call)
	}
	if !x.s.isAuthorised(x.Header) {
		x.Fault = Unauthorized
	}

	if !x.admitCall() {
		return
	}
	if !x.waitLatency() || x.rebuffCall() || x.answerInstead() {
		return
	}

	x.streamAnswer()
}

// admitCall keeps the limits.
func (x *exchange) admitCall() bool {
	now := time.Now()

	x.s.mu.Lock()
	x.reckoned = x.s.cache.Reckon(x.Model, x.prompt)
	x.Input, x.CacheWrite, x.CacheRead = x.reckoned.Fresh, x.reckoned.Written, x.reckoned.Read
	wait := x.s.limits.Admit(now, float64(x.Input+x.CacheWrite))
	if most := x.s.cfg.Rates.Concurrent; most > 0 && x.s.inFlight > most {
		wait = max(wait, time.Second)
	}
	x.writeLimits(now)
	x.s.mu.Unlock()

	// The answer is written without the lock.
	if wait > 0 {
		x.rateLimited(wait)
	}
	return wait == 0
}

// writeLimits tells how limits stand, as a vendor does. Google's, Bedrock's and Ollama's formats tell nothing of
// them. The caller holds the server's lock.
func (x *exchange) writeLimits(now time.Time) {
	openai := map[string]string{"requests": "requests", "input-tokens": "tokens"}
	h := x.w.Header()

	for _, one := range x.s.limits.Standings() {
		size, left := strconv.Itoa(one.Size), strconv.Itoa(one.Left)
		switch {
		case x.Wire == Anthropic:
			name := "Anthropic-Ratelimit-" + one.Of
			h.Set(name+"-Limit", size)
			h.Set(name+"-Remaining", left)
			h.Set(name+"-Reset", now.Add(one.Full).UTC().Format(time.RFC3339))
		case x.Wire == OpenAI && openai[one.Of] != "":
			h.Set("X-Ratelimit-Limit-"+openai[one.Of], size)
			h.Set("X-Ratelimit-Remaining-"+openai[one.Of], left)
			h.Set("X-Ratelimit-Reset-"+openai[one.Of], fmt.Sprint(one.Full))
		}
	}
}

func (x *exchange) rateLimited(wait time.Duration) {
	x.w.Header().Set("Retry-After", strconv.FormatFloat(wait.Seconds(), 'f', -1, 64))
	x.writeError(http.StatusTooManyRequests, "rate_limit_error", "too many requests or tokens")
}

// waitLatency waits, and reports whether the client did.
func (x *exchange) waitLatency() bool {
	if x.s.cfg.Latency == nil {
		return true
	}

	t := time.NewTimer(x.s.cfg.Latency(x.Call))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
		return false
	}
}

// answerInstead does what happens instead of an answer, if anything does.
func (x *exchange) answerInstead() bool {
	const page = "<!DOCTYPE html><html><body>Please sign in to the network.</body></html>"

	switch x.Fault {
	case RateLimit:
		x.rateLimited(time.Second)
	case Overloaded:
		x.writeError(529, "overloaded_error", "Overloaded")
	case ServerError:
		x.writeError(http.StatusInternalServerError, "api_error", "Internal server error")
	case Unauthorized:
		x.writeError(http.StatusUnauthorized, "authentication_error", "invalid key: "+x.Header.Get("X-Api-Key")+x.Header.Get("X-Goog-Api-Key")+x.Header.Get("Authorization"))
	case NoMoney:
		x.writeError(http.StatusPaymentRequired, "billing_error", "Your credit balance is too low to access the API.")
	case SpendLimit:
		x.writeError(http.StatusTooManyRequests, spendLimit, "You have reached the limit on your spending.")
	case UnknownModel:
		x.writeError(http.StatusNotFound, "not_found_error", "model: "+x.Model)
	case TooLong:
		x.writeError(http.StatusBadRequest, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum context length")
	case WebPage:
		x.writeRaw(http.StatusOK, "text/html; charset=utf-8", page)
	case BadGateway:
		x.writeRaw(http.StatusBadGateway, "text/html", page)
	case Redirect:
		x.w.Header().Set("Location", "/elsewhere")
		x.writeRaw(http.StatusFound, "text/html", page)
	case Hangup:
		x.clearUsage()
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

// tellUsage changes the tokens that are reported, if the script says so.
func (x *exchange) tellUsage(told fields) {
	if x.s.cfg.Usage != nil {
		x.s.cfg.Usage(x.Call, told)
	}
}

// clearUsage takes back the tokens of a call of which none are reported.
func (x *exchange) clearUsage() { x.Input, x.CacheRead, x.CacheWrite, x.Output = 0, 0, 0, 0 }

func (x *exchange) writeRaw(status int, media, body string) {
	x.clearUsage()
	x.Status = status
	x.s.mu.Lock()
	x.s.leaveFlight(x)
	x.s.mu.Unlock()
	x.w.Header().Set("Content-Type", media)
	x.w.WriteHeader(status)
	x.write(body)
}

// writeError writes an error in the words of the format.
func (x *exchange) writeError(status int, kind, message string) {
	status, body := x.wire.errorBody(status, kind, message)
	x.w.Header().Set("Request-Id", x.RequestID)
	x.writeRaw(status, "application/json", encode(body))
}

// writeAtOnce writes an answer that is no stream.
func (x *exchange) writeAtOnce(media string, answer any) {
	x.w.Header().Set("Content-Type", media)
	x.w.WriteHeader(http.StatusOK)
	x.write(encode(answer))
}

// encode returns JSON of what the server makes itself, of maps, texts and numbers.
func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint("what the model says is no JSON: ", err))
	}
	return string(raw)
}

// write sends text at once. A client that left is noticed elsewhere.
func (x *exchange) write(text string) {
	_, _ = io.WriteString(x.w, text) // see above
	if f, ok := x.w.(http.Flusher); ok {
		f.Flush()
	}
}

// streamAnswer lets the model speak.
func (x *exchange) streamAnswer() {
	r := x.makeReply()

	x.s.mu.Lock()
	x.s.cache.Warm(x.reckoned)
	x.s.mu.Unlock()

	x.w.Header().Set("Content-Type", x.wire.mediaType())
	x.w.Header().Set("Request-Id", x.RequestID)
	parts := x.parts(r)
	x.remember(parts)

	if x.isWhole() {
		x.writeWhole(parts, r)
		return
	}
	if x.style.Type != "" {
		x.w.Header().Set("Content-Type", x.style.Type)
	}

	x.wire.openAnswer(x)
	for n, p := range parts {
		x.wire.openPart(x, n, p)
		for i, text := range cutPieces(p.text, x.s.cfg.Piece) {
			if i > 0 && x.breakOff() {
				return
			}
			x.wire.writePiece(x, n, p, text)
		}
		if x.breakOff() {
			return
		}
		x.wire.closePart(x, n, p)
	}
	// The client may make its next call before this one is done with here.
	x.s.mu.Lock()
	x.s.limits.TakeOutput(r.tokens())
	x.s.leaveFlight(x)
	x.s.mu.Unlock()
	x.wire.closeAnswer(x, r)
}

// makeReply is what the model says, changed by the fault.
func (x *exchange) makeReply() Reply {
	r := Reply{Text: "{}"}

	if x.s.cfg.Model != nil {
		r = x.s.cfg.Model(x.Call)
	}

	if r.Stop == "" {
		forced := x.Tool != "" && x.Wire != OpenAI // which ends it like a text
		r.Stop = x.wire.stopReason(x.Fault, forced || len(r.Calls) > 0)
	}

	switch x.Fault {
	case Truncated:
		r.Text = r.Text[:len(r.Text)/2]
	case EmptyAnswer, Filter:
		r.Text, r.Thinking, r.Calls = "", "", nil
	case Refusal:
		r.Text, r.Thinking, r.Calls, r.Why = "", "", nil, "this asks for harm"
	case WrongShape:
		r.Text = `{"unexpected": [1, 2, 3]}`
	case Prose:
		r.Text = "Here is what I found in the document."
		if x.Tool != "" {
			r.Text = `"Here is what I found in the document."`
		}
	}

	x.Stop = r.Stop
	if limit := x.MaxTokens * 4; limit > 0 && int64(len(r.Text)) > limit {
		r.Text = r.Text[:limit]
		x.Stop = x.wire.stopReason(Truncated, false)
		r.Stop = x.Stop
	}

	return r
}

// breakOff does what breaks an answer off, if the fault is of that kind. By then only
// Anthropic's format has reported tokens.
func (x *exchange) breakOff() bool {
	switch x.Fault {
	case Cut, Reset, Stall, Drip, NotJSON:
		if x.Wire != Anthropic {
			x.clearUsage()
		}
	}

	switch x.Fault {
	case MidStream:
		x.wire.writeBroken(x)
	case Cut:
	case Reset:
		panic(http.ErrAbortHandler)
	case Stall:
		<-x.r.Context().Done()
	case Drip:
		x.dripLines()
	case NotJSON:
		x.write("event: message_delta\ndata: {\"type\": \n\n")
	default:
		return false
	}

	return true
}

// dripLines writes empty lines, which every format passes over.
func (x *exchange) dripLines() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			x.write("\n")
		case <-x.r.Context().Done():
			return
		}
	}
}

// cutPieces cuts text into events, at least one, never within a character.
func cutPieces(text string, size int) []string {
	var out []string
	for len(text) > size {
		n := size
		for n > 0 && text[n]&0xC0 == 0x80 {
			n--
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return append(out, text)
}

// writeEvent writes one event of a stream.
func (x *exchange) writeEvent(name string, data any) {
	var b strings.Builder
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: " + encode(data) + "\n\n")
	x.write(b.String())
}
