package payload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

// Calls travel with an output, and whoever reads that does not notice.
func TestCalls(t *testing.T) {
	out := &output.Output{Reason: "nothing to see"}
	bare, err := out.Encode()
	if err != nil {
		t.Fatal(err)
	}
	calls := []mapreduce.Call{
		{Name: "v/m", At: time.Second, Latency: 3 * time.Millisecond, Tokens: mapreduce.Tokens{In: 5, Out: 7}, CostMicros: 11, Prompt: "p", Answer: "a", Cut: true},
		{Name: "v/m", Error: "overloaded"},
	}
	data, err := payload.WithCalls(bare, calls)
	if err != nil {
		t.Fatal(err)
	}
	got, err := payload.CallsOf(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(calls, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	decoded, err := output.Decode(data)
	if err != nil || decoded.Reason != out.Reason {
		t.Errorf("decoded %+v, %v", decoded, err)
	}
	for _, in := range [][]byte{data, bare} {
		without, err := payload.WithoutCalls(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bare, without); diff != "" {
			t.Errorf("without calls (-want +got):\n%s", diff)
		}
	}
	if same, err := payload.WithCalls(bare, nil); err != nil || !cmp.Equal(bare, same) {
		t.Errorf("no calls made %v of %v, %v", same, bare, err)
	}
	if _, err := payload.CallsOf([]byte("\xff")); err == nil {
		t.Error("garbage was read")
	}
}
