package ingest

import (
	"context"
	"crypto/sha256"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// maxDirectBytes bounds the documents that one call may take, whatever their
// tokens: they are held together in memory.
const maxDirectBytes = 8 << 20

// A directInput is documents that one unit may take, of a stage whose units take all.
type directInput struct {
	graph  *plan.Graph
	spec   mapreduce.JobSpec // as that stage runs
	count  jobspec.Counter
	docs   []payload.Document
	types  []string // media types of docs
	tokens int64
	bytes  int
	ids    map[mapreduce.DocumentID]int64 // of documents seen so far, held or to be parsed
}

// newBundle returns an empty directInput for the documents of a job; nil if the pipeline
// has no stage that takes all of them at once.
func newBundle(g *plan.Graph, spec *mapreduce.JobSpec, count jobspec.Counter) *directInput {
	stage := g.Bundles()
	if stage < 0 {
		return nil
	}
	own := jobspec.ForStage(*spec, g.Pipeline().Stages[stage])
	return &directInput{graph: g, spec: own, count: count, ids: make(map[mapreduce.DocumentID]int64)}
}

// addDocument takes a document.
func (d *directInput) addDocument(doc payload.Document, mediaType string) {
	d.docs, d.types = append(d.docs, doc), append(d.types, mediaType)
	d.tokens = pack.Sum(d.tokens, int64(d.count.Count(string(doc.Text))))
	d.bytes += len(doc.Text)
}

// fitsOneUnit reports whether one unit may take all that is held, whatever else comes.
func (d *directInput) fitsOneUnit() bool {
	return d.graph.MayBundle(int64(len(d.docs)), d.tokens) && d.bytes <= maxDirectBytes
}

// isTaken reports whether one unit takes what is held, if that is all.
func (d *directInput) isTaken() (bool, error) {
	stage, err := d.graph.DocumentStage(int64(len(d.docs)), d.tokens)
	return err == nil && stage == d.graph.Bundles() && d.bytes <= maxDirectBytes, err
}

// countCharacters counts those of all documents.
func countCharacters(docs []payload.Document) (n int64) {
	for _, d := range docs {
		n += int64(utf8.RuneCount(d.Text))
	}
	return n
}

// makeUnit makes the unit that takes all, with its text.
func (d *directInput) makeUnit(c *Config) (*records.Unit, []byte, error) {
	data, err := payload.EncodeDocuments(d.docs)
	if err != nil {
		return nil, nil, err
	}

	sum, level := sha256.Sum256(data), d.graph.First(d.graph.Bundles())
	size, last := int64(len(data)), d.docs[len(d.docs)-1].Number

	return &records.Unit{
		ID: level.Unit, Kind: level.Kind, Stage: int64(level.Stage), Index: keys.DirectIndex(last),
		Shard: last % int64(c.Shards), Estimate: c.Estimate(&d.spec, d.tokens),
		Source: &records.Source{
			SHA256: sum[:], Length: size, CoreEnd: size, End: size, CharEnd: countCharacters(d.docs), Chunks: 1,
			Documents: int64(len(d.docs)),
		},
	}, data, nil
}

// holdDocument keeps a document for the unit that takes all. With the first that does not
// fit any more all of them are staged as units of their own.
func (s *submission) holdDocument(ctx context.Context, d *mapreduce.Document, n int64) error {
	if err := memory.Hold(ctx, heldBytes(d)); err != nil {
		return err
	}
	s.bundle.addDocument(payload.Document{Document: string(d.ID), Number: n, Metadata: d.Metadata, Text: d.Content}, d.MediaType)
	if s.bundle.fitsOneUnit() {
		return nil
	}
	return s.stageHeldDocuments(ctx)
}

// heldBytes is about what a document takes that is held until others have come: its text
// twice, as it is encoded beside them.
func heldBytes(d *mapreduce.Document) int64 { return 2*int64(len(d.Content)) + noteBytes(d.ID) }

// noteBytes is about what it takes to remember a document.
func noteBytes(id mapreduce.DocumentID) int64 { return 256 + int64(len(id)) }

// stageHeldDocuments stages the documents that are held as units of their own.
func (s *submission) stageHeldDocuments(ctx context.Context) error {
	held := s.bundle
	s.bundle = nil
	if s.graph.Cuts() < 0 {
		return tooLarge(held)
	}

	for i, doc := range held.docs {
		one := &mapreduce.Document{ID: mapreduce.DocumentID(doc.Document), MediaType: held.types[i], Metadata: doc.Metadata, Content: doc.Text}
		if err := s.stageDocumentUnits(ctx, one, doc.Number); err != nil {
			return err
		}
	}
	return nil
}

// tooLarge is why documents are refused that one unit has to take, and cannot.
func tooLarge(d *directInput) error {
	return errs.Field("documents", "the %d documents have %d bytes of text, and the stage %s takes all of them at once, at most %d bytes",
		len(d.docs), d.bytes, d.graph.First(d.graph.Bundles()).Unit, maxDirectBytes)
}

// finishIngest decides which stage gets the documents, and stages the unit that takes all
// of them, if there is one. With documents that workers turn into text first it is
// known only then whether it stays.
func (s *submission) finishIngest(ctx context.Context) error {
	// Documents that are still to be parsed may make them too many for one unit.
	undecided := s.bundle != nil && s.publication.Parse > 0
	if s.bundle != nil && !undecided {
		taken, err := s.bundle.isTaken()
		if err != nil {
			return err
		}
		if !taken {
			if err := s.stageHeldDocuments(ctx); err != nil {
				return err
			}
		}
	}

	if s.bundle == nil {
		s.publication.Level = jobspec.LevelOf(s.graph.First(s.graph.Cuts()))
		if s.gather != nil {
			if err := s.finishGathering(ctx); err != nil {
				return err
			}
		}
		return s.graph.Takes(s.graph.Cuts(), s.publication.Documents-s.publication.Skipped, s.tokens, s.publication.Parse > 0)
	}

	s.publication.Level, s.publication.Tree = jobspec.LevelOf(s.graph.First(s.graph.Bundles())), s.publication.Tree && undecided
	if len(s.bundle.docs) == 0 {
		return nil
	}

	u, data, err := s.bundle.makeUnit(s.config)
	if err != nil {
		return err
	}

	s.publication.Characters += u.Source.CharEnd
	s.publication.Map = 1
	s.noteUnit(u)

	if err := s.stageText(ctx, data, u.Source.SHA256); err != nil {
		return err
	}
	return s.stageUnits(ctx, []*records.Unit{u})
}
