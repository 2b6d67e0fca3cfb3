package ground

import "slices"

// maxPlaces bounds how many places of one quote FindAll chooses among.
const maxPlaces = 1000

// FindAll implements Aligner. Of all ways to give quotes places that follow
// each other without overlap it takes the one that accounts for most text,
// after the order-preserving alignment of LangExtract; ties end earliest. A
// quote left over takes its first place that no equal quote has, else its
// first.
func (t *Text) FindAll(quotes []string) []Span {
	c := candidates{places: map[string][]place{}, grades: map[string]Grade{}}
	for _, q := range quotes {
		if _, ok := c.places[q]; !ok {
			c.places[q], c.grades[q] = t.places(q)
		}
	}
	chosen := c.chain(quotes)
	c.rest(quotes, chosen)
	spans := make([]Span, len(quotes))
	for i, q := range quotes {
		if k := chosen[i]; k >= 0 {
			p := c.places[q][k]
			spans[i] = t.span(p.start, p.end, c.grades[q])
		}
	}
	return spans
}

// places returns up to maxPlaces places of quote, all of its best grade, and
// all of whole words if there are such.
func (t *Text) places(quote string) ([]place, Grade) {
	if blank(quote) {
		return nil, ""
	}
	if p := t.collect(t.exact(quote)); len(p) > 0 {
		return p, Exact
	}
	for f := range form(formCount) {
		if p := t.collect(t.normalised(quote, f)); len(p) > 0 {
			return p, Normalised
		}
	}
	return nil, ""
}

// collect returns the places of a search that are whole words, else all.
func (t *Text) collect(s search) []place {
	var whole, parts []place
	for p := range s(0) {
		switch {
		case t.whole(p):
			whole = append(whole, p)
		case len(parts) < maxPlaces:
			parts = append(parts, p)
		}
		if len(whole) == maxPlaces {
			break
		}
	}
	if len(whole) > 0 {
		return whole
	}
	return parts
}

// candidates holds where each quote may be, and with which grade.
type candidates struct {
	places map[string][]place
	grades map[string]Grade
}

// A link is a place given to a quote as the last of a chain.
type link struct {
	end, weight int   // of the chain: where it ends, bytes it accounts for
	quote, k    int   // quotes[quote] has the place number k
	prev        *link // the chain without it; nil if it is the first
}

// better reports whether l is the better chain. Nil is the empty one.
func (l *link) better(than *link) bool {
	if l == nil || than == nil {
		return l != nil
	}
	return l.weight > than.weight || l.weight == than.weight && l.end < than.end
}

// maxima is a Fenwick tree of the best chains that end by an offset. Offsets
// are given by their rank among all ends, from 1.
type maxima []*link

// best returns the best chain that ends at one of the first n offsets, or nil.
func (m maxima) best(n int) *link {
	var best *link
	for ; n > 0; n &= n - 1 {
		if m[n].better(best) {
			best = m[n]
		}
	}
	return best
}

// add takes in a chain that ends at the offset of rank n.
func (m maxima) add(n int, l *link) {
	for ; n < len(m); n += n & -n {
		if l.better(m[n]) {
			m[n] = l
		}
	}
}

// chain returns for each quote the number of its place in the best chain, or
// -1. Chains are extended quote by quote.
func (c candidates) chain(quotes []string) []int {
	ends := c.ends()
	tree := make(maxima, len(ends)+1)
	for i, q := range quotes {
		fresh := make([]*link, len(c.places[q]))
		for k, p := range c.places[q] { // before any is added: a quote has one place
			by, _ := slices.BinarySearch(ends, p.start+1)
			fresh[k] = &link{end: p.end, weight: p.end - p.start, quote: i, k: k, prev: tree.best(by)}
			if fresh[k].prev != nil {
				fresh[k].weight += fresh[k].prev.weight
			}
		}
		for _, l := range fresh {
			at, _ := slices.BinarySearch(ends, l.end)
			tree.add(at+1, l)
		}
	}
	chosen := slices.Repeat([]int{-1}, len(quotes))
	for l := tree.best(len(ends)); l != nil; l = l.prev {
		chosen[l.quote] = l.k
	}
	return chosen
}

// ends returns the offsets at which places end, sorted, each once.
func (c candidates) ends() []int {
	var ends []int
	for _, places := range c.places {
		for _, p := range places {
			ends = append(ends, p.end)
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// rest chooses places for the quotes that the chain left out.
func (c candidates) rest(quotes []string, chosen []int) {
	type use struct {
		quote string
		k     int
	}
	used := map[use]bool{}
	for i, q := range quotes {
		used[use{q, chosen[i]}] = true
	}
	next := map[string]int{} // all places of the quote before it are used
	for i, q := range quotes {
		if chosen[i] >= 0 || len(c.places[q]) == 0 {
			continue
		}
		k := next[q]
		for k < len(c.places[q]) && used[use{q, k}] {
			k++
		}
		next[q] = k + 1
		if k >= len(c.places[q]) {
			k = 0
		}
		chosen[i] = k
	}
}
