package certify

import "slices"

// A Drift is what labels have shown of whether answers that are accepted by a certificate are still
// right as often as it says. It is a sum of bets, one begun with each label, that more are wrong than
// may be: a Shiryaev-Roberts procedure (Shin, Ramdas and Rinaldo: E-detectors, 2023). A long time
// in which all was well does not make it slower.
//
// If each answer is wrong with a probability of at most what it may be, whatever came before, then
// the sum grows by at most one a label on average; so it is at least RunLength labels on average before
// a certificate falls that should not.
type Drift struct {
	Labels, Right int64
	Sums          []float64 // by odds
}

// RunLength is how many labels there are at least, on average, before a certificate falls by chance.
const RunLength = 1000

// odds are by how much more often answers are wrong than they may be, as bettors have it.
var odds = [...]float64{2, 4, 8, 16}

// Rejects takes labels of one measure, of which there are so many, and reports whether they are of answers of which
// more are wrong than the share that may be.
func (d *Drift) Rejects(labels []Label, most float64, measures int) bool {
	if len(d.Sums) != len(odds) {
		d.Sums = make([]float64, len(odds))
	}

	rejects := false
	for _, label := range labels {
		d.Labels++
		if label == Right {
			d.Right++
		}
		if most >= 1 {
			continue // all of them may be wrong
		}

		sum := 0.0
		for i, r := range odds {
			// The likelihood of the label if the odds of a wrong one are r times as high as they may be.
			ratio := 1 / (1 - most + r*most)
			if label != Right {
				ratio *= r
			}
			d.Sums[i] = (1 + d.Sums[i]) * ratio
			sum += d.Sums[i]
		}
		rejects = rejects || sum/float64(len(odds)) >= RunLength*float64(measures)
	}
	return rejects
}

// Clone returns a copy.
func (d *Drift) Clone() Drift { return Drift{d.Labels, d.Right, slices.Clone(d.Sums)} }

// How many of the items that a certificate accepts are labelled nevertheless: a share of them, so many at
// least, and so many at most.
const (
	auditShare = 20 // one in so many
	auditLeast = 10
	auditMost  = 40
)

// Audit returns which items of a trial a certificate accepts but for those that are drawn, in the order in which they are
// drawn, and of these the ones to be drawn, which come first: an item needs at least the floor of each measure. Uses is how
// often the certificate was used before: trials of one seed draw in other places each time, or what is wrong in the others
// would never be seen.
func (t *Trial) Audit(floors []Score, uses int64) (held, sample []int) {
	draws := t.draws
	if uses > 0 {
		draws = permutation(t.rules.Seed^uint64(uses)*0x9e3779b97f4a7c15, len(t.draws))
	}

	for _, item := range draws {
		below := false
		for i := range t.measures {
			below = below || i >= len(floors) || t.measures[i].scores[item] < floors[i]
		}
		if !below {
			held = append(held, int(item))
		}
	}

	n := max(auditLeast, min(auditMost, len(held)/auditShare))
	return held, held[:min(n, len(held))]
}

// Most is which share of the accepted answers may be wrong, if so many of n are accepted.
func (r Rules) Most(accepted, n int) float64 {
	if accepted == 0 {
		return 1
	}
	return min(1, (1-r.Target)*float64(n)/float64(accepted))
}
