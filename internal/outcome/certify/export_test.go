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

// For returns the trial with another target. Both draw the same.
func (t *Trial) For(target float64) *Trial {
	other := *t
	other.rules.Target = target
	return &other
}

// A Run is what came of a trial by one measure, of which all labels were at hand.
type Run struct {
	Verdict
	Drawn []int // items that were labelled, in the end
}

// A Whole decides trials by their first measure with all labels at hand, in one pass. It is for
// one goroutine, and for trials of the same number of items.
type Whole struct {
	known []bool // by item: it is among the drawn of this run
}

// Run decides a trial as Next does that is asked again and again. An item is drawn if it is one of
// those up to the look at which a step was decided: see Trial.test. A step that is given up by labels
// that others have drawn draws nothing for that look.
func (w *Whole) Run(t *Trial, right []bool) Run {
	var drawn []int
	var last *bet        // of the step that took the last label
	var looked, look int // its labels at the look before, and at the one that it takes labels for
	v, _ := t.search(0, func(item, _ int) Label {
		if right[item] {
			return Right
		}
		return Wrong
	}, func(b *bet, before int) bool {
		if last != b {
			if last != nil {
				drawn = w.mark(t, last.items, last.look, drawn)
			}
			last, looked, look = b, 0, 0
		}
		if b.look != look {
			looked, look = look, b.look
		}
		return t.giveUp(b, before)
	})

	if last != nil {
		drawn = w.mark(t, last.items, looked, drawn)
		known := len(drawn)
		if drawn = w.mark(t, last.items, last.labels, drawn); len(drawn) > known {
			drawn = w.mark(t, last.items, last.look, drawn)
		}
	}
	return w.end(v, drawn)
}

// RunAsPaper decides a trial as the paper does: it gives up where the mean less the deviation of
// the labels is below the target. It looks at each label by itself, so it takes none too many.
func (w *Whole) RunAsPaper(t *Trial, right []bool) Run {
	var v Verdict
	var drawn []int
	for k := 1; k <= steps; k++ {
		first := k * len(t.draws) / steps
		if first == v.First {
			continue
		}

		b := newBet(first, t.rules.need(first, len(t.draws)), 1-t.rules.Confidence)
		for _, item := range t.draws {
			if b.won() || b.lost() || deviates(b) {
				break
			}
			if int(t.measures[0].ranks[item]) < first {
				b.take(right[item])
			}
		}

		if drawn = w.mark(t, first, b.labels, drawn); !b.won() {
			break
		}
		v.First = first
	}
	return w.end(v, drawn)
}

// mark adds to the drawn items those of the first so many that are drawn first.
func (w *Whole) mark(t *Trial, first, labels int, drawn []int) []int {
	if len(w.known) != len(t.draws) {
		w.known = make([]bool, len(t.draws))
	}
	for _, item := range t.draws {
		if labels == 0 {
			break
		}
		if int(t.measures[0].ranks[item]) >= first {
			continue
		}
		if labels--; !w.known[item] {
			w.known[item], drawn = true, append(drawn, int(item))
		}
	}
	return drawn
}

// end returns a run, and forgets what was drawn.
func (w *Whole) end(v Verdict, drawn []int) Run {
	for _, item := range drawn {
		w.known[item] = false
	}
	return Run{v, drawn}
}

// deviates reports whether the paper gives up.
func deviates(b *bet) bool {
	if b.labels < few {
		return false
	}
	mean := float64(b.right) / float64(b.labels)
	return mean-math.Sqrt(mean*(1-mean)) < float64(b.need)/float64(b.items)
}
