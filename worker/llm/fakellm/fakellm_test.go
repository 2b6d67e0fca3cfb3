package fakellm_test

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

const question = `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"What is the total?"}]}`

func ask(s *fakellm.Server) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(question))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Coditect-Unit", "a.txt")
	r.Header.Set("X-Coditect-Attempt", "3")
	r.Header.Set("X-Coditect-Fence", "4")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestJournal(t *testing.T) {
	var journal bytes.Buffer
	s := fakellm.New(fakellm.Config{Journal: &journal, Fault: fakellm.First(1, fakellm.Overloaded)})
	ask(s)
	ask(s)
	var got []map[string]any
	for line := range strings.Lines(journal.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	want := []map[string]any{
		{
			"n": 1.0, "wire": "anthropic", "model": "m", "unit": "a.txt", "attempt": 3.0, "fence": 4.0, "max_tokens": 100.0,
			"status": 529.0, "fault": "overloaded", "input": 0.0, "cache_write": 0.0, "cache_read": 0.0, "output": 0.0,
			"in_flight": 1.0, "request_id": "req_000001",
		},
		{
			"n": 2.0, "wire": "anthropic", "model": "m", "unit": "a.txt", "attempt": 3.0, "fence": 4.0, "max_tokens": 100.0,
			"status": 200.0, "stop": "end_turn", "input": 5.0, "cache_write": 0.0, "cache_read": 0.0, "output": 1.0,
			"in_flight": 1.0, "request_id": "req_000002",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakellm.New(fakellm.Config{Rates: meter.Rates{Requests: 2, Input: 1000}})
		var got []int
		for range 3 {
			got = append(got, ask(s).Code)
		}
		limited := ask(s)
		if limited.Header().Get("Retry-After") != "30" || limited.Header().Get("Anthropic-Ratelimit-Requests-Remaining") != "0" {
			t.Errorf("headers %v", limited.Header())
		}
		time.Sleep(30 * time.Second) //nolint:forbidigo // in a synctest bubble
		got = append(got, ask(s).Code)
		if diff := cmp.Diff([]int{200, 200, 429, 200}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakellm.New(fakellm.Config{
			Rates:   meter.Rates{Concurrent: 3},
			Latency: func(fakellm.Call) time.Duration { return time.Second },
		})
		var mu sync.Mutex
		codes := map[int]int{}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				code := ask(s).Code
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
			})
			synctest.Wait() // one after the other: those that are being refused count as well
		}
		all.Wait()
		if codes[200] != 3 || codes[429] != 2 || s.Peak() != 4 {
			t.Errorf("codes %v, peak %d", codes, s.Peak())
		}
	})
}

func TestLatenciesAndFaultsAreAsDrawn(t *testing.T) {
	latency := fakellm.LogNormal(1, 2*time.Second, 0.5)
	fault := fakellm.Mix(1, 0.2, fakellm.Cut, fakellm.Reset)
	const n = 20_000
	var total time.Duration
	faults := map[fakellm.Fault]int{}
	for i := range n {
		c := fakellm.Call{N: i + 1}
		d, f := latency(c), fault(c)
		total += d
		faults[f]++
		if latency(c) != d || fault(c) != f {
			t.Fatal("drawn twice, it differs")
		}
	}
	if mean := (total / n).Seconds(); math.Abs(mean-2) > 0.05 {
		t.Errorf("mean latency %.3fs, want 2s", mean)
	}
	if share := float64(faults[fakellm.Cut]) / n; math.Abs(share-0.1) > 0.01 || faults[fakellm.None]+faults[fakellm.Cut]+faults[fakellm.Reset] != n {
		t.Errorf("faults %v of %d", faults, n)
	}
}

// The newest version of Anthropic's interface refuses what older clients say.
func TestAnthropicVersions(t *testing.T) {
	const message = `{"role":"user","content":"?"}`
	call := func(version, more, messages string) int {
		body := `{"model":"m","max_tokens":9,"stream":true,` + more + `"messages":[` + messages + `]}`
		r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
		r.Header.Set("Anthropic-Version", version)
		w := httptest.NewRecorder()
		fakellm.New(fakellm.Config{}).ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct{ name, more, messages string }{
		{"temperature", `"temperature":0,`, message},
		{"top_p", `"top_p":1,`, message},
		{"top_k", `"top_k":5,`, message},
		{"a document of the assistant", "", message + `,{"role":"assistant","content":[{"type":"document"}]}`},
		{"citations of the user", "", `{"role":"user","content":[{"type":"text","text":"?","citations":[{}]}]}`},
	} {
		if old, now := call("2023-06-01", c.more, c.messages), call("2026-10-21", c.more, c.messages); old != 200 || now != 400 {
			t.Errorf("%s: status %d by the old version, %d by the new one; want 200 and 400", c.name, old, now)
		}
	}
	if got := [2]int{call("2026-10-21", "", message), call("2027-01-01", "", message)}; got != [2]int{200, 400} {
		t.Errorf("a plain call: status %v, want 200, and 400 for a version that there is not", got)
	}
}
