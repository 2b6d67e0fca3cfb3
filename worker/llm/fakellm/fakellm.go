// Package fakellm is a scripted model behind HTTP, for tests. It speaks the
// wire formats of Anthropic, OpenAI (both of them), Google, Bedrock and
// Ollama, keeps limits as the vendors do, and misbehaves in every way that
// they have been seen to, on demand. What a model says is a function of the
// test.
//
// It imports nothing of the project but the packages below it, so that a mistake in a
// provider cannot be repeated here.
package fakellm

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm/loopback"
	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// Config says what the server does. The zero Config answers "{}" at once.
type Config struct {
	Model   func(Call) Reply         // what the model says. Defaults to "{}"
	Fault   func(Call) Fault         // how a call goes wrong. Defaults to not at all
	Rebuff  func(Call) *Rebuff       // what it would not take; nil takes it. Defaults to everything taken
	Style   func(Call) Style         // how answers are written. Defaults to the vendor's way
	Lax     bool                     // streams and their usage need not be asked for
	Forgets bool                     // what was thought before a call need not come back with it
	Latency func(Call) time.Duration // until the answer begins. Defaults to none
	Rates   meter.Rates              // zero limits nothing
	Key     string                   // that calls need; "" takes any
	Journal io.Writer                // gets an Entry a line; nil keeps them in memory only
	Cached  int64                    // the least tokens of a prefix that is cached. Defaults to 1,024
	Piece   int                      // bytes of text in an event. Defaults to 24

	// Usage changes the tokens of an answer as they are reported, in the vendor's words.
	// The journal keeps what is true. Defaults to nothing.
	Usage func(c Call, told map[string]any)
}

// A Wire is a format.
type Wire string

// The formats.
const (
	Anthropic Wire = "anthropic"
	OpenAI    Wire = "openai"
	Responses Wire = "responses" // OpenAI's other format
	Gemini    Wire = "gemini"
	Bedrock   Wire = "bedrock"
	Ollama    Wire = "ollama"
)

// A Call is a request as a model sees it.
type Call struct {
	N       int    `json:"n"` // from 1, in the order of arrival
	Wire    Wire   `json:"wire"`
	Model   string `json:"model"`
	Job     string `json:"job,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Fence   int64  `json:"fence,omitempty"`

	System    string          `json:"-"`
	Turns     []Turn          `json:"-"`
	Pictures  []Picture       `json:"-"`                  // of all messages, in order
	Tool      string          `json:"tool,omitempty"`     // that it has to call
	Tools     []string        `json:"tools,omitempty"`    // that it may call
	NoCalls   bool            `json:"no_calls,omitempty"` // though it may call none of them now
	Uses      []Use           `json:"-"`                  // calls of the conversation so far, in order
	Schema    json.RawMessage `json:"-"`                  // of the answer, or of that tool
	MaxTokens int64           `json:"max_tokens"`
	Window    int64           `json:"window,omitempty"` // Ollama's num_ctx
	Header    http.Header     `json:"-"`
	Body      json.RawMessage `json:"-"`

	prompt meter.Prompt
	whole  bool // the answer is to come at once; of Google's and Bedrock's formats
}

// Whole reports whether the answer is to come at once, where the path says so.
func (c Call) Whole() bool { return c.whole }

// A Turn is a message, as text.
type Turn struct{ Role, Text string }

// Prompt is the text of the last message.
func (c Call) Prompt() string {
	if len(c.Turns) == 0 {
		return ""
	}
	return c.Turns[len(c.Turns)-1].Text
}

// A Reply is what the model says.
type Reply struct {
	Text     string // or, if a tool has to be called, its input
	Thinking string // before that
	Calls    []Use  // of tools, behind the text
	Stop     string // in the vendor's word. Defaults to that of an end, or of calls
	Why      string // of a refusal
}

// An Entry is what became of a call.
type Entry struct {
	Call
	Status     int    `json:"status"`
	Fault      Fault  `json:"fault,omitempty"`
	Stop       string `json:"stop,omitempty"`
	Input      int64  `json:"input"` // tokens that were told of, as all these
	CacheWrite int64  `json:"cache_write"`
	CacheRead  int64  `json:"cache_read"`
	Output     int64  `json:"output"`
	InFlight   int    `json:"in_flight"` // calls at once, with this one
	RequestID  string `json:"request_id"`
}

// In is the whole input.
func (e Entry) In() int64 { return e.Input + e.CacheWrite + e.CacheRead }

// A Server is the model. It is an http.Handler.
type Server struct {
	cfg Config

	mu       sync.Mutex // guards the fields below
	idle     sync.Cond  // signalled when nothing is open any more
	calls    int
	open     int // calls that are not yet written down
	inFlight int // calls whose client still waits for something
	peak     int
	entries  []Entry
	cache    *meter.Cache
	thought  map[string]string // what was thought before calls of tools, by their ids
	limits   *meter.Limits
}

// New returns a server.
func New(cfg Config) *Server {
	cfg.Cached, cfg.Piece = cmp.Or(cfg.Cached, 1024), cmp.Or(cfg.Piece, 24)
	s := &Server{cfg: cfg, cache: meter.NewCache(cfg.Cached), thought: make(map[string]string), limits: meter.NewLimits(cfg.Rates, time.Now())}
	s.idle.L = &s.mu
	return s
}

// Entries returns what became of all calls, in the order of arrival. It waits for
// those under way: a client has its answer a little before the server has written
// it down.
func (s *Server) Entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.open > 0 {
		s.idle.Wait()
	}
	slices.SortFunc(s.entries, func(a, b Entry) int { return cmp.Compare(a.N, b.N) })
	return slices.Clone(s.entries)
}

// Peak is the most calls that there were at once.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Transport carries requests to the server within the process: see loopback.New.
func (s *Server) Transport() http.RoundTripper { return loopback.New(s) }

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}

	call, wire, err := parseCall(r, body)
	if wire == nil {
		http.NotFound(w, r)
		return
	}

	// From here on the call is written into the journal, whatever comes of it.
	x := s.beginCall(call)
	defer s.endCall(x)
	x.w, x.r, x.wire = w, r, wire
	if s.isAnswerable(err) && !s.cfg.Forgets {
		err = errors.Join(err, s.checkThinking(&call))
	}

	if !s.isAnswerable(err) {
		x.writeError(http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}

	if s.cfg.Style != nil {
		x.style = s.cfg.Style(call)
	}

	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		x.writeRaw(http.StatusOK, "application/json", encode(map[string]int64{"input_tokens": call.prompt.Tokens()}))
		return
	}

	x.serveCall()
}

// parseCall tells the format by the path.
func parseCall(r *http.Request, body []byte) (Call, wire, error) {
	c := Call{Header: r.Header.Clone(), Body: body}
	c.Job = r.Header.Get("X-Coditect-Job")
	c.Unit, _ = url.QueryUnescape(r.Header.Get("X-Coditect-Unit"))
	c.Attempt, _ = strconv.Atoi(r.Header.Get("X-Coditect-Attempt"))
	c.Fence, _ = strconv.ParseInt(r.Header.Get("X-Coditect-Fence"), 10, 64)

	var w wire
	switch {
	case r.Method != http.MethodPost:
		return c, nil, nil
	case strings.HasSuffix(r.URL.Path, "/v1/messages"), strings.HasSuffix(r.URL.Path, "/v1/messages/count_tokens"):
		c.Wire, w = Anthropic, anthropicWire{}
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		c.Wire, w = OpenAI, openaiWire{}
	case strings.HasSuffix(r.URL.Path, "/responses"):
		c.Wire, w = Responses, responsesWire{}
	case strings.HasSuffix(r.URL.Path, "/api/chat"):
		c.Wire, w = Ollama, ollamaWire{}
	default:
		var google, amazon bool
		c.Wire, w = Gemini, geminiWire{}
		if c.Model, c.whole, google = geminiModel(r.URL.Path); !google {
			c.Wire, w = Bedrock, bedrockWire{}
			c.Model, c.whole, amazon = bedrockModel(r.URL)
		}
		if !google && !amazon {
			return c, nil, nil
		}
	}

	return c, w, w.readCall(&c, body)
}

// beginCall counts a call in.
func (s *Server) beginCall(c Call) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.calls++
	s.open++
	s.inFlight++
	s.peak = max(s.peak, s.inFlight)

	c.N = s.calls
	x := &exchange{s: s, Entry: Entry{Call: c, Status: 200, InFlight: s.inFlight}}
	x.RequestID = fmt.Sprintf("req_%06d", c.N)
	return x
}

// endCall writes the journal.
func (s *Server) endCall(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.leaveFlight(x)
	if s.open--; s.open == 0 {
		s.idle.Broadcast()
	}

	s.entries = append(s.entries, x.Entry)
	if s.cfg.Journal == nil {
		return
	}

	if _, err := io.WriteString(s.cfg.Journal, encode(x.Entry)+"\n"); err != nil {
		panic(err) // a test without its journal proves nothing
	}
}

// leaveFlight ends a call's being in flight. The caller holds the lock.
func (s *Server) leaveFlight(x *exchange) {
	if !x.left {
		x.left = true
		s.inFlight--
	}
}

// isAuthorised reports whether a call brings the key.
func (s *Server) isAuthorised(h http.Header) bool {
	got := cmp.Or(h.Get("X-Api-Key"), h.Get("X-Goog-Api-Key"), strings.TrimPrefix(h.Get("Authorization"), "Bearer "))
	return s.cfg.Key == "" || subtle.ConstantTimeCompare([]byte(got), []byte(s.cfg.Key)) == 1
}

// PromptTokens is how many tokens the server takes the prompt of a request for; 0 if it cannot be read.
func PromptTokens(r *http.Request) int64 {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0
	}
	c, _, err := parseCall(r, body)
	if err != nil {
		return 0
	}
	return c.prompt.Tokens()
}

// LogNormal returns latencies with a mean and a sigma (of the logarithm), equal
// for equal seeds and numbers of calls.
func LogNormal(seed uint64, mean time.Duration, sigma float64) func(Call) time.Duration {
	mu := math.Log(float64(mean)) - sigma*sigma/2
	return func(c Call) time.Duration {
		random := rand.New(rand.NewPCG(seed, uint64(c.N)))
		return time.Duration(math.Exp(mu + sigma*random.NormFloat64()))
	}
}
