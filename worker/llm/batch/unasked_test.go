package batch_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// What a vendor says it has not asked costs nothing, and is told from what it could not answer; Gemini has one word for both.
func TestLinesThatWereNotAsked(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, fake, _ := start(t, p, batches.Config{Model: echo, Seed: 5, Fate: func(n int, _ string) batches.Fate {
			return map[int]batches.Fate{1: batches.Late, 2: batches.Withdrawn}[n]
		}})
		o := order(4)
		made := create(t, v, o)
		pass(time.Hour)
		now, err := v.Get(t.Context(), made.ID)
		if err != nil || now.Counts.Total != 4 || now.Counts.Succeeded != 2 || now.Counts.Errored+now.Counts.Expired+now.Counts.Cancelled != 2 {
			t.Errorf("%+v, %v", now, err)
		}

		got := results(t, v, made.ID)
		for i, want := range []batch.Outcome{batch.Succeeded, batch.Expired, batch.Cancelled, batch.Succeeded} {
			if p.wire == fakellm.Gemini && want != batch.Succeeded {
				want = batch.Errored
			}
			if r := got[o.Lines[i].CustomID]; r.Outcome != want {
				t.Errorf("line %d came to %+v with %v, want %s", i, r, r.Err, want)
			}
		}
		if n := len(fake.Bill()); n != 2 {
			t.Errorf("%d lines were charged, want those that were answered", n)
		}
	})
}
