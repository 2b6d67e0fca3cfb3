package meter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// What is marked is written once, and read from when the answer to that has begun.
func TestPrefixesAreCached(t *testing.T) {
	c := meter.NewCache(10)
	long := meter.Prompt{{Text: strings.Repeat("a", 80), Marked: true}, {Text: "what?"}}
	longer := meter.Prompt{long[0], {Text: strings.Repeat("b", 40), Marked: true}, {Text: "who?"}}
	short := meter.Prompt{{Text: "aaaa", Marked: true}, {Text: "what?"}}
	picture := meter.Prompt{{Text: "ff00", Size: meter.PictureTokens(28, 56), Marked: true}}

	check := func(what string, p meter.Prompt, want meter.Input) meter.Input {
		t.Helper()
		got := c.Reckon("m", p)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(meter.Input{}, "Prefix")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
		return got
	}

	first := check("at first", long, meter.Input{Fresh: 2, Written: 20})
	check("before its answer begins", long, meter.Input{Fresh: 2, Written: 20})
	c.Warm(first)
	check("once it has begun", long, meter.Input{Fresh: 2, Read: 20})
	check("with more that is marked", longer, meter.Input{Fresh: 1, Written: 10, Read: 20})
	check("too short", short, meter.Input{Fresh: 3})
	check("a picture that is too small", picture, meter.Input{Fresh: 6})

	if got := c.Reckon("another", long); got.Read != 0 {
		t.Errorf("another model reads %d tokens of this one's cache", got.Read)
	}
}

func TestLimits(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := meter.NewLimits(meter.Rates{Requests: 60, Output: 600}, now)
	if wait := l.Admit(now, 1e9); wait != 0 {
		t.Errorf("a call of any size waits %v, although nothing limits input", wait)
	}

	l.TakeOutput(1200)
	want := []meter.Standing{
		{Of: "requests", Size: 60, Left: 59, Full: time.Second},
		{Of: "output-tokens", Size: 600, Full: 2 * time.Minute},
	}
	if diff := cmp.Diff(want, l.Standings()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// An answer that was longer than what was left is made up for first.
	wait := l.Admit(now, 1)
	if wait != time.Minute+time.Second {
		t.Errorf("the next call waits %v", wait)
	}
	if again := l.Admit(now.Add(wait), 1); again != 0 {
		t.Errorf("after that it waits %v more", again)
	}
}
