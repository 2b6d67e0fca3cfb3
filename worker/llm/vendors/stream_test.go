package vendors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// canned is a server's answer without a network.
type canned struct {
	media string
	body  io.Reader
}

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body := c.body
	if b, ok := body.(*blocking); ok {
		b.ctx = r.Context()
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(body), Request: r,
	}, nil
}

func offline(t testing.TB, name string, transport http.RoundTripper) llm.Provider {
	t.Helper()
	p, err := vendors.New(name, llm.Config{Key: llm.NewKey(testKey), BaseURL: "http://vendor.test", Transport: transport, Idle: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func media(name string) string {
	switch name {
	case "ollama":
		return "application/x-ndjson"
	case "bedrock":
		return "application/vnd.amazon.eventstream"
	}
	return "text/event-stream"
}

// recorded returns the bytes of a whole answer.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	fake := fakellm.New(fakellm.Config{Model: says(goodReceipt), Piece: 16})
	var out []byte
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		fake.ServeHTTP(rec, r)
		out = rec.Body.Bytes()
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		_, _ = w.Write(out) // the client is ours
	}))
	defer proxy.Close()
	p, err := vendors.New(name, llm.Config{Key: llm.NewKey(testKey), BaseURL: proxy.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Complete(t.Context(), ask(nil)); err != nil {
		t.Fatal(err)
	}
	return out
}

// Wherever a stream is cut, what comes of it is an error or the whole answer.
func TestNoPieceOfAnAnswerIsAnAnswer(t *testing.T) {
	for _, name := range vendorNames {
		t.Run(name, func(t *testing.T) {
			whole := recorded(t, name)
			get := func(n int, cut error) (*llm.Response, error) {
				body := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(cut))
				return offline(t, name, canned{media(name), body}).Complete(t.Context(), ask(nil))
			}
			want, err := get(len(whole), io.EOF)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(whole) {
				for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF} {
					got, err := get(n, cut)
					// Some servers that are like OpenAI's end with the reason, without usage and mark.
					ended := name == "openai" && cut == io.EOF && bytes.Contains(whole[:n], []byte(`"finish_reason":"stop"`))
					if err == nil && !cmp.Equal(got, want) && (!ended || got.Text() != want.Text() || got.Stop != want.Stop) {
						t.Fatalf("%d of %d bytes, then %v, are taken for an answer: %+v", n, len(whole), cut, got)
					}
					if err == nil && n < len(whole)-4 && !ended {
						t.Fatalf("%d of %d bytes, then %v, are taken for all of it", n, len(whole), cut)
					}
					if e, ok := errors.AsType[*llm.Error](err); err != nil && (!ok || e.Class != llm.CutOff.Class()) {
						t.Fatalf("%d bytes, then %v: %v is not worth another attempt", n, cut, err)
					}
				}
			}
		})
	}
}

func TestBytesMayComeOneByOne(t *testing.T) {
	for _, name := range vendorNames {
		body := iotest.OneByteReader(bytes.NewReader(recorded(t, name)))
		res, err := offline(t, name, canned{media(name), body}).Complete(t.Context(), ask(nil))
		if err != nil || res.Text() != goodReceipt {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// Nothing a server sends may bring a worker down, and only what says that it is
// whole is an answer.
func FuzzStreams(f *testing.F) {
	for i, name := range vendorNames {
		whole := recorded(f, name)
		f.Add(uint8(i), whole)
		f.Add(uint8(i), whole[:len(whole)/2])
	}
	at := func(name string) uint8 { return uint8(slices.Index(vendorNames, name)) }
	f.Add(at("anthropic"), []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":-1}\n\n"))
	f.Add(at("openai"), []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":999999999}]}}]}\n\n"))
	f.Add(at("gemini"), []byte("data: {\"candidates\":[{\"content\":{\"parts\":[null,{\"functionCall\":null}]},\"finishReason\":\"STOP\"}]}\n\n"))
	f.Add(at("ollama"), []byte(`{"done":true,"message":{"tool_calls":[{}]}}`))
	ends := map[string]*regexp.Regexp{ // what says that an answer is whole
		"anthropic": regexp.MustCompile("message_stop"), "openai": regexp.MustCompile(`\[done]`),
		"bedrock": regexp.MustCompile("stopreason"), "gemini": regexp.MustCompile("finishreason|blockreason"), "ollama": regexp.MustCompile("done"),
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		i := int(which) % len(vendorNames)
		p := offline(t, vendorNames[i], canned{media(vendorNames[i]), bytes.NewReader(body)})
		res, err := p.Complete(t.Context(), ask(nil))
		if err != nil {
			if _, ok := errors.AsType[*llm.Error](err); !ok {
				t.Errorf("an error of another type: %v", err)
			}
			return
		}
		plain := strings.ReplaceAll(strings.ToLower(string(body)), `\u`, "")
		if !ends[vendorNames[i]].MatchString(plain) && !bytes.Contains(body, []byte(`\u`)) {
			t.Errorf("%q is taken for an answer", body)
		}
		if u := res.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || u.CacheWrite1h < 0 {
			t.Errorf("usage below zero: %+v", u)
		}
	})
}

// blocking gives its bytes with a pause before each, and nothing once the call
// was called off.
type blocking struct {
	ctx   context.Context
	rest  []byte
	pause time.Duration
}

// Read implements io.Reader.
func (b *blocking) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	select {
	case <-time.After(b.pause):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	n := copy(p, b.rest[:min(len(b.rest), 200)])
	b.rest = b.rest[n:]
	return n, nil
}

func TestSilenceEndsACallAndSlownessDoesNot(t *testing.T) {
	testenv.Raced(t)

	for _, name := range vendorNames {
		whole := recorded(t, name)
		synctest.Test(t, func(t *testing.T) {
			slow := &blocking{rest: whole, pause: 59 * time.Second}
			if _, err := offline(t, name, canned{media(name), slow}).Complete(t.Context(), ask(nil)); err != nil {
				t.Errorf("%s: slow: %v", name, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			silent := &blocking{rest: whole[:100], pause: time.Second}
			_, err := offline(t, name, canned{media(name), silent}).Complete(t.Context(), ask(nil))
			if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Timeout || time.Since(start) != 61*time.Second {
				t.Errorf("%s: silent: %v after %v; want a timeout after 1m1s", name, err, time.Since(start))
			}
		})
	}
}

// A redirect must not carry the key elsewhere.
func TestKeyStaysWithItsServer(t *testing.T) {
	for _, name := range vendorNames {
		visited := 0
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited++ }))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}))
		p, err := vendors.New(name, llm.Config{Key: llm.NewKey(testKey), BaseURL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Complete(t.Context(), ask(nil))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.NotAPI || visited != 0 {
			t.Errorf("%s: error %v, %d visits elsewhere", name, err, visited)
		}
		server.Close()
		elsewhere.Close()
	}
}

func TestSDKsTakeNothingFromTheEnvironment(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1/")
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "from-the-environment")
	}
	for _, name := range vendorNames {
		p, fake := start(t, name, fakellm.Config{Model: says(goodReceipt), Key: testKey})
		if _, err := p.Complete(t.Context(), ask(nil)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for header, values := range fake.Entries()[0].Header {
			if strings.Contains(strings.Join(values, " "), "from-the-environment") {
				t.Errorf("%s: header %s is from the environment", name, header)
			}
		}
	}
}

// No call takes as many tokens as a vendor may say that it did, or less than none: sums of
// them must not overflow.
func TestWhatNoVendorCounts(t *testing.T) {
	for _, n := range []int64{math.MaxInt64, math.MinInt64} {
		for vendor, lines := range map[string][]string{
			"openai": {
				`{"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`,
				fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, n, n),
			},
			"anthropic": {
				fmt.Sprintf(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}}}`, n, n),
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"yes"}}`,
				fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, n),
				`{"type":"message_stop"}`,
			},
			"ollama": {fmt.Sprintf(`{"model":"m","message":{"content":"yes"},"done":true,"done_reason":"stop","prompt_eval_count":%d,"eval_count":%d}`, n, n)},
		} {
			res, err := offline(t, vendor, canned{media(vendor), strings.NewReader(events(t, vendor, lines))}).Complete(t.Context(), ask(nil))
			if err != nil {
				t.Errorf("%s, %d: %v", vendor, n, err)
				continue
			}
			if in, out := res.Usage.In(), res.Usage.Output; in < 0 || in > 1<<42 || out < 0 || out > 1<<40 {
				t.Errorf("%s says %d, and it counts as %d and %d", vendor, n, in, out)
			}
		}
	}
}

// events is the body of an answer in a vendor's format.
func events(t *testing.T, vendor string, lines []string) string {
	t.Helper()
	var body strings.Builder
	for _, line := range lines {
		if vendor == "ollama" {
			fmt.Fprintln(&body, line)
			continue
		}
		var event struct{ Type string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, "event: %s\ndata: %s\n\n", event.Type, line)
	}
	if vendor == "openai" {
		body.WriteString("data: [DONE]\n\n")
	}
	return body.String()
}

// B15: what a vendor counted is of the answer only if nothing else was counted
// with it.
func TestWhatAVendorCounts(t *testing.T) {
	const (
		said     = `{"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`
		began    = `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`
		thinking = `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"so"}}`
		text     = `{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"yes"}}`
		ended    = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":70}}`
		silent   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
		stopped  = `{"type":"message_stop"}`
	)
	for _, tt := range []struct {
		name, vendor string
		lines        []string
		want         int64 // -1: it is not known
	}{
		{"counted", "openai", []string{said, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":70}}`}, 70},
		{"thought apart", "openai", []string{said, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":70,"completion_tokens_details":{"reasoning_tokens":64}}}`}, 6},
		{"none is a count", "openai", []string{said, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}`}, 0},
		{"not counted", "openai", []string{said}, -1},
		{"counted", "anthropic", []string{began, fmt.Sprintf(text, 0), ended, stopped}, 70},
		{"not counted", "anthropic", []string{began, fmt.Sprintf(text, 0), silent, stopped}, -1},
		{"thought with it", "anthropic", []string{began, thinking, fmt.Sprintf(text, 1), ended, stopped}, -1},
		{"counted", "ollama", []string{`{"model":"m","message":{"content":"yes"},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":70}`}, 70},
		{"not counted", "ollama", []string{`{"model":"m","message":{"content":"yes"},"done":true,"done_reason":"stop"}`}, -1},
		{"thought with it", "ollama", []string{
			`{"model":"m","message":{"content":"","thinking":"so"},"done":false}`,
			`{"model":"m","message":{"content":"yes"},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":70}`,
		}, -1},
	} {
		t.Run(tt.vendor+"/"+tt.name, func(t *testing.T) {
			res, err := offline(t, tt.vendor, canned{media(tt.vendor), strings.NewReader(events(t, tt.vendor, tt.lines))}).Complete(t.Context(), ask(nil))
			if err != nil || res.Text() != "yes" {
				t.Fatalf("%+v, %v", res, err)
			}
			got := int64(-1)
			if res.Written != nil {
				got = *res.Written
			}
			if got != tt.want {
				t.Errorf("%d tokens, want %d", got, tt.want)
			}
		})
	}
}
