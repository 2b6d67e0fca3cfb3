package certify

import "math"

// Labels returns how many labels certify so many of n items, if all of them are right; -1 if
// n do not.
func Labels(n, need int, delta float64) int {
	b := newBet(n, need, delta)
	for b.labels < n {
		if b.won() {
			return b.labels
		}
		b.take(true)
	}
	return -1
}

// Redraw has the trial draw as one of another seed does.
func (t *Trial) Redraw(seed uint64) {
	t.rules.Seed = seed
	permute(seed, t.draws)
}

// A Run is what came of a trial by one measure, of which all labels were at hand.
type Run struct {
	Verdict
	Drawn []int // items that were labelled, in the end
}

// RunWhole decides a trial by its first measure with all labels at hand: as Next does that is asked
// again and again, but in one pass. An item is drawn if it is one of those up to the look at which a step
// was decided: see Trial.test.
func (t *Trial) RunWhole(right []bool) Run { return t.runWhole(right, t.giveUp) }

// RunAsPaper is RunWhole that gives up as the paper does, and looks at each label by itself.
func (t *Trial) RunAsPaper(right []bool) Run { return t.runWhole(right, deviates) }

func (t *Trial) runWhole(right []bool, giveUp stopping) Run {
	var bets []*bet // of the steps that took labels
	v, _ := t.search(0, func(item, _ int) Label {
		if right[item] {
			return Right
		}
		return Wrong
	}, func(b *bet, before int) bool {
		if len(bets) == 0 || bets[len(bets)-1] != b {
			bets = append(bets, b)
		}
		return giveUp(b, before)
	})
	return Run{v, t.drawnBy(bets)}
}

// drawnBy returns the items that steps have drawn, each up to its last look.
func (t *Trial) drawnBy(bets []*bet) (drawn []int) {
	known := make(map[int32]bool)
	for _, b := range bets {
		of := 0
		for _, item := range t.draws {
			if of == b.look {
				break
			}
			if int(t.measures[0].ranks[item]) >= b.items {
				continue
			}
			if of++; !known[item] {
				known[item], drawn = true, append(drawn, int(item))
			}
		}
	}
	return drawn
}

// deviates gives up where the mean less the deviation of the labels is below the target.
func deviates(b *bet, _ int) bool {
	b.look = b.labels // one after the other
	if b.labels < few {
		return false
	}
	mean := float64(b.right) / float64(b.labels)
	return mean-math.Sqrt(mean*(1-mean)) < float64(b.need)/float64(b.items)
}
