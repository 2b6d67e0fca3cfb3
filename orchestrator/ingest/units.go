package ingest

import (
	"crypto/sha256"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// initialShard is where the units of the n-th document wait.
func (c *Config) initialShard(n int64) int64 {
	return n % int64(c.Shards)
}

// A cutter makes the units of documents, of the stage that has a unit for each document
// or cuts them.
type cutter struct {
	config *Config
	stage  *pipeline.Stage
	index  int
	spec   mapreduce.JobSpec // as the units of the stage run with it
	count  jobspec.Counter
}

// newCutter returns the cutter of a job; nil if no stage of it has such units.
func newCutter(c *Config, spec *mapreduce.JobSpec, g *plan.Graph) *cutter {
	if g.Cuts() < 0 {
		return nil
	}
	stage := g.Pipeline().Stages[g.Cuts()]
	own := jobspec.ForStage(*spec, stage)
	return &cutter{config: c, stage: stage, index: g.Cuts(), spec: own, count: c.Rules.Counter(&own)}
}

// makeUnits makes the units of the n-th document, whose text is given.
func (c *cutter) makeUnits(d *mapreduce.Document, content []byte, n int64) ([]*records.Unit, error) {
	text := string(content)
	pieces, err := c.cutText(d.ID, text)
	if err != nil {
		return nil, err
	}
	return c.unitsOf(d, text, n, pieces), nil
}

// unitsOf makes the units of the n-th document, whose text is cut into pieces.
func (c *cutter) unitsOf(d *mapreduce.Document, text string, n int64, pieces []pack.Piece) []*records.Unit {
	sum := sha256.Sum256([]byte(text))
	units := make([]*records.Unit, len(pieces))
	chars, at := int64(0), 0
	count := func(to int) int64 { // code points before byte to; called with growing offsets
		chars += int64(utf8.RuneCountInString(text[at:to]))
		at = to
		return chars
	}

	for i, p := range pieces {
		src := &records.Source{
			SHA256: sum[:], Length: int64(len(text)), Start: int64(p.Start), End: int64(p.End),
			CoreStart: int64(p.CoreStart), CoreEnd: int64(p.CoreEnd),
			ChunkIndex: int64(i), Chunks: int64(len(pieces)), MediaType: d.MediaType, Metadata: d.Metadata,
		}
		src.CharStart = count(p.CoreStart)
		src.CharOffset = src.CharStart - int64(utf8.RuneCountInString(text[p.Start:p.CoreStart]))
		src.CharEnd = count(p.CoreEnd)

		units[i] = &records.Unit{
			ID: mapUnit(d.ID, i, len(pieces)), Document: d.ID, Kind: mapreduce.KindMap, Stage: int64(c.index),
			Index: keys.MapIndex(n, int64(i)), Source: src, Shard: c.config.initialShard(n),
			Estimate: c.config.Estimate(&c.spec, int64(p.Tokens)),
		}
	}

	return units
}

// cutText cuts the text of a document, if the stage has units for parts of documents.
func (c *cutter) cutText(id mapreduce.DocumentID, text string) ([]pack.Piece, error) {
	if c.stage.Each == pipeline.EachDocument {
		return []pack.Piece{{CoreEnd: len(text), End: len(text), Tokens: c.count.Count(text), Exact: true}}, nil
	}

	pieces, err := pack.Cut(text, pack.Options{
		MaxTokens: c.spec.MaxTokensPerUnit, Overlap: max(0, c.spec.ChunkOverlap), Counter: c.count,
	})
	if err != nil {
		return nil, errs.Field("max_tokens_per_unit", "%s", err)
	}

	if len(pieces) >= keys.MaxChunks-1 {
		return nil, errs.Field("documents", "document %q would be cut into %d chunks; at most %d are taken", id, len(pieces), keys.MaxChunks-2)
	}
	return pieces, nil
}

// mapUnit returns the id of the i-th of the units of a document.
func mapUnit(d mapreduce.DocumentID, i, units int) mapreduce.UnitID {
	if units == 1 {
		return mapreduce.MapUnit(d)
	}
	return mapreduce.ChunkUnit(d, i)
}

// AnswerTokens is what a call's answer may take, unless the provider says more.
const AnswerTokens = 8192
