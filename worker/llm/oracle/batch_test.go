package oracle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	sdkanthropic "github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"
	sdkopenai "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/anthropic"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/manners"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

// A posted is a request about batches, as far as it matters: forms and files by what is in them.
type posted struct {
	Method, Path string
	Query        url.Values
	Header       map[string]string
	Body         any
}

// A counter answers requests one after the other, and keeps them.
type counter struct {
	answers []string
	asked   []posted
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	p := posted{Method: req.Method, Path: req.URL.Path, Query: req.URL.Query(), Header: map[string]string{}}
	for _, name := range matter {
		if v := req.Header.Get(name); v != "" && name != "Content-Type" {
			p.Header[name] = v
		}
	}
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if p.Body, err = readBody(req.Header.Get("Content-Type"), raw); err != nil {
			return nil, err
		}
	}
	c.asked = append(c.asked, p)

	answer := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

// readBody returns what a body holds: JSON, or a form with a file of JSON documents.
func readBody(media string, raw []byte) (any, error) {
	kind, params, err := mime.ParseMediaType(media)
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // it holds nothing
	}
	if err != nil || kind != "multipart/form-data" {
		var v any
		return v, json.Unmarshal(raw, &v)
	}

	form, err := multipart.NewReader(bytes.NewReader(raw), params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		return nil, err
	}
	f, err := form.File["file"][0].Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	return map[string]any{"purpose": form.Value["purpose"], "name": form.File["file"][0].Filename, "content": string(content)}, err
}

const orderMark = "orderOfTests"

// drawOrder returns an order of requests that batches take.
func drawOrder(t *rapid.T, names ...parameters.Name) batch.Order {
	o := batch.Order{Mark: orderMark, Model: "m-1"}
	for _, id := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9_-]{1,20}`), 1, 4, rapid.ID).Draw(t, "ids") {
		req := drawRequest(t, nil)
		req.Model = o.Model
		drawParameters(t, req, names...)
		o.Lines = append(o.Lines, batch.Line{CustomID: id, Request: *req})
	}
	return o
}

// anthropicBatches returns the vendor's service behind a transport, and ours.
func anthropicBatches(t *rapid.T, ours, theirs http.RoundTripper) (batch.Vendor, sdkanthropic.MessageBatchService) {
	v, err := anthropic.NewBatches(llm.Config{Key: llm.NewKey(key), BaseURL: base, Transport: ours})
	if err != nil {
		t.Fatal(err)
	}
	return v, sdkanthropic.NewMessageBatchService(
		anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey(key), anthropicoption.WithHTTPClient(&http.Client{Transport: theirs}),
		anthropicoption.WithMaxRetries(0), anthropicoption.WithoutOpenTelemetry(),
	)
}

// Orders go to the vendor as its SDK sends the same requests.
func TestOrdersToAnthropic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t, parameters.Effort, parameters.Thinking, parameters.Stop)
		ours, theirs := &counter{answers: []string{`{"id":"b"}`}}, &counter{answers: []string{`{"id":"b"}`}}
		v, service := anthropicBatches(t, ours, theirs)
		if _, err := v.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}

		var params sdkanthropic.MessageBatchNewParams
		for _, line := range o.Lines {
			one, err := anthropicParams(&line.Request, manners.Manners{})
			if err != nil {
				t.Fatal(err)
			}
			params.Requests = append(params.Requests, sdkanthropic.MessageBatchNewParamsRequest{
				CustomID: batch.SentID(o.Mark, line.CustomID),
				Params: sdkanthropic.MessageBatchNewParamsRequestParams{
					Model: one.Model, MaxTokens: one.MaxTokens, Messages: one.Messages, System: one.System, Tools: one.Tools, ToolChoice: one.ToolChoice,
					OutputConfig: one.OutputConfig, Thinking: one.Thinking, StopSequences: one.StopSequences,
				},
			})
		}
		if _, err := service.New(context.Background(), params); err != nil {
			t.Fatal(err)
		}
		comparePosted(t, ours, theirs)
	})
}

func comparePosted(t *rapid.T, ours, theirs *counter) {
	if diff := cmp.Diff(theirs.asked, ours.asked); diff != "" {
		t.Fatalf("requests differ (-theirs +ours):\n%s", diff)
	}
}

// openaiBatches returns the vendor's client behind a transport, and ours.
func openaiBatches(t *rapid.T, ours, theirs http.RoundTripper) (batch.Vendor, sdkopenai.Client) {
	v, err := openai.NewBatches(llm.Config{Key: llm.NewKey(key), BaseURL: base, Transport: ours})
	if err != nil {
		t.Fatal(err)
	}
	return v, sdkopenai.NewClient(openaioption.WithBaseURL(base), openaioption.WithAPIKey(key), openaioption.WithHTTPClient(&http.Client{Transport: theirs}), openaioption.WithMaxRetries(0))
}

// A file goes to the vendor as its SDK sends one, and a batch is asked of it in the same way. What
// stands in the file is what calls in real time are: see the tests of package batch.
func TestOrdersToOpenAI(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t, parameters.Effort, parameters.Stop)
		answers := []string{`{"id":"file-1"}`, `{"id":"b"}`}
		ours, theirs := &counter{answers: slices.Clone(answers)}, &counter{answers: slices.Clone(answers)}
		v, client := openaiBatches(t, ours, theirs)
		if _, err := v.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}

		content, _ := ours.asked[0].Body.(map[string]any)["content"].(string)
		file, err := client.Files.New(context.Background(), sdkopenai.FileNewParams{
			File: sdkopenai.File(strings.NewReader(content), orderMark+".jsonl", "application/jsonl"), Purpose: sdkopenai.FilePurposeBatch,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Batches.New(context.Background(), sdkopenai.BatchNewParams{
			CompletionWindow: sdkopenai.BatchNewParamsCompletionWindow24h, Endpoint: sdkopenai.BatchNewParamsEndpointV1ChatCompletions,
			InputFileID: file.ID, Metadata: map[string]string{"coditect_mark": orderMark},
		}); err != nil {
			t.Fatal(err)
		}
		comparePosted(t, ours, theirs)
	})
}

// drawTime returns a time as vendors have it; the zero time is none.
func drawTime(t *rapid.T) time.Time {
	if !rapid.Bool().Draw(t, "known") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "time"), 0).UTC()
}

// What the vendor tells of a batch is read as its SDK reads it.
func TestBatchesOfAnthropic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := map[string]int{}
		for _, name := range []string{"processing", "succeeded", "errored", "canceled", "expired"} {
			counts[name] = rapid.IntRange(0, 1000).Draw(t, name)
		}
		told := object{
			"id": rapid.StringMatching(`msgbatch_[a-zA-Z0-9]{8}`).Draw(t, "id"), "type": "message_batch", "request_counts": counts,
			"processing_status": rapid.SampledFrom([]string{"in_progress", "canceling", "ended", "bored"}).Draw(t, "status"),
		}
		for _, name := range []string{"created_at", "ended_at", "expires_at", "archived_at", "cancel_initiated_at"} {
			told[name] = nil
			if at := drawTime(t); !at.IsZero() {
				told[name] = at.Format(time.RFC3339)
			}
		}

		answer := encoded(t, told)
		v, service := anthropicBatches(t, &counter{answers: []string{answer}}, &counter{answers: []string{answer}})
		got, err := v.Get(context.Background(), "b")
		if err != nil {
			t.Fatal(err)
		}
		want, err := service.Get(context.Background(), "b", sdkanthropic.MessageBatchGetParams{})
		if err != nil {
			t.Fatal(err)
		}

		n := want.RequestCounts
		theirs := batch.Batch{
			ID: want.ID, Word: string(want.ProcessingStatus), Created: want.CreatedAt, Ended: want.EndedAt, Expires: want.ExpiresAt,
			Status: map[string]batch.Status{"ended": batch.Ended, "canceling": batch.Cancelling, "in_progress": batch.Running, "bored": batch.Running}[string(want.ProcessingStatus)],
			Counts: batch.Counts{Total: int(n.Processing + n.Succeeded + n.Errored + n.Canceled + n.Expired), Succeeded: int(n.Succeeded), Errored: int(n.Errored), Expired: int(n.Expired), Cancelled: int(n.Canceled)},
		}
		compareBatches(t, got, theirs)
	})
}

// compareBatches compares what either client was told, and not what ours makes of it besides.
func compareBatches(t *rapid.T, ours, theirs batch.Batch) {
	ours.KeptUntil, ours.Rest, ours.Err, ours.Mark = time.Time{}, "", nil, ""
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Fatalf("batches differ (-theirs +ours):\n%s", diff)
	}
}

// What the other vendor tells of a batch is read as its SDK reads it.
func TestBatchesOfOpenAI(t *testing.T) {
	status := map[string]batch.Status{
		"validating": batch.Running, "failed": batch.Failed, "in_progress": batch.Running, "finalizing": batch.Running, "completed": batch.Ended,
		"expired": batch.Ended, "cancelling": batch.Cancelling, "cancelled": batch.Ended, "bored": batch.Running,
	}
	words := []string{"validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled", "bored"}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(words).Draw(t, "status")
		completed, failed := rapid.IntRange(0, 500).Draw(t, "completed"), rapid.IntRange(0, 500).Draw(t, "failed")
		told := object{
			"id": rapid.StringMatching(`batch_[a-z0-9]{8}`).Draw(t, "id"), "object": "batch", "status": word, "errors": nil, "metadata": nil, "output_file_id": nil,
			"created_at": drawTime(t).Unix(), "expires_at": nil,
			"request_counts": object{"total": completed + failed + 3, "completed": completed, "failed": failed},
		}
		if at := drawTime(t); !at.IsZero() {
			told["expires_at"] = at.Unix()
		}
		if _, ends := told[word]; !ends && status[word].Over() {
			told[word+"_at"] = time.Unix(1_800_000_000, 0).Unix()
		}

		answer := encoded(t, told)
		v, client := openaiBatches(t, &counter{answers: []string{answer}}, &counter{answers: []string{answer}})
		got, err := v.Get(context.Background(), "b")
		if err != nil {
			t.Fatal(err)
		}
		want, err := client.Batches.Get(context.Background(), "b")
		if err != nil {
			t.Fatal(err)
		}

		unix := func(n int64) time.Time {
			if n <= 0 {
				return time.Time{}
			}
			return time.Unix(n, 0)
		}
		theirs := batch.Batch{
			ID: want.ID, Word: string(want.Status), Status: status[word], Created: unix(want.CreatedAt), Expires: unix(want.ExpiresAt),
			Ended:  unix(max(want.CompletedAt, want.FailedAt, want.ExpiredAt, want.CancelledAt)),
			Counts: batch.Counts{Total: int(want.RequestCounts.Total), Succeeded: int(want.RequestCounts.Completed), Errored: int(want.RequestCounts.Failed)},
		}
		switch word {
		case "expired":
			theirs.Counts.Expired = 3
		case "cancelled":
			theirs.Counts.Cancelled = 3
		}
		compareBatches(t, got, theirs)
	})
}

// Results are read as the vendor's SDK reads them, whatever became of a line.
func TestResultsOfAnthropic(t *testing.T) {
	outcomes := map[string]batch.Outcome{"succeeded": batch.Succeeded, "errored": batch.Errored, "expired": batch.Expired, "canceled": batch.Cancelled}
	rapid.Check(t, func(t *rapid.T) {
		var lines strings.Builder
		for _, id := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9_]{1,12}`), 1, 6, rapid.ID).Draw(t, "ids") {
			kind := rapid.SampledFrom([]string{"succeeded", "errored", "expired", "canceled"}).Draw(t, "outcome")
			one := object{"type": kind}
			switch kind {
			case "succeeded":
				one["message"] = object{
					"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": rapid.SampledFrom([]string{"end_turn", "max_tokens", "refusal"}).Draw(t, "stop"),
					"content": []any{object{"type": "text", "text": clean.Draw(t, "text")}},
					"usage":   object{"input_tokens": rapid.IntRange(0, 1e6).Draw(t, "in"), "output_tokens": rapid.IntRange(0, 1e6).Draw(t, "out"), "cache_read_input_tokens": rapid.IntRange(0, 1e6).Draw(t, "read"), "cache_creation_input_tokens": rapid.IntRange(0, 1e6).Draw(t, "write"), "service_tier": "batch"},
				}
			case "errored":
				one["error"] = object{"type": "error", "request_id": "req_1", "error": object{"type": rapid.SampledFrom([]string{"api_error", "overloaded_error", "not_found_error"}).Draw(t, "error"), "message": "no"}}
			}
			lines.WriteString(encoded(t, object{"custom_id": batch.SentID(orderMark, id), "result": one}) + "\n")
		}

		v, service := anthropicBatches(t, &counter{answers: []string{lines.String()}}, &counter{answers: []string{lines.String()}})
		stream := service.ResultsStreaming(context.Background(), "b", sdkanthropic.MessageBatchResultsParams{})
		for got, err := range v.Results(context.Background(), "b") {
			if err != nil || !stream.Next() {
				t.Fatal(err, stream.Err())
			}
			want := stream.Current()
			if batch.SentID(got.Mark, got.CustomID) != want.CustomID || got.Outcome != outcomes[want.Result.Type] {
				t.Fatalf("%+v, theirs %s is %s", got, want.CustomID, want.Result.Type)
			}
			if got.Outcome == batch.Errored && (got.Err.Message != want.Result.Error.Error.Message || got.Err.RequestID != want.Result.Error.RequestID) {
				t.Fatalf("%v, theirs %+v", got.Err, want.Result.Error)
			}
			if got.Outcome != batch.Succeeded {
				continue
			}
			m := want.Result.Message
			ours := heard{Model: string(got.Response.Model), Text: got.Response.Text(), Stop: got.Response.Stop, In: got.Response.Usage.In(), CacheRead: got.Response.Usage.CacheRead, Output: got.Response.Usage.Output}
			compareHeard(t, ours, heard{
				Model: string(m.Model), Text: m.Content[0].Text, Stop: stops["anthropic"][string(m.StopReason)],
				In: m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens, CacheRead: m.Usage.CacheReadInputTokens, Output: m.Usage.OutputTokens,
			})
		}
		if stream.Next() {
			t.Fatal("the SDK reads more")
		}
	})
}
