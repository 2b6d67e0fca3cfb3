package ground

import (
	"cmp"
	"slices"
)

// maxLinks bounds, roughly, the candidate places of all quotes together.
const maxLinks = 1 << 20

// minWindow is the least number of candidate places of a quote, however many
// quotes there are.
const minWindow = 64

// insideCost is the price, in bytes, of a place that overlaps the place of the
// quote before: a place that lies up to so many bytes later is preferred to it.
const insideCost = 100

// FindAll implements Aligner. A chain assigns places to quotes in the order of
// the text. FindAll chooses the chain that covers the most bytes, and the earliest
// of equal ones, after the order-preserving alignment of LangExtract. Other than
// in LangExtract, a place may lie inside the place of the quote before, as a name
// lies inside a longer one, but a place soon behind it is preferred.
//
// A quote that is not in the chain receives the first of its places that no equal
// quote has and that does not begin before the quote before it; if there is none,
// the first that no equal quote has; otherwise its first place.
func (t *Text) FindAll(quotes []string) []Span {
	// Equal quotes share one search.
	times := map[string]int{}
	for _, q := range quotes {
		times[q]++
	}

	window := max(minWindow, min(maxPlaces, maxLinks/max(1, len(quotes))))
	c := candidates{}
	for q, n := range times {
		c[q] = t.findPlaces(q).withoutOverlaps(max(window, n))
	}

	chosen := c.bestChain(quotes, window)
	c.placeRemaining(quotes, chosen)

	spans := make([]Span, len(quotes))
	for i, q := range quotes {
		if k := chosen[i]; k >= 0 {
			spans[i] = c[q].spanOf(t, c[q].places[k])
		}
	}
	return spans
}

// withoutOverlaps returns the first hits that do not overlap, up to limit.
func (h hits) withoutOverlaps(limit int) hits {
	end := 0
	h.places = slices.DeleteFunc(h.places, func(p place) bool {
		if p.start < end {
			return true
		}
		end = p.end
		return false
	})
	h.count = len(h.places)
	h.places = h.places[:min(h.count, limit)]

	return h
}

// candidates maps each quote to the places where it may stand.
type candidates map[string]hits

// A chainLink is the last place of a chain, and the quote that it is given to.
type chainLink struct {
	weight   int        // bytes that the chain accounts for
	cost     int        // sum of the offsets of its places
	quote, k int        // quotes[quote] has the place number k
	prev     *chainLink // the chain without it; nil if it is the first
}

// isBetterThan reports whether l is the better chain. Nil is the empty one.
func (l *chainLink) isBetterThan(than *chainLink) bool {
	if l == nil || than == nil {
		return l != nil
	}
	return l.weight > than.weight || l.weight == than.weight && l.cost < than.cost
}

// extendWith returns the chain l, which may be empty, with a place for a quote.
func (l *chainLink) extendWith(p place, quote, k, cost int) *chainLink {
	longer := &chainLink{weight: p.end - p.start, cost: p.start + cost, quote: quote, k: k, prev: l}
	if l != nil {
		longer.weight += l.weight
		longer.cost += l.cost
	}
	return longer
}

// bestChainTree is a Fenwick tree of the best chains, by a rank of their last
// place. Ranks begin at 1.
type bestChainTree []*chainLink

// bestUpTo returns the best chain of rank n or less, or nil.
func (m bestChainTree) bestUpTo(n int) *chainLink {
	var best *chainLink
	for ; n > 0; n &= n - 1 {
		if m[n].isBetterThan(best) {
			best = m[n]
		}
	}

	return best
}

// add adds a chain of rank n.
func (m bestChainTree) add(n int, l *chainLink) {
	for ; n < len(m); n += n & -n {
		if l.isBetterThan(m[n]) {
			m[n] = l
		}
	}
}

// bestChain returns for each quote the number of its place in the best chain, or
// -1. It extends chains quote by quote. Each quote has up to window places.
func (c candidates) bestChain(quotes []string, window int) []int {
	seen := map[string]int{} // how often the quote came before
	chains := newChains(c.sortedPlaces())
	for i, q := range quotes {
		places, from := c.placesInWindow(q, seen[q], window)
		seen[q]++
		fresh := make([]*chainLink, len(places))
		for k, p := range places { // before any is added: a quote has one place
			fresh[k] = chains.extendBest(p, i, from+k)
		}
		for k, p := range places {
			chains.add(p, fresh[k])
		}
	}

	chosen := slices.Repeat([]int{-1}, len(quotes))
	for l := chains.bestOverall(); l != nil; l = l.prev {
		chosen[l.quote] = l.k
	}
	return chosen
}

// chains holds the best chains by their last place.
type chains struct {
	order  []place       // all places
	ends   []int         // where they end, sorted
	places bestChainTree // by rank in order
	behind bestChainTree // by rank in ends
}

func newChains(order []place) *chains {
	ends := make([]int, len(order))
	for i, p := range order {
		ends[i] = p.end
	}

	slices.Sort(ends)
	ends = slices.Compact(ends)
	return &chains{order, ends, make(bestChainTree, len(order)+1), make(bestChainTree, len(ends)+1)}
}

// extendBest returns the best chain that ends with place p, number k of a quote.
func (c *chains) extendBest(p place, quote, k int) *chainLink {
	before, _ := slices.BinarySearchFunc(c.order, p, place.compare)
	by, _ := slices.BinarySearch(c.ends, p.start+1)

	// The chain may go on inside the last place, at a price, or behind the end of it for
	// none.
	inside := c.places.bestUpTo(before).extendWith(p, quote, k, insideCost)
	if l := c.behind.bestUpTo(by).extendWith(p, quote, k, 0); l.isBetterThan(inside) {
		return l
	}
	return inside
}

// add adds a chain that ends with place p.
func (c *chains) add(p place, l *chainLink) {
	rank, _ := slices.BinarySearchFunc(c.order, p, place.compare)
	c.places.add(rank+1, l)
	rank, _ = slices.BinarySearch(c.ends, p.end)
	c.behind.add(rank+1, l)
}

// bestOverall returns the best chain of all.
func (c *chains) bestOverall() *chainLink { return c.places.bestUpTo(len(c.order)) }

// placesInWindow returns up to size candidate places of a quote, and the number of
// the first. before counts the equal quotes before this one. A quote of grade Near
// has none, because it must not displace quotes that are in the text.
func (c candidates) placesInWindow(quote string, before, size int) (places []place, from int) {
	places = c[quote].places
	if c[quote].grade == Near {
		return nil, 0
	}
	if len(places) <= size {
		return places, 0
	}
	from = min(before, len(places)-size)
	return places[from : from+size], from
}

// sortedPlaces returns all places in the order of the text, longer ones first, each
// once.
func (c candidates) sortedPlaces() []place {
	var all []place
	for _, h := range c {
		for _, p := range h.places {
			all = append(all, place{start: p.start, end: p.end})
		}
	}

	slices.SortFunc(all, place.compare)
	return slices.Compact(all)
}

// compare orders places as the text has them, longer ones first.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.start, q.start), cmp.Compare(q.end, p.end))
}

// placeRemaining chooses places for the quotes that the chain left out, and sorts
// the places of equal quotes.
func (c candidates) placeRemaining(quotes []string, chosen []int) {
	of := map[string]*placeUses{}
	for i, q := range quotes {
		if of[q] == nil {
			of[q] = &placeUses{taken: map[int]bool{}}
		}
		of[q].addUse(i, chosen[i])
	}

	// The chain's quotes have their places by now, so the others are fitted in between.
	behind := 0
	for i, q := range quotes {
		places := c[q].places
		if chosen[i] < 0 && len(places) > 0 {
			k := of[q].firstFree(places, behind)
			of[q].addUse(i, k)
			chosen[i] = max(k, 0)
		}
		if chosen[i] >= 0 && c[q].grade != Near {
			behind = places[chosen[i]].start
		}
	}

	// Equal quotes change places until they stand in the order in which they were given.
	for _, u := range of {
		u.sortPlaces(chosen)
	}
}

// placeUses are the places that equal quotes have.
type placeUses struct {
	taken  map[int]bool // places in use, by number
	quotes []int        // the quotes that use them
	next   int          // all places before it are in use
}

// addUse records that a quote has place k. A negative k is ignored.
func (u *placeUses) addUse(quote, k int) {
	if k >= 0 {
		u.taken[k] = true
		u.quotes = append(u.quotes, quote)
	}
}

// firstFree returns the first free place at or behind an offset, otherwise the
// first free place at all, otherwise -1.
func (u *placeUses) firstFree(places []place, behind int) int {
	k, _ := slices.BinarySearchFunc(places, behind, func(p place, at int) int { return p.start - at })
	for ; k < len(places); k++ {
		if !u.taken[k] {
			return k
		}
	}

	for ; u.next < len(places); u.next++ {
		if !u.taken[u.next] {
			return u.next
		}
	}
	return -1
}

// sortPlaces sorts the places of the equal quotes.
func (u *placeUses) sortPlaces(chosen []int) {
	slices.Sort(u.quotes)
	ks := make([]int, len(u.quotes))
	for i, q := range u.quotes {
		ks[i] = chosen[q]
	}

	// Equal quotes have the same places, so any order of these serves all of them.
	slices.Sort(ks)
	for i, q := range u.quotes {
		chosen[q] = ks[i]
	}
}
