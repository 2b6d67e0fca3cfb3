package vendors_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// A recording is a response of a vendor as others have recorded it: in YAML files in the form of
// vcrpy's, whose bodies may be parsed.
type recording struct {
	Request  struct{ URI string }
	Response struct {
		Status  struct{ Code int }
		Headers map[string]any
		Body    struct{ String string }
		Parsed  any `yaml:"parsed_body"`
	}
}

// RoundTrip implements http.RoundTripper.
func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: r.Response.Status.Code, Header: http.Header{"Content-Type": {r.media()}},
		Body: io.NopCloser(strings.NewReader(r.body())), Request: req,
	}, nil
}

func (r *recording) media() string {
	for name, v := range r.Response.Headers {
		if strings.EqualFold(name, "content-type") {
			if all, ok := v.([]any); ok && len(all) > 0 {
				v = all[0]
			}
			media, _ := v.(string)
			return media
		}
	}
	return ""
}

func (r *recording) body() string {
	if r.Response.Parsed == nil {
		return r.Response.Body.String
	}
	raw, err := json.Marshal(r.Response.Parsed)
	if err != nil {
		return ""
	}
	return string(raw)
}

// documents returns what a body holds: one JSON document, or those of a stream.
func (r *recording) documents() []map[string]any {
	if strings.Contains(r.media(), "eventstream") {
		return documentsIn(r.body())
	}
	lines := []string{r.body()}
	if !strings.HasPrefix(strings.TrimSpace(lines[0]), "{") {
		lines = strings.Split(lines[0], "\n")
	}
	var all []map[string]any
	for _, line := range lines {
		var m map[string]any
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data:")), &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// documentsIn returns the JSON documents among other bytes.
func documentsIn(body string) (all []map[string]any) {
	for {
		i := strings.IndexByte(body, '{')
		if i < 0 {
			return all
		}
		body = body[i:]
		d := json.NewDecoder(strings.NewReader(body))
		var m map[string]any
		if d.Decode(&m) != nil {
			body = body[1:]
			continue
		}
		all = append(all, m)
		body = body[d.InputOffset():]
	}
}

// A spent is what a recorded response says of itself.
type spent struct {
	in, out int64
	stop    string // in its vendor's word; "" if it says none
	answers bool   // it holds an answer, and no error alone
}

// recorded returns what a response says of itself, without the code that is tested.
func (f recordedFormat) recorded(r *recording) (s spent) {
	for _, m := range r.documents() {
		for _, at := range f.usage {
			if u, ok := dig(m, at).(map[string]any); ok {
				s.answers = true
				s.in = sumOf(u, f.in, s.in)
				s.out = sumOf(u, f.out, s.out)
			}
		}
		for _, at := range f.stop {
			if word, ok := dig(m, at).(string); ok && word != "" {
				s.stop, s.answers = word, true
			}
		}
	}
	s.answers = s.answers && s.stop != "queued"
	return s
}

// dig returns what stands at a path; a list is entered at its first element.
func dig(v any, path []string) any {
	for _, key := range path {
		if list, ok := v.([]any); ok {
			if v = nil; len(list) > 0 {
				v = list[0]
			}
		}
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// sumOf returns the sum of numbers; otherwise, if none is there.
func sumOf(u map[string]any, names []string, otherwise int64) (sum int64) {
	found := false
	for _, name := range names {
		n, ok := u[name].(float64)
		sum, found = sum+int64(n), found || ok
	}
	if !found {
		return otherwise
	}
	return sum
}

// A recordedFormat is where responses to a path have their usage and their end.
type recordedFormat struct {
	path, vendor string
	usage, stop  [][]string
	in, out      []string
	faults       []string // ends that are no answer's
}

var recordedFormats = []recordedFormat{
	{
		path: "/v1/messages", vendor: "anthropic",
		usage: [][]string{{"message", "usage"}, {"usage"}}, stop: [][]string{{"stop_reason"}, {"delta", "stop_reason"}},
		in:  []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"},
		out: []string{"output_tokens"},
	},
	{
		path: "/chat/completions", vendor: "openai",
		usage: [][]string{{"usage"}}, stop: [][]string{{"choices", "finish_reason"}},
		in: []string{"prompt_tokens"}, out: []string{"completion_tokens"},
	},
	{
		path: "/responses", vendor: "openai",
		usage: [][]string{{"usage"}, {"response", "usage"}}, stop: [][]string{{"status"}, {"response", "status"}},
		in: []string{"input_tokens"}, out: []string{"output_tokens"},
	},
	googles("enerateContent"), // in a stream or at once
	amazons("/converse"),
	amazons("/converse-stream"),
}

func googles(path string) recordedFormat {
	return recordedFormat{
		path: path, vendor: "gemini",
		usage: [][]string{{"usageMetadata"}}, stop: [][]string{{"candidates", "finishReason"}, {"promptFeedback", "blockReason"}},
		in:  []string{"promptTokenCount", "toolUsePromptTokenCount"},
		out: []string{"candidatesTokenCount", "thoughtsTokenCount"}, faults: []string{"UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL"},
	}
}

func amazons(path string) recordedFormat {
	return recordedFormat{
		path: path, vendor: "bedrock",
		usage: [][]string{{"usage"}}, stop: [][]string{{"stopReason"}},
		in: []string{"inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"}, out: []string{"outputTokens"},
	}
}

// TestRecordedResponses reads responses that others have recorded of vendors and of servers that are
// alike. They are no part of this repository: CODITECT_CASSETTES names their folder.
func TestRecordedResponses(t *testing.T) {
	folder := os.Getenv("CODITECT_CASSETTES")
	if folder == "" {
		t.Skip("CODITECT_CASSETTES names no folder of recorded responses")
	}
	counts := make(map[string]int)
	err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		var tape struct{ Interactions []recording }
		if err := yaml.Unmarshal(readFile(t, name), &tape); err != nil {
			counts["files in another form"]++
			return nil
		}
		for i := range tape.Interactions {
			readRecorded(t, filepath.Base(name), &tape.Interactions[i], counts)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[what], what)
	}
}

// readRecorded reads a response, if it is to a request that our providers make.
func readRecorded(t *testing.T, name string, r *recording, counts map[string]int) {
	at, err := url.Parse(r.Request.URI)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	i := slices.IndexFunc(recordedFormats, func(f recordedFormat) bool { return strings.HasSuffix(at.Path, f.path) })
	if i < 0 {
		return
	}
	f := recordedFormats[i]
	p, err := vendors.New(f.vendor, llm.Config{Key: llm.NewKey(testKey), BaseURL: "http://vendor.test" + at.Path, Transport: r})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Complete(context.Background(), ask(nil))
	counts[f.vendor+" "+f.path+" "+at.Host+": "+f.judge(t, name, r, res, err)]++
}

// judge compares what was read of a response with what it says of itself.
func (f recordedFormat) judge(t *testing.T, name string, r *recording, res *llm.Response, err error) string {
	want := f.recorded(r)
	e, failed := errors.AsType[*llm.Error](err)
	switch {
	case failed && (r.Response.Status.Code != http.StatusOK || !want.answers || holdsError(r)):
		return "an error, read as the error " + e.Kind.String()
	case failed && slices.Contains(f.faults, want.stop) && e.Usage.In() == want.in && e.Usage.Output == want.out:
		return "read, ended by " + want.stop + " as the error " + e.Kind.String()
	case err != nil:
		t.Errorf("%s is not read: %v", name, err)
		return "not read"
	case res.Usage.In() != want.in || res.Usage.Output != want.out:
		t.Errorf("%s: %d and %d tokens are read, want %d and %d", name, res.Usage.In(), res.Usage.Output, want.in, want.out)
		return "read with another usage"
	case !res.Stop.Known():
		t.Errorf("%s: the end %q is not known", name, res.Stop)
		return "read with another end"
	}
	return "read, ended by " + want.stop + " as " + string(res.Stop)
}

// holdsError reports whether a stream holds an error.
func holdsError(r *recording) bool {
	return slices.ContainsFunc(r.documents(), func(m map[string]any) bool { return m["error"] != nil }) ||
		strings.Contains(r.body(), "event: error")
}
