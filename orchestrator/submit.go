package orchestrator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator/chunk"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/pack"
	"github.com/coditect/mapreduce/orchestrator/plan"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
)

// SubmitJob implements mapreduce.Service. Documents are staged as they come, in
// bounded memory; one transaction makes the job visible.
func (o *Orchestrator) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	if spec.Replay != "" {
		var err error
		if spec, docs, err = o.replayInput(ctx, spec, docs); err != nil {
			return nil, err
		}
	}
	spec, err := o.config.specRules().Complete(spec)
	if err != nil {
		return nil, err
	}
	if spec.RequestID != "" {
		id, err := o.jobs.Requested(ctx, spec.Tenant, spec.RequestID)
		if err != nil {
			return nil, err
		}
		if id != "" {
			o.markOwnJob(id)
			return o.jobs.Job(ctx, id)
		}
	}
	id, err := o.reserveJobID(ctx, &spec)
	if err != nil {
		return nil, err
	}
	winner, err := o.ingestJob(ctx, id, &spec, docs)
	if err != nil || winner != id {
		o.abandonJob(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	o.signals.NotifyWatchers(winner)
	if winner != id {
		o.markOwnJob(winner)
		if err := o.refreshJob(ctx, winner); err != nil {
			return nil, err
		}
	}
	return o.jobs.Job(ctx, winner)
}

// reserveJobID draws a job id that is not taken.
func (o *Orchestrator) reserveJobID(ctx context.Context, spec *mapreduce.JobSpec) (mapreduce.JobID, error) {
	stored := jobs.StoredSpec(spec)
	for range 10 {
		id := mapreduce.NewJobID(time.Now(), rand.IntN)
		err := o.jobs.Begin(ctx, id, stored)
		if err == nil || errs.KindOf(err) != errs.Exists {
			return id, err
		}
	}
	return "", errs.New(errs.Unavailable, "no free job id was found; try again")
}

// abandonJob removes what was staged, even if the client has gone.
func (o *Orchestrator) abandonJob(ctx context.Context, id mapreduce.JobID) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	o.supervisor.LogFailure(ctx, "removing a submission that was given up", o.jobs.Abandon(ctx, id), "job", id)
}

func (o *Orchestrator) ingestJob(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (mapreduce.JobID, error) {
	compiled, err := jobspec.Compile(spec)
	if err != nil {
		return "", err
	}
	graph := compiled.Graph
	in := &ingest{
		o: o, config: &o.config, id: id, spec: spec, graph: graph,
		flip: jobs.Flip{Spec: jobs.StoredSpec(spec), Shards: int64(o.config.Shards)},
	}
	in.count = o.config.specRules().Counter(spec)
	if in.count.IsEstimate() {
		in.flip.Warnings = []string{plan.Warning{Kind: plan.GuessedSize}.String()}
		o.config.Logger.Info("tokens are guessed", "job", id, "estimator", spec.Estimator)
	}
	if cuts := graph.Cuts(); cuts >= 0 {
		if tree := graph.TreeAtOnce(cuts); tree >= 0 {
			in.flip.Tree, in.group = true, graph.TreeOf(tree).Group()
		}
	}
	in.bundle = newBundle(graph, spec, in.count)
	for doc, err := range docs {
		if err != nil {
			return "", err
		}
		if err := in.stageDocument(ctx, doc); err != nil {
			return "", err
		}
	}
	if err := in.finishIngest(ctx); err != nil {
		return "", err
	}
	if err := in.flushBatch(ctx); err != nil {
		return "", err
	}
	if err := in.checkBudget(); err != nil {
		return "", err
	}
	in.flip.Slots = o.initialSlots(spec)
	winner, err := o.jobs.Flip(ctx, id, &in.flip)
	if err == nil && winner == id {
		o.markOwnJob(id)
		o.scheduler.setInitialSlots(id, in.flip.Slots)
		o.scheduleJob(ctx, id, in.flip.Standing(id, 0), compiled, in.waitingUnits())
	}
	return winner, err
}

// initialSlots is how many of a new job's slots this node is granted at once:
// all if it is alone, else those that its workers have. Nobody has any yet, and
// it is one commit less before the first claim.
func (o *Orchestrator) initialSlots(spec *mapreduce.JobSpec) int64 {
	all := int64(spec.Parallelism)
	if o.members.IsOnlyNode() {
		return all
	}
	return min(all, o.scheduler.slotsFor(spec))
}

// waitingUnits returns the units that wait once the job is visible, or nil if there
// are too many to have been kept in mind.
func (in *ingest) waitingUnits() []jobs.Candidate {
	if in.flip.Parse > 0 || in.flip.Tree || in.flip.Map > refillTo {
		return nil
	}
	return in.first
}

// An ingest is one submission under way.
type ingest struct {
	o      *Orchestrator
	config *Config
	id     mapreduce.JobID
	spec   *mapreduce.JobSpec
	flip   jobs.Flip
	batch  jobs.Batch
	first  []jobs.Candidate // the first units
	bytes  int

	graph     *plan.Graph
	count     jobspec.Counter
	tokens    int64        // of the documents that are cut, where a condition asks for them
	bundle    *directInput // documents that one unit may take; nil once they are too many
	group     int64        // map units that one reduce of a tree takes; 0 if there is none
	why       string       // the first document was skipped
	least     int64        // tokens that the cheapest unit may need
	maxChunks int64
}

// documentID returns the id that a document has in a job: the given one, or if units
// of the job have such names apart from documents, one with its first character
// percent-encoded. No two units of a job so share a name.
func documentID(p *pipeline.Pipeline, id mapreduce.DocumentID) mapreduce.DocumentID {
	id = mapreduce.Unreserve(id)
	if !p.Reserves(string(id)) {
		return id
	}
	return mapreduce.DocumentID(fmt.Sprintf("%%%02X", id[0])) + id[1:]
}

const stageUnits = 500 // in one transaction

func (in *ingest) stageDocument(ctx context.Context, d *mapreduce.Document) error {
	n := in.flip.Documents
	in.flip.Documents++
	if err := checkDocument(d, n); err != nil {
		return err
	}
	d.ID = documentID(in.graph.Pipeline(), d.ID)
	skip := in.unprocessableReason(d)
	if skip != "" {
		in.flip.Skipped++
		in.why = cmp.Or(in.why, fmt.Sprintf("%q: %s", d.ID, skip))
		doc := mapreduce.SkippedDocument{Document: d.ID, Reason: skip}
		in.batch.Skipped = append(in.batch.Skipped, jobs.SkippedAt{N: n, SkippedDocument: doc})
		return in.flushIfLarge(ctx, len(d.ID)+len(skip))
	}
	if err := in.checkTemplateNames(d); err != nil {
		return err
	}
	if in.bundle != nil {
		if err := in.bundle.noteDocumentID(d.ID, n); err != nil {
			return err
		}
	}
	switch {
	case needsParsing(d.MediaType):
		return in.stageParseUnit(ctx, d, n)
	case in.bundle != nil:
		return in.holdDocument(ctx, d, n)
	}
	return in.stageDocumentUnits(ctx, d, n)
}

// stageDocumentUnits stages the units of the n-th document, which is text.
func (in *ingest) stageDocumentUnits(ctx context.Context, d *mapreduce.Document, n int64) error {
	units, err := in.config.makeDocumentUnits(in.spec, in.graph, d, string(d.Content), n)
	if err != nil {
		return err
	}
	if in.graph.Measures(in.graph.Cuts()) {
		in.tokens = pack.Sum(in.tokens, int64(in.count.Count(string(d.Content))))
	}
	for _, u := range units {
		in.flip.Characters += u.Source.CharEnd - u.Source.CharStart
		in.noteUnit(u)
		if in.group > 0 {
			u.Parent = 1 + in.flip.Map/in.group
		}
		in.flip.Map++
	}
	if err := in.stageText(ctx, d.Content, units[0].Source.Sha256); err != nil {
		return err
	}
	return in.stageUnits(ctx, units)
}

// checkTemplateNames refuses a document that lacks what the pipeline's templates name of it.
func (in *ingest) checkTemplateNames(d *mapreduce.Document) error {
	return in.graph.Pipeline().CheckItem(string(d.ID), d.Metadata)
}

// unprocessableReason says why a document cannot be processed, if so.
func (in *ingest) unprocessableReason(d *mapreduce.Document) string {
	switch {
	case d.Skip != "":
		return d.Skip
	case len(d.Content) == 0:
		return "it is empty"
	case int64(len(d.Content)) > in.config.MaxDocument:
		return fmt.Sprintf("it has %d bytes, more than the %d that are taken; split it", len(d.Content), in.config.MaxDocument)
	case needsParsing(d.MediaType):
		return ""
	case !utf8.Valid(d.Content):
		return fmt.Sprintf("it is not valid UTF-8 from byte %d on", invalidAt(d.Content))
	}
	return ""
}

func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// needsParsing reports whether documents of a media type have to be turned into text
// by a worker first.
func needsParsing(mediaType string) bool {
	base, _, _ := strings.Cut(mediaType, ";")
	switch strings.ToLower(strings.TrimSpace(base)) {
	case "", "text/plain", "text/markdown":
		return false
	}
	return true
}

// stageParseUnit stages a unit that turns a document's bytes into text.
func (in *ingest) stageParseUnit(ctx context.Context, d *mapreduce.Document, n int64) error {
	sum := sha256.Sum256(d.Content)
	size := int64(len(d.Content))
	u := &storagev1.Unit{
		UnitId: string(mapreduce.ParseUnit(d.ID)), DocumentId: string(d.ID), Kind: uint32(mapreduce.KindParse),
		Level: -1, Index: keys.MapIndex(n, 0), Queue: in.config.initialQueue(n),
		Source: &storagev1.Source{
			Sha256: sum[:], Length: size, CoreEnd: size, End: size, Chunks: 1, MediaType: d.MediaType, Metadata: d.Metadata,
		},
	}
	in.flip.Parse++
	if err := in.stageText(ctx, d.Content, sum[:]); err != nil {
		return err
	}
	return in.stageUnits(ctx, []*storagev1.Unit{u})
}

// stageText stages the chunks of a text.
func (in *ingest) stageText(ctx context.Context, content, sha []byte) error {
	for i := 0; i*store.ChunkSize < len(content); i++ {
		data := content[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(content))]
		in.batch.Blobs = append(in.batch.Blobs, jobs.BlobChunk{SHA256: sha, Index: int64(i), Data: data})
		if err := in.flushIfLarge(ctx, len(data)); err != nil {
			return err
		}
	}
	return nil
}

func (in *ingest) stageUnits(ctx context.Context, units []*storagev1.Unit) error {
	for _, u := range units {
		if len(in.first) < refillTo {
			in.first = append(in.first, jobs.Candidate{
				Unit: mapreduce.UnitID(u.UnitId), Class: keys.ClassNew, Shard: u.Queue.Shard, Seq: keys.Seq(u.Level, u.Index),
			})
		}
		in.batch.Units = append(in.batch.Units, u)
		if err := in.flushIfLarge(ctx, stagedBytes(u)); err != nil {
			return err
		}
	}
	return nil
}

// stagedBytes is about how many bytes a transaction takes that stages u.
func stagedBytes(u *storagev1.Unit) int {
	n := 2*len(u.UnitId) + 300
	for k, v := range u.Source.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// flushIfLarge stages the batch once it is as large as a transaction should be.
func (in *ingest) flushIfLarge(ctx context.Context, size int) error {
	in.bytes += size
	if in.bytes < store.TargetTxSize && len(in.batch.Units)+len(in.batch.Skipped) < stageUnits {
		return nil
	}
	return in.flushBatch(ctx)
}

func (in *ingest) flushBatch(ctx context.Context) error {
	if len(in.batch.Units)+len(in.batch.Blobs)+len(in.batch.Skipped) == 0 {
		return nil
	}
	err := in.o.jobs.Stage(ctx, in.id, &in.batch)
	in.batch, in.bytes = jobs.Batch{}, 0
	return err
}

// noteUnit remembers what the budget is checked against.
func (in *ingest) noteUnit(u *storagev1.Unit) {
	if in.least == 0 || u.Estimate < in.least {
		in.least = u.Estimate
	}
	in.maxChunks = max(in.maxChunks, u.Source.Chunks)
}

// checkBudget refuses a job that could not begin.
func (in *ingest) checkBudget() error {
	f := &in.flip
	documents := f.Documents - f.Skipped
	if documents == 0 {
		if f.Documents == 0 {
			return errs.Field("documents", "there are none")
		}
		return errs.Field("documents", "none of the %d can be processed; the first is %s", f.Documents, in.why)
	}
	budget := in.spec.Budget
	if budget == 0 {
		return nil
	}
	if share := budget / documents / max(1, in.maxChunks); share == 0 {
		return errs.Field("budget", "is %d tokens, which leaves none for each of %d documents in up to %d chunks; raise it",
			budget, documents, max(1, in.maxChunks))
	}
	if mapping := budget - int64(float64(budget)*in.spec.ReduceShare); in.least > mapping {
		return errs.Field("budget", "is %d tokens, %d of them for mapping, but the smallest unit may need %d; raise it",
			budget, mapping, in.least)
	}
	return nil
}

// initialQueue is where the units of the n-th document wait.
func (c *Config) initialQueue(n int64) *storagev1.Queue {
	return &storagev1.Queue{Shard: n % int64(c.Shards)}
}

// makeDocumentUnits makes the units of the n-th document, of the stage that has a unit for
// each document or cuts them.
func (c *Config) makeDocumentUnits(spec *mapreduce.JobSpec, g *plan.Graph, d *mapreduce.Document, text string, n int64) ([]*storagev1.Unit, error) {
	stage := g.Pipeline().Stages[g.Cuts()]
	own := jobspec.ForStage(*spec, stage)
	pieces, err := c.cutText(&own, stage, d.ID, text)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text))
	units := make([]*storagev1.Unit, len(pieces))
	chars, at := int64(0), 0
	count := func(to int) int64 { // code points before byte to; called with growing offsets
		chars += int64(utf8.RuneCountInString(text[at:to]))
		at = to
		return chars
	}
	for i, p := range pieces {
		src := &storagev1.Source{
			Sha256: sum[:], Length: int64(len(text)), Start: int64(p.Start), End: int64(p.End),
			CoreStart: int64(p.CoreStart), CoreEnd: int64(p.CoreEnd),
			ChunkIndex: int64(i), Chunks: int64(len(pieces)), MediaType: d.MediaType, Metadata: d.Metadata,
		}
		src.CharStart = count(p.CoreStart)
		src.CharOffset = src.CharStart - int64(utf8.RuneCountInString(text[p.Start:p.CoreStart]))
		src.CharEnd = count(p.CoreEnd)
		units[i] = &storagev1.Unit{
			UnitId: string(mapUnit(d.ID, i, len(pieces))), DocumentId: string(d.ID), Kind: uint32(mapreduce.KindMap), Stage: int64(g.Cuts()),
			Index: keys.MapIndex(n, int64(i)), Source: src, Queue: c.initialQueue(n),
			Estimate: c.Estimate(&own, int64(p.Tokens)),
		}
	}
	return units, nil
}

// cutText cuts the text of a document, if the stage has units for parts of documents.
func (c *Config) cutText(spec *mapreduce.JobSpec, stage *pipeline.Stage, id mapreduce.DocumentID, text string) ([]chunk.Piece, error) {
	if stage.Each == pipeline.EachDocument {
		n := c.specRules().Counter(spec).Count(text)
		return []chunk.Piece{{CoreEnd: len(text), End: len(text), Tokens: n, Exact: true}}, nil
	}
	pieces, err := chunk.Cut(text, chunk.Options{
		MaxTokens: spec.MaxTokensPerUnit, Overlap: max(0, spec.ChunkOverlap), Counter: c.specRules().Counter(spec),
	})
	if err != nil {
		return nil, errs.Field("max_tokens_per_unit", "%s", err)
	}
	if len(pieces) >= keys.MaxChunks {
		return nil, errs.Field("documents", "document %q would be cut into %d chunks; at most %d are taken", id, len(pieces), keys.MaxChunks)
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

// startMapping plants the units of the documents that workers have parsed, and
// plans the levels above if they follow from how many units there are.
func (o *Orchestrator) startMapping(ctx context.Context, id mapreduce.JobID, epoch int64) error {
	compiled, err := o.specs.Job(ctx, id)
	if err != nil {
		return err
	}
	spec, graph := compiled.Spec, compiled.Graph
	d, err := o.decideDirect(ctx, id, spec, graph)
	switch {
	case errs.KindOf(err) == errs.Precondition:
		return o.jobs.Fail(ctx, id, epoch, err.Error())
	case err != nil:
		return err
	case d.direct != nil:
		return o.jobs.PlanDirect(ctx, id, epoch, *d.direct)
	}
	if d.dissolve {
		if err := o.splitDirectUnit(ctx, id, epoch, spec, graph, d.staged.docs); err != nil {
			return err
		}
	}
	cuts := graph.Cuts()
	if cuts < 0 { // the documents that there are have their unit, or there are none
		return o.jobs.StartMapping(ctx, id, epoch, jobspec.LevelOf(graph.First(graph.Bundles())), false)
	}
	if err := o.plantParsed(ctx, id, epoch, spec, graph, d.taken); err != nil {
		return err
	}
	first := jobspec.LevelOf(graph.First(cuts))
	if tree := graph.TreeAtOnce(cuts); tree >= 0 {
		return o.jobs.PlanTree(ctx, id, jobs.TreePlan{
			Epoch: epoch, First: first, Stage: tree, Name: graph.Pipeline().Stages[tree].Name, Root: graph.Root(tree),
			Phase: graph.Phase(tree), Group: graph.TreeOf(tree).Group(),
		})
	}
	return o.jobs.StartMapping(ctx, id, epoch, first, d.dissolve)
}

// plantParsed plants the units of the documents that workers have parsed, but for
// those that are taken.
func (o *Orchestrator) plantParsed(ctx context.Context, id mapreduce.JobID, epoch int64, spec *mapreduce.JobSpec, g *plan.Graph, taken map[mapreduce.UnitID]bool) error {
	return o.jobs.PlantParsed(ctx, id, epoch, func(ctx context.Context, u *storagev1.Unit) ([]jobs.Batch, error) {
		if taken[mapreduce.UnitID(u.UnitId)] {
			return nil, nil
		}
		text, err := o.jobs.Output(ctx, id, u)
		if err != nil {
			return nil, err
		}
		if len(text) == 0 {
			return nil, nil // the document is skipped
		}
		d := &mapreduce.Document{ID: mapreduce.DocumentID(u.DocumentId), MediaType: "text/plain", Metadata: u.Source.Metadata}
		units, err := o.config.makeDocumentUnits(spec, g, d, string(text), keys.Document(u.Index))
		if err != nil {
			return nil, err
		}
		return splitBatches(text, units), nil
	})
}

// splitBatches spreads a document over transactions of a suitable size, its text
// first.
func splitBatches(text []byte, units []*storagev1.Unit) []jobs.Batch {
	const blobs = store.TargetTxSize / store.ChunkSize
	var all []jobs.Batch
	for i := 0; i*store.ChunkSize < len(text); i++ {
		if i%blobs == 0 {
			all = append(all, jobs.Batch{})
		}
		last := &all[len(all)-1]
		data := text[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(text))]
		last.Blobs = append(last.Blobs, jobs.BlobChunk{SHA256: units[0].Source.Sha256, Index: int64(i), Data: data})
	}
	for len(units) > 0 {
		n := min(len(units), stageUnits, 1+store.TargetTxSize/stagedBytes(units[0])) // all have their document's metadata
		all = append(all, jobs.Batch{Units: units[:n]})
		units = units[n:]
	}
	return all
}

// maxMetadata bounds the metadata of a document, in bytes: each of its units holds it, and
// transactions hold 500 units.
const maxMetadata = 4 << 10

func checkDocument(d *mapreduce.Document, n int64) error {
	if !jobspec.ValidName(string(d.ID), false) {
		return errs.Field("documents", "the id of document %d, %.60q with %d bytes, must be 1 to %d bytes of UTF-8 without control characters",
			n+1, d.ID, len(d.ID), mapreduce.MaxDocumentID)
	}
	size := 0
	for k, v := range d.Metadata {
		size += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return errs.Field("documents", "metadata %q of document %q is not valid UTF-8", k, d.ID)
		}
	}
	if size > maxMetadata {
		return errs.Field("documents", "document %q has %d bytes of metadata; at most %d are taken", d.ID, size, maxMetadata)
	}
	return nil
}
