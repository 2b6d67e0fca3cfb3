package report

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

// Bounds of the captured calls of a unit, so that a trace does not outgrow the results.
const (
	maxCaptured     = 200       // calls
	maxCapturedText = 64 << 10  // bytes of a prompt, or of an answer
	maxCapturedAll  = 512 << 10 // bytes of all of them
)

// CaptureOf returns what is captured of the calls of a unit. The turns and calls of agents
// with tools are always captured: people have to see what such an agent did.
func CaptureOf(job mapreduce.Capture, withTools bool) mapreduce.Capture {
	if withTools {
		return max(job, mapreduce.CaptureStandard)
	}
	return job
}

// A Recorder holds the captured calls of an attempt. It leaves out what exceeds the
// bounds, and marks the call as cut. Its exported methods are a part of agent.Calls.
type Recorder struct {
	Capture mapreduce.Capture // set before the agent runs

	mu       sync.Mutex // guards the variables below
	begun    time.Time  // when the agent was started
	captured []mapreduce.Call
	bytes    int // of texts
}

// Begin notes when the agent was started.
func (r *Recorder) Begin(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = now
}

// Captures implements agent.Calls.
func (r *Recorder) Captures() mapreduce.Capture { return r.Capture }

// Record implements agent.Calls.
func (r *Recorder) Record(call mapreduce.Call) {
	if r.Capture == mapreduce.CaptureOff {
		return
	}
	if r.Capture != mapreduce.CaptureFull {
		call.Prompt, call.Answer, call.Cut = "", "", false
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	call.At = max(0, time.Since(r.begun)-call.Latency)

	if len(r.captured) == maxCaptured {
		return
	}

	call.Error = Clean(call.Error, maxError)
	for _, text := range []*string{&call.Prompt, &call.Answer} {
		// What all texts of the attempt may take together shrinks with each call.
		room := min(maxCapturedText, maxCapturedAll-r.bytes)
		if whole := strings.ToValidUTF8(*text, string(utf8.RuneError)); len(whole) <= room {
			*text = whole
		} else {
			*text, call.Cut = shorten.Bytes(whole, room), true
		}
		r.bytes += len(*text)
	}
	r.captured = append(r.captured, call)
}

// AppendCalls adds the calls to an output.
func (r *Recorder) AppendCalls(data []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return payload.WithCalls(data, r.captured)
}
