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

// Lookup is how the labels of a measure are asked for.
type Lookup = func(item, measure int) Label

// AsPaper searches by the first measure with all labels at hand, and gives up as the paper does.
// It returns how many labels it has looked at, and how many items it accepts beside these.
func (t *Trial) AsPaper(known Lookup) (labels, accepted int) {
	drawn := make(map[int]bool)
	v, _ := t.search(0, func(item, measure int) Label {
		drawn[item] = true
		return known(item, measure)
	}, deviates)

	for item := range t.draws {
		if !drawn[item] && t.Accepts([]Verdict{v}, item) {
			accepted++
		}
	}
	return len(drawn), accepted
}

// deviates gives up where the mean less the deviation of the labels is below the target.
func deviates(b *bet, _ int) bool {
	if b.labels < few {
		return false
	}
	mean := float64(b.right) / float64(b.labels)
	return mean-math.Sqrt(mean*(1-mean)) < float64(b.need)/float64(b.items)
}
