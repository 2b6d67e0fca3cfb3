package batch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

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
