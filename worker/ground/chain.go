package ground

import (
	"cmp"
	"slices"
)

// maxLinks bounds, roughly, how many places all quotes together choose among.
const maxLinks = 1 << 20

// minWindow is how many places a quote chooses among however many quotes there
// are.
const minWindow = 64

// insideCost is how many bytes later a place may be to be chosen before one that
// overlaps the place of the quote before.
const insideCost = 100

// FindAll implements Aligner. Of all ways to give quotes places in the order of
// the text it takes the one with the longest quotes in all, after the
// order-preserving alignment of LangExtract; of equal ones, the earliest. Unlike
// there a place may lie in that of the quote before, as a name does in a longer
// one, but one soon behind it is better. A quote left over takes its first place
// behind where the quote before it begins that no equal quote has, else the
// first such, else its first.
func (t *Text) FindAll(quotes []string) []Span {
	times := map[string]int{}
	for _, q := range quotes {
		times[q]++
	}
	window := max(minWindow, min(maxPlaces, maxLinks/max(1, len(quotes))))
	c := candidates{}
	for q, n := range times {
		c[q] = t.places(q).apart(max(window, n))
	}
	chosen := c.chain(quotes, window)
	c.rest(quotes, chosen)
	spans := make([]Span, len(quotes))
	for i, q := range quotes {
		if k := chosen[i]; k >= 0 {
			spans[i] = c[q].span(t, c[q].places[k])
		}
	}
	return spans
}

// apart returns the hits that do not overlap, from the first on, up to limit.
func (h hits) apart(limit int) hits {
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

// candidates holds where each quote may be.
type candidates map[string]hits

// A link is a place given to a quote as the last of a chain.
type link struct {
	weight   int   // bytes that the chain accounts for
	cost     int   // how late its places are, in all
	quote, k int   // quotes[quote] has the place number k
	prev     *link // the chain without it; nil if it is the first
}

// better reports whether l is the better chain. Nil is the empty one.
func (l *link) better(than *link) bool {
	if l == nil || than == nil {
		return l != nil
	}
	return l.weight > than.weight || l.weight == than.weight && l.cost < than.cost
}

// extend returns the chain l, which may be empty, with a place for a quote.
func (l *link) extend(p place, quote, k, cost int) *link {
	longer := &link{weight: p.end - p.start, cost: p.start + cost, quote: quote, k: k, prev: l}
	if l != nil {
		longer.weight += l.weight
		longer.cost += l.cost
	}
	return longer
}

// maxima is a Fenwick tree of the best chains by the rank of something about
// their last place, from 1.
type maxima []*link

// best returns the best chain of rank n or less, or nil.
func (m maxima) best(n int) *link {
	var best *link
	for ; n > 0; n &= n - 1 {
		if m[n].better(best) {
			best = m[n]
		}
	}
	return best
}

// add takes in a chain of rank n.
func (m maxima) add(n int, l *link) {
	for ; n < len(m); n += n & -n {
		if l.better(m[n]) {
			m[n] = l
		}
	}
}

// chain returns for each quote the number of its place in the best chain, or
// -1. Chains are extended quote by quote, each of which chooses among up to
// window places.
func (c candidates) chain(quotes []string, window int) []int {
	seen := map[string]int{} // how often the quote came before
	chains := newChains(c.order())
	for i, q := range quotes {
		places, from := c.window(q, seen[q], window)
		seen[q]++
		fresh := make([]*link, len(places))
		for k, p := range places { // before any is added: a quote has one place
			fresh[k] = chains.with(p, i, from+k)
		}
		for k, p := range places {
			chains.add(p, fresh[k])
		}
	}
	chosen := slices.Repeat([]int{-1}, len(quotes))
	for l := chains.best(); l != nil; l = l.prev {
		chosen[l.quote] = l.k
	}
	return chosen
}

// Chains holds the best chains by their last place.
type chains struct {
	order  []place // all places
	ends   []int   // where they end, sorted
	places maxima  // by rank in order
	behind maxima  // by rank in ends
}

func newChains(order []place) *chains {
	ends := make([]int, len(order))
	for i, p := range order {
		ends[i] = p.end
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	return &chains{order, ends, make(maxima, len(order)+1), make(maxima, len(ends)+1)}
}

// with returns the best chain that has place p, number k of a quote, at its end.
func (c *chains) with(p place, quote, k int) *link {
	before, _ := slices.BinarySearchFunc(c.order, p, place.compare)
	by, _ := slices.BinarySearch(c.ends, p.start+1)
	inside := c.places.best(before).extend(p, quote, k, insideCost)
	if l := c.behind.best(by).extend(p, quote, k, 0); l.better(inside) {
		return l
	}
	return inside
}

// add takes in a chain that ends with place p.
func (c *chains) add(p place, l *link) {
	rank, _ := slices.BinarySearchFunc(c.order, p, place.compare)
	c.places.add(rank+1, l)
	rank, _ = slices.BinarySearch(c.ends, p.end)
	c.behind.add(rank+1, l)
}

// best returns the best chain of all.
func (c *chains) best() *link { return c.places.best(len(c.order)) }

// window returns the places among which a quote chooses that came before so
// often, and the number of the first: all of them, or size if there are more. One
// that is only near to some place must not push others off theirs.
func (c candidates) window(quote string, before, size int) (places []place, from int) {
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

// order returns all places in the order of the text, longer ones first, each
// once.
func (c candidates) order() []place {
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

// rest chooses places for the quotes that the chain left out, and sees to it
// that equal quotes stand in their order.
func (c candidates) rest(quotes []string, chosen []int) {
	of := map[string]*uses{}
	for i, q := range quotes {
		if of[q] == nil {
			of[q] = &uses{taken: map[int]bool{}}
		}
		of[q].take(i, chosen[i])
	}
	behind := 0
	for i, q := range quotes {
		places := c[q].places
		if chosen[i] < 0 && len(places) > 0 {
			k := of[q].free(places, behind)
			of[q].take(i, k)
			chosen[i] = max(k, 0)
		}
		if chosen[i] >= 0 && c[q].grade != Near {
			behind = places[chosen[i]].start
		}
	}
	for _, u := range of {
		u.order(chosen)
	}
}

// Uses are the places that equal quotes have.
type uses struct {
	taken  map[int]bool // places by number
	quotes []int        // that have them
	next   int          // the places before it are taken
}

// take notes that a quote has place k, if it is one.
func (u *uses) take(quote, k int) {
	if k >= 0 {
		u.taken[k] = true
		u.quotes = append(u.quotes, quote)
	}
}

// free returns the first place that is not taken at or behind an offset, or
// anywhere, or -1.
func (u *uses) free(places []place, behind int) int {
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

// order gives the quotes their places in order.
func (u *uses) order(chosen []int) {
	slices.Sort(u.quotes)
	ks := make([]int, len(u.quotes))
	for i, q := range u.quotes {
		ks[i] = chosen[q]
	}
	slices.Sort(ks)
	for i, q := range u.quotes {
		chosen[q] = ks[i]
	}
}
