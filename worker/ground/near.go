package ground

import (
	"cmp"
	"math"
	"slices"
)

// maxMissing and maxLeft bound how a quote may differ from a place that is near
// it: words of the quote that are not there, and tokens there that are not in the
// quote, of which one word may have several, as a date has.
const (
	maxMissing = 2
	maxLeft    = 6
)

// maxNearSteps bounds the words that are compared to find what one short quote is
// near to.
const maxNearSteps = 1 << 13

// findNear returns the places that differ least from a quote which the text does not
// have. Which words differ is not asked, so they say nothing of what it says.
func findNear(readings []*reading) hits {
	for _, r := range readings {
		if places := r.nearestPlaces(); len(places) > 0 {
			return hits{places: places, grade: Near}
		}
	}
	return hits{}
}

// nearestPlaces returns the places, in order, where few words are different, those
// with the least change.
func (r *reading) nearestPlaces() []place {
	r.steps = maxNearSteps + 16*len(r.words)
	anchors, missing := r.nearAnchors()
	if missing < 0 {
		return nil
	}
	least := math.MaxInt
	var best []alignment
	for _, w := range anchors {
		for _, id := range r.words[w].ids {
			if id < 0 {
				continue
			}
			for _, i := range r.index.tokensOf(id) {
				a, ok := r.alignNear(w, i, missing)
				if r.steps < 0 {
					break
				}
				if !ok || a.nearDistance() > least {
					continue
				}
				if a.nearDistance() < least {
					least, best = a.nearDistance(), best[:0]
				}
				best = append(best, a)
			}
		}
	}
	return r.placesOf(best)
}

// placesOf returns where alignments are, in order, each place once.
func (r *reading) placesOf(all []alignment) []place {
	slices.SortFunc(all, func(a, b alignment) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	all = slices.Compact(all)
	all = all[:min(len(all), maxPlaces)]
	places := make([]place, len(all))
	for i, a := range all {
		places[i] = r.placeOf(a)
	}
	return places
}

// nearAnchors returns words of the quote, the rarest first, of which one is at every
// place that is near: one more than may be missing. It returns also how many may
// be, less than none if more than that are nowhere in the text.
func (r *reading) nearAnchors() (anchors []int, missing int) {
	missing = min(maxMissing, r.slack)
	gone, most := 0, make([]int, 0, maxMissing+2)
	for i, w := range r.words {
		n := r.countTokens(w)
		if n == 0 {
			if gone++; gone > missing {
				return nil, -1
			}
			continue
		}
		k := len(anchors)
		for k > 0 && most[k-1] > n {
			k--
		}
		if k <= missing {
			anchors, most = slices.Insert(anchors, k, i), slices.Insert(most, k, n)
			anchors, most = anchors[:min(len(anchors), missing+1)], most[:min(len(most), missing+1)]
		}
	}
	return anchors[:min(len(anchors), missing-gone+1)], missing
}

// alignNear returns the alignment that gives word w of the quote token i of the
// text and changes little, if few words are missing.
func (r *reading) alignNear(w, i, missing int) (a alignment, ok bool) {
	if r.steps--; r.steps < 0 || !r.tokenIs(r.words[w], i) {
		return a, false
	}
	right, ok := r.alignToEnd(w, i, +1, missing)
	if !ok {
		return a, false
	}
	left, ok := r.alignToEnd(w, i, -1, missing-right.missing)
	if !ok {
		return a, false
	}
	a = alignment{first: left.at, last: right.at, words: len(r.words), matched: len(r.words) - left.missing - right.missing}
	return a, a.tokenCount()-a.matched <= min(maxLeft, a.matched)
}

// nearDistance returns how far a place is from the quote: a word of the quote that is
// missing there is worse than any that are left out.
func (p path) nearDistance() int { return p.missing*(maxLeft+1) + p.dropped }

func (a alignment) nearDistance() int {
	return path{missing: a.words - a.matched, dropped: a.tokenCount() - a.matched}.nearDistance()
}

// A band holds, for how many more tokens of the text than words of the quote were
// passed, the fewest words that are missing, plus one; 0 is no way. Its middle is
// at maxMissing.
type band [maxMissing + maxLeft + 1]int8

// alignToEnd goes from word w at token i to the end of the quote in the direction
// step, with the least change, and returns where it comes to. It is the greedy
// comparison of Ukkonen in a band of fixed width.
func (r *reading) alignToEnd(w, i, step, missing int) (path, bool) {
	var ways band
	ways[maxMissing] = 1
	passed := 0
	for w += step; w >= 0 && w < len(r.words); w += step {
		passed++
		if !r.advanceBand(&ways, r.words[w], i+step*passed, step, missing) {
			return path{}, false
		}
	}
	best, ok := path{}, false
	for k, way := range ways {
		more, gone := k-maxMissing, int(way)-1
		p := path{at: i + step*(passed+more), missing: gone, dropped: more + gone}
		if way > 0 && (!ok || p.nearDistance() < best.nearDistance()) {
			best, ok = p, true
		}
	}
	return best, ok
}

// advanceBand takes ways on by one word of the quote, to which token i of the text
// would belong if nothing had been different, and reports whether there are any
// left.
func (r *reading) advanceBand(ways *band, w word, i, step, missing int) bool {
	var next band
	any := false
	from := int8(0) // the fewest missing of the ways that came no farther
	for k, way := range ways {
		if way > 0 && (from == 0 || way < from) {
			from = way
		}
		at := i + step*(k-maxMissing)
		if from > 0 && k+int(from)-1 <= maxMissing+maxLeft && r.hasToken(at) && r.tokenIs(w, at) {
			next[k], any = from, true
		}
		if k > 0 && way > 0 && int(way) <= missing && (next[k-1] == 0 || way+1 < next[k-1]) {
			next[k-1], any = way+1, true
		}
	}
	r.steps -= len(ways)
	*ways = next
	return any && r.steps >= 0
}
