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
//   - It is the plan that PlanJob makes of the same documents, as long as their text is below
//     maxSketchedText. The tokens of what comes after are guessed by those that were counted.
//   - No submission fails for it. One with more than maxSketched items has no plan.
type sketch struct {
	planning *planning // nil once there is no plan
	counted  int64     // bytes of the texts whose tokens were counted
	tokens   int64     // of these
}

// Bounds of what a plan costs a submission: a few MiB, and some hundredths of a second.
const (
	maxSketched     = 1 << 15 // items
	maxSketchedText = 1 << 20 // bytes
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

// size returns the tokens of a text: counted, or guessed once enough were counted.
func (k *sketch) size(text string) int64 {
	bytes := int64(len(text))
	if k.counted+bytes > maxSketchedText {
		if k.counted == 0 {
			return int64(utf8.RuneCountInString(text)) / guessedCharacters
		}
		return int64(float64(bytes) * float64(k.tokens) / float64(k.counted))
	}

	tokens := int64(k.planning.count.Count(text))
	k.counted, k.tokens = k.counted+bytes, k.tokens+tokens
	return tokens
}

// guessedCharacters is how many characters a token has where nothing was counted.
const guessedCharacters = 4

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
