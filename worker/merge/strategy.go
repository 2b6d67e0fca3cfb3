package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// A decision is the outcome of a strategy for one field.
type decision struct {
	value      chosen
	citations  []Citation
	confidence float64
	said       float64 // mean of what extractors say themselves; 0 if they say nothing
	conflict   bool    // the strategy preferred one value to others
	rationale  string  // why, for a conflict
	lost       string  // why the others were not taken
}

// chosen is a value and its key.
type chosen struct {
	key     string
	display any
}

// A chooser applies the strategy of a property to candidates, of which there is
// at least one.
type chooser struct {
	p   *schema.Property
	all []option
}

// choose runs the strategy.
func (c chooser) choose() decision {
	switch strategy := c.p.Merge(); strategy {
	case schema.MergeSum:
		return c.sum()
	case schema.MergeUnion:
		return c.combine("")
	case schema.MergeConcat:
		return c.combine("\n")
	default:
		return c.pick(strategy)
	}
}

// rankings tell for each strategy that picks one value how candidates are
// ordered, the best first, and what to say about it.
func (c chooser) ranking(strategy schema.Merge) (order func(a, b *option) int, rationale, lost string) {
	switch strategy {
	case schema.MergeFirst:
		return func(a, b *option) int { return a.First.Compare(b.First) }, "first in the input", "another was seen first"
	case schema.MergeLatest:
		return func(a, b *option) int { return b.Last.Compare(a.Last) }, "last in the input", "another was seen later"
	case schema.MergeLongest:
		return func(a, b *option) int { return cmp.Compare(length(b.Value), length(a.Value)) }, "the longest", "another is longer"
	case schema.MergeMax:
		return func(a, b *option) int { return c.p.Compare(b.Value, a.Value) }, "the largest", "another is larger"
	case schema.MergeMin:
		return func(a, b *option) int { return c.p.Compare(a.Value, b.Value) }, "the smallest", "another is smaller"
	case schema.MergeConfidence:
		return func(a, b *option) int { return cmp.Compare(b.Best, a.Best) }, "the highest confidence", "another has a higher confidence"
	default:
		return func(a, b *option) int { return cmp.Compare(b.Weight, a.Weight) }, "", "it lost the vote"
	}
}

// pick takes the best candidate. Ties go to the smaller value, then to the one
// seen first.
func (c chooser) pick(strategy schema.Merge) decision {
	order, rationale, lost := c.ranking(strategy)
	best, tied := &c.all[0], false
	for i := 1; i < len(c.all); i++ {
		next := &c.all[i]
		ranked := order(next, best)
		if ranked == 0 {
			tied = true
		} else if ranked < 0 {
			tied = false
		}
		if cmp.Or(ranked, c.p.Compare(next.Value, best.Value), strings.Compare(next.Key, best.Key), next.First.Compare(best.First)) < 0 {
			best = next
		}
	}
	d := decision{
		value: chosen{best.Key, best.Value}, citations: best.Citations, confidence: best.mean(), said: meanOf(best.said, best.saying),
		conflict: len(c.all) > 1, rationale: rationale, lost: lost,
	}
	switch {
	case strategy == schema.MergeVote && d.conflict:
		d.vote(c.all, best)
	case strategy == schema.MergeConfidence:
		d.confidence = float64(best.Best) / 1e6
	}
	if tied {
		d.rationale += "; of equal ones the smallest value"
		d.lost += ", or was equal and not the smallest value"
	}
	return d
}

// vote fills in how the vote went. The confidence in a value is lowered by the
// share of those that speak against it.
func (d *decision) vote(all []option, best *option) {
	var weight, count int64
	for i := range all {
		weight += all[i].Weight
		count += all[i].Count
	}
	if weight > 0 {
		d.confidence *= float64(best.Weight) / float64(weight)
	}
	d.rationale = fmt.Sprintf("%d of %d values, with %.2f of %.2f confidence",
		best.Count, count, float64(best.Weight)/1e6, float64(weight)/1e6)
}

// length measures a text in characters and a list in elements.
func length(v any) int {
	switch v := v.(type) {
	case string:
		return len([]rune(v))
	case []any:
		return len(v)
	default:
		return 0
	}
}

// sum adds all values, each as often as it was seen.
func (c chooser) sum() decision {
	var total decimal
	for i := range c.all {
		n, ok := c.all[i].Value.(json.Number)
		if ok {
			total.add(n.String(), c.all[i].Count)
		}
	}
	d := c.together()
	d.value.display = json.Number(total.String())
	d.value.key = total.String()
	return d
}

// combine takes all values, in the order of the input: as a list, or for texts
// joined by separator.
func (c chooser) combine(separator string) decision {
	d := c.together()
	list := make([]any, 0, len(c.all))
	var texts []string
	for _, one := range slices.SortedFunc(slices.Values(c.all), func(a, b option) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Key, b.Key))
	}) {
		list = append(list, one.Value)
		texts = append(texts, spelling(one.Value))
	}
	d.value.display = list
	if c.p.Type != schema.Array {
		d.value.display = strings.Join(texts, separator)
	}
	d.value.key = c.p.Identity(d.value.display)
	return d
}

// together carries the citations of all candidates, in the order of the input.
func (c chooser) together() decision {
	var d decision
	var weight, count, said, saying int64
	seen := map[Citation]bool{}
	for _, one := range slices.SortedFunc(slices.Values(c.all), func(a, b option) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Key, b.Key))
	}) {
		weight += one.Weight
		count += one.Count
		said += one.said
		saying += one.saying
		for _, id := range one.Citations {
			if !seen[id] {
				seen[id] = true
				d.citations = append(d.citations, id)
			}
		}
	}
	d.confidence, d.said = meanOf(weight, count), meanOf(said, saying)
	return d
}

// meanOf divides a sum of millionths; of nothing the mean is 0.
func meanOf(sum, n int64) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n) / 1e6
}
