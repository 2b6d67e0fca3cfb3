package browser_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/coditect/mapreduce/worker/tool/browser"
)

// Bounds of messages in tests, above what is read at once.
const (
	maxAnswer = 300_000
	maxEvent  = 100_000
)

// filled returns a message of size bytes: a beginning, an end, and what a page says between
// them.
func filled(begin, end string, size int) string {
	return begin + strings.Repeat("x", size-len(begin)-len(end)) + end
}

// relayed returns the messages that are passed on of some.
func relayed(t *testing.T, messages ...string) []string {
	t.Helper()
	var out bytes.Buffer
	in := strings.NewReader(strings.Join(messages, "\x00") + "\x00")
	if err := browser.Relay(&out, in, maxAnswer, maxEvent); !errors.Is(err, io.EOF) {
		t.Errorf("the relay ended with %v", err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
}

// What Chromium says is passed on within bounds, and of events those that somebody listens
// to.
func TestRelay(t *testing.T) {
	const (
		session = `,"sessionId":"6B1D20EF"}`
		answer  = `{"id":17,"result":{"result":{"type":"string","value":"`
		stopped = `{"method":"Page.frameStoppedLoading","params":{"frameId":"`
		target  = `{"method":"Target.targetInfoChanged","params":{"targetInfo":{"url":"`
	)
	forged := `\",\"sessionId\":\"FFFF\"}`
	for name, tt := range map[string]struct{ message, want string }{
		"answer":              {answer + `y"}}` + session, answer + `y"}}` + session},
		"event":               {`{"method":"Page.lifecycleEvent","params":{"name":"load"}` + session, `{"method":"Page.lifecycleEvent","params":{"name":"load"}` + session},
		"page that is left":   {stopped + browser.OnlyPage + `"}` + session, stopped + browser.OnlyPage + `"}` + session},
		"frame that is left":  {stopped + `E26F86F1` + `"}` + session, ""},
		"console":             {`{"method":"Runtime.consoleAPICalled","params":{"type":"log"}` + session, ""},
		"request":             {`{"method":"Network.requestWillBeSent","params":{}` + session, ""},
		"large answer":        {filled(answer, `"}}`+session, maxAnswer), filled(answer, `"}}`+session, maxAnswer)},
		"too large an answer": {filled(answer, `"}}`+session, maxAnswer+1), `{"id":17,"error":{"code":-32050,"message":"the page has an answer of 300001 bytes, and may have 300000"},"sessionId":"6B1D20EF"}`},
		"of the browser":      {filled(answer, forged+`"}}}`, maxAnswer+1), `{"id":17,"error":{"code":-32050,"message":"the page has an answer of 300001 bytes, and may have 300000"}}`},
		"large event":         {filled(target, `"}}}`, maxEvent), filled(target, `"}}}`, maxEvent)},
		"too large an event":  {filled(target, `"}}}`, maxEvent+1), ""},
		"large console":       {filled(`{"method":"Runtime.consoleAPICalled","params":{"x":"`, `"}`+session, 1<<20), ""},
		"unknown":             {`{"params":{}}`, `{"params":{}}`},
		"too large, unknown":  {filled(`{"params":"`, `"}`, maxEvent+1), ""},
	} {
		const before, after = `{"id":1,"result":{}}`, `{"id":2,"result":{}}`
		want := []string{before, tt.want, after}
		if tt.want == "" {
			want = []string{before, after}
		}
		got := relayed(t, before, tt.message, after)
		if len(got) != len(want) {
			t.Errorf("%s: %d messages were passed on, want %d", name, len(got), len(want))
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: message %d is %.200s (%d bytes), want %.200s (%d)", name, i, got[i], len(got[i]), want[i], len(want[i]))
			}
		}
	}
	var out bytes.Buffer
	if err := browser.Relay(&out, iotest.OneByteReader(strings.NewReader("{\"id\":1,\"result\":{}}\x00{\"id\":2,")), maxAnswer, maxEvent); !errors.Is(err, io.EOF) || out.String() != "{\"id\":1,\"result\":{}}\x00" {
		t.Errorf("of a message byte by byte and half of one there are %q, and %v", out.String(), err)
	}
	broken := errors.New("chromedp is gone")
	if err := browser.Relay(failing{broken}, strings.NewReader("{\"id\":1,\"result\":{}}\x00"), maxAnswer, maxEvent); !errors.Is(err, broken) {
		t.Errorf("the relay ended with %v", err)
	}
}

// A failing writer fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// What a page writes to its console, or into its attributes, is not taken into this
// process, however much it is.
func TestPagesOfManyWords(t *testing.T) {
	long(t)
	host := site(t, map[string]http.HandlerFunc{
		"/console": says(`<p>Words<script>const x = "x".repeat(16 << 20); for (let i = 0; i < 12; i++) console.log(i + x)</script>`),
		"/attributes": says(`<p>Words<script>const y = "y".repeat(8 << 20);
			for (const e of [document.documentElement, document.body, ...document.querySelectorAll("p")]) for (let i = 0; i < 5; i++) e.setAttribute("data-" + i, y)</script>`),
		"/answers": says(`<p>Words<script>const z = "z".repeat(66 << 20); String.prototype.slice = function (from, to) { return to > 1e6 ? z : this.substring(from, to) }</script>`),
	})
	k := newKit(t, []string{host})
	browser.SetTimes(k, enough, enough)
	for path, want := range map[string]string{"/console": "", "/attributes": "", "/answers": "the page has an answer of"} {
		s := unit(t, k)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := call(t, s, "browser_open", map[string]any{"url": "http://" + host + path})
		runtime.ReadMemStats(&after)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: opened: %t, error %v, want %q", path, r != nil, err, want)
		}
		taken := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB were allocated in all", path, taken)
		if taken > 600 {
			t.Errorf("%s: %d MiB were allocated for a page of few words", path, taken)
		}
	}
}
