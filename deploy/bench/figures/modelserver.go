package figures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A modelOrder makes a process a model that answers over HTTP.
type modelOrder struct {
	Mean   time.Duration // of its latencies, which are log-normal
	Faults float64       // share of calls that go wrong
	Rates  fakellm.Rates
	Agents bool // it leads agents with tools, see ofTurn for its latencies
}

// Sigma is the deviation of the logarithm of latencies, and their seed.
const (
	latencySigma = .8
	latencySeed  = 5
)

func (o *modelOrder) latencyFunc() func(fakellm.Call) time.Duration {
	return fakellm.LogNormal(latencySeed, o.Mean, latencySigma)
}

// serveModel serves until ctx ends. It says first where.
func (o *modelOrder) serveModel(ctx context.Context, out *json.Encoder) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config := fakellm.Config{
		Model: readReceipt, Latency: o.latencyFunc(), Rates: o.Rates, Fault: fakellm.Mix(latencySeed, o.Faults, passingFaults()...),
	}
	if o.Agents {
		config = fakellm.Config{Model: runAgent, Latency: func(c fakellm.Call) time.Duration { return o.ofTurn(c.Unit, turnsTaken(c)) }}
	}
	fake := fakellm.New(config)
	c := &clocked{fake: fake}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	mux.HandleFunc("GET /tally", c.reportTally)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := out.Encode("http://" + listener.Addr().String()); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err = server.Close()
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// passingFaults are the faults after which a job goes on.
func passingFaults() []fakellm.Fault {
	return slices.DeleteFunc(fakellm.Faults(), func(f fakellm.Fault) bool {
		switch f {
		case fakellm.Unauthorized, fakellm.NoMoney, fakellm.SpendLimit, fakellm.UnknownModel, fakellm.WebPage, fakellm.Redirect:
			return true
		}
		return false
	})
}

// A clocked server notes when its calls were under way.
type clocked struct {
	fake *fakellm.Server

	mu    sync.Mutex // guards spans
	spans []span
}

// A span is one call, as its server saw it.
type span struct {
	begun, ended time.Time
	left         bool // by its client, before it was answered
}

// ServeHTTP implements http.Handler.
func (c *clocked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spans = append(c.spans, span{begun, time.Now(), r.Context().Err() != nil})
	}()
	c.fake.ServeHTTP(w, r)
}

// A Tally is what a model counted.
type Tally struct {
	Calls   int
	Peak    int           // at once
	Refused int           // because of its limits
	Left    int           // whose client was gone before they were answered
	Until   time.Duration // from the begin of the first call to that of the last
	Busy    time.Duration // meanwhile, of all calls together
}

// Utilisation is how much of a number of calls at once was under way, from the
// first call to the begin of the last: after that nothing waits any more.
func (t *Tally) Utilisation(atOnce int) float64 {
	return t.Busy.Seconds() / t.Until.Seconds() / float64(atOnce)
}

func (c *clocked) reportTally(w http.ResponseWriter, _ *http.Request) {
	entries := c.fake.Entries() // waits for those under way
	t := Tally{Calls: len(entries), Peak: c.fake.Peak()}
	for _, e := range entries {
		if e.Status == http.StatusTooManyRequests && e.Fault == fakellm.None {
			t.Refused++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var first, last time.Time
	for i, s := range c.spans {
		if i == 0 || s.begun.Before(first) {
			first = s.begun
		}
		if s.begun.After(last) {
			last = s.begun
		}
		if s.left {
			t.Left++
		}
	}
	t.Until = last.Sub(first)
	for _, s := range c.spans {
		end := s.ended
		if end.After(last) {
			end = last
		}
		t.Busy += end.Sub(s.begun)
	}
	_ = json.NewEncoder(w).Encode(t) // who asked sees that it is not whole
}

// A modelProcess is a model that runs in another process.
type modelProcess struct {
	*child
	url string
}

func startModel(ctx context.Context, o modelOrder) (*modelProcess, error) {
	c, err := startChild(ctx, order{Model: &o})
	if err != nil {
		return nil, err
	}
	m := &modelProcess{child: c}
	if err := c.out.Decode(&m.url); err != nil {
		return nil, errors.Join(err, m.endProcess())
	}
	return m, nil
}

// readTally asks the model what it has counted.
func (m *modelProcess) readTally(ctx context.Context) (*Tally, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/tally", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	http.DefaultClient.CloseIdleConnections()
	t := new(Tally)
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, fmt.Errorf("tally %q: %w", raw, err)
	}
	return t, nil
}

// endProcess lets the process end by itself.
func (m *modelProcess) endProcess() error {
	return errors.Join(m.in.Close(), m.cmd.Wait())
}

var totalLine = regexp.MustCompile(`TOTAL RM (\d+\.50)`)

// readReceipt is a model that reads receipts.
func readReceipt(c fakellm.Call) fakellm.Reply {
	total := []any{}
	if m := totalLine.FindStringSubmatch(c.Turns[0].Text); m != nil {
		total = append(total, map[string]any{"value": json.Number(m[1]), "quotes": []string{m[0]}, "confidence": .9})
	}
	raw, err := json.Marshal(map[string]any{"fields": map[string]any{"total": total}, "not_found": []any{}})
	if err != nil {
		panic(err) // texts and numbers
	}
	return fakellm.Reply{Text: string(raw)}
}
