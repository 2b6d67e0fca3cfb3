package batch_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

const mark = "job7unitA1b2"

func order(n int) batch.Order {
	o := batch.Order{Mark: mark, Model: "m-1"}
	for i := range n {
		o.Lines = append(o.Lines, batch.Line{CustomID: "u" + strings.Repeat("x", i%3) + "_" + string(rune('a'+i%26)) + strings.Repeat("9", i/26), Request: request("text")})
	}
	return o
}

func request(text string) llm.Request {
	return llm.Request{Model: "m-1", System: "Read.", MaxTokens: 500, Messages: []llm.Message{llm.Say(llm.User, text)}}
}

func TestOrdersAreChecked(t *testing.T) {
	limits := batch.Limits{Lines: 10, Fewest: 2, LongestID: 20}
	for _, tt := range []struct {
		name   string
		change func(*batch.Order)
		kind   llm.Kind
		want   string
	}{
		{"a mark that is too short", func(o *batch.Order) { o.Mark = "abc" }, llm.Invalid, `"abc"`},
		{"a mark with another sign", func(o *batch.Order) { o.Mark = "job-7-of-nine" }, llm.Invalid, "a-z"},
		{"no lines", func(o *batch.Order) { o.Lines = nil }, llm.Invalid, "no lines"},
		{"too few lines", func(o *batch.Order) { o.Lines = o.Lines[:1] }, llm.Invalid, "fewer than 2"},
		{"too many lines", func(o *batch.Order) { o.Lines = order(11).Lines }, llm.TooLarge, "takes 10"},
		{"an id with another sign", func(o *batch.Order) { o.Lines[1].CustomID = "a b" }, llm.Invalid, `"a b"`},
		{"no id", func(o *batch.Order) { o.Lines[1].CustomID = "" }, llm.Invalid, "id of a line"},
		{"an id that is too long", func(o *batch.Order) { o.Lines[0].CustomID = strings.Repeat("a", 21) }, llm.Invalid, "takes 20"},
		{"an id twice", func(o *batch.Order) { o.Lines[1].CustomID = o.Lines[0].CustomID }, llm.Invalid, "two lines"},
		{"another model", func(o *batch.Order) { o.Lines[2].Request.Model = "m-2" }, llm.Invalid, `"m-2"`},
	} {
		o := order(3)
		tt.change(&o)
		err := o.Check(limits)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error of kind %v about %q", tt.name, err, tt.kind, tt.want)
		}
	}
	if err := order(10).Check(limits); err != nil {
		t.Errorf("an order within its limits: %v", err)
	}
}

// What a vendor was sent as the id of a line says which line of which order it is.
func TestIDsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mark := rapid.StringMatching(`[a-zA-Z0-9]{8,24}`).Draw(t, "mark")
		id := rapid.StringMatching(`[a-zA-Z0-9_-]{1,39}`).Draw(t, "id")
		gotMark, gotID, ok := batch.CutID(batch.SentID(mark, id))
		if !ok || gotMark != mark || gotID != id {
			t.Fatalf("got %q and %q, %v", gotMark, gotID, ok)
		}
	})
	for _, foreign := range []string{"", "request-1", "job7unitA1b2", "job7unitA1b2-", "short-1", "my_first_request-2"} {
		if mark, id, ok := batch.CutID(foreign); ok {
			t.Errorf("%q is taken for line %q of %q", foreign, id, mark)
		}
	}
}

// As many lines go into an order as fit, and not one more.
func TestLinesThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := batch.Limits{Lines: rapid.IntRange(0, 8).Draw(t, "lines"), Bytes: rapid.Int64Range(0, 40).Draw(t, "bytes")}
		sizes := rapid.SliceOf(rapid.Int64Range(1, 20)).Draw(t, "sizes")
		n := limits.Fit(sizes)
		fits := func(sizes []int64) bool {
			var total int64
			for _, s := range sizes {
				total += s
			}
			return (limits.Lines == 0 || len(sizes) <= limits.Lines) && (limits.Bytes == 0 || total <= limits.Bytes)
		}
		if !fits(sizes[:n]) || n < len(sizes) && fits(sizes[:n+1]) {
			t.Fatalf("%d of %v fit", n, sizes)
		}
	})
}
