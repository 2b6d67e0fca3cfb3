package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// A decision is the outcome of a strategy for one field.
type decision struct {
	value      chosenValue
	citations  []Citation
	confidence float64
	said       float64 // mean of the confidence that extractors state; 0 if none does
	derived    *derive.Derivation
	conflict   bool   // the strategy preferred one value to others
	rationale  string // why, for a conflict
	lossReason string // why the other values were not chosen
}

// chosenValue is a value and its key.
type chosenValue struct {
	key     string
	display any
}

// A chooser applies the strategy of a property to one or more candidates.
type chooser struct {
	property *schema.Property
	all      []option
}

// runStrategy runs the strategy.
func (c chooser) runStrategy() decision {
	if c.property.Type == schema.Map {
		return c.joinEntries(c.property.Merge())
	}

	switch strategy := c.property.Merge(); strategy {
	case hint.MergeSum:
		return c.sumAll()
	case hint.MergeUnion:
		return c.combineAll("")
	case hint.MergeConcat:
		return c.combineAll("\n")
	default:
		return c.pickBest(strategy)
	}
}

// rankingFor returns, for a strategy that picks one value, the order of candidates,
// the best first, and the explanations for the report.
func (c chooser) rankingFor(strategy hint.Merge) (order func(a, b *option) int, rationale, lost string) {
	switch strategy {
	case hint.MergeFirst:
		return func(a, b *option) int { return a.First.Compare(b.First) }, "first in the input", "another was seen first"
	case hint.MergeLatest:
		return func(a, b *option) int { return b.Last.Compare(a.Last) }, "last in the input", "another was seen later"
	case hint.MergeLongest:
		return func(a, b *option) int { return cmp.Compare(valueLength(b.Value), valueLength(a.Value)) }, "the longest", "another is longer"
	case hint.MergeMax:
		return func(a, b *option) int { return c.property.Compare(b.Value, a.Value) }, "the largest", "another is larger"
	case hint.MergeMin:
		return func(a, b *option) int { return c.property.Compare(a.Value, b.Value) }, "the smallest", "another is smaller"
	case hint.MergeConfidence:
		return func(a, b *option) int { return cmp.Compare(b.Best, a.Best) }, "the highest confidence", "another has a higher confidence"
	default:
		return func(a, b *option) int { return cmp.Compare(b.Weight, a.Weight) }, "", "it lost the vote"
	}
}

// pickBest chooses the best candidate. Ties go to the smaller value, then to the
// one seen first.
func (c chooser) pickBest(strategy hint.Merge) decision {
	order, rationale, lost := c.rankingFor(strategy)
	if reviewed := c.reviewed(); len(reviewed) > 0 && len(reviewed) < len(c.all) {
		return c.pickReviewed(strategy, reviewed)
	}

	best, tied := &c.all[0], false
	for i := 1; i < len(c.all); i++ {
		next := &c.all[i]

		// A tie is one with the best; a better one that follows ends it.
		ranked := order(next, best)
		if ranked == 0 {
			tied = true
		} else if ranked < 0 {
			tied = false
		}

		if cmp.Or(ranked, c.property.Compare(next.Value, best.Value), strings.Compare(next.Key, best.Key), next.First.Compare(best.First)) < 0 {
			best = next
		}
	}

	d := decision{
		value: chosenValue{best.Key, best.Value}, citations: best.Citations, confidence: best.meanConfidence(), said: meanOf(best.said, best.saidCount), derived: best.derived,
		conflict: len(c.all) > 1, rationale: rationale, lossReason: lost,
	}

	switch {
	case strategy == hint.MergeVote && d.conflict:
		d.applyVote(c.all, best)
	case strategy == hint.MergeConfidence:
		d.confidence = float64(best.Best) / 1e6
	}

	if tied {
		d.rationale += "; of equal ones the smallest value"
		d.lossReason += ", or was equal and not the smallest value"
	}
	return d
}

// reviewed returns the values that a person has decided to be right.
func (c chooser) reviewed() (all []option) {
	for _, o := range c.all {
		if o.reviewed {
			all = append(all, o)
		}
	}
	return all
}

// pickReviewed chooses among the values that people have decided to be right. The others lose, however
// many they are.
func (c chooser) pickReviewed(strategy hint.Merge, all []option) decision {
	d := chooser{c.property, all}.pickBest(strategy)
	if len(all) == 1 {
		d.rationale = "a person has decided so"
	} else {
		d.rationale = "a person has decided so, of several: " + d.rationale
	}
	d.conflict, d.lossReason = true, "a person has decided for another"
	return d
}

// applyVote explains the vote, and multiplies the confidence in the winner by its
// share of the weight.
func (d *decision) applyVote(all []option, best *option) {
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

// valueLength measures a text in characters and a list in elements.
func valueLength(v any) int {
	switch v := v.(type) {
	case string:
		return len([]rune(v))
	case []any:
		return len(v)
	default:
		return 0
	}
}

// sumAll adds all values, each as often as it was found.
func (c chooser) sumAll() decision {
	var total decimal
	for i := range c.all {
		n, ok := c.all[i].Value.(json.Number)
		if ok {
			total.addMultiple(n.String(), c.all[i].Count)
		}
	}

	d := c.joinCitations()
	d.value.display = json.Number(total.String())
	d.value.key = total.String()
	return d
}

// combineAll keeps all values, in the order of the input: as a list, or as texts
// joined by separator.
func (c chooser) combineAll(separator string) decision {
	d := c.joinCitations()

	list := make([]any, 0, len(c.all))
	var texts []string
	for _, one := range slices.SortedFunc(slices.Values(c.all), func(a, b option) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Key, b.Key))
	}) {
		list = append(list, one.Value)
		texts = append(texts, spellingOf(one.Value))
	}

	// A property that is no list gets its texts as one.
	d.value.display = list
	if c.property.Type != schema.Array {
		d.value.display = strings.Join(texts, separator)
	}

	d.value.key = c.property.Identity(d.value.display)
	return d
}

// joinCitations returns a decision with the citations of all candidates, in the
// order of the input.
func (c chooser) joinCitations() decision {
	var d decision
	var weight, count, said, saying int64
	seen := map[Citation]bool{}
	for _, one := range slices.SortedFunc(slices.Values(c.all), func(a, b option) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Key, b.Key))
	}) {
		weight += one.Weight
		count += one.Count
		said += one.said
		saying += one.saidCount

		// A place that several values cite is listed once.
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

// meanOf divides a sum of millionths by n. It returns 0 if n is 0.
func meanOf(sum, n int64) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n) / 1e6
}
