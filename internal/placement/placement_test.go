package placement_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/internal/placement"
)

// workOf draws work.
func workOf(t *rapid.T) placement.Work {
	w := placement.Work{
		Units: rapid.Int64Range(1, 1_000_000).Draw(t, "units"), Each: rapid.Float64Range(0, 5).Draw(t, "each"),
		Call: time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(t, "call")), AtOnce: rapid.Int64Range(0, 500).Draw(t, "at once"),
		Then: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "then")), Short: rapid.Bool().Draw(t, "short"),
	}
	if rapid.Bool().Draw(t, "limited") {
		w.Minute = rapid.Int64Range(1, 10_000).Draw(t, "a minute")
	}
	return w
}

func offerOf(t *rapid.T) placement.Offer {
	return placement.Offer{Batch: rapid.Bool().Draw(t, "batch"), Flex: rapid.Bool().Draw(t, "flex"), Priority: rapid.Bool().Draw(t, "priority")}
}

func leftOf(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(-int64(time.Hour), int64(72*time.Hour)).Draw(t, "left"))
}

// What waits could all still be bought: after its batch was ended, a quarter slower than is known.
func TestWhatWaitsCanBeBought(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, o, left := workOf(t), offerOf(t), leftOf(t)
		waits := placement.MayWait(w, o, left)
		if waits < 0 || waits > w.Units || waits > 0 && !o.Batch {
			t.Fatalf("%d of %d units may wait", waits, w.Units)
		}
		if waits == 0 {
			return
		}
		if need := placement.EndBatch + w.RealTime(waits)/4*5; need > left {
			t.Errorf("%d calls may wait, which need %v, and %v are left", waits, need, left)
		}
		if until := placement.Until(w, o, waits); until > left {
			t.Errorf("%d calls may wait, and had to be ended %v ago", waits, until-left)
		}
	})
}

// What is behind the calls that wait is bought after them: the other calls of their units, what the job does with their
// answers, and what cannot be asked meanwhile for want of budget. So fewer may wait.
func TestWhatIsBehindWaitsToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, o, left := workOf(t), offerOf(t), leftOf(t)
		bare := w
		bare.Each, bare.Then, bare.Short = 1, 0, false
		if with, without := placement.MayWait(w, o, left), placement.MayWait(bare, o, left); with > without {
			t.Errorf("%d units may wait with what is behind them, and %d without", with, without)
		}

		waits := placement.MayWait(w, o, left)
		if waits == 0 {
			return
		}
		calls := float64(waits) * max(1, w.Each)
		if w.Short {
			calls = float64(w.Units) * max(1, w.Each)
		}
		need := time.Duration(calls*float64(w.Call)/float64(max(1, w.AtOnce))) + w.Then
		if need > left-placement.EndBatch {
			t.Errorf("%d units may wait, which with what is behind them need %v of the %v that are left", waits, need, left)
		}
	})
}

// As many wait as could be bought: with one more they could not.
func TestAsManyWaitAsMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, o, left := workOf(t), offerOf(t), leftOf(t)
		o.Batch = true
		if waits := placement.MayWait(w, o, left); waits < w.Units && placement.Until(w, o, waits+1) <= left {
			t.Errorf("%d of %d calls may wait, though %d could", waits, w.Units, waits+1)
		}
	})
}

// The later it is, the fewer may wait, and the dearer the tier is.
func TestLaterIsDearer(t *testing.T) {
	price := map[string]int{parameters.FlexFirst: 1, parameters.Standard: 2, parameters.Priority: 3}
	rapid.Check(t, func(t *rapid.T) {
		w, o, left := workOf(t), offerOf(t), leftOf(t)
		later := left - time.Duration(rapid.Int64Range(0, int64(10*time.Hour)).Draw(t, "later"))
		if now, then := placement.MayWait(w, o, left), placement.MayWait(w, o, later); then > now {
			t.Errorf("%d calls may wait with %v left, and %d with %v", now, left, then, later)
		}
		now, then := placement.RealTimeTier(w, o, left), placement.RealTimeTier(w, o, later)
		if price[now] == 0 || later > 0 && price[then] < price[now] {
			t.Errorf("the tier is %s with %v left, and %s with %v", now, left, then, later)
		}
		if now == parameters.FlexFirst && !o.Flex || now == parameters.Priority && !o.Priority {
			t.Errorf("the tier is %s, which is not offered", now)
		}
	})
}

// The numbers of one job, as its owner would reckon them: 600 calls of ten seconds, twenty at a time, are five
// minutes, with the margin six and a quarter, and a minute more.
func TestPlacement(t *testing.T) {
	w := placement.Work{Units: 600, Call: 10 * time.Second, AtOnce: 20}
	all := placement.Offer{Batch: true, Flex: true, Priority: true}
	for _, tt := range []struct {
		name  string
		offer placement.Offer
		left  time.Duration
		waits int64
		tier  string
	}{
		{"a day", placement.Offer{Batch: true}, 24 * time.Hour, 600, parameters.Standard},
		{"just enough", placement.Offer{Batch: true}, 18*time.Minute + 15*time.Second, 600, parameters.Standard},
		{"a second less: a round of calls less", placement.Offer{Batch: true}, 18*time.Minute + 14*time.Second, 580, parameters.Standard},
		{"no time for a batch", placement.Offer{Batch: true}, 12 * time.Minute, 0, parameters.Standard},
		{"with flex in between", all, 33*time.Minute + 15*time.Second, 600, parameters.FlexFirst},
		{"flex alone", all, 22*time.Minute + 15*time.Second, 0, parameters.FlexFirst},
		{"no time for flex", all, 22*time.Minute + 14*time.Second, 0, parameters.Standard},
		{"just in time", all, 7*time.Minute + 15*time.Second, 0, parameters.Standard},
		{"with less than the margin", all, 6 * time.Minute, 0, parameters.Standard},
		{"too late", all, 6*time.Minute - time.Second, 0, parameters.Priority},
		{"the deadline is past", all, 0, 0, parameters.Standard},
		{"too late, and nothing is quicker", placement.Offer{Batch: true, Flex: true}, -time.Hour, 0, parameters.Standard},
		{"no batches", placement.Offer{}, 24 * time.Hour, 0, parameters.Standard},
	} {
		if waits, tier := placement.MayWait(w, tt.offer, tt.left), placement.RealTimeTier(w, tt.offer, tt.left); waits != tt.waits || tier != tt.tier {
			t.Errorf("%s: %d calls may wait, the tier is %s; want %d, %s", tt.name, waits, tier, tt.waits, tt.tier)
		}
	}
}

// Where buying all of it takes much of the time, a job is several batches, so that the last may wait the longest.
func TestBatchOf(t *testing.T) {
	w, o := placement.Work{Units: 60_000, Call: 10 * time.Second, AtOnce: 20}, placement.Offer{Batch: true} // 8 h 20 m
	if n := placement.BatchOf(w, o, 400*time.Hour); n != 0 {
		t.Errorf("a batch has %d calls, though there is all the time", n)
	}
	if n := placement.BatchOf(w, o, 12*time.Hour); n != 3750 {
		t.Errorf("a batch has %d calls, want a sixteenth of them", n)
	}
}
