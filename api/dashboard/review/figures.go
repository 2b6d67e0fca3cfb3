package review

import (
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Share is how many of the values that chance chose are right, as far as they were decided about.
type Share struct {
	Chosen  int     `json:"chosen"`
	Decided int     `json:"decided"`
	Right   int     `json:"right"`
	Low     float64 `json:"low"` // the true share is in [Low, High] with a probability of 0.95
	High    float64 `json:"high"`
}

func (s *Share) add(item *Item) {
	s.Chosen++
	if item.Verdict == "" {
		return
	}
	s.Decided++
	// No value is right where the document has none.
	if item.Verdict == mapreduce.ReviewAccept.String() || item.Verdict == mapreduce.ReviewAbsent.String() && string(item.Value) == "null" {
		s.Right++
	}
}

// bound computes the interval by Wilson's score, which holds for small samples and shares near 0 and 1.
func (s *Share) bound() {
	if s.Decided == 0 {
		s.Low, s.High = 0, 1
		return
	}
	const z = 1.959964 // of 0.95
	n := float64(s.Decided)
	p := float64(s.Right) / n
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	s.Low, s.High = max(0, middle-half), min(1, middle+half)
}

// An Agreement is how well two people agree about the values that both have decided about. Of more
// people it is of each two of them together.
type Agreement struct {
	Values int     `json:"values"` // pairs of decisions about one value
	Same   int     `json:"same"`
	Kappa  float64 `json:"kappa"` // Cohen's: 1 if they always agree, 0 if no more than by chance
}

// agreementOf compares the last decisions of each person. Two agree if their verdicts are the same,
// and of corrections the values.
func agreementOf(all map[valueOf][]*mapreduce.Decision) Agreement {
	var a Agreement
	first, second := make(map[string]int), make(map[string]int) // by verdict
	for _, decisions := range all {
		last := make(map[string]*mapreduce.Decision)
		for _, d := range decisions {
			if had := last[d.By]; had == nil || had.Number < d.Number {
				last[d.By] = d
			}
		}

		var people []string
		for by, d := range last {
			if d.Verdict != mapreduce.ReviewWithdraw {
				people = append(people, by)
			}
		}
		slices.Sort(people)
		for i, one := range people {
			for _, other := range people[i+1:] {
				x, y := labelOf(last[one]), labelOf(last[other])
				a.Values++
				if x == y {
					a.Same++
				}
				first[x]++
				second[y]++
			}
		}
	}
	a.Kappa = kappa(a, first, second)
	return a
}

func labelOf(d *mapreduce.Decision) string {
	if d.Verdict == mapreduce.ReviewCorrect {
		return d.Verdict.String() + " " + string(d.Value)
	}
	return d.Verdict.String()
}

func kappa(a Agreement, first, second map[string]int) float64 {
	if a.Values == 0 {
		return 0
	}

	n := float64(a.Values)
	byChance := 0.0
	for label, times := range first {
		byChance += float64(times) / n * float64(second[label]) / n
	}

	if byChance == 1 {
		return 1 // both have said the same of everything
	}
	return (float64(a.Same)/n - byChance) / (1 - byChance)
}
