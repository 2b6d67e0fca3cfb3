package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// maxSortedBytes bounds the documents that a submission holds until it knows all of
// them, as they are sorted.
const maxSortedBytes = 64 << 20

// A gatherer makes units over several documents each: batches, or for each agent a unit
// over all of them.
type gatherer struct {
	config *Config
	stage  *pipeline.Stage
	index  int // of the stage
	spec   *mapreduce.JobSpec
	own    mapreduce.JobSpec // the spec as the stage runs
	count  jobspec.Counter
	units  int // made so far
}

// newGatherer returns the gatherer of a job; nil if no stage of it has such units.
func newGatherer(c *Config, spec *mapreduce.JobSpec, g *plan.Graph) *gatherer {
	if !g.Gathers() {
		return nil
	}
	stage := g.Pipeline().Stages[g.Cuts()]
	own := jobspec.ForStage(*spec, stage)
	return &gatherer{config: c, stage: stage, index: g.Cuts(), spec: spec, own: own, count: c.Rules.Counter(spec)}
}

// A gathered is a document that is to be gathered with others.
type gathered struct {
	number int64
	id     mapreduce.DocumentID
	key    string // what it has in the field by which documents are sorted
	bytes  int64  // that a unit is given of its text, at most
	text   []byte // nil if it is to be read when its unit is made
	item   plan.Item
}

// newGathered returns a document as the stage takes it: with the passage of its text that
// is kept.
func (g *gatherer) newGathered(d *mapreduce.Document, n int64) (gathered, error) {
	text := d.Content[:g.stage.Kept(d.Content)]
	one := g.describe(d.ID, d.Metadata, n, int64(len(text)))
	one.text = text
	if one.bytes > maxDirectBytes {
		return one, errs.Field("documents", "document %q has %d bytes, and a unit of the stage %s is given at most %d: give the stage a passage",
			d.ID, one.bytes, g.stage.Name, maxDirectBytes)
	}
	return one, nil
}

// describe returns a document of which at most so many bytes are taken.
func (g *gatherer) describe(id mapreduce.DocumentID, metadata map[string]string, n, bytes int64) gathered {
	one := gathered{number: n, id: id, bytes: bytes}
	if by, ok := g.stage.Ordering(); ok {
		one.key, _ = pipeline.Document{ID: string(id), Metadata: metadata}.Value(by.Field)
	}
	return one
}

// sortDocuments puts documents in the order in which they are gathered.
func (g *gatherer) sortDocuments(all []gathered) {
	by, ok := g.stage.Ordering()
	slices.SortFunc(all, func(a, b gathered) int {
		if ok {
			if n := by.Compare(a.key, b.key); n != 0 {
				return n
			}
		}
		return cmp.Compare(a.number, b.number)
	})
}

// groups returns what the units of the stage take of documents, each the documents in a
// row up to one that is too many, or too large beside the others. With open set the
// last group is left out if more may come to it.
func (g *gatherer) groups(all []gathered, open bool) (groups [][]gathered) {
	size := g.stage.Size
	if g.stage.Each == pipeline.EachAgent {
		size = int64(len(all))
	}

	from, bytes := 0, int64(0)
	for i := range all {
		if i > from && (int64(i-from) == size || bytes+all[i].bytes > maxDirectBytes) {
			groups = append(groups, all[from:i])
			from, bytes = i, 0
		}
		bytes += all[i].bytes
	}

	if from < len(all) && (!open || int64(len(all)-from) == size) {
		groups = append(groups, all[from:])
	}
	return groups
}

// checkGroups refuses documents that each agent is to be given together, and cannot.
func (g *gatherer) checkGroups(groups [][]gathered) error {
	if g.stage.Each == pipeline.EachAgent && len(groups) > 1 {
		return g.tooMuchForAgents()
	}
	return nil
}

func (g *gatherer) tooMuchForAgents() error {
	return errs.Field("documents", "the stage %s gives all documents to each agent, at most %d bytes of text, and these have more", g.stage.Name, maxDirectBytes)
}

// unitID returns the id of the next unit.
func (g *gatherer) unitID() mapreduce.UnitID {
	id := mapreduce.UnitID(fmt.Sprintf("%s%d", mapreduce.StagePrefix(g.stage.Name), g.units))
	g.units++
	return id
}

// each returns how many units take the same documents.
func (g *gatherer) each() int { return max(1, len(g.stage.Agents)) }

// makeUnits makes the units that take a group of documents, with their text, which all
// of them share. Each of several agents counts for its share of the characters.
func (g *gatherer) makeUnits(docs []payload.Document) ([]*records.Unit, []byte, error) {
	data, err := payload.EncodeDocuments(docs)
	if err != nil {
		return nil, nil, err
	}

	tokens := int64(0)
	for _, d := range docs {
		tokens = pack.Sum(tokens, int64(g.count.Count(string(d.Text))))
	}

	sum, size, chars := sha256.Sum256(data), int64(len(data)), countCharacters(docs)
	units := make([]*records.Unit, g.each())
	for i := range units {
		at, n := int64(i), int64(len(units))
		units[i] = &records.Unit{
			Kind: mapreduce.KindMap, Stage: int64(g.index), Index: keys.GatheredIndex(int64(g.units)),
			Shard: g.config.initialShard(int64(g.units)), Estimate: g.config.Estimate(&g.own, tokens),
			Source: &records.Source{
				SHA256: sum[:], Length: size, CoreEnd: size, End: size, CharStart: chars * at / n, CharEnd: chars * (at + 1) / n,
				ChunkIndex: at, Chunks: n, Documents: int64(len(docs)),
			},
		}

		units[i].ID = g.unitID()
		if len(g.stage.Agents) > 0 {
			if units[i].Item, err = json.Marshal(map[string]string{"agent": g.stage.Agents[i]}); err != nil {
				return nil, nil, err
			}
		}
	}

	return units, data, nil
}

// A gathering is what a submission holds of documents that its units gather.
type gathering struct {
	*gatherer
	docs  []gathered
	meta  map[int64]map[string]string // metadata, by the number of the document
	bytes int64
	cut   int64                          // characters that are in no passage
	ids   map[mapreduce.DocumentID]int64 // of all documents so far
}

// gatherDocument holds a document until it is known which unit takes it.
func (s *submission) gatherDocument(ctx context.Context, d *mapreduce.Document, n int64) error {
	g := s.gather
	one, err := g.newGathered(d, n)
	if err != nil {
		return err
	}

	if err := memory.Hold(ctx, gatheredBytes(&one)+noteBytes(one.id)); err != nil { // the id is kept to the end
		return err
	}

	g.cut += int64(utf8.RuneCount(d.Content[len(one.text):]))
	if s.graph.Measures(g.index) {
		s.tokens = pack.Sum(s.tokens, int64(s.count.Count(string(one.text))))
	}

	g.docs, g.meta[n] = append(g.docs, one), d.Metadata
	g.bytes += one.bytes

	_, sorted := g.stage.Ordering()
	switch {
	case sorted && g.bytes > maxSortedBytes:
		return errs.Field("documents", "the stage %s sorts the documents, and more than %d bytes of text are not held for that: give it a passage", g.stage.Name, maxSortedBytes)
	case sorted || g.bytes <= maxDirectBytes:
		return nil
	case g.stage.Each == pipeline.EachAgent:
		return g.tooMuchForAgents()
	}

	return s.stageGathered(ctx, true)
}

// gatheredBytes is about what a document takes that is gathered with others: its text
// twice, as it is encoded beside them.
func gatheredBytes(d *gathered) int64 { return 2*d.bytes + 256 }

// stageGathered stages units of the documents that are held. With open set more may
// come, and those are held further that may be gathered with them.
func (s *submission) stageGathered(ctx context.Context, open bool) error {
	g := s.gather
	g.sortDocuments(g.docs)

	groups := g.groups(g.docs, open)
	if err := g.checkGroups(groups); err != nil {
		return err
	}

	staged := 0
	for _, group := range groups {
		units, data, err := g.makeUnits(g.bundled(group))
		if err != nil {
			return err
		}
		if err := s.stageBundle(ctx, units, data); err != nil {
			return err
		}
		staged += len(group)
	}

	for _, d := range g.docs[:staged] {
		g.bytes -= d.bytes
		memory.Of(ctx).Release(gatheredBytes(&d))
		delete(g.meta, d.number)
	}

	// The copy does not hold the texts that were staged.
	g.docs = slices.Clone(g.docs[staged:])
	return nil
}

// bundled returns documents as a unit is given them.
func (g *gathering) bundled(group []gathered) []payload.Document {
	docs := make([]payload.Document, len(group))
	for i, d := range group {
		docs[i] = payload.Document{Document: string(d.id), Number: d.number, Metadata: g.meta[d.number], Text: d.text}
	}
	return docs
}

// stageBundle stages units with the text that they share.
func (s *submission) stageBundle(ctx context.Context, units []*records.Unit, data []byte) error {
	for _, u := range units {
		s.publication.Characters += u.Source.CharEnd - u.Source.CharStart
		s.publication.Map++
		s.noteUnit(u)
	}
	if err := s.stageText(ctx, data, units[0].Source.SHA256); err != nil {
		return err
	}
	return s.stageUnits(ctx, units)
}

// finishGathering stages the units of the documents that are left. If others are yet to be
// parsed, they are staged as one unit which never runs: it is taken apart once all
// documents are text.
func (s *submission) finishGathering(ctx context.Context) error {
	g := s.gather
	if g.cut > 0 {
		s.publication.Warnings = append(s.publication.Warnings, fmt.Sprintf("stage %s reads passages: %d characters of documents are in none", g.stage.Name, g.cut))
	}

	if s.publication.Parse == 0 || len(g.docs) == 0 {
		return s.stageGathered(ctx, false)
	}

	units, data, err := g.makeUnits(g.bundled(g.docs))
	if err != nil {
		return err
	}

	one := units[0]
	one.ID, one.Item, one.Index = mapreduce.UnitID(g.stage.Name), nil, keys.DirectIndex(g.docs[0].number) // apart from those that come
	one.Source.CharStart, one.Source.CharEnd, one.Source.Chunks = 0, units[len(units)-1].Source.CharEnd, 1

	s.publication.Level.Unit = one.ID
	return s.stageBundle(ctx, units[:1], data)
}

// A regathering makes the units of documents of which workers have parsed some.
type regathering struct {
	*gatherer
	intake *Intake
	job    mapreduce.JobID
	docs   []gathered
	staged map[int64]payload.Document // documents that were text already, by number
	text   []byte                     // the SHA-256 of the text of the unit that holds these; nil if there is none
	shared bool                       // units of their own have the same text
	parsed map[int64]mapreduce.UnitID // the parse units of the others, by number
}

// insertGathered adds the units of documents that are gathered, once all are text. It
// returns what is to become of the unit that was staged for those which were text already.
// Documents that have a unit keep it, from a run that a resume goes on with, or from one
// that was cut off; the others are gathered among themselves.
func (in *Intake) insertGathered(ctx context.Context, id mapreduce.JobID, epoch int64, c *jobspec.Compiled, d *decision) (lifecycle.Dissolve, error) {
	r := &regathering{
		gatherer: newGatherer(in.config, c.Spec, c.Graph), intake: in, job: id,
		staged: make(map[int64]payload.Document), parsed: make(map[int64]mapreduce.UnitID),
	}

	staged := mapreduce.UnitID(r.stage.Name)
	if d.dissolve {
		staged = c.DirectUnit()
	}

	u, err := in.jobs.View.Unit(ctx, id, staged)
	if err != nil {
		return lifecycle.Dissolve{}, err
	}

	// The unit that was staged has the documents that were text already.
	var docs []payload.Document
	switch {
	case d.dissolve:
		docs = d.staged.docs
	case u != nil:
		if docs, err = outputs.Documents(ctx, in.jobs.Reader(), id, u); err != nil {
			return lifecycle.Dissolve{}, err
		}
		d.dissolve = true
	}

	if d.dissolve && u != nil {
		r.text = u.Reads().SHA256
	}

	taken, err := r.takenDocuments(ctx, staged, d)
	if err != nil {
		return lifecycle.Dissolve{}, err
	}

	for _, doc := range docs {
		if name := mapreduce.DocumentID(doc.Document); !taken[name] {
			r.staged[doc.Number] = doc
			r.docs = append(r.docs, r.describe(name, doc.Metadata, doc.Number, int64(len(doc.Text))))
		}
	}

	if err := r.addParsed(ctx, taken); err != nil {
		return lifecycle.Dissolve{}, err
	}

	r.sortDocuments(r.docs)
	groups := r.groups(r.docs, false)
	if err := r.checkGroups(groups); err != nil {
		return lifecycle.Dissolve{}, errs.New(errs.Precondition, "%v", err)
	}

	for _, group := range groups {
		if err := r.insertGroup(ctx, epoch, group); err != nil {
			return lifecycle.Dissolve{}, err
		}
	}

	return lifecycle.Dissolve{Staged: d.dissolve, KeepText: r.shared}, nil
}

// takenDocuments returns the documents that have units, but for the one that is staged.
// Units are numbered behind those.
func (r *regathering) takenDocuments(ctx context.Context, staged mapreduce.UnitID, d *decision) (map[mapreduce.DocumentID]bool, error) {
	taken := make(map[mapreduce.DocumentID]bool)
	for from := int64(0); ; {
		page, err := r.intake.jobs.View.UnitsFrom(ctx, r.job, 0, from, 64)
		if err != nil || len(page) == 0 {
			return taken, err
		}

		for _, u := range page {
			from = u.Index + 1
			src := u.Reads()
			last := src.ChunkIndex == src.Chunks-1
			if d.dissolve && u.ID == staged || !outputs.IsBundle(u) || !last {
				continue // of several agents all have the same, or were not all added
			}

			r.noteText(src.SHA256)
			docs, err := outputs.Documents(ctx, r.intake.jobs.Reader(), r.job, u)
			if err != nil {
				return nil, err
			}

			for _, doc := range docs {
				taken[mapreduce.DocumentID(doc.Document)] = true
			}

			if u.Stage == int64(r.index) {
				r.units += r.each()
			}
		}
	}
}

// noteText notes the text that a unit has: that of exactly the documents which were text
// already is stored once, and must outlast the unit that held it.
func (r *regathering) noteText(sum []byte) {
	r.shared = r.shared || r.text != nil && bytes.Equal(sum, r.text)
}

// addParsed adds the documents that workers have parsed, but for those that are taken.
func (r *regathering) addParsed(ctx context.Context, taken map[mapreduce.DocumentID]bool) error {
	for from := int64(0); ; {
		page, err := r.intake.jobs.View.UnitsFrom(ctx, r.job, -1, from, 256)
		if err != nil || len(page) == 0 {
			return err
		}

		for _, u := range page {
			from = u.Index + 1
			doc := u.Document
			if u.State != mapreduce.UnitComplete || taken[doc] {
				continue
			}

			length, err := outputs.ParsedTextLength(ctx, r.intake.jobs.Reader(), r.job, u)
			if err != nil {
				return err
			}
			if length == 0 {
				continue
			}

			// A passage is counted in characters, each of which has a few bytes at most.
			if p := r.stage.Passage; p > 0 && p < length/utf8.UTFMax {
				length = p * utf8.UTFMax
			}

			n := keys.Document(u.Index)
			r.docs, r.parsed[n] = append(r.docs, r.describe(doc, u.Reads().Metadata, n, length)), u.ID
		}
	}
}

// insertGroup adds the units of documents that are gathered together.
func (r *regathering) insertGroup(ctx context.Context, epoch int64, group []gathered) error {
	docs, counted := make([]payload.Document, len(group)), int64(0)
	for i, d := range group {
		if doc, ok := r.staged[d.number]; ok {
			docs[i] = doc
			counted += countCharacters(docs[i : i+1])
			continue
		}

		u, err := r.intake.jobs.View.Unit(ctx, r.job, r.parsed[d.number])
		if err != nil {
			return err
		}
		parsed, err := outputs.Parsed(ctx, r.intake.jobs.Reader(), r.job, u)
		if err != nil {
			return err
		}

		text := parsed.Text[:r.stage.Kept(parsed.Text)]
		docs[i] = payload.Document{Document: string(d.id), Number: d.number, Metadata: parsed.Describe(u.Reads().Metadata), Text: text}
	}

	units, data, err := r.makeUnits(docs)
	if err != nil {
		return err
	}

	if len(data) > 2*maxDirectBytes {
		return errs.New(errs.Precondition, "document %q has %d bytes of text, and a unit of the stage %s is given at most %d: give the stage a passage",
			docs[0].Document, len(docs[0].Text), r.stage.Name, maxDirectBytes)
	}

	r.noteText(units[0].Source.SHA256)
	all := splitBatches(data, units)

	// Documents that were text already were counted when they were submitted.
	all[len(all)-1].Known = counted
	return r.intake.jobs.Levels.Insert(ctx, r.job, epoch, all)
}

// gatherItems returns the units that a plan has of documents which are gathered.
func (g *gatherer) gatherItems(all []gathered) ([]plan.Item, error) {
	g.sortDocuments(all)
	groups := g.groups(all, false)
	if err := g.checkGroups(groups); err != nil {
		return nil, err
	}

	var items []plan.Item
	for _, group := range groups {
		var it plan.Item
		for _, d := range group {
			it.Of = append(it.Of, d.item)
			it.Tokens = pack.Sum(it.Tokens, d.item.Tokens)
			it.Guessed, it.Expected = it.Guessed || d.item.Guessed, it.Expected || d.item.Expected
		}

		for range g.each() {
			it.Unit = g.unitID()
			items = append(items, it)
		}
	}
	return items, nil
}
