package ground

import (
	"cmp"
	"math"
	"slices"
)

// maxMissing bounds the words of a quote that are missing at a place that is near
// it. maxLeft bounds the tokens of the place that are not in the quote; one word,
// such as a date, may have several tokens.
const (
	maxMissing = 2
	maxLeft    = 6
)

// maxNearSteps bounds the comparisons of words in the search for places near one
// short quote.
const maxNearSteps = 1 << 13

// findNear returns the places that differ least from a quote that the text does
// not have. Any words may differ, so such a place does not support the quote.
func findNear(readings []*reading) hits {
	for _, r := range readings {
		if places := r.nearestPlaces(); len(places) > 0 {
			return hits{places: places, grade: Near}
		}
	}
	return hits{}
}

// nearestPlaces returns the places with the fewest different words, in order.
func (r *reading) nearestPlaces() []place {
	r.steps = maxNearSteps + 16*len(r.words)
	anchors, missing := r.nearAnchors()

	if missing < 0 {
		return nil
	}

	least := math.MaxInt
	var best []alignment

	// Each near place has one of the anchors, so only their places are looked at.
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

// placesOf returns the places of alignments, in order, each once.
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

// nearAnchors returns the rarest words of the quote, the rarest first: one more
// than may be missing, so that every near place has one of them. It also returns
// how many words may be missing, or -1 if the text lacks more than that.
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

		// most is sorted, and holds how often each anchor is in the text.
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

// alignNear returns the alignment with the least change that matches word w of the
// quote with token i of the text, if few words are missing.
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

// nearDistance returns the distance of a place from the quote. A missing word of
// the quote weighs more than all words of the text that are left out.
func (p path) nearDistance() int { return p.missing*(maxLeft+1) + p.dropped }

func (a alignment) nearDistance() int {
	return path{missing: a.words - a.matched, dropped: a.tokenCount() - a.matched}.nearDistance()
}

// A band holds the fewest missing words, plus one, by diagonal: how many more
// tokens of the text than words of the quote were passed, plus maxMissing. 0
// stands for no way.
type band [maxMissing + maxLeft + 1]int8

// alignToEnd aligns the quote from word w at token i to its end in the direction
// step with the least change, and returns the path. It is the greedy comparison of
// Ukkonen in a band of fixed width.
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
	// A diagonal tells how many more tokens than words were passed: those without a word
	// are dropped.
	for k, way := range ways {
		more, gone := k-maxMissing, int(way)-1
		p := path{at: i + step*(passed+more), missing: gone, dropped: more + gone}
		if way > 0 && (!ok || p.nearDistance() < best.nearDistance()) {
			best, ok = p, true
		}
	}

	return best, ok
}

// advanceBand advances ways by one word of the quote. Token i is the word's token
// on the middle diagonal. It reports whether any way is left.
func (r *reading) advanceBand(ways *band, w word, i, step, missing int) bool {
	var next band
	any := false
	from := int8(0) // the fewest missing words of the diagonals so far

	for k, way := range ways {
		if way > 0 && (from == 0 || way < from) {
			from = way
		}

		// A word that is found keeps the fewest missing of this diagonal and of those
		// before it: tokens may be left out for it.
		at := i + step*(k-maxMissing)
		if from > 0 && k+int(from)-1 <= maxMissing+maxLeft && r.hasToken(at) && r.tokenIs(w, at) {
			next[k], any = from, true
		}

		// A word that is missing passes no token, which is a step to the diagonal before.
		if k > 0 && way > 0 && int(way) <= missing && (next[k-1] == 0 || way+1 < next[k-1]) {
			next[k-1], any = way+1, true
		}
	}

	r.steps -= len(ways)
	*ways = next
	return any && r.steps >= 0
}
