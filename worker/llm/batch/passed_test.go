package batch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// Of results that somebody has passed on and shortened, those that were paid for are read, and those of which nothing is
// left are not.
func TestResultsThatAreShortened(t *testing.T) {
	lines := []string{
		`{"custom_id":"MARKOFTHIS-0","result":{"type":"succeeded","message":{"content":[{"type":"text","text":"said"}],"usage":{"input_tokens":12,"output_tokens":3,"service_tier":"batch"}}}}`,
		`{"custom_id":"MARKOFTHIS-1","result":{"type":"succeeded","message":{"content":[{"type":"text","text":"said"}]}}}`,
		`{"custom_id":"MARKOFTHIS-2","result":{"type":"succeeded","message":{"usage":{"input_tokens":12,"output_tokens":3}}}}`,
		`{"custom_id":"MARKOFTHIS-3","result":{"type":"succeeded"}}`,
	}
	v, err := vendors.All().NewBatches("anthropic", llm.Config{Key: llm.NewKey("k0123456789"), Transport: transport(func(r *http.Request) (*http.Response, error) {
		body := io.NopCloser(strings.NewReader(strings.Join(lines, "\n")))
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/x-jsonl"}}, Body: body, Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}

	n := 0
	for r, err := range v.Results(t.Context(), "b") {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case n == 0 && (r.Outcome != batch.Succeeded || r.Response.Text() != "said" || r.Response.Usage.Input != 12 || r.Response.Usage.Output != 3 || r.Response.Stop != llm.StopEnd):
			t.Errorf("an answer that does not say why it ended: %+v, %+v", r.Response, r.Err)
		case n > 0 && (r.Outcome != batch.Errored || r.Err.Kind != llm.Garbled):
			t.Errorf("line %d: %s, %+v", n, r.Outcome, r.Err)
		}
		n++
	}
	if n != len(lines) {
		t.Errorf("%d results, want %d", n, len(lines))
	}
}

// A server that passes batches on and does not say when they were made has them found nevertheless.
func TestBatchesWithoutTheirTimeAreFound(t *testing.T) {
	const mark = "MARKOFTHISBATCH2345"
	for provider, body := range map[string]string{
		"openai":    `{"data":[{"id":"b_1","status":"in_progress","metadata":{"coditect_mark":"` + mark + `"}}]}`,
		"anthropic": `{"data":[{"id":"b_1","processing_status":"in_progress","request_counts":{"processing":6}}]}`,
		"gemini":    `{"operations":[{"name":"batches/b_1","metadata":{"displayName":"` + mark + `","state":"BATCH_STATE_RUNNING"}}]}`,
	} {
		t.Run(provider, func(t *testing.T) {
			v, err := vendors.All().NewBatches(provider, llm.Config{Key: llm.NewKey("k0123456789"), Transport: transport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			found, err := v.Find(t.Context(), mark, time.Now().Add(-time.Hour))
			if err != nil || len(found) != 1 || !strings.HasSuffix(found[0].ID, "b_1") {
				t.Errorf("found %+v: %v", found, err)
			}
		})
	}
}
