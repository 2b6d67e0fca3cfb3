package batch_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// A recordedWire is a format in which batches are recorded. What was recorded is read here a second time, without
// the code that is tested.
type recordedWire struct {
	name, vendor, base string

	isBatch, isLine func(map[string]any) bool
	batch           func(map[string]any) batch.Batch // without Err, and only with what list also has
	line            func(map[string]any) recordedLine
	page            string // an empty page of a list
	files           func(map[string]any) []string
	inline          func(map[string]any) []map[string]any // lines of results within a batch; nil if there are none
	serve           func(lines string) map[string]string  // the answers by which lines are the results of the batch "b", by ends of paths
}

// A recordedLine is what a line says of itself.
type recordedLine struct {
	id, text, message string
	outcome           batch.Outcome
	kinds             []llm.Kind // any of these, of an error
	in, cached, out   int64
	stop              llm.Stop // "" if the line does not say
}

func recordedWires() []*recordedWire {
	return []*recordedWire{recordedOpenAI("openai chat", "http://vendor.test/v1"), recordedOpenAI("openai responses", "http://vendor.test/v1/responses"), recordedAnthropic(), recordedGemini()}
}

var theRecordedWires = recordedWires()

// wireOf returns the format of a batch; nil if it is none.
func wireOf(doc map[string]any) *recordedWire {
	return wireWhere(func(w *recordedWire) bool { return w.isBatch(doc) })
}

// wireOfLine returns the format of a line of results; nil if it is none.
func wireOfLine(line map[string]any) *recordedWire {
	return wireWhere(func(w *recordedWire) bool { return w.isLine(line) })
}

func wireWhere(is func(*recordedWire) bool) *recordedWire {
	if i := slices.IndexFunc(theRecordedWires, is); i >= 0 {
		return theRecordedWires[i]
	}
	return nil
}

// A replay answers with what was recorded, by the ends of paths, and keeps which were asked for.
type replay struct {
	answers map[string]string
	status  int
	asked   []string
}

// RoundTrip implements http.RoundTripper. What was not recorded is not found.
func (p *replay) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusNotFound, `{"type":"error","error":{"type":"not_found_error","message":"not recorded"}}`
	for end, answer := range p.answers {
		if strings.HasSuffix(r.URL.Path, end) {
			status, body = p.status, answer
		}
	}
	if strings.Contains(r.URL.Path, "/files/") && len(p.answers) < 2 {
		status, body = http.StatusOK, ""
	}
	p.asked = append(p.asked, r.URL.Path)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// client returns the client of a format, to which p answers.
func (w *recordedWire) client(t *testing.T, p http.RoundTripper) batch.Vendor {
	t.Helper()
	v, err := vendors.All().NewBatches(w.vendor, llm.Config{Key: llm.NewKey(key), BaseURL: w.base, Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// readBatch has a batch read, and the names of its files.
func (w *recordedWire) readBatch(t *testing.T, r recorded, doc map[string]any, counts tally) {
	want := w.batch(doc)
	p := &replay{answers: map[string]string{"/" + strings.TrimPrefix(want.ID, "batches/"): string(r.body)}, status: 200}
	v := w.client(t, p)
	got, err := v.Get(context.Background(), want.ID)
	if err != nil {
		t.Errorf("%s: the batch %s is not read: %v\n%s", r.from, want.ID, err, r.body)
		return
	}

	w.compare(t, r, doc, got)
	counts[w.name+": a batch that is "+want.Word+", read as "+string(got.Status)]++
	if want.Status != batch.Ended {
		return
	}

	var lines []map[string]any
	if w.inline != nil {
		lines = w.inline(doc)
	}
	w.compareAll(t, r, v.Results(context.Background(), want.ID), w.linesOf(lines), counts)
	for _, file := range w.files(doc) {
		if !slices.ContainsFunc(p.asked, func(path string) bool { return strings.Contains(path, file) }) {
			t.Errorf("%s: the file %s of %s is not asked for, but %v", r.from, file, want.ID, p.asked)
		}
	}
}

// compare compares a batch that was read with what was recorded.
func (w *recordedWire) compare(t *testing.T, r recorded, doc map[string]any, got batch.Batch) {
	t.Helper()
	want := w.batch(doc)
	failure := got.Err
	got.Err = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the batch %s is read with another value (-want +got):\n%s", r.from, want.ID, diff)
	}

	why := str(doc, "errors.data.0.message")
	if why == "" {
		why = str(doc, "error.message")
	}
	if failed := want.Word == "failed" || strings.HasSuffix(want.Word, "_FAILED"); failed != (failure != nil) || failed && !strings.Contains(failure.Message, why) {
		t.Errorf("%s: the batch %s failed by %v, want %q", r.from, want.ID, failure, why)
	}
}

// readList has a list read: each of its batches must be found, with the same values.
func (w *recordedWire) readList(t *testing.T, r recorded, doc map[string]any, counts tally) {
	first := true
	p := transport(func(req *http.Request) (*http.Response, error) {
		answers := &replay{answers: map[string]string{"/batches": string(r.body)}, status: 200}
		if strings.HasSuffix(req.URL.Path, "/batches") && !first {
			answers.answers["/batches"] = w.page
		} else if strings.HasSuffix(req.URL.Path, "/batches") {
			first = false
		}
		return answers.RoundTrip(req)
	})

	found := make(map[string]batch.Batch)
	for _, one := range listOf(doc) {
		first = true
		all, err := w.client(t, p).Find(context.Background(), w.markOf(one), time.Time{})
		if err != nil {
			t.Errorf("%s: the list is not read: %v", r.from, err)
			return
		}
		for _, b := range all {
			found[b.ID] = b
		}
	}
	for _, one := range listOf(doc) {
		of, _ := one.(map[string]any)
		want := w.batch(of)
		if got, ok := found[want.ID]; ok {
			w.compare(t, r, of, got)
			counts[w.name+": a batch of a list that is "+want.Word+", read as "+string(got.Status)]++
			continue
		}
		t.Errorf("%s: the batch %s of a list is not found", r.from, want.ID)
	}
}

// markOf returns the mark by which a batch of others is found: Gemini has one, and the others have none. Of
// Anthropic each batch is found for as long as nobody knows whose it is.
func (w *recordedWire) markOf(one any) string {
	if w.vendor == "anthropic" {
		return mark
	}
	return str(one, "metadata.displayName")
}

// readRefusal has a refusal read that came in place of a batch, or of its results.
func (r recorded) readRefusal(t *testing.T, doc map[string]any, counts tally) {
	w := theRecordedWires[0]
	switch {
	case doc["type"] == "error":
		w = theRecordedWires[2]
	case strings.Contains(r.uri, "google"):
		w = theRecordedWires[3]
	}

	_, err := w.client(t, &replay{answers: map[string]string{"/b": string(r.body)}, status: r.status}).Get(context.Background(), "b")
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Status != r.status || !slices.Contains(kindsOf(int64(r.status)), e.Kind) || !strings.Contains(e.Message, str(doc, "error.message")) {
		t.Errorf("%s: the refusal %d %s is read as %+v", r.from, r.status, r.body, err)
		return
	}
	counts[w.name+": a refusal, read as "+e.Kind.String()]++
}

// readResults has lines read, and compares each.
func (w *recordedWire) readResults(t *testing.T, r recorded, lines []map[string]any, counts tally) {
	var raw strings.Builder
	for _, line := range lines {
		raw.Write(append(encode(line), '\n'))
	}
	v := w.client(t, &replay{answers: w.serve(raw.String()), status: 200})
	w.compareAll(t, r, v.Results(context.Background(), "b"), w.linesOf(lines), counts)
}

// linesOf returns what lines say, each line once.
func (w *recordedWire) linesOf(lines []map[string]any) (all []recordedLine) {
	seen := make(map[string]bool)
	for _, line := range lines {
		if one := w.line(line); one.id == "" || !seen[one.id] {
			seen[one.id] = true
			all = append(all, one)
		}
	}
	return all
}

// compareAll compares results that were read with what was recorded, line by line.
func (w *recordedWire) compareAll(t *testing.T, r recorded, results iter.Seq2[batch.Result, error], want []recordedLine, counts tally) {
	n := 0
	for got, err := range results {
		if kindOf(err) == llm.NotFound && len(want) == 0 {
			return // they stand elsewhere
		}
		if err != nil || n >= len(want) {
			t.Errorf("%s: result %d of %d: %v", r.from, n, len(want), err)
			return
		}
		counts[w.name+": a line, "+want[n].compare(t, r.from, got)]++
		n++
	}
	if n != len(want) {
		t.Errorf("%s: %d results of %s, want %d", r.from, n, w.name, len(want))
	}
}

// compare compares a result that was read with what was recorded, and says what it is.
func (l recordedLine) compare(t *testing.T, from string, got batch.Result) string {
	if id := got.CustomID; id != l.id && batch.SentID(got.Mark, id) != l.id || got.Outcome != l.outcome || (got.Response != nil) != (l.outcome == batch.Succeeded) {
		t.Errorf("%s: line %q is read as %q, which %s, want %s: %v", from, l.id, id, got.Outcome, l.outcome, got.Err)
		return "read with another end"
	}
	if l.outcome != batch.Succeeded {
		if got.Err == nil {
			t.Errorf("%s: line %q failed by nothing, want %q", from, l.id, l.message)
			return string(l.outcome) + " by nothing"
		}
		if !strings.Contains(got.Err.Message, l.message) || l.kinds != nil && !slices.Contains(l.kinds, got.Err.Kind) {
			t.Errorf("%s: line %q failed by %+v, want %q of one of %v", from, l.id, got.Err, l.message, l.kinds)
		}
		return string(l.outcome) + " by " + got.Err.Kind.String()
	}

	res := got.Response
	if text := res.Text(); text != l.text {
		t.Errorf("%s: line %q says %q, want %q", from, l.id, text, l.text)
	}
	if u := res.Usage; u.In() != l.in || u.CacheRead != l.cached || u.Output != l.out || !u.Reported {
		t.Errorf("%s: line %q took %+v, want %d in, of which %d from a cache, and %d out", from, l.id, u, l.in, l.cached, l.out)
	}
	if !res.Stop.Known() || l.stop != "" && res.Stop != l.stop || res.Tier != llm.Batch {
		t.Errorf("%s: line %q ended by %q in the tier %q, want %q", from, l.id, res.Stop, res.Tier, l.stop)
	}
	return string(l.outcome) + ", ended by " + string(res.Stop)
}

// kindsOf returns the kinds that an error of a status may have.
func kindsOf(status int64) []llm.Kind {
	switch {
	case status == 401:
		return []llm.Kind{llm.Auth}
	case status == 403:
		return []llm.Kind{llm.Permission}
	case status == 404:
		return []llm.Kind{llm.NotFound}
	case status == 429:
		return []llm.Kind{llm.RateLimited, llm.Billing, llm.Overloaded}
	case status >= 500:
		return []llm.Kind{llm.Server, llm.Overloaded, llm.Timeout}
	}
	return []llm.Kind{llm.Invalid, llm.TooLarge, llm.Billing, llm.Filtered, llm.BadSchema, llm.NotFound}
}

// stopNamed returns the end that a vendor's word means, of those that vendors of batches have.
func stopNamed(word string) llm.Stop {
	return map[string]llm.Stop{
		"stop": llm.StopEnd, "end_turn": llm.StopEnd, "STOP": llm.StopEnd, "completed": llm.StopEnd,
		"length": llm.StopMax, "max_tokens": llm.StopMax, "MAX_TOKENS": llm.StopMax, "incomplete": llm.StopMax,
		"tool_calls": llm.StopTool, "tool_use": llm.StopTool, "refusal": llm.StopRefusal, "content_filter": llm.StopFilter,
		"stop_sequence": llm.StopSequence,
	}[word]
}
