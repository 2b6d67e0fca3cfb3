package batching_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// workUntilOver sees to the batch until nothing is left of it: one worker, or one that another takes over from soon.
func (h *house) workUntilOver(takenOver bool) {
	stop := h.work()
	if takenOver {
		<-time.After(20 * time.Second)
		stop()
		stop = h.work()
	}
	h.untilOver()
	stop()
}

// A batch whose creation nobody has heard of is found, and made again only if it was not made; whether the
// worker that began it goes on, or another takes over.
func TestLostCreations(t *testing.T) {
	for _, loss := range []batches.Loss{batches.Before, batches.After, batches.ErrAfter, batches.Refused} {
		for _, takenOver := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, taken over %t", loss, takenOver), func(t *testing.T) {
				var mu sync.Mutex
				first := true
				script := func() batches.Config {
					first = true
					return batches.Config{Hidden: 3 * time.Minute, Creates: func(_ int, upload bool) batches.Loss {
						mu.Lock()
						defer mu.Unlock()
						if upload || !first {
							return batches.Kept
						}
						first = false
						return loss
					}}
				}
				each(t, script, func(h *house) {
					h.workUntilOver(takenOver)
					h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines})
				})
			})
		}
	}
}

// A batch of which nobody ever hears whether it was made, and that never was, is given up after some days, and its calls are
// made in real time.
func TestCreationThatIsAlwaysLost(t *testing.T) {
	script := func() batches.Config {
		return batches.Config{Creates: func(_ int, upload bool) batches.Loss {
			if upload {
				return batches.Kept
			}
			return batches.Before
		}}
	}
	each(t, script, func(h *house) {
		defer h.work()()
		for range 5 * 24 {
			if h.isOver() {
				break
			}
			<-time.After(time.Hour)
		}

		if !h.isOver() {
			t.Fatalf("it is not over after five days: %+v", h.order)
		}
		h.want(0, map[protocol.LineOutcome]int{protocol.LineErrored: lines})
	})
}

// An absent vendor does not answer who looks for batches, or asks for one, for a while.
type absent struct {
	batch.Vendor
	until time.Time
}

var errAbsent = llm.NewError(llm.Server, "the vendor is away")

// Find implements batch.Vendor.
func (a absent) Find(ctx context.Context, mark string, since time.Time) ([]batch.Batch, error) {
	if time.Now().Before(a.until) {
		return nil, errAbsent
	}
	return a.Vendor.Find(ctx, mark, since)
}

// Get implements batch.Vendor. The first answer is that there is no such batch.
func (a absent) Get(ctx context.Context, id string) (batch.Batch, error) {
	switch now := time.Now(); {
	case now.Before(a.until):
		return batch.Batch{}, errAbsent
	case now.Before(a.until.Add(5 * time.Minute)):
		return batch.Batch{}, llm.NewError(llm.NotFound, "there is no such batch")
	}
	return a.Vendor.Get(ctx, id)
}

// While a vendor cannot be asked, it has not said that it has no such batch: none is made twice when it answers again, and
// none is given up.
func TestAbsentVendorSaysNothing(t *testing.T) {
	for _, lost := range []bool{true, false} {
		t.Run(fmt.Sprintf("a lost creation %t", lost), func(t *testing.T) {
			script := func() batches.Config {
				config := batches.Config{}
				if lost {
					config.Hidden = 3*time.Hour + 10*time.Minute
					config.Creates = func(_ int, upload bool) batches.Loss {
						if upload {
							return batches.Kept
						}
						return batches.After
					}
				}
				return config
			}
			each(t, script, func(h *house) {
				h.vendor = absent{h.vendor, time.Now().Add(3 * time.Hour)}
				defer h.work()()
				h.untilOver()
				h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines})
			})
		})
	}
}

// The store keeps when a batch was first begun. One that is begun again much later is found, and not made twice, however
// long its vendor needs to show it; whether the worker that made it goes on, or another takes over.
func TestLateCreationThatIsLost(t *testing.T) {
	for _, takenOver := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken over %t", takenOver), func(t *testing.T) {
			script := func() batches.Config {
				return batches.Config{Hidden: 10 * time.Minute, Creates: func(n int, upload bool) batches.Loss {
					if upload {
						return batches.Kept
					}
					return batches.After
				}}
			}
			each(t, script, func(h *house) {
				h.order.Begun, h.order.Tries = time.Now().Add(-30*time.Hour), 1
				h.workUntilOver(takenOver)
				h.want(1, map[protocol.LineOutcome]int{protocol.LineSucceeded: lines})
			})
		})
	}
}

// A batch of others that has ended, and has no result that says whose it is, holds up the search for a lost creation for
// an hour, and not for ever.
func TestBatchWithoutResultsHoldsNobodyUpForEver(t *testing.T) {
	const othersMark = "OTHERSMARK234567"
	var mu sync.Mutex
	others := true // batches are made
	script := func() batches.Config {
		others = true
		return batches.Config{
			Takes: func(int) time.Duration { return 10 * time.Minute },
			Creates: func(_ int, upload bool) batches.Loss {
				mu.Lock()
				defer mu.Unlock()
				if upload || others {
					return batches.Kept
				}
				others = true
				return batches.Before
			},
			Fate: func(_ int, id string) batches.Fate {
				if strings.Contains(id, othersMark) {
					return batches.Unasked
				}
				return batches.Answered
			},
		}
	}

	each(t, script, func(h *house) {
		order := batch.Order{Mark: othersMark, Model: llm.Model(h.order.Model)}
		for i := range lines {
			request := llm.Request{Model: order.Model, Messages: []llm.Message{llm.Say(llm.User, "another question")}, MaxTokens: 100}
			order.Lines = append(order.Lines, batch.Line{CustomID: fmt.Sprint(i), Request: request})
		}
		if _, err := h.vendor.Create(h.t.Context(), order); err != nil {
			h.t.Fatal(err)
		}
		<-time.After(20 * time.Minute)

		mu.Lock()
		others = false
		mu.Unlock()
		defer h.work()()
		begun := time.Now()
		for h.server.Made() < 2 {
			if time.Since(begun) > 5*time.Hour {
				h.t.Fatal("the batch was not made again within five hours")
			}
			<-time.After(time.Minute)
		}
		if took := time.Since(begun); h.order.Provider == "anthropic" && took < time.Hour {
			h.t.Errorf("the batch was made again after %v, when the other might still have said whose it is", took)
		}
	})
}
