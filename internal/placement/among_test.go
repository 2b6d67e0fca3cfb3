package placement_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/placement"
)

// claimOf draws a job of one of two tenants and models.
func claimOf(t *rapid.T) placement.Claim {
	c := placement.Claim{
		Tenant: rapid.SampledFrom([]string{"north", "south"}).Draw(t, "tenant"), Model: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"),
		Work: workOf(t), Offer: offerOf(t), Left: leftOf(t),
	}
	if rapid.IntRange(0, 3).Draw(t, "ever") == 0 {
		c.Left = placement.Ever
	}
	return c
}

// A job never has more than it asks for, nor less than one call; alone it has all; and with more jobs beside it no more
// than with fewer.
func TestAmong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := claimOf(t)
		b := placement.Bounds{Calls: rapid.Int64Range(0, 200).Draw(t, "calls"), Model: rapid.Int64Range(0, 200).Draw(t, "of the model")}
		limit := max(1, own.Work.AtOnce)
		for _, most := range []int64{b.Calls, b.Model} {
			if most > 0 {
				limit = min(limit, most)
			}
		}
		alone := own.Among(nil, b)
		if alone.AtOnce != limit || alone.Minute != own.Work.Minute {
			t.Fatalf("alone it has %d calls at once and %d a minute, want %d and %d", alone.AtOnce, alone.Minute, limit, own.Work.Minute)
		}

		var others []placement.Claim
		for range rapid.IntRange(1, 4).Draw(t, "others") {
			others = append(others, claimOf(t))
		}
		w := own.Among(others, b)
		if w.AtOnce < 1 || w.AtOnce > alone.AtOnce || w.Minute > alone.Minute || own.Work.Minute > 0 && w.Minute < 1 {
			t.Errorf("among %d others it has %d calls at once and %d a minute, and alone %d and %d", len(others), w.AtOnce, w.Minute, alone.AtOnce, alone.Minute)
		}
	})
}

// Jobs that buy at the same time have no more than there is, all together.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "jobs")
		most := rapid.Int64Range(int64(n)*int64(n), 300).Draw(t, "calls")
		var all []placement.Claim
		for i := range n {
			c := claimOf(t)
			c.Work.AtOnce, c.Left = rapid.Int64Range(1, 100).Draw(t, fmt.Sprint("at once of ", i)), placement.Ever
			all = append(all, c)
		}
		sum := int64(0)
		for i, c := range all {
			others := append(append([]placement.Claim{}, all[:i]...), all[i+1:]...)
			sum += c.Among(others, placement.Bounds{Calls: most}).AtOnce
		}
		if sum > most {
			t.Errorf("%d jobs have %d calls at once together, and there are %d", n, sum, most)
		}
	})
}

// The parts of one job as its owner would reckon them: 40 calls at once, and a job that wants 40.
func TestPartsOfOneJob(t *testing.T) {
	job := func(tenant, model string, in time.Duration) placement.Claim {
		return placement.Claim{Tenant: tenant, Model: model, Work: placement.Work{Units: 600, Call: 10 * time.Second, AtOnce: 40, Minute: 300}, Offer: placement.Offer{Batch: true}, Left: in}
	}
	own := job("north", "m", 5*time.Hour)
	small := job("north", "m", 5*time.Hour)
	small.Work.AtOnce = 4
	for name, tt := range map[string]struct {
		others         []placement.Claim
		atOnce, minute int64
	}{
		"nobody":                            {nil, 40, 300},
		"another by the same time":          {[]placement.Claim{job("north", "m", 5*time.Hour)}, 20, 150},
		"one whose batches wait far longer": {[]placement.Claim{job("north", "m", 48*time.Hour)}, 40, 300},
		"one that is over long before":      {[]placement.Claim{job("north", "m", time.Hour)}, 40, 300},
		"one that asks all the while":       {[]placement.Claim{job("north", "m", placement.Ever)}, 20, 150},
		"one of another model":              {[]placement.Claim{job("north", "other", 5*time.Hour)}, 20, 300},
		"two of another tenant":             {[]placement.Claim{job("south", "m", 5*time.Hour), job("south", "m", 5*time.Hour)}, 20, 150},
		"two of the same":                   {[]placement.Claim{job("north", "m", 5*time.Hour), job("north", "m", 5*time.Hour)}, 13, 97},
		"one that needs little":             {[]placement.Claim{small}, 36, 270},
	} {
		w := own.Among(tt.others, placement.Bounds{Calls: 40})
		if w.AtOnce != tt.atOnce || w.Minute != tt.minute {
			t.Errorf("beside %s it has %d calls at once and %d a minute, want %d and %d", name, w.AtOnce, w.Minute, tt.atOnce, tt.minute)
		}
	}
}
