package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// ServeModel serves a model over HTTP until ctx ends. It says first where.
func ServeModel(ctx context.Context, config fakellm.Config, out *json.Encoder) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fake := fakellm.New(config)
	c := &clocked{fake: fake}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	mux.HandleFunc("GET /tally", c.reportTally)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	// The listener takes connections already, so the parent may begin.
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
	_ = json.NewEncoder(w).Encode(t) // the client sees if it is not whole
}

// A ModelProcess is a model that runs in another process.
type ModelProcess struct {
	*Child
	URL string
}

// StartModel starts a child whose order makes it serve a model, and waits until it does.
func StartModel(ctx context.Context, o any) (*ModelProcess, error) {
	c, err := StartChild(ctx, o)
	if err != nil {
		return nil, err
	}
	m := &ModelProcess{Child: c}
	if err := c.Out.Decode(&m.URL); err != nil {
		return nil, errors.Join(err, m.EndProcess())
	}
	return m, nil
}

// ReadTally asks the model what it has counted.
func (m *ModelProcess) ReadTally(ctx context.Context) (*Tally, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/tally", http.NoBody)
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

// EndProcess lets the process end by itself.
func (m *ModelProcess) EndProcess() error {
	return errors.Join(m.in.Close(), m.Cmd.Wait())
}
