// Package certify decides which answers of a cheaper source may stand in place of those of
// a dearer one, the oracle, so that at least a given share of all answers is as the oracle
// would have them, with a given confidence.
//
// It is the accuracy form of BARGAIN (Zeighami, Shankar, Parameswaran: Cut Costs, Not
// Accuracy: LLM-Powered Data Processing with Guarantees, SIGMOD 2026), with the betting test
// of Waudby-Smith and Ramdas (Estimating means of bounded random variables by betting, 2024).
// Items are sorted by a score of the cheaper answer. Of the first items, in growing steps, a
// sample is labelled: is the cheaper answer that of the oracle? A step is accepted once a
// test says that enough answers of it are right, and the first step that fails ends the
// search. What is not accepted, and what was labelled, takes the oracle's answer.
//
// What always holds:
//
//  1. Whatever the scores and the labels are, the share of right answers is below Rules.Target
//     with a probability of at most 1 - Rules.Confidence, for each measure. The probability is
//     that of the draws, which depend on nothing but Rules.Seed and the number of items.
//  2. The same rules, scores and labels come to the same draws and the same decision, however
//     often and from wherever they are asked for: nothing is kept between two calls.
//  3. Draws never depend on labels of items that are not drawn. Labels that are known of other
//     items are not used.
//  4. An item that was drawn is never accepted: its answer is the oracle's.
//
// Why no correction for the number of steps is needed: if the accepted step has too few right
// answers, then the first such step has passed its test, for all steps before it had to pass.
// So the probability of a failure is that of this one test. Its sample is the beginning of a
// permutation of all items that was drawn before anything was labelled, as far as the items
// are of the step, and the test holds at any time. So labels can serve all steps and
// measures, and when to stop may be decided by whatever was seen.
//
// It is pure, and imports the standard library alone.
package certify

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Rules say what is to be certified.
type Rules struct {
	Target     float64 // share of answers that are to be the oracle's, in (0,1)
	Confidence float64 // in (0,1)
	Seed       uint64  // of the draws
	// Alone says that the accepted answers have to reach the target by themselves, as what is
	// not accepted takes answers of others than the oracle. Else those count that the oracle
	// gives.
	Alone bool
}

// Check returns an error that names the rule that is broken.
func (r Rules) Check() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"target", r.Target}, {"confidence", r.Confidence}} {
		if !(f.value > 0 && f.value < 1) { // nor a NaN
			return fmt.Errorf("%s is %v; it has to be more than 0 and less than 1, such as 0.95", f.name, f.value)
		}
	}
	return nil
}

// A Score orders the answers of the cheaper source: the higher, the more likely it is right.
// Any scores will do. Those that say little save little.
type Score uint32

// A Label says whether the cheaper answer about an item is the oracle's.
type Label uint8

// The labels.
const (
	Unknown Label = iota
	Wrong
	Right
)

// steps is how many prefixes of the sorted items are tried: M of the paper.
const steps = 20

// A Trial certifies the answers about some items by one or more measures, such as the fields
// of a record. An item is accepted if it is by all measures. It never changes.
type Trial struct {
	rules    Rules
	draws    []int32 // all items, in the order in which they are drawn
	measures []measure
}

// A measure is one by which answers are judged.
type measure struct {
	scores []Score
	sorted []int32 // items by score, the highest first
	ranks  []int32 // of the items in sorted
}

// New returns a trial of items with scores, given by measure and item.
func New(rules Rules, scores ...[]Score) (*Trial, error) {
	if err := rules.Check(); err != nil {
		return nil, err
	}
	if len(scores) == 0 {
		return nil, fmt.Errorf("there is no measure by which answers are judged")
	}

	t := &Trial{rules: rules, draws: permutation(rules.Seed, len(scores[0]))}
	for _, of := range scores {
		if len(of) != len(scores[0]) {
			return nil, fmt.Errorf("one measure has scores of %d items, and another of %d", len(scores[0]), len(of))
		}
		t.measures = append(t.measures, newMeasure(of))
	}
	return t, nil
}

// permutation returns the numbers below n in an order that depends on the seed alone.
func permutation(seed uint64, n int) []int32 {
	p := make([]int32, n)
	permute(seed, p)
	return p
}

// permute fills p with the permutation of as many numbers.
func permute(seed uint64, p []int32) {
	source := rand.NewPCG(seed, 0x636572746966790a)
	for i := range p {
		p[i] = int32(i)
	}

	for i := len(p) - 1; i > 0; i-- {
		j, _ := bits.Mul64(source.Uint64(), uint64(i+1)) // off by less than n in 2^64
		p[i], p[j] = p[j], p[i]
	}
}

func newMeasure(scores []Score) measure {
	m := measure{scores: scores, sorted: make([]int32, len(scores)), ranks: make([]int32, len(scores))}
	for i := range m.sorted {
		m.sorted[i] = int32(i)
	}

	// Of equal scores any order will do that does not depend on labels.
	slices.SortStableFunc(m.sorted, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	for rank, item := range m.sorted {
		m.ranks[item] = int32(rank)
	}
	return m
}

// A Step is what is to be done next.
type Step struct {
	Draw     []int     // items to be labelled next, by all measures; none if it is decided
	Verdicts []Verdict // by measure, as far as it is decided; all of them if nothing is to be drawn
}

// Done reports whether nothing is to be drawn.
func (s *Step) Done() bool { return len(s.Draw) == 0 }

// A Verdict is what was certified by a measure.
type Verdict struct {
	First  int   // so many items, in the order of their scores, may be accepted
	Least  Score // of these
	Labels int   // that the tests by this measure have used
	Right  int   // of these
	Ended  End   // the search
}

// An End is why no more items were tried.
type End uint8

// The ends.
const (
	Open     End = iota // it has not ended
	All                 // all items are certified
	Failed              // it is certain that too few answers of the next step are right
	TooDear             // the labels that the next step is likely to need are more than it could save
	Needless            // by another measure nothing is accepted
)

// String names the end.
func (e End) String() string {
	return [...]string{"open", "all", "failed", "too dear", "needless"}[e]
}

// Next returns what is to be done, given what is known of labels, by item and measure.
func (t *Trial) Next(known func(item, measure int) Label) Step {
	var s Step
	wanted := make(map[int]bool)
	for i := range t.measures {
		v, draw := t.search(i, known, t.giveUp)
		s.Verdicts = append(s.Verdicts, v)
		for _, item := range draw {
			wanted[item] = true
		}
	}

	// An item is accepted by all measures or by none.
	if slices.ContainsFunc(s.Verdicts, func(v Verdict) bool { return v.Ended != Open && v.First == 0 }) {
		for i := range s.Verdicts {
			if s.Verdicts[i].Ended == Open {
				s.Verdicts[i].Ended = Needless
			}
		}
		return s
	}

	for _, item := range t.draws {
		if wanted[int(item)] {
			s.Draw = append(s.Draw, int(item))
		}
	}
	return s
}

// Accepts reports whether an item is accepted by the verdicts of a trial that is done, given
// that it was not drawn.
func (t *Trial) Accepts(verdicts []Verdict, item int) bool {
	for i, v := range verdicts {
		if int(t.measures[i].ranks[item]) >= v.First {
			return false
		}
	}
	return true
}

// Items returns how many items the trial is about.
func (t *Trial) Items() int { return len(t.draws) }

// A stopping decides whether to give up on a step of first items with so many labels, after
// which before are certified: see Trial.giveUp. Whatever it says, the guarantee holds.
type stopping func(b *bet, before int) bool

// search tries one step after the other by a measure. It returns the items whose labels are
// needed to go on.
func (t *Trial) search(index int, known func(item, measure int) Label, giveUp stopping) (v Verdict, draw []int) {
	m, n := &t.measures[index], len(t.draws)
	for k := 1; k <= steps; k++ {
		first := k * n / steps
		if first == v.First {
			continue // there are fewer items than steps
		}

		need := t.rules.need(first, n)
		b := newBet(first, need, 1-t.rules.Confidence)
		draw, passed := t.test(m, index, b, v.First, known, giveUp)
		v.Labels, v.Right = max(v.Labels, b.labels), max(v.Right, b.right)

		switch {
		case len(draw) > 0:
			return v, draw
		case passed:
			v.First, v.Least = first, m.scores[m.sorted[first-1]]
		case b.lost():
			v.Ended = Failed
			return v, nil
		default:
			v.Ended = TooDear
			return v, nil
		}
	}

	v.Ended = All
	return v, nil
}

// need returns how many answers of the first items of n have to be right.
func (r Rules) need(first, n int) int {
	if r.Alone {
		return int(math.Ceil(r.Target*float64(first) - 1e-9))
	}
	return int(math.Ceil(r.Target*float64(n)-1e-9)) - (n - first)
}

// test takes labels in the order of the draws until a step is certified or given up, or until
// labels are missing. It returns the items whose labels are: those up to the next look, which
// are the same however many of them are known.
func (t *Trial) test(m *measure, index int, b *bet, before int, known func(item, measure int) Label, giveUp stopping) (draw []int, passed bool) {
	ahead := 0 // labels that are yet to be looked at
	for _, item := range t.draws {
		if b.won() {
			return nil, true
		}
		if int(m.ranks[item]) >= b.items {
			continue
		}
		label := known(int(item), index)
		if ahead == 0 && b.labels == b.look {
			b.look += b.next()
		}

		if ahead == 0 && label != Unknown {
			b.take(label == Right)
			if given := giveUp(b, before); given || b.lost() {
				return nil, false
			}
			continue
		}

		// Those behind it may be known, as others have drawn them.
		if label == Unknown {
			draw = append(draw, int(item))
		}
		if ahead++; b.labels+ahead == b.look {
			return draw, false
		}
	}

	return draw, len(draw) == 0 && b.won()
}

// few is how many labels are taken before a step is given up that might succeed.
const few = 50

// giveUp gives up a step that is likely to need more labels than could be saved behind what is
// certified, unless all labels are right. The paper gives up where
// the mean less the deviation of the labels is below the target. For a target of 0.95 that ends
// the search with the first or second wrong answer among fifty.
func (t *Trial) giveUp(b *bet, before int) bool {
	if b.labels < few || b.right == b.labels {
		return false
	}
	return b.expected() > float64(len(t.draws)-before)
}
