package oracle_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/gemini"
)

const (
	geminiHost = "http://vendor.test/"
	uploadPath = "/there"
)

// An uploads answers as a counter does, and takes files in the vendor's two steps.
type uploads struct{ counter }

// RoundTrip implements http.RoundTripper.
func (u *uploads) RoundTrip(req *http.Request) (*http.Response, error) {
	file := ""
	if req.URL.Path == uploadPath {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		file = string(raw)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(nil))
	}
	resp, err := u.counter.RoundTrip(req)
	if err != nil {
		return nil, err
	}

	p := &u.asked[len(u.asked)-1]
	for _, name := range []string{"X-Goog-Api-Key", "X-Goog-Upload-Protocol", "X-Goog-Upload-Command", "X-Goog-Upload-Offset", "X-Goog-Upload-Header-Content-Type"} {
		if v := req.Header.Get(name); v != "" {
			p.Header[name] = v
		}
	}
	if req.URL.Path == uploadPath {
		// The SDK says again how uploads are begun, which this step does not ask for.
		p.Body = file
		delete(p.Header, "X-Goog-Upload-Protocol")
		delete(p.Header, "X-Goog-Upload-Header-Content-Type")
	}
	resp.Header.Set("X-Goog-Upload-Url", "http://vendor.test"+uploadPath+"?id=1")
	resp.Header.Set("X-Goog-Upload-Status", "final")
	return resp, nil
}

// geminiBatches returns the vendor's client behind a transport, and ours.
func geminiBatches(t *rapid.T, ours, theirs http.RoundTripper) (batch.Vendor, *genai.Client) {
	v, err := gemini.NewBatches(llm.Config{Key: llm.NewKey(key), BaseURL: geminiHost + "v1beta/", Transport: ours})
	if err != nil {
		t.Fatal(err)
	}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: theirs},
		HTTPOptions: genai.HTTPOptions{BaseURL: geminiHost, APIVersion: "v1beta"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v, client
}

// A file goes to the vendor as its SDK sends one, and a batch is asked of it in the same way. What
// stands in the file is what calls in real time are: see the tests of package batch.
func TestOrdersToGemini(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t, parameters.Stop)
		answers := []string{`{}`, `{"file":{"name":"files/f-1"}}`, `{"name":"batches/b","metadata":{"state":"BATCH_STATE_PENDING"}}`}
		ours, theirs := &uploads{counter{answers: answers}}, &uploads{counter{answers: answers}}
		v, client := geminiBatches(t, ours, theirs)
		if _, err := v.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}

		content, _ := ours.asked[1].Body.(string)
		file, err := client.Files.Upload(context.Background(), strings.NewReader(content), &genai.UploadFileConfig{DisplayName: orderMark, MIMEType: "application/jsonl"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Batches.Create(context.Background(), string(o.Model), &genai.BatchJobSource{FileName: file.Name}, &genai.CreateBatchJobConfig{DisplayName: orderMark}); err != nil {
			t.Fatal(err)
		}

		// The SDK says the type in the body, too.
		if begun, ok := theirs.asked[0].Body.(map[string]any)["file"].(map[string]any); ok {
			delete(begun, "mimeType")
		}
		comparePosted(t, &ours.counter, &theirs.counter)
	})
}

// What the vendor tells of a batch, and the answers within it, are read as its SDK reads them.
func TestBatchesOfGemini(t *testing.T) {
	status := map[string]batch.Status{
		"PENDING": batch.Running, "RUNNING": batch.Running, "SUCCEEDED": batch.Ended, "FAILED": batch.Failed, "CANCELLED": batch.Ended, "EXPIRED": batch.Ended, "BORED": batch.Running,
	}
	outcome := map[bool]batch.Outcome{true: batch.Succeeded, false: batch.Errored}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "BORED"}).Draw(t, "state")
		about := object{"displayName": orderMark, "model": "models/m-1", "state": rapid.SampledFrom([]string{"BATCH_STATE_", "JOB_STATE_"}).Draw(t, "whose") + word}
		for _, name := range []string{"createTime", "endTime", "updateTime"} {
			if at := drawTime(t); !at.IsZero() {
				about[name] = at.Format(time.RFC3339Nano)
			}
		}
		var lines []any
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9_]{1,12}`), 1, 5, rapid.ID).Draw(t, "ids")
		for _, id := range ids {
			lines = append(lines, drawGeminiLine(t, id))
		}
		about["output"] = object{"inlinedResponses": object{"inlinedResponses": lines}}

		answer := encoded(t, object{"name": "batches/" + rapid.StringMatching(`[a-z0-9]{8}`).Draw(t, "id"), "metadata": about})
		ours, theirs := &uploads{counter{answers: []string{answer}}}, &uploads{counter{answers: []string{answer}}}
		v, client := geminiBatches(t, ours, theirs)
		got, err := v.Get(context.Background(), "batches/b")
		if err != nil {
			t.Fatal(err)
		}
		want, err := client.Batches.Get(context.Background(), "batches/b", nil)
		if err != nil {
			t.Fatal(err)
		}
		theirs.asked[0].Body = nil // the SDK sends an empty object with a GET
		comparePosted(t, &ours.counter, &theirs.counter)

		if got.Mark != want.DisplayName || !strings.HasSuffix(got.Word, "_"+word) || !strings.HasSuffix(string(want.State), "_"+word) {
			t.Fatalf("%+v, theirs %+v", got, want)
		}
		got.Expires, got.Word = time.Time{}, ""
		compareBatches(t, got, batch.Batch{ID: want.Name, Status: status[word], Created: want.CreateTime, Ended: want.EndTime})

		n := 0
		for r, err := range v.Results(context.Background(), "batches/b") {
			if err != nil || n == len(want.Dest.InlinedResponses) {
				t.Fatal(n, err)
			}
			one, id := want.Dest.InlinedResponses[n], ids[n]
			n++
			if r.Outcome != outcome[one.Response != nil] || r.CustomID != id {
				t.Fatalf("%+v, theirs %+v", r, one)
			}
			if one.Response == nil {
				if r.Err.Message != one.Error.Message {
					t.Fatalf("%v, theirs %+v", r.Err, one.Error)
				}
				continue
			}
			u := one.Response.UsageMetadata
			heardOurs := heard{Model: string(r.Response.Model), Text: r.Response.Text(), In: r.Response.Usage.In(), CacheRead: r.Response.Usage.CacheRead, Output: r.Response.Usage.Output, Stop: r.Response.Stop}
			compareHeard(t, heardOurs, heard{
				Model: one.Response.ModelVersion, Text: one.Response.Text(), In: int64(u.PromptTokenCount), CacheRead: int64(u.CachedContentTokenCount),
				Output: int64(u.CandidatesTokenCount + u.ThoughtsTokenCount),
				Stop:   map[genai.FinishReason]llm.Stop{genai.FinishReasonStop: llm.StopEnd, genai.FinishReasonMaxTokens: llm.StopMax}[one.Response.Candidates[0].FinishReason],
			})
		}
		if n != len(lines) {
			t.Fatalf("%d results of %d", n, len(lines))
		}
	})
}

// drawGeminiLine returns what became of a line.
func drawGeminiLine(t *rapid.T, id string) object {
	named := object{"key": batch.SentID(orderMark, id)}
	if rapid.Bool().Draw(t, "fails") {
		return object{"metadata": named, "error": object{"code": rapid.SampledFrom([]int{3, 8, 13, 14}).Draw(t, "code"), "message": "no"}}
	}

	// Of numbers that no answer has, ours believes none: one that says something had tokens.
	in, out, thoughts := rapid.IntRange(1, 1e6).Draw(t, "in"), rapid.IntRange(1, 1e6).Draw(t, "out"), rapid.IntRange(0, 1e6).Draw(t, "thoughts")
	return object{"metadata": named, "response": object{
		"modelVersion": "m-1", "responseId": "r",
		"candidates": []any{object{
			"content":      object{"role": "model", "parts": []any{object{"text": clean.Draw(t, "text")}}},
			"finishReason": rapid.SampledFrom([]string{"STOP", "MAX_TOKENS"}).Draw(t, "stop"),
		}},
		"usageMetadata": object{
			"promptTokenCount": in, "cachedContentTokenCount": rapid.IntRange(0, in).Draw(t, "read"),
			"candidatesTokenCount": out, "thoughtsTokenCount": thoughts, "totalTokenCount": in + out + thoughts,
		},
	}}
}
