// Package batches is a scripted server of batches behind HTTP, for tests: Anthropic's Message Batches,
// OpenAI's files and batches, and Gemini's. It keeps the vendors' limits, takes its time by a clock,
// loses answers, hides batches for a while after their creation, ends lines in every way, gives results
// in any order, and keeps an account of its own of what it charges. What a model says is a function of
// the test: see fakellm.
//
// It is written from the vendors' formats alone, and imports nothing of the project but fakellm, so that
// a mistake in a client cannot be repeated here.
package batches

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/loopback"
)

// Config says what the server does. The zero Config but for Wire answers "{}" to each line, an hour
// after a batch was made.
type Config struct {
	Wire  fakellm.Wire // Anthropic, OpenAI, Responses or Gemini
	Key   string       // that requests need; "" takes any
	Model func(fakellm.Call) fakellm.Reply

	// Fault is how the answer to a line goes wrong. Faults of connections and streams, which a line does
	// not have, are those of the server.
	Fault func(fakellm.Call) fakellm.Fault

	// Fate is what becomes of a line besides, by its place and its id. Of Gemini's lines each has one result, as
	// these are in the order of the lines: they are answered, Late or Withdrawn.
	Fate func(n int, id string) Fate

	// Takes is how long the nth batch takes, from 1. Its lines are done one after the other. Defaults to
	// an hour.
	Takes func(n int) time.Duration

	// Fails is the code with which the nth batch fails as a whole; "" lets it be.
	Fails func(n int) string

	// Creates is what becomes of the nth request to make a batch, or to upload a file for one.
	Creates func(n int, upload bool) Loss

	Hidden  time.Duration // after its creation a batch is not found, nor listed
	Cancels time.Duration // a batch is being cancelled. Defaults to five minutes
	Stalls  bool          // a batch that is not done in its window goes on, as if it had no end
	Limits  Limits        // Defaults to the vendor's
	Seed    uint64        // of the order of results
	Now     func() time.Time

	// Usage changes the tokens of an answer as they are reported, and charged by whoever reads them.
	Usage func(c fakellm.Call, told map[string]any)

	// Lean keeps nothing of a line but what it costs, and results until they were read once: for millions of lines. What
	// becomes of one is made when its batch is. Anthropic's alone.
	Lean bool

	// Price is what a line costs, in millionths of a dollar, from the tokens that the journal tells of.
	Price func(fakellm.Entry) int64
}

// Limits are those that the server keeps.
type Limits struct {
	Lines, Bytes   int
	Waiting        int           // lines in batches that have not ended
	WaitingTokens  int64         // of the prompts of these, of one model
	WaitingBatches int           // that have not ended
	CreatesPerHour int           // of batches
	Window         time.Duration // in which a batch has to end
	Kept           time.Duration // results, from the creation on
}

// Fate is what becomes of a line besides being answered.
type Fate string

// The fates of lines.
const (
	Answered Fate = ""
	Dropped  Fate = "dropped" // no result tells of it
	Unasked  Fate = "unasked" // likewise, and it is not asked, or charged
	Twice    Fate = "twice"   // it has two results

	// It is not asked, or charged, and its result says that it expired, or was cancelled, though its batch was not. No
	// vendor has promised that such lines are only in batches of which the same is true. Those of Gemini have an error, as
	// of all that goes wrong there.
	Late      Fate = "late"
	Withdrawn Fate = "withdrawn"
)

// Loss is what becomes of a request to make something.
type Loss string

// The ways in which such a request goes wrong.
const (
	Kept     Loss = ""
	Refused  Loss = "refused"   // 429, and nothing is made
	Before   Loss = "before"    // the connection breaks, and nothing is made
	After    Loss = "after"     // it is made, and the connection breaks
	ErrAfter Loss = "err_after" // it is made, and the answer is a 500
)

// A Charge is a line that was charged.
type Charge struct {
	Batch, CustomID string
	Micros          int64          // by Config.Price
	Entry           *fakellm.Entry // nil of a lean server
}

// A Server has the batches. It is an http.Handler.
type Server struct {
	cfg  Config
	wire format

	mu      sync.Mutex // guards the fields below
	creates int        // requests to make a batch
	uploads int        // requests to upload a file
	crowds  int        // refused, as they passed a limit of what waits
	peak    int        // lines that waited at most
	serial  int
	made    []*made // in the order of creation
	files   map[string]file
	times   []time.Time // of creations
	bill    []Charge
}

// A file is what was uploaded, or came of a batch.
type file struct {
	name    string
	content []byte
}

// A line is one request of a batch.
type line struct {
	id    string
	body  json.RawMessage
	early *outcome // what will have become of it, if that is known already
}

// An outcome is what became of a line, and what that costs if anything.
type outcome struct {
	result
	charge *Charge
}

// A result is what became of a line.
type result struct {
	id        string
	status    int // 200 if it was answered, more if it was refused, 0 if it was not asked
	body      json.RawMessage
	requestID string
	expired   bool // it was not asked, as its time was over; otherwise, as it was cancelled
	fate      Fate
}

// made is a batch.
type made struct {
	n         int
	id        string
	model     string
	mark      string // display name
	metadata  map[string]string
	input     string // file
	endpoint  string
	lines     []line
	tokens    int64 // of their prompts
	at        time.Time
	takes     time.Duration
	cancelled time.Time
	failed    string // code
	results   []result
	done      bool // results are there
	output    string
	errors    string
}

// New returns a server.
func New(cfg Config) *Server {
	cfg.Cancels = cmp.Or(cfg.Cancels, 5*time.Minute)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Takes == nil {
		cfg.Takes = func(int) time.Duration { return time.Hour }
	}

	s := &Server{cfg: cfg, files: make(map[string]file)}
	var usual Limits
	switch cfg.Wire {
	case fakellm.Anthropic:
		s.wire = anthropic{s}
		usual = Limits{Lines: 100_000, Bytes: 256_000_000, Waiting: 200_000, Window: 24 * time.Hour, Kept: 29 * 24 * time.Hour}
	case fakellm.OpenAI, fakellm.Responses:
		s.wire = openai{s}
		usual = Limits{Lines: 50_000, Bytes: 200_000_000, CreatesPerHour: 2000, Window: 24 * time.Hour, Kept: 30 * 24 * time.Hour}
	case fakellm.Gemini:
		s.wire = gemini{s}
		usual = Limits{Bytes: 2_000_000_000, Window: 48 * time.Hour, Kept: 48 * time.Hour}
	default:
		panic("batches: no server of " + string(cfg.Wire))
	}
	if s.cfg.Limits == (Limits{}) {
		s.cfg.Limits = usual
	}
	return s
}

// Transport carries requests to the server within the process: see loopback.New.
func (s *Server) Transport() http.RoundTripper { return loopback.New(s) }

// Made returns how many batches there are.
func (s *Server) Made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made)
}

// Crowds returns how many creations were refused as they passed a limit of what may wait or be made, and how many
// lines waited at most.
func (s *Server) Crowds() (refused, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crowds, s.peak
}

// Bill returns what was charged until now, in the order in which batches ended.
func (s *Server) Bill() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.made {
		s.settle(m)
	}
	return slices.Clone(s.bill)
}

// A format is a vendor's: it answers requests, and says that something is wrong.
type format interface {
	serve(w http.ResponseWriter, r *http.Request, body []byte) (known bool)
	fail(w http.ResponseWriter, status int, kind, message string)
}

// maxBody bounds a request, in bytes.
const maxBody = 1 << 30

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	if !s.isAuthorised(r.Header) {
		s.wire.fail(w, http.StatusUnauthorized, "authentication_error", "invalid key")
		return
	}

	// The answer is written once others may ask: whoever reads it may take his time.
	answer := s.answer(r, body)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // a client that left is noticed elsewhere
}

// answer returns what is answered to a request that is authorised.
func (s *Server) answer(r *http.Request, body []byte) *httptest.ResponseRecorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.made {
		s.settle(m)
	}

	w := httptest.NewRecorder()
	if !s.wire.serve(w, r, body) {
		s.wire.fail(w, http.StatusNotFound, "not_found_error", "no such address: "+r.Method+" "+r.URL.Path)
	}
	return w
}

func (s *Server) isAuthorised(h http.Header) bool {
	got := cmp.Or(h.Get("X-Api-Key"), h.Get("X-Goog-Api-Key"), strings.TrimPrefix(h.Get("Authorization"), "Bearer "))
	return s.cfg.Key == "" || subtle.ConstantTimeCompare([]byte(got), []byte(s.cfg.Key)) == 1
}

// makeBatch makes a batch, or does what becomes of the request instead. It returns nil if there is nothing to
// answer any more.
func (s *Server) makeBatch(w http.ResponseWriter, m *made) *made {
	s.creates++
	loss := s.lossOf(w, s.creates, false)
	if loss == Refused {
		return nil
	}

	now := s.cfg.Now()
	if s.cfg.Limits.WaitingTokens > 0 {
		for _, l := range m.lines {
			m.tokens += fakellm.PromptTokens(s.requestOf(m, l))
		}
	}
	if why := s.whyCrowded(now, m); why != "" {
		s.crowds++
		s.wire.fail(w, http.StatusTooManyRequests, "rate_limit_error", why)
		return nil
	}

	s.times = append(s.times, now)
	m.n, m.at = len(s.made)+1, now
	m.takes = s.cfg.Takes(m.n)
	if s.cfg.Fails != nil {
		m.failed = cmp.Or(m.failed, s.cfg.Fails(m.n))
	}
	s.made = append(s.made, m)
	if s.cfg.Lean {
		for i := range m.lines {
			l := &m.lines[i]
			l.early, l.body = s.ask(m, *l), nil
		}
	}
	return s.answered(w, m, loss)
}

// lossOf does what becomes of a request before it is looked at.
func (s *Server) lossOf(w http.ResponseWriter, n int, upload bool) Loss {
	if s.cfg.Creates == nil {
		return Kept
	}
	loss := s.cfg.Creates(n, upload)
	switch loss {
	case Refused:
		w.Header().Set("Retry-After", "60")
		s.wire.fail(w, http.StatusTooManyRequests, "rate_limit_error", "too many requests")
	case Before:
		panic(http.ErrAbortHandler)
	}
	return loss
}

// answered returns m if its maker is to hear of it.
func (s *Server) answered(w http.ResponseWriter, m *made, loss Loss) *made {
	switch loss {
	case After:
		panic(http.ErrAbortHandler)
	case ErrAfter:
		s.wire.fail(w, http.StatusInternalServerError, "api_error", "Internal server error")
		return nil
	}
	return m
}

// whyCrowded says which limit a new batch would pass; "" if none.
func (s *Server) whyCrowded(now time.Time, fresh *made) string {
	recent := 0
	for _, at := range s.times {
		if now.Sub(at) < time.Hour {
			recent++
		}
	}
	if most := s.cfg.Limits.CreatesPerHour; most > 0 && recent >= most {
		return fmt.Sprintf("%d batches were made within an hour, and that is the limit", recent)
	}

	waiting, tokens, open := len(fresh.lines), fresh.tokens, 1
	for _, m := range s.made {
		if m.done || m.failed != "" {
			continue
		}
		waiting, open = waiting+len(m.lines), open+1
		if m.model == fresh.model {
			tokens += m.tokens
		}
	}
	if most := s.cfg.Limits.Waiting; most > 0 && waiting > most {
		return fmt.Sprintf("%d requests would wait, and %d may", waiting, most)
	}
	if most := s.cfg.Limits.WaitingTokens; most > 0 && tokens > most {
		return fmt.Sprintf("%d tokens of %s would wait, and %d may", tokens, fresh.model, most)
	}
	if most := s.cfg.Limits.WaitingBatches; most > 0 && open > most {
		return fmt.Sprintf("%d batches would wait, and %d may", open, most)
	}
	s.peak = max(s.peak, waiting)
	return ""
}

// name returns a new id.
func (s *Server) name(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s%08d", prefix, s.serial)
}

// find returns the batch of an id, if it is shown already.
func (s *Server) find(id string) *made {
	for _, m := range s.made {
		if m.id == id && s.shown(m) {
			return m
		}
	}
	return nil
}

func (s *Server) shown(m *made) bool { return s.cfg.Now().Sub(m.at) >= s.cfg.Hidden }

// newestFirst returns the batches that are shown, the newest first.
func (s *Server) newestFirst() []*made {
	var all []*made
	for _, m := range s.made {
		if s.shown(m) {
			all = append(all, m)
		}
	}
	slices.Reverse(all)
	return all
}

// window returns in which time batches are ended.
func (s *Server) window() time.Duration {
	if s.cfg.Stalls {
		return 10 * 365 * 24 * time.Hour
	}
	return s.cfg.Limits.Window
}

// endsAt returns when a batch ends, and whether its lines had to end by then.
func (s *Server) endsAt(m *made) time.Time {
	end := m.at.Add(min(m.takes, s.window()))
	if !m.cancelled.IsZero() {
		if by := m.cancelled.Add(s.cfg.Cancels); by.Before(end) {
			end = by
		}
	}
	return end
}

// hasExpired reports whether a batch was ended by its window.
func (s *Server) hasExpired(m *made) bool {
	return m.takes > s.window() && (m.cancelled.IsZero() || m.cancelled.Add(s.cfg.Cancels).After(m.at.Add(s.window())))
}

// settle ends a batch whose time has come: its lines are asked, and those that are answered charged.
func (s *Server) settle(m *made) {
	end := s.endsAt(m)
	if m.done || m.failed != "" || s.cfg.Now().Before(end) {
		return
	}
	m.done = true

	until := m.at.Add(s.window())
	if !m.cancelled.IsZero() && m.cancelled.Before(until) {
		until = m.cancelled
	}
	if s.cfg.Wire == fakellm.Gemini && s.hasExpired(m) {
		until = m.at // nothing of it is told, or charged
	}
	for i, l := range m.lines {
		at := m.at.Add(m.takes / time.Duration(len(m.lines)) * time.Duration(i+1))
		r, fate := result{id: l.id}, s.fateOf(i, l.id)
		switch {
		case at.After(until):
			r.expired = s.hasExpired(m)
		case fate == Unasked, fate == Withdrawn:
		case fate == Late:
			r.expired = true
		default:
			made := l.early
			if made == nil {
				made = s.ask(m, l)
			}
			if r = made.result; made.charge != nil {
				s.bill = append(s.bill, *made.charge)
			}
		}
		r.fate = fate
		m.results = append(m.results, r)
		m.lines[i].body, m.lines[i].early = nil, nil // nobody asks for it any more
	}

	if s.cfg.Wire == fakellm.Gemini {
		return // its results are in order
	}
	random := rand.New(rand.NewPCG(s.cfg.Seed, uint64(m.n)))
	random.Shuffle(len(m.results), func(i, j int) { m.results[i], m.results[j] = m.results[j], m.results[i] })
}

// fateOf returns what becomes of a line besides being answered.
func (s *Server) fateOf(n int, id string) Fate {
	if s.cfg.Fate == nil {
		return Answered
	}
	fate := s.cfg.Fate(n, id)
	if s.cfg.Wire == fakellm.Gemini && fate != Late && fate != Withdrawn {
		return Answered
	}
	return fate
}

// ask has the model answer a line, at once.
func (s *Server) ask(m *made, l line) *outcome {
	one := fakellm.New(fakellm.Config{
		Model: s.cfg.Model, Lax: true, Forgets: true, Fault: s.faultOf,
		Usage: func(c fakellm.Call, told map[string]any) {
			if s.cfg.Usage != nil {
				s.cfg.Usage(c, told)
			}
			if _, has := told["service_tier"]; has {
				told["service_tier"] = "batch"
			}
		},
	})
	w := httptest.NewRecorder()
	one.ServeHTTP(w, s.requestOf(m, l))

	entry := one.Entries()[0]
	out := &outcome{result: result{id: l.id, status: w.Code, body: bytes.Clone(w.Body.Bytes()), requestID: fmt.Sprintf("req_%s_%s", m.id, l.id)}}
	if w.Code == http.StatusOK {
		out.charge = &Charge{Batch: m.id, CustomID: l.id}
		if s.cfg.Price != nil {
			out.charge.Micros = s.cfg.Price(entry)
		}
		if !s.cfg.Lean {
			out.charge.Entry = &entry
		}
	}
	return out
}

// requestOf returns the request of a line as it would be made in real time.
func (s *Server) requestOf(m *made, l line) *http.Request {
	path := map[fakellm.Wire]string{
		fakellm.Anthropic: "/v1/messages", fakellm.OpenAI: "/v1/chat/completions", fakellm.Responses: "/v1/responses",
		fakellm.Gemini: "/v1beta/models/" + m.model + ":generateContent",
	}[s.cfg.Wire]
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(l.body))
	req.Header.Set("Anthropic-Version", "2026-10-21")
	return req
}

// faultOf returns the fault of a line.
func (s *Server) faultOf(c fakellm.Call) fakellm.Fault {
	if s.cfg.Fault == nil {
		return fakellm.None
	}
	switch f := s.cfg.Fault(c); f {
	case fakellm.WebPage, fakellm.BadGateway, fakellm.Redirect, fakellm.Hangup, fakellm.MidStream, fakellm.Cut, fakellm.Reset, fakellm.Stall, fakellm.Drip, fakellm.NotJSON:
		return fakellm.ServerError
	default:
		return f
	}
}

// told returns the results that the server tells of.
func (m *made) told() []result {
	var all []result
	for _, r := range m.results {
		switch r.fate {
		case Dropped, Unasked:
		case Twice:
			all = append(all, r, r)
		default:
			all = append(all, r)
		}
	}
	return all
}

// countFailed returns how many lines have failed, as vendors count who have one number for all of them: also those that were not
// asked, unless their batch was ended before they could be.
func (m *made) countFailed(isWhole bool) int {
	_, errored, expired, cancelled := m.counts()
	if isWhole {
		return errored + expired + cancelled
	}
	return errored
}

// counts returns how many lines were answered, refused, and not asked, by the reason of these.
func (m *made) counts() (succeeded, errored, expired, cancelled int) {
	for _, r := range m.results {
		switch {
		case r.status == http.StatusOK:
			succeeded++
		case r.status != 0:
			errored++
		case r.expired:
			expired++
		default:
			cancelled++
		}
	}
	return succeeded, errored, expired, cancelled
}

type fields = map[string]any

// writeJSON writes an answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that left is noticed elsewhere
}

// writeLines writes JSON documents, one a line.
func writeLines(w http.ResponseWriter, media string, all []any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(encodeLines(all)) // see above
}

func encodeLines(all []any) []byte {
	var out []byte
	for _, v := range all {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err) // maps of strings and numbers
		}
		out = append(append(out, raw...), '\n')
	}
	return out
}

// stamp returns a time as RFC 3339 has it; nil if there is none.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
