package decorator_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// A stalling vendor answers nothing in flex, and notes when it was asked in which tier.
type stalling struct {
	llm.Provider
	begun time.Time
	asked []string
	at    []time.Duration
}

func (s *stalling) Name() string          { return "a" }
func (s *stalling) Can() llm.Capabilities { return llm.Capabilities{} }

func (s *stalling) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	s.asked, s.at = append(s.asked, req.Parameters.Tier), append(s.at, time.Since(s.begun))
	if req.Parameters.Tier != "flex" {
		return &llm.Response{Tier: req.Parameters.Tier}, nil
	}
	<-ctx.Done()
	return nil, &llm.Error{Kind: llm.Network, Class: protocol.Retryable, Sent: true, Message: "the call was called off"}
}

// A call that stalls in flex is made in the standard tier at its bound, and so is what is asked after it: neither is
// tried in flex again.
func TestStallsInFlexGoOnInTheNextTier(t *testing.T) {
	for _, c := range []struct {
		name  string
		left  time.Duration // that the caller has
		bound time.Duration
	}{
		{"the bound", time.Hour, 15 * time.Minute},
		{"half of the caller's time", 10 * time.Minute, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &stalling{begun: time.Now()}
				ask := &decorator.Retry{
					Provider: &decorator.NextTier{Provider: vendor, Takes: 15 * time.Minute},
					Random:   func() float64 { return 0 },
				}
				ctx, stop := context.WithTimeout(t.Context(), c.left)
				defer stop()
				req := flexFirst(t)
				for range 2 {
					if _, err := ask.Complete(ctx, req); err != nil {
						t.Fatal(err)
					}
				}
				if want := []string{"flex", "standard", "standard"}; !slices.Equal(vendor.asked, want) {
					t.Errorf("%q were asked, want %q", vendor.asked, want)
				}
				if vendor.at[1] != c.bound {
					t.Errorf("the next tier was asked after %v, want %v", vendor.at[1], c.bound)
				}
			})
		})
	}
}

// A model that stalls in flex is asked in the standard tier, before any that stands in for it is.
func TestStallsInFlexAskNoOtherModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor, other := &stalling{begun: time.Now()}, &scriptedModel{name: "b"}
		retry := &decorator.Retry{
			Provider: &decorator.NextTier{Provider: vendor, Takes: 15 * time.Minute},
			Random:   func() float64 { return 0 },
		}
		route := &decorator.Route{
			Choices: []decorator.Choice{{Provider: retry, Asked: "a/m", Adapt: asIs}, other.asChoice()},
			Health:  decorator.NewHealth(time.Now, func(string) {}), Failing: func(string) {},
		}
		res, err := route.Complete(t.Context(), flexFirst(t))
		if err != nil || res.Tier != "standard" || other.asked > 0 {
			t.Errorf("%+v (%v), and the other model was asked %d times", res, err, other.asked)
		}
		if want := []string{"flex", "standard"}; !slices.Equal(vendor.asked, want) {
			t.Errorf("%q were asked, want %q", vendor.asked, want)
		}
	})
}

// Whoever called it off is told so, and not that flex stalls.
func TestCallersCallOffFlex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &stalling{begun: time.Now()}
		next := &decorator.NextTier{Provider: vendor, Takes: 15 * time.Minute}
		ctx, stop := context.WithCancel(t.Context())
		go func() { <-time.After(time.Minute); stop() }()
		_, err := next.Complete(ctx, flexFirst(t))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Network || len(vendor.asked) != 1 {
			t.Errorf("%v after %q were asked", err, vendor.asked)
		}
	})
}

// flexFirst asks in flex, and else in the standard tier.
func flexFirst(t *testing.T) *llm.Request {
	t.Helper()
	req := ask(schema(t, receipt))
	req.Parameters.Tier = "flex,standard"
	return req
}
