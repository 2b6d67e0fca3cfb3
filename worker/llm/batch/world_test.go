package batch_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// What users of vendors have reported of batches that went wrong, as the vendors had answered them: each case has the
// answers, and what a client must make of them.

// An answer is one that a vendor gave.
type answer struct {
	to     string // what was asked: the method, and how the path ends
	status int
	body   string
	header http.Header
}

// answers give what was asked the next answer to that; the last one stands.
type answers struct {
	t     *testing.T
	all   []answer
	given map[string]int
	sent  map[string][]string // bodies
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	var of []answer
	for _, one := range a.all {
		method, path, _ := strings.Cut(one.to, " ")
		if r.Method == method && strings.HasSuffix(r.URL.Path, path) {
			of = append(of, one)
		}
	}
	if len(of) == 0 {
		a.t.Errorf("nobody has recorded %s %s", r.Method, r.URL.Path)
		return nil, errors.New("not recorded")
	}

	key := of[0].to
	one := of[min(a.given[key], len(of)-1)]
	a.given[key]++
	a.sent[key] = append(a.sent[key], string(body))
	header := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(header, one.header)
	return &http.Response{StatusCode: one.status, Header: header, Body: io.NopCloser(strings.NewReader(one.body)), Request: r}, nil
}

// answering returns a vendor that answers as it was recorded.
func answering(t *testing.T, vendor string, all ...answer) (batch.Vendor, *answers) {
	t.Helper()
	a := &answers{t: t, all: all, given: make(map[string]int), sent: make(map[string][]string)}
	base := "http://vendor.test/v1"
	switch vendor {
	case "anthropic", "azure":
		base = "http://vendor.test"
	case "gemini":
		base = "http://vendor.test/v1beta"
	}
	v, err := vendors.All().NewBatches(vendor, llm.Config{Key: llm.NewKey(key), BaseURL: base, Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	return v, a
}

// kindOf is the kind of an error; 0 if it is none of a model.
func kindOf(err error) llm.Kind {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return 0
	}
	return e.Kind
}

const uploaded = `{"id":"file-VC5eF687ZfDPFKkBrPGZpa","object":"file","bytes":176,"purpose":"batch","filename":"a.jsonl","status":"processed","created_at":1774437190}`

// Batches that were not made, and the same order might make later: none of them is asked in real time at once.
func TestCreationsThatPass(t *testing.T) {
	for name, c := range map[string]struct {
		vendor string
		all    []answer
		kind   llm.Kind
	}{
		"the file is not known yet": {"openai", []answer{
			{to: "POST /files", status: 200, body: uploaded},
			{to: "POST /batches", status: 400, body: `{"error":{"message":"Cannot find file file-VC5eF687ZfDPFKkBrPGZpa, or project proj_849B36OelpiRtrG7hEPPgVSD does not have access to it.","type":"invalid_request_error","param":"file_id","code":null}}`},
		}, llm.Server},
		"the file is not known yet, of a server that is alike": {"groq", []answer{
			{to: "POST /files", status: 200, body: uploaded},
			{to: "POST /batches", status: 404, body: `{"error":{"message":"Input file not found"}}`},
		}, llm.Server},
		"too many creations within an hour": {"openai", []answer{
			{to: "POST /files", status: 200, body: uploaded},
			{to: "POST /batches", status: 429, body: `{"error":{"message":"Rate limit reached for batch creation: Limit 2000 per hour.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
		}, llm.RateLimited},
		"too many files": {"azure", []answer{
			{to: "POST /files", status: 400, body: `{"error":{"code":"quotaExceeded","message":"The quota for files without expiry is reached. The maximum is 500."}}`},
		}, llm.RateLimited},
		"a quota of batches": {"gemini", []answer{
			{to: "POST /upload/v1beta/files", status: 200, header: http.Header{"X-Goog-Upload-Url": {"http://vendor.test/upload/v1beta/here"}}},
			{to: "POST /upload/v1beta/here", status: 200, body: `{"file":{"name":"files/voe5u4gdj968"}}`},
			{to: "POST :batchGenerateContent", status: 429, body: `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help"}]}}`},
		}, llm.RateLimited},
		"a limit of requests": {"anthropic", []answer{
			{to: "POST /batches", status: 429, body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of batch requests in the processing queue."}}`},
		}, llm.RateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := answering(t, c.vendor, c.all...)
			_, err := v.Create(t.Context(), order(2))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || batch.Lost(err) || e.Kind != c.kind || e.Class != protocol.Retryable {
				t.Errorf("%v, want one of kind %v that passes", err, c.kind)
			}
		})
	}
}

// Batches that were not made, and would not be another time: what is asked in real time says why.
func TestCreationsThatDoNotPass(t *testing.T) {
	for name, c := range map[string]struct {
		vendor, body string
		status       int
		kind         llm.Kind
	}{
		"the plan has none":          {"groq", `{"error":{"message":"Batch is not available on your plan.","type":"permissions_error","code":"not_available_for_plan"}}`, 403, llm.Permission},
		"the hard limit is reached":  {"openai", `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}`, 400, llm.Billing},
		"a file in another form":     {"openai", `{"error":{"message":"Invalid file format for Batch API. Must be .jsonl","type":"invalid_request_error","param":null,"code":null}}`, 400, llm.Invalid},
		"a deployment of other kind": {"azure", `{"error":{"code":"OperationNotSupported","message":"The chatCompletion operation does not work with the specified model, gpt-4o."}}`, 400, llm.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := answering(t, c.vendor, answer{to: "POST /files", status: 200, body: uploaded}, answer{to: "POST /batches", status: c.status, body: c.body})
			_, err := v.Create(t.Context(), order(2))
			if e, ok := errors.AsType[*llm.Error](err); !ok || batch.Lost(err) || e.Kind != c.kind || e.Class == protocol.Retryable {
				t.Errorf("%v, want one of kind %v that does not pass", err, c.kind)
			}
		})
	}
}

// A server that looks at files before it makes batches of them is waited for, and its files have an end.
func TestFilesAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = "file-655111ec9cfc44489d9af078f08116ef"
		v, a := answering(t, "azure",
			answer{to: "POST /files", status: 201, body: `{"id":"` + id + `","status":"pending","purpose":"batch"}`},
			answer{to: "GET /files/" + id, status: 404, body: `{"error":{"code":"fileNotFound","message":"File was not found."}}`},
			answer{to: "GET /files/" + id, status: 200, body: `{"id":"` + id + `","status":"running"}`},
			answer{to: "GET /files/" + id, status: 200, body: `{"id":"` + id + `","status":"processed","expires_at":1744600667}`},
			answer{to: "POST /batches", status: 200, body: `{"id":"batch_990fe845","status":"validating","created_at":1741827194,"endpoint":"/chat/completions","input_file_id":"` + id + `","output_file_id":null,"error_file_id":null,"errors":null,"request_counts":{"total":0,"completed":0,"failed":0},"metadata":null}`},
		)
		began := time.Now()
		made, err := v.Create(t.Context(), order(2))
		if err != nil || made.ID != "batch_990fe845" || made.Status != batch.Running || a.given["GET /files/"+id] != 3 {
			t.Errorf("%+v, %v, after %d questions for the file", made, err, a.given["GET /files/"+id])
		}
		if took := time.Since(began); took < 3*time.Second || took > time.Minute {
			t.Errorf("it was waited for %v", took)
		}
		for to, want := range map[string]string{"POST /files": "1209600", "POST /batches": `"output_expires_after":{"anchor":"created_at","seconds":1209600}`} {
			if !strings.Contains(strings.Join(a.sent[to], "\n"), want) {
				t.Errorf("%s has no %s:\n%s", to, want, a.sent[to])
			}
		}
	})
}

// A file that the server cannot take in, or never has done with, is an error that passes.
func TestFilesThatAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []string{"error", "running"} {
			v, a := answering(t, "azure", answer{to: "POST /files", status: 201, body: `{"id":"file-1","status":"pending"}`}, answer{to: "GET /files/file-1", status: 200, body: `{"id":"file-1","status":"` + status + `"}`})
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
			_, err := v.Create(ctx, order(2))
			stop()
			if e, ok := errors.AsType[*llm.Error](err); !ok || batch.Lost(err) || e.Class != protocol.Retryable || len(a.sent["POST /batches"]) > 0 {
				t.Errorf("%s: %v", status, err)
			}
		}
	})
}

// How batches stood, as vendors told.
func TestStatesOfTheWorld(t *testing.T) {
	openai := func(more string) string {
		return `{"id":"batch_69c3c347282c81908ede48ecc95bf201","object":"batch","endpoint":"/v1/chat/completions","completion_window":"24h","created_at":1774437191,"expires_at":1774523591,"input_file_id":"file-VC5eF687ZfDPFKkBrPGZpa",` + more + `}`
	}
	gemini := func(state, more string) string {
		return `{"name":"batches/b","metadata":{"state":"` + state + `","createTime":"2026-03-14T18:18:10.082996104Z","batchStats":{"requestCount":"2","pendingRequestCount":"2"}}` + more + `}`
	}
	for name, c := range map[string]struct {
		vendor, body string
		want         batch.Status
		rest         batch.Outcome
		kind         llm.Kind // of why it failed
		passes       bool
	}{
		"all lines failed":                               {vendor: "openai", body: openai(`"status":"completed","output_file_id":null,"error_file_id":"file-QzTKe9srv1bbmpX5MwCTZx","errors":null,"completed_at":1774437324,"request_counts":{"completed":0,"failed":9,"total":9}`), want: batch.Ended, rest: batch.Errored},
		"expired with one":                               {vendor: "openai", body: openai(`"status":"expired","output_file_id":"file-out","error_file_id":"file-err","expired_at":1774523600,"request_counts":{"total":10,"completed":1,"failed":0}`), want: batch.Ended, rest: batch.Expired},
		"cancelled with 8 of 25, and 10 in no file":      {vendor: "openai", body: openai(`"status":"cancelled","output_file_id":"file-out","error_file_id":"file-err","request_counts":{"total":25,"completed":8,"failed":17}`), want: batch.Ended, rest: batch.Cancelled},
		"finalizing":                                     {vendor: "openai", body: openai(`"status":"finalizing","finalizing_at":1774437322,"request_counts":{"total":2,"completed":2,"failed":0}`), want: batch.Running, rest: batch.Errored},
		"cancelling":                                     {vendor: "openai", body: openai(`"status":"cancelling","output_file_id":null,"cancelling_at":1711475133,"request_counts":{"total":100,"completed":23,"failed":1}`), want: batch.Cancelling, rest: batch.Errored},
		"no file is an object":                           {vendor: "groq", body: openai(`"status":"completed","output_file_id":"file-out","error_file_id":{},"errors":{},"metadata":{},"request_counts":{"completed":3,"failed":0,"total":3}`), want: batch.Ended, rest: batch.Errored},
		"no file is an empty name":                       {vendor: "openai", body: openai(`"status":"completed","output_file_id":"file-out","error_file_id":"","request_counts":{"completed":2,"failed":0,"total":2}`), want: batch.Ended, rest: batch.Errored},
		"counts and metadata are null":                   {vendor: "azure", body: openai(`"status":"validating","errors":null,"metadata":null,"request_counts":null,"output_file_id":null,"error_file_id":null`), want: batch.Running, rest: batch.Errored},
		"too much waits":                                 {vendor: "openai", body: openai(`"status":"failed","errors":{"object":"list","data":[{"code":"token_limit_exceeded","line":null,"message":"Enqueued token limit reached for gpt-4o-mini in organization org-snq6. Limit: 2,000,000 enqueued tokens. Please try again once some in_progress batches have been completed.","param":null}]}`), want: batch.Failed, rest: batch.Errored, kind: llm.RateLimited, passes: true},
		"the file is not there, says what makes batches": {vendor: "openai", body: openai(`"status":"failed","errors":{"object":"list","data":[{"code":"invalid_request","line":null,"message":"Cannot find file file-VC5eF687ZfDPFKkBrPGZpa, or organization org-Rem6LBmDPt1bJQcMV8ARko4o does not have access to it.","param":null}]}`), want: batch.Failed, rest: batch.Errored, kind: llm.Server, passes: true},
		"failed, and nobody says why":                    {vendor: "azure", body: openai(`"status":"failed","errors":null,"output_file_id":null`), want: batch.Failed, rest: batch.Errored, kind: llm.Server, passes: true},
		"a line twice":                                   {vendor: "openai", body: openai(`"status":"failed","errors":{"object":"list","data":[{"code":"duplicate_custom_id","line":2,"message":"The custom_id is not unique within the file.","param":"custom_id"}]}`), want: batch.Failed, rest: batch.Errored, kind: llm.Invalid},
		"a line that is none":                            {vendor: "openai", body: openai(`"status":"failed","errors":{"object":"list","data":[{"code":"invalid_json_line","line":1,"message":"This line is not parseable as valid JSON.","param":null}]}`), want: batch.Failed, rest: batch.Errored, kind: llm.Invalid},
		"lines of two models":                            {vendor: "openai", body: openai(`"status":"failed","errors":{"object":"list","data":[{"code":"mismatched_model","line":2,"message":"The model is not the same as in other lines.","param":"body.model"}]}`), want: batch.Failed, rest: batch.Errored, kind: llm.Invalid},
		"pending for more than a day":                    {vendor: "gemini", body: gemini("BATCH_STATE_PENDING", ""), want: batch.Running, rest: batch.Errored},
		"expired after two":                              {vendor: "gemini", body: gemini("JOB_STATE_EXPIRED", `,"done":true`), want: batch.Ended, rest: batch.Expired},
		"failed within":                                  {vendor: "gemini", body: gemini("BATCH_STATE_FAILED", `,"done":true,"error":{"code":13,"message":"Internal error encountered."}`), want: batch.Failed, rest: batch.Errored, kind: llm.Server, passes: true},
		"being cancelled":                                {vendor: "anthropic", body: `{"id":"msgbatch_1","type":"message_batch","processing_status":"canceling","created_at":"2026-04-21T17:55:43Z","cancel_initiated_at":"2026-04-21T17:57:43Z","results_url":null,"request_counts":{"processing":2,"succeeded":0,"errored":0,"canceled":0,"expired":0}}`, want: batch.Cancelling, rest: batch.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := answering(t, c.vendor, answer{to: "GET ", status: 200, body: c.body})
			got, err := v.Get(t.Context(), "b")
			if err != nil || got.Status != c.want || got.Rest != c.rest {
				t.Fatalf("%+v, %v; want %s, and lines without a result %s", got, err, c.want, c.rest)
			}
			if (got.Err != nil) != (c.kind != 0) || got.Err != nil && (got.Err.Kind != c.kind || (got.Err.Class == protocol.Retryable) != c.passes) {
				t.Errorf("it failed for %v, want the kind %v, which passes: %v", got.Err, c.kind, c.passes)
			}
		})
	}
}

// Dated versions of Azure's interface write states with a capital and times as text, and do not count lines at first.
func TestStatesInOtherForms(t *testing.T) {
	created := time.Date(2024, 8, 1, 10, 20, 30, 0, time.UTC)
	for word, want := range map[string]batch.Status{"Validating": batch.Running, "Completed": batch.Ended, "Cancelling": batch.Cancelling, "Failed": batch.Failed} {
		body := `{"id":"batch_7","object":"batch","status":"` + word + `","created_at":"2024-08-01T10:20:30.1234567+00:00","expires_at":"2024-08-02T12:20:30.1234567+02:00",` +
			`"completed_at":null,"failed_at":"","errors":null,"metadata":null,"output_file_id":null,"error_file_id":null,"request_counts":{"total":null,"completed":null,"failed":null}}`
		v, _ := answering(t, "azure", answer{to: "GET ", status: 200, body: body})
		got, err := v.Get(t.Context(), "batch_7")
		if err != nil || got.Status != want || got.Word != word || !got.Created.Equal(created) || !got.Expires.Equal(created.Add(24*time.Hour)) || !got.Ended.IsZero() {
			t.Errorf("%s: %+v, %v; want it %s, of %v", word, got, err, want, created)
		}
	}
}

// A batch that cannot be asked for is not one that has ended.
func TestStatesThatAreNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		vendor string
		status int
		body   string
		kind   llm.Kind
	}{
		"404 a second after its creation": {"anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"Not found"},"request_id":"req_011CaYs3"}`, llm.NotFound},
		"an error in place of the batch":  {"openai", 200, `{"error":{"message":"No batch found with id 'batch_69c3'.","type":"invalid_request_error","param":null,"code":null}}`, llm.Server},
		"questions that are too many":     {"openai", 429, `{"error":{"message":"Rate limit reached for requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, llm.RateLimited},
		"a gateway that is away":          {"gemini", 502, `<html><head><title>502 Server Error</title></head></html>`, llm.Server},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := answering(t, c.vendor, answer{to: "GET ", status: c.status, body: c.body})
			if got, err := v.Get(t.Context(), "b"); kindOf(err) != c.kind {
				t.Errorf("%+v, %v; want an error of kind %v", got, err, c.kind)
			}
		})
	}
}

// What became of lines, as vendors told.
func TestLinesOfTheWorld(t *testing.T) {
	const ended = `{"id":"b","status":"completed","output_file_id":"file-out","error_file_id":null,"request_counts":{"total":1,"completed":1,"failed":0}}`
	const answered = `{"id":"batch_req_1","custom_id":"job7unitA1b2-u","response":{"status_code":200,"request_id":"1","body":{"id":"chatcmpl-1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}},"error":null}`
	openai := func(response, failure string) string {
		return `{"id":"batch_req_1","custom_id":"job7unitA1b2-u","response":` + response + `,"error":` + failure + `}`
	}
	failed := func(status, failure string) string {
		return openai(`{"status_code":`+status+`,"request_id":"0538a1cc","body":{"error":`+failure+`}}`, "null")
	}
	claude := func(result string) string { return `{"custom_id":"job7unitA1b2-u","result":` + result + `}` }
	gemini := func(more string) string { return `{"key":"job7unitA1b2-u",` + more + `}` }
	for name, c := range map[string]struct {
		vendor, lines string
		want          batch.Outcome
		kind          llm.Kind
	}{
		"a prompt that is too long":    {"openai", failed("400", `{"message":"This model's maximum context length is 128000 tokens. However, you requested 1000024 tokens (24 in the messages, 1000000 in the completion).","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`), batch.Errored, llm.TooLarge},
		"a JSON that was one":          {"openai", failed("400", `{"message":"We could not parse the JSON body of your request.","type":"invalid_request_error","param":null,"code":null}`), batch.Errored, llm.Invalid},
		"a model that is away":         {"openai", failed("500", `{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}`), batch.Errored, llm.Server},
		"an error without a request":   {"openai", openai("null", `{"code":"server_error","message":"An error occurred while processing your request. You can retry your request, or contact us through our help center at help.openai.com if the error persists. Please include the request ID 2e83bcff in your message."}`), batch.Errored, llm.Server},
		"a rate limit within":          {"openai", failed("429", `{"message":"Rate limit reached for gpt-4o-mini","type":"tokens","param":null,"code":"rate_limit_exceeded"}`), batch.Errored, llm.RateLimited},
		"no time":                      {"openai", openai("null", `{"code":"batch_expired","message":"This request could not be executed before the completion window expired."}`), batch.Expired, llm.Timeout},
		"no time, of a gateway":        {"openai", openai("null", `{"code":"batch_cancelled","message":"This request was cancelled."}`), batch.Cancelled, llm.Timeout},
		"the batch failed, of another": {"openai", openai("null", `{"code":"batch_failed","message":"This request was not executed because the batch failed."}`), batch.Errored, llm.Server},
		"no status, and nothing else":  {"openai", openai(`{"status_code":0,"request_id":"","body":{}}`, "null"), batch.Errored, llm.Garbled},
		"an error without a code":      {"openai", openai("null", `{"type":"request_failed","message":"no"}`), batch.Errored, llm.Server},
		"an error that is a text":      {"openai", openai(`{"status_code":400,"request_id":"1","body":null}`, `"The prompt is too long for this model."`), batch.Errored, llm.TooLarge},
		"an error with a number":       {"openai", openai(`{"status_code":404,"request_id":"1","body":null}`, `{"object":"error","message":"no such model","type":"NotFoundError","param":null,"code":404}`), batch.Errored, llm.NotFound},
		"a text, and nothing else":     {"openai", openai("null", `"The line could not be read."`), batch.Errored, llm.Server},
		"an answer and an error":       {"openai", openai(`{"status_code":400,"body":{"error":{"message":"no","code":"x"}}}`, `{"code":"vertex_ai_error","message":"no"}`), batch.Errored, llm.Invalid},
		"a success without a body":     {"openai", openai(`{"status_code":200,"request_id":"1","body":{}}`, "null"), batch.Errored, llm.Server},
		"a line behind a broken one":   {"openai", `{"id":"batch_req_0","custom_id":"job7unitA1b2-v","response":{"status_c` + "\n" + answered, batch.Succeeded, 0},
		"a line before an empty one":   {"openai", answered + "\n\n", batch.Succeeded, 0},
		"a line twice":                 {"openai", answered + "\n" + failed("500", `{"message":"later"}`), batch.Succeeded, 0},
		"no money":                     {"anthropic", claude(`{"type":"errored","error":{"type":"error","error":{"details":null,"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}}`), batch.Errored, llm.Billing},
		"too many tokens":              {"anthropic", claude(`{"type":"errored","error":{"type":"error","error":{"details":null,"type":"invalid_request_error","message":"max_tokens: 1000000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620"}}}`), batch.Errored, llm.Invalid},
		"cancelled before it":          {"anthropic", claude(`{"type":"canceled"}`), batch.Cancelled, llm.Timeout},
		"a prompt that is blocked":     {"gemini", gemini(`"response":{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":42,"totalTokenCount":42}}`), batch.Succeeded, 0},
		"no room for a line":           {"gemini", gemini(`"error":{"code":8,"message":"Resource has been exhausted (e.g. check quota)."}`), batch.Errored, llm.RateLimited},
		"a fault within":               {"gemini", gemini(`"error":{"code":13,"message":"Internal error encountered."}`), batch.Errored, llm.Server},
	} {
		t.Run(name, func(t *testing.T) {
			all := []answer{{to: "GET /batches/b", status: 200, body: ended}, {to: "GET /files/file-out/content", status: 200, body: c.lines}}
			switch c.vendor {
			case "anthropic":
				all = []answer{{to: "GET /results", status: 200, body: c.lines}}
			case "gemini":
				all = []answer{
					{to: "GET /batches/b", status: 200, body: `{"name":"batches/b","metadata":{"state":"BATCH_STATE_SUCCEEDED","output":{"responsesFile":"files/f"}},"done":true,"response":{"responsesFile":"files/f"}}`},
					{to: "GET /files/f:download", status: 200, body: c.lines},
				}
			}
			v, _ := answering(t, c.vendor, all...)
			got := results(t, v, "b")
			r := got["u"]
			if blocked := strings.Contains(c.lines, "blockReason"); blocked && (r.Response == nil || r.Response.Stop != llm.StopFilter && r.Response.Stop != llm.StopRefusal) {
				t.Errorf("what was blocked reads as %+v", r.Response)
			}
			if len(got) != 1 || r.Outcome != c.want || (r.Err != nil) != (c.kind != 0) || r.Err != nil && r.Err.Kind != c.kind {
				t.Errorf("%+v with %v, want it %s by an error of kind %v", r, r.Err, c.want, c.kind)
			}
		})
	}
}

// The results of a small batch stand within it, although its lines went as a file.
func TestResultsWithinABatch(t *testing.T) {
	const one = `{"response":{"candidates":[{"content":{"parts":[{"text":"{}"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}},"metadata":{"key":"job7unitA1b2-u"}}`
	for name, place := range map[string]string{
		"in the answer":   `"response":{"inlinedResponses":{"inlinedResponses":[` + one + `]}}`,
		"in its metadata": `"response":{}`,
	} {
		meta := `{"state":"BATCH_STATE_SUCCEEDED","inputConfig":{"fileName":"files/voe5"},"output":{"inlinedResponses":{"inlinedResponses":[` + one + `]}}}`
		v, _ := answering(t, "gemini", answer{to: "GET /batches/b", status: 200, body: `{"name":"batches/b","metadata":` + meta + `,"done":true,` + place + `}`})
		if got := results(t, v, "b"); len(got) != 1 || got["u"].Outcome != batch.Succeeded || got["u"].Response.Usage.Input != 5 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A list that does not go on is looked through once, whatever it says of more.
func TestListsThatDoNotGoOn(t *testing.T) {
	v, a := answering(t, "openai", answer{to: "GET /batches", status: 200, body: `{"object":"list","has_more":true,"data":[` +
		`{"id":"batch_2","status":"completed","created_at":1774437191,"metadata":{"coditect_mark":"` + mark + `"}},{"id":"batch_1","status":"completed","created_at":1774437190,"metadata":null}]}`})
	found, err := v.Find(t.Context(), mark, time.Time{})
	if err != nil || len(found) != 1 || found[0].ID != "batch_2" || a.given["GET /batches"] != 2 {
		t.Errorf("%+v (%v), after %d pages", found, err, a.given["GET /batches"])
	}
}

// Results that have been deleted are gone, and those that are not there yet may come.
func TestResultsThatAreGone(t *testing.T) {
	for name, status := range map[string]int{"no such file": 404, "it was deleted": 410} {
		v, _ := answering(t, "openai",
			answer{to: "GET /batches/b", status: 200, body: `{"id":"b","status":"completed","output_file_id":"file-out"}`},
			answer{to: "GET /files/file-out/content", status: status, body: `{"error":{"message":"No such File object: file-out","type":"invalid_request_error","param":"id","code":null}}`})
		for _, err := range v.Results(t.Context(), "b") {
			if kindOf(err) != llm.NotFound {
				t.Errorf("%s: %v, want an error of kind %v", name, err, llm.NotFound)
			}
		}
	}
}
