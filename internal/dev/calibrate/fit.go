package main

import "slices"

// A point of a curve: what recognition was sure of by so much is right so often.
type point struct{ sure, right float64 }

// A curve has the factor of values by how sure recognition was of them: on a line between two points.
type curve []point

// at returns the factor; 1 if there is no curve.
func (c curve) at(sure float64) float64 {
	if len(c) == 0 {
		return 1
	}
	for i := 1; i < len(c); i++ {
		if a, b := c[i-1], c[i]; sure <= b.sure {
			return a.right + (b.right-a.right)*(sure-a.sure)/max(b.sure-a.sure, 1e-9)
		}
	}
	return c[len(c)-1].right
}

// Bounds of a fit.
const (
	leastOfBlock = 12   // values that a point stands for, at least
	leastFactor  = 0.05 // no value is surely wrong
)

// A block is neighbours, by how sure recognition was of them, that share a point.
type block struct {
	sure, base float64 // sums
	n, right   int
}

// factor returns by how much the confidence of the block is to be lowered.
func (b *block) factor() float64 {
	return min(max(float64(b.right)/max(b.base, 1e-9), leastFactor), 1)
}

func (b *block) add(c block) {
	b.sure, b.base, b.n, b.right = b.sure+c.sure, b.base+c.base, b.n+c.n, b.right+c.right
}

// edges of the blocks before neighbours are joined.
var edges = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.94, 2}

// fit returns the curve that never falls and is nearest to what was right. (Pool adjacent violators, of Ayer
// and others, over blocks.)
func fit(all []found) curve {
	blocks := make([]block, len(edges))
	for _, f := range all {
		one := block{sure: f.sure, base: f.base, n: 1}
		if f.right {
			one.right = 1
		}
		at := slices.IndexFunc(edges, func(edge float64) bool { return f.sure < edge })
		blocks[at].add(one)
	}

	var pooled []block
	for _, b := range blocks {
		// A block of few joins the one below it, and the first ones the next that comes.
		if n := len(pooled); n > 0 && (b.n < leastOfBlock || pooled[n-1].n < leastOfBlock) {
			pooled[n-1].add(b)
		} else {
			pooled = append(pooled, b)
		}
		for n := len(pooled); n > 1 && pooled[n-2].factor() > pooled[n-1].factor(); n = len(pooled) {
			pooled[n-2].add(pooled[n-1])
			pooled = pooled[:n-1]
		}
	}

	var out curve
	for _, b := range pooled {
		if b.n > 0 {
			out = append(out, point{b.sure / float64(b.n), b.factor()})
		}
	}
	return out.whole()
}

// whole returns the curve from 0 to 1.
func (c curve) whole() curve {
	if len(c) == 0 {
		return nil
	}
	first, last := c[0], c[len(c)-1]
	if first.sure > 0 {
		c = append(curve{{0, first.right}}, c...)
	}
	if last.sure < 1 {
		c = append(c, point{1, last.right})
	}
	return c
}
