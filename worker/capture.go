package worker

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/output/payload"
)

// Bounds of the captured calls of a unit, so that a trace does not outgrow the results.
const (
	maxCaptured     = 200       // calls
	maxCapturedText = 64 << 10  // bytes of a prompt, or of an answer
	maxCapturedAll  = 512 << 10 // bytes of all of them
)

var _ agent.Recorder = (*unit)(nil)

// Captures implements agent.Recorder. The turns and calls of agents with tools are always
// captured: people have to see what such an agent did.
func (u *unit) Captures() mapreduce.Capture {
	if u.talks {
		return max(u.job.spec.Capture, mapreduce.CaptureStandard)
	}
	return u.job.spec.Capture
}

// Record implements agent.Recorder.
func (u *unit) Record(c mapreduce.Call) {
	if u.Captures() == mapreduce.CaptureOff {
		return
	}
	if u.Captures() != mapreduce.CaptureFull {
		c.Prompt, c.Answer, c.Cut = "", "", false
	}
	c.At = max(0, u.age()-c.Latency)
	u.captured.add(c)
}

// capturedCalls holds the captured calls of an attempt. It leaves out what exceeds the
// bounds, and marks the call as cut.
type capturedCalls struct {
	mu    sync.Mutex // guards the variables below
	calls []mapreduce.Call
	bytes int // of texts
}

func (c *capturedCalls) add(call mapreduce.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == maxCaptured {
		return
	}
	call.Error = cleanText(call.Error, maxError)
	for _, text := range []*string{&call.Prompt, &call.Answer} {
		room := min(maxCapturedText, maxCapturedAll-c.bytes)
		if whole := strings.ToValidUTF8(*text, string(utf8.RuneError)); len(whole) <= room {
			*text = whole
		} else {
			*text, call.Cut = clipHead(whole, room), true
		}
		c.bytes += len(*text)
	}
	c.calls = append(c.calls, call)
}

// clipHead returns as much of a text's beginning as fits n bytes.
func clipHead(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// appendTo adds the calls to an output.
func (c *capturedCalls) appendTo(data []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return payload.WithCalls(data, c.calls)
}
