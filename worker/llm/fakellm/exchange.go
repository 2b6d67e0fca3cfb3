package fakellm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A wire is a format: how a request is read, and how an answer is written.
type wire interface {
	// read fills in a call.
	read(c *Call, body []byte) error

	// media is the type of an answer.
	media() string

	// open, piece and close write an answer. Piece is called for each bit of
	// the text. An error is written by broken, in mid-stream.
	open(x *exchange)
	piece(x *exchange, text string)
	close(x *exchange, r Reply)
	broken(x *exchange)

	// refuse returns an error's status and body.
	refuse(status int, kind, message string) (int, any)

	// stop is the vendor's word for how an answer ended.
	stop(f Fault, tool bool) string
}

// An exchange is one call being answered.
type exchange struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	wire wire
	left bool   // guarded by the server's lock
	warm string // the prefix that is in the cache once the answer begins
	Entry
}

// serve answers, or does what the script has instead.
func (x *exchange) serve() {
	if x.s.cfg.Fault != nil {
		x.Fault = x.s.cfg.Fault(x.Call)
	}
	if !x.s.authorised(x.Header) {
		x.Fault = Unauthorized
	}
	if !x.admitted() {
		return
	}
	if !x.latency() || x.instead() {
		return
	}
	x.answer()
}

// admitted keeps the limits.
func (x *exchange) admitted() bool {
	now := time.Now()
	x.s.mu.Lock()
	x.cache()
	wait := x.s.buckets.admit(now, float64(x.Input+x.CacheWrite))
	if most := x.s.cfg.Rates.Concurrent; most > 0 && x.s.inFlight > most {
		wait = max(wait, time.Second)
	}
	x.s.buckets.headers(x.w.Header(), x.Wire, now)
	x.s.mu.Unlock()
	if wait > 0 {
		x.rateLimited(wait)
	}
	return wait == 0
}

func (x *exchange) rateLimited(wait time.Duration) {
	x.w.Header().Set("Retry-After", strconv.FormatFloat(wait.Seconds(), 'f', -1, 64))
	x.fail(http.StatusTooManyRequests, "rate_limit_error", "too many requests or tokens")
}

// cache reckons the input. What it writes to the cache others find once the answer
// has begun: of those that ask meanwhile each writes it too. The caller holds the server's lock.
func (x *exchange) cache() {
	x.Input = tokens(x.prompt)
	var size int64
	best, all := -1, sha256.New()
	keys := make([]string, len(x.prompt))
	sizes := make([]int64, len(x.prompt))
	for i, s := range x.prompt {
		size += Tokens(s.text)
		io.WriteString(all, s.text+"\x00") //nolint:errcheck // a hash takes everything
		keys[i], sizes[i] = fmt.Sprintf("%s %x", x.Model, all.Sum(nil)), size
		if s.marked && size >= x.s.cfg.Cached {
			best = i
		}
	}
	if best < 0 {
		return
	}
	for i := best; i >= 0; i-- {
		if x.s.warm[keys[i]] {
			x.CacheRead = sizes[i]
			break
		}
	}
	x.CacheWrite = sizes[best] - x.CacheRead
	x.Input -= sizes[best]
	x.warm = keys[best]
}

// latency waits, and reports whether the client did.
func (x *exchange) latency() bool {
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

// instead does what happens instead of an answer, if anything does.
func (x *exchange) instead() bool {
	const page = "<!DOCTYPE html><html><body>Please sign in to the network.</body></html>"
	switch x.Fault {
	case RateLimit:
		x.rateLimited(time.Second)
	case Overloaded:
		x.fail(529, "overloaded_error", "Overloaded")
	case ServerError:
		x.fail(http.StatusInternalServerError, "api_error", "Internal server error")
	case Unauthorized:
		x.fail(http.StatusUnauthorized, "authentication_error", "invalid key: "+x.Header.Get("X-Api-Key")+x.Header.Get("Authorization"))
	case NoMoney:
		x.fail(http.StatusPaymentRequired, "billing_error", "Your credit balance is too low to access the API.")
	case SpendLimit:
		x.fail(http.StatusTooManyRequests, spendLimit, "You have reached the limit on your spending.")
	case UnknownModel:
		x.fail(http.StatusNotFound, "not_found_error", "model: "+x.Model)
	case TooLong:
		x.fail(http.StatusBadRequest, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum context length")
	case WebPage:
		x.raw(http.StatusOK, "text/html; charset=utf-8", page)
	case BadGateway:
		x.raw(http.StatusBadGateway, "text/html", page)
	case Redirect:
		x.w.Header().Set("Location", "/elsewhere")
		x.raw(http.StatusFound, "text/html", page)
	case Hangup:
		x.none()
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

// none takes back what would have been told of tokens.
func (x *exchange) none() { x.Input, x.CacheRead, x.CacheWrite, x.Output = 0, 0, 0, 0 }

func (x *exchange) raw(status int, media, body string) {
	x.none()
	x.Status = status
	x.s.mu.Lock()
	x.s.leave(x)
	x.s.mu.Unlock()
	x.w.Header().Set("Content-Type", media)
	x.w.WriteHeader(status)
	x.write(body)
}

// fail writes an error in the words of the format.
func (x *exchange) fail(status int, kind, message string) {
	status, body := x.wire.refuse(status, kind, message)
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings
	}
	x.w.Header().Set("Request-Id", x.RequestID)
	x.raw(status, "application/json", string(raw))
}

func (x *exchange) json(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers
	}
	x.raw(http.StatusOK, "application/json", string(raw))
}

// write sends text at once. A client that left is noticed elsewhere.
func (x *exchange) write(text string) {
	_, _ = io.WriteString(x.w, text) // see above
	if f, ok := x.w.(http.Flusher); ok {
		f.Flush()
	}
}

// answer lets the model speak.
func (x *exchange) answer() {
	r := x.reply()
	x.s.mu.Lock()
	if x.warm != "" {
		x.s.warm[x.warm] = true
	}
	x.s.mu.Unlock()
	x.w.Header().Set("Content-Type", x.wire.media())
	x.w.Header().Set("Request-Id", x.RequestID)
	x.wire.open(x)
	for i, text := range pieces(r.Text, x.s.cfg.Piece) {
		if i > 0 && x.breaks() {
			return
		}
		x.wire.piece(x, text)
	}
	if x.breaks() {
		return
	}
	// The client may make its next call before this one is done with here.
	x.s.mu.Lock()
	x.s.buckets.output -= float64(Tokens(r.Text))
	x.s.leave(x)
	x.s.mu.Unlock()
	x.wire.close(x, r)
}

// reply is what the model says, changed by the fault.
func (x *exchange) reply() Reply {
	r := Reply{Text: "{}"}
	if x.s.cfg.Model != nil {
		r = x.s.cfg.Model(x.Call)
	}
	if r.Stop == "" {
		r.Stop = x.wire.stop(x.Fault, x.Tool != "")
	}
	switch x.Fault {
	case Truncated:
		r.Text = r.Text[:len(r.Text)/2]
	case EmptyAnswer:
		r.Text = ""
	case Refusal:
		r.Text, r.Why = "", "this asks for harm"
	case Filter:
		r.Text = ""
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
		x.Stop = x.wire.stop(Truncated, false)
		r.Stop = x.Stop
	}
	return r
}

// breaks does what breaks an answer off, if anything does. Of tokens only
// Anthropic has told by then.
func (x *exchange) breaks() bool {
	switch x.Fault {
	case Cut, Reset, Stall, Drip, NotJSON:
		if x.Wire != Anthropic {
			x.none()
		}
	}
	switch x.Fault {
	case MidStream:
		x.wire.broken(x)
	case Cut:
	case Reset:
		panic(http.ErrAbortHandler)
	case Stall:
		<-x.r.Context().Done()
	case Drip:
		x.drip()
	case NotJSON:
		x.write("event: message_delta\ndata: {\"type\": \n\n")
	default:
		return false
	}
	return true
}

// drip writes empty lines, which every format passes over.
func (x *exchange) drip() {
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

// pieces cuts text into events, at least one, never within a character.
func pieces(text string, size int) []string {
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

// event writes one event of a stream.
func (x *exchange) event(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	var b strings.Builder
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: " + string(raw) + "\n\n")
	x.write(b.String())
}
