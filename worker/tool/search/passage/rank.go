package passage

import (
	"cmp"
	"math"
	"slices"
)

// The parameters of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework:
// BM25 and Beyond, 2009), with the usual values.
const (
	saturation = 1.2  // k1
	lengthRate = 0.75 // b
)

// A Collection says of passages what BM25 needs to know of all of them.
type Collection struct {
	Passages int64
	Words    int64 // sum of the lengths of the passages
}

// Rarity returns the weight of a word that is in so many passages.
func (c Collection) Rarity(passages int) float64 {
	n := float64(passages)
	return math.Log(1 + (float64(c.Passages)-n+0.5)/(n+0.5))
}

// Score returns what a word adds to the score of a passage of a length which has it so many
// times.
func (c Collection) Score(rarity float64, times, length int) float64 {
	mean := float64(c.Words) / float64(max(c.Passages, 1))
	tf := float64(times)
	return rarity * tf * (saturation + 1) / (tf + saturation*(1-lengthRate+lengthRate*float64(length)/max(mean, 1)))
}

// A Scan ranks passages by looking at each of them. It is what an index must not differ from.
type Scan struct {
	passages []map[string]int // how often each has each term
	lengths  []int
	all      Collection
}

// Add adds a passage. It has the number of those before it.
func (s *Scan) Add(t Terms) {
	counts := make(map[string]int)
	for _, terms := range [][]string{t.Words, t.Singles} {
		for _, term := range terms {
			counts[term]++
		}
	}
	s.passages = append(s.passages, counts)
	s.lengths = append(s.lengths, len(t.Words))
	s.all.Passages++
	s.all.Words += int64(len(t.Words))
}

// A Ranked is a passage with its score.
type Ranked struct {
	Number int
	Score  float64
}

// Search returns the passages that have a word of the query, best first, and at most so many.
// Of equal ones the earlier comes first.
func (s *Scan) Search(q Query, most int) []Ranked {
	scores := make([]float64, len(s.passages))
	times := make([]int, len(s.passages))
	for _, terms := range q.Words {
		n := 0
		for i, counts := range s.passages {
			times[i] = 0
			for _, term := range terms {
				times[i] += counts[term]
			}
			if times[i] > 0 {
				n++
			}
		}

		// Rarity needs the number of all passages with the word.
		rarity := s.all.Rarity(n)
		for i, tf := range times {
			if tf > 0 {
				scores[i] += s.all.Score(rarity, tf, s.lengths[i])
			}
		}
	}

	var all []Ranked
	for i, score := range scores {
		if score > 0 {
			all = append(all, Ranked{i, score})
		}
	}

	slices.SortStableFunc(all, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(len(all), most)]
}
