package certify

import "math"

// A lasting bet tests whether at least the target of all items, those to come included, are right or
// below a floor, by items that come one after the other as by chance. Unlike a bet it is about what
// items are drawn from, and stakes the same whatever has come. So the capital never grows
// with a floor that is lower: an item that is wrong above a floor is so above each that is lower.
//
// That is why a floor may be picked by what the bets on all of them have come to. Let f be the highest
// floor above which too much is wrong. Whoever picks a floor above which too much is wrong picks f
// or a lower one, and has seen the capital for it reach 1/delta. Then that for f has, too, and f
// depends on no label, so the probability of that is at most delta (Ville). It is how Bates and others pick
// thresholds (Distribution-free, risk-controlling prediction sets, 2021).
type lastingBet struct {
	gain, loss [stakes]float64 // by stake: what a right item and a wrong one add
	capital    [stakes]float64 // their logarithms
	goal       float64
	won        bool
}

// stakes is how many shares of the capital are staked, each as its own.
const stakes = 5

// boldness is which part of the most that may be staked each share stakes. The first share is half
// of the capital, as most often nearly all items are right, and each other half of the one before.
var boldness = [stakes]float64{0.98, 0.5, 0.25, 0.12, 0.06}

func newLastingBet(rules Rules) *lastingBet {
	b := &lastingBet{goal: -math.Log(1 - rules.Confidence)}
	for i, of := range boldness {
		b.gain[i] = math.Log1p(of * (1 - rules.Target) / rules.Target)
		b.loss[i] = math.Log1p(-of)
		b.capital[i] = -float64(min(i+1, stakes-1)) * math.Ln2
	}
	return b
}

// take takes an item: whether it is right or below the floor.
func (b *lastingBet) take(right bool) {
	most := math.Inf(-1)
	for i := range b.capital {
		if right {
			b.capital[i] += b.gain[i]
		} else {
			b.capital[i] += b.loss[i]
		}
		most = max(most, b.capital[i])
	}

	sum := 0.0
	for _, c := range b.capital {
		sum += math.Exp(c - most)
	}
	b.won = b.won || most+math.Log(sum) >= b.goal
}

// Lasting returns for each measure of a trial that is done the least score with which answers
// about other items may be accepted, too; nothing if that is not certified. What is certified: if
// the items of the trial and those others are drawn from the same, then with the confidence at
// least the target of others is as the oracle would have it, on average, if answers with less are
// the oracle's.
//
// That needs more labels than what is certified of the items at hand. Up to twice as many are
// drawn: while Draw is not empty, they are to be labelled.
func (t *Trial) Lasting(verdicts []Verdict, known func(item, measure int) Label) (draw []int, floors []Score) {
	wanted := make(map[int]bool)
	for i, v := range verdicts {
		floor, want, ok := t.lastingFloor(i, v, known)
		if !ok {
			return nil, nil
		}
		for _, item := range want {
			wanted[item] = true
		}
		floors = append(floors, floor)
	}
	if len(wanted) == 0 {
		return nil, floors
	}

	for _, item := range t.draws {
		if wanted[int(item)] {
			draw = append(draw, int(item))
		}
	}
	return draw, nil
}

// lastingFloor returns the lowest floor by a measure that is no lower than what was accepted, or the items whose
// labels are needed to tell.
func (t *Trial) lastingFloor(index int, v Verdict, known func(item, measure int) Label) (floor Score, draw []int, ok bool) {
	m := &t.measures[index]
	for k := steps; k > 0; k-- {
		first := k * len(t.draws) / steps
		if first == 0 || first > v.First {
			continue
		}
		floor, ok := m.floorOf(first)
		if !ok {
			continue
		}

		// Labels are drawn for the lowest floor alone. For the others those serve that are there.
		most := 0
		if first == v.First {
			most = 2 * max(v.Labels, few)
		}
		switch draw, won := t.tryFloor(m, index, floor, most, known); {
		case len(draw) > 0:
			return 0, draw, true
		case won:
			return floor, nil, true
		}
	}
	return 0, nil, false
}

// floorOf returns the least score of the first items that none of the others has: another job has no ranks.
func (m *measure) floorOf(first int) (Score, bool) {
	least := m.scores[m.sorted[first-1]]
	if first == len(m.sorted) || m.scores[m.sorted[first]] != least {
		return least, true
	}
	for i := first - 1; i >= 0; i-- {
		if s := m.scores[m.sorted[i]]; s != least {
			return s, true
		}
	}
	return 0, false
}

// tryFloor bets on a floor with the items in the order of the draws, until one is not labelled. Then it returns
// those that are to be labelled next, if the bet has taken fewer than most.
func (t *Trial) tryFloor(m *measure, index int, floor Score, most int, known func(item, measure int) Label) (draw []int, won bool) {
	b := newLastingBet(t.rules)
	labels := 0
	for _, item := range t.draws {
		if b.won {
			return nil, true
		}
		if m.scores[item] < floor {
			if len(draw) == 0 {
				b.take(true)
			}
			continue
		}

		if labels++; labels > most && most > 0 {
			return draw, false
		}
		switch label := known(int(item), index); {
		case label == Unknown && most == 0:
			return nil, false
		case label == Unknown:
			draw = append(draw, int(item))
		case len(draw) == 0:
			b.take(label == Right)
		}
		if len(draw) == lastingLook {
			return draw, false
		}
	}
	return draw, b.won
}

// lastingLook is how many labels are drawn at once for a certificate that lasts.
const lastingLook = 10
