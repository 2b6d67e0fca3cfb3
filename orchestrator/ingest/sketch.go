package ingest

import (
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
)

// A sketch is the plan of a submission, made beside its units of the pieces that these have
// anyway. It keeps to this:
//
//   - It is the plan that PlanJob makes of the same documents, as long as their text is at most
//     sketchedWhole. Of what comes after, passages are counted from all over the submission,
//     ever fewer, and the tokens of the rest are reckoned by the kinds of its characters.
//   - No submission fails for it. One with more than maxSketched items has no plan.
type sketch struct {
	planning *planning // nil once there is no plan
	seen     int64     // bytes of the texts so far
	counted  int64     // bytes of what was counted of them
	tokens   int64     // of what was counted
	weight   int64     // of what was counted
	next     int64     // bytes from which on the next passage is counted
}

// Bounds of what a plan costs a submission: a few MiB, and some milliseconds.
const (
	maxSketched     = 1 << 15 // items
	sketchedWhole   = 1 << 16 // bytes of the texts that are counted whole
	sketchedMore    = 1 << 14 // bytes that are counted more each time that there is e times the text
	sketchedPassage = 1 << 12 // bytes that are counted of a text
	sketchedStep    = 8       // bytes of which one is weighed, in a text that has some hundreds
)

// newSketch returns an empty sketch of a submission that has begun.
func newSketch(s *submission) *sketch {
	k := new(sketch)
	k.planning = &planning{
		submission: submission{
			config: s.config, spec: s.spec, graph: s.graph, count: s.count, cut: s.cut, bundle: newBundle(s.graph, s.spec, s.count),
		},
		size: k.size, gather: newGatherer(s.config, s.spec, s.graph),
	}
	return k
}

// size returns the tokens of a text: counted, or reckoned by what was counted.
func (k *sketch) size(text string) int64 {
	k.seen += int64(len(text))
	if k.seen <= sketchedWhole {
		return k.count(text)
	}

	// Whether a text is taken must not depend on its length, as a short one has other words.
	if k.seen >= k.next {
		passage := cutAtRune(text, max(sketchedPassage, sketchedWhole-k.counted))
		k.count(passage)
		k.next = k.seen + k.seen*int64(len(passage))/sketchedMore
	}
	if k.weight == 0 {
		return 0
	}
	return int64(float64(weigh(text)) * float64(k.tokens) / float64(k.weight))
}

// count counts the tokens of a passage, by which those of others are reckoned.
func (k *sketch) count(passage string) int64 {
	tokens := int64(k.planning.count.Count(passage))
	k.counted, k.tokens, k.weight = k.counted+int64(len(passage)), k.tokens+tokens, k.weight+weigh(passage)
	return tokens
}

// weigh returns a number that is about in proportion to the tokens of a text, by some of its bytes.
// Words, numbers and the scripts of Asia have very different numbers of tokens a byte.
func weigh(text string) (weight int64) {
	step := min(max(1, len(text)/64), sketchedStep)
	for i := 0; i < len(text); i += step {
		weight += int64(weights[text[i]])
	}
	return weight * int64(step)
}

// weights are twentieths of a token, by the bytes of UTF-8, fitted to what is counted of receipts,
// reports, answers of models and code: what a token weighs there has a standard deviation of 4 %, and
// the bytes of a token have one of 26 %.
var weights = func() (w [256]uint8) {
	for b := range w {
		switch {
		case b >= 0xe0: // begins a character of three bytes or more
			w[b] = 15
		case b >= 0xc0: // one of two bytes
			w[b] = 10
		case b >= utf8.RuneSelf:
			// counted with the first byte of its character
		case b >= 'a' && b <= 'z':
			w[b] = 2
		case b >= 'A' && b <= 'Z':
			w[b] = 6
		case b >= '0' && b <= '9':
			w[b] = 13
		default:
			w[b] = 12
		}
	}
	return w
}()

// cutAtRune returns at most so many of the first bytes of a text, without a part of a character.
func cutAtRune(text string, bytes int64) string {
	if int64(len(text)) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}

// addDocument takes the n-th document, whose units are not known yet.
func (k *sketch) addDocument(d *mapreduce.Document, n int64) {
	p := k.planning
	if p == nil {
		return
	}

	p.publication.Documents = n + 1
	var err error
	switch {
	case !needsParsing(d.MediaType):
		if err = p.joinDirect(d.ID, string(d.Content), plan.Item{}); err == nil && p.gather != nil {
			err = p.holdGathered(d, plan.Item{})
		}
	case k.mayCut(int64(len(d.Content))) > maxSketched:
		k.planning = nil
	default:
		err = p.planUnparsed(d.ID, d)
	}
	k.keepBounds(err)
}

// mayCut returns into how many units a document of so many bytes may be cut at most.
func (k *sketch) mayCut(bytes int64) int64 {
	spec := k.planning.spec
	most := int64(max(1, spec.MaxTokensPerUnit))
	return bytes / max(1, most-int64(max(0, spec.ChunkOverlap)))
}

// addPieces takes the pieces into which the text of a document is cut.
func (k *sketch) addPieces(id mapreduce.DocumentID, text string, pieces []pack.Piece) {
	if k.planning != nil {
		k.planning.addPieces(id, text, pieces)
		k.keepBounds(nil)
	}
}

// keepBounds gives the plan up if it cannot be made, or becomes too large.
func (k *sketch) keepBounds(err error) {
	if p := k.planning; p != nil && (err != nil || p.countItems() > maxSketched) {
		k.planning = nil
	}
}

// plan returns the plan of a submission that is whole, nil if it has none, and how long the job takes at least.
func (k *sketch) plan(s *submission) (*mapreduce.JobPlan, time.Duration) {
	p := k.planning
	if p == nil {
		return nil, s.atLeast()
	}

	p.publication, p.tokens = s.publication, s.tokens
	stage, err := p.chooseStage()
	if err != nil {
		return nil, s.atLeast()
	}
	dag, err := p.graph.Build(stage, p.items, p.config.planRates(p.spec))
	if err != nil {
		return nil, s.atLeast()
	}
	asking := int64(0)
	for i := range dag.Nodes {
		if dag.Nodes[i].Load.Calls > 0 {
			asking++
		}
	}
	return &mapreduce.JobPlan{Units: int64(len(dag.Nodes)), Asking: asking, PlanSpend: dag.Estimate.Expected.Spent()}, dag.Estimate.Makespan
}
