package batch_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// BenchmarkCreate makes batches of 30 MB, which is about the most that is made at once. What is allocated beside the
// requests is the order in the forms that it takes until it is sent.
func BenchmarkCreate(b *testing.B) {
	const lines = 3000
	o := batch.Order{Mark: mark, Model: "m-1"}
	for i := range lines {
		o.Lines = append(o.Lines, batch.Line{CustomID: fmt.Sprint(i), Request: request(strings.Repeat("ten bytes ", 1000))})
	}
	for _, p := range places {
		b.Run(string(p.wire), func(b *testing.B) {
			sink := transport(func(r *http.Request) (*http.Response, error) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return nil, err
				}
				body := `{"id":"b-1","name":"batches/b-1","status":"validating","file":{"name":"files/f"}}`
				header := http.Header{"Content-Type": {"application/json"}, "X-Goog-Upload-Url": {"http://vendor.test/upload"}}
				return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})
			v, err := vendors.All().NewBatches(p.vendor, llm.Config{Key: llm.NewKey(key), BaseURL: p.base, Transport: sink})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Create(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
