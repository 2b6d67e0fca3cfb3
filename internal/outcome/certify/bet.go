package certify

import "math"

// A bet tests whether at least need of some items are right, by labels of items that are
// drawn from them without replacement. Somebody who doubts it, and is right to do so, would
// see the capital of a bettor on the contrary not grow on average, whenever he looks; so it
// reaches 1/delta with a probability of at most delta.
type bet struct {
	items, need int
	goal        float64 // the logarithm of 1/delta: where the capital certifies
	wager       float64 // by how much delta has it stake

	labels, right int
	look          int     // labels at the next look
	squares       float64 // sum of the squared distances of labels to their running mean
	capital       float64 // its logarithm
}

func newBet(items, need int, delta float64) *bet {
	return &bet{items: items, need: need, goal: -math.Log(delta), wager: 2 * math.Log(2/delta)}
}

// share is the share of right ones that the next item has at most on average, if fewer than
// need are right.
func (b *bet) share() float64 {
	return float64(b.need-b.right) / float64(b.items-b.labels)
}

// won reports whether the items are certified.
func (b *bet) won() bool { return b.right >= b.need || b.capital >= b.goal }

// lost reports whether too few are right, even if all others were.
func (b *bet) lost() bool { return b.right+b.items-b.labels < b.need }

// take takes a label.
func (b *bet) take(right bool) {
	x := 0.0
	if right {
		x = 1
	}

	// What is staked depends on labels before this one alone.
	i := float64(b.labels + 1)
	variance := (0.25 + b.squares) / i
	share := b.share()
	stake := math.Sqrt(b.wager / (i * math.Log(i+1) * variance))
	stake = min(stake, 0.75/share)
	b.capital += math.Log1p(stake * (x - share))

	b.labels++
	if right {
		b.right++
	}
	mean := (0.5 + float64(b.right)) / (i + 1)
	b.squares += (x - mean) * (x - mean)
}

// next is how many labels are to be drawn before the next look: no more than certify the
// items if all are right, and no more than few before it may be given up. Later looks are
// rarer, as each takes as long as an answer of the oracle.
func (b *bet) next() int {
	most := max(10, few-b.labels, b.labels/4)
	ahead, least := *b, 0
	for ; least < most && !ahead.won() && ahead.labels < ahead.items; least++ {
		ahead.take(true)
	}
	return least
}

// expected is about how many more labels are needed, if as many are right as were so far.
func (b *bet) expected() float64 {
	p, m := float64(b.right)/float64(b.labels), b.share()
	if p <= m {
		return math.Inf(1)
	}

	growth := p * math.Log(p/m)
	if p < 1 {
		growth += (1 - p) * math.Log((1-p)/(1-m))
	}
	return (b.goal - b.capital) / growth
}

// Fewest returns how many labels are needed at least to accept any number of n items, and how
// many are accepted then: those of a cheaper source that is always right. It returns an error
// as Rules.Check does.
func Fewest(rules Rules, n int) (labels, accepted int, err error) {
	t, err := New(rules, make([]Score, n))
	if err != nil {
		return 0, 0, err
	}

	drawn := make(map[int]bool)
	always := func(item, _ int) Label {
		if drawn[item] {
			return Right
		}
		return Unknown
	}

	for {
		s := t.Next(always)
		if s.Done() {
			for i := range n {
				if !drawn[i] && t.Accepts(s.Verdicts, i) {
					accepted++
				}
			}
			return len(drawn), accepted, nil
		}
		for _, item := range s.Draw {
			drawn[item] = true
		}
	}
}
