// Package ingest makes jobs of documents: these come in, are cut into units and staged
// in bounded memory, and one transaction makes the job visible. Plans go the same way.
package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/orchestrator/pack"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	"github.com/coditect/mapreduce/orchestrator/tracing"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/submit"
	"github.com/coditect/mapreduce/store/keys"
)

// A Config says how documents become units. All of it must be set, unless it says
// otherwise.
type Config struct {
	// Rules are those of specs.
	Rules *jobspec.Rules
	// Shards is how many queues a new job's units are spread over.
	Shards int
	// MaxDocument is the largest document taken, in bytes.
	MaxDocument int64
	// MaxCalls is how many units that call models may run at once over the whole fleet.
	MaxCalls int
	// Estimate returns how many tokens the first call of a unit may spend at worst, given
	// the tokens of its text.
	Estimate func(spec *mapreduce.JobSpec, tokens int64) int64
	// Rates returns what the plan of a job assumes of its calls.
	Rates func(spec *mapreduce.JobSpec) plan.Rates
	// Count counts the tokens of what models write.
	Count func(text string) int
	// Logger gets a line for each job whose tokens are guessed.
	Logger *slog.Logger
	// Tracing makes spans of submissions; it may be nil.
	Tracing *tracing.Tracer
}

// A Node is what else a node does with a job that it takes.
type Node interface {
	// MarkOwnJob makes a job one that this node runs.
	MarkOwnJob(id mapreduce.JobID)
	// RefreshJob brings one job on the scheduler up to date.
	RefreshJob(ctx context.Context, id mapreduce.JobID) error
	// ScheduleJob puts a job on the scheduler. waiting are the units that wait, if these
	// are known and all there are.
	ScheduleJob(ctx context.Context, id mapreduce.JobID, st *records.Standing, compiled *jobspec.Compiled, waiting []records.Candidate)
	// InitialSlots is how many of a new job's slots this node is granted at once, and
	// SetInitialSlots notes that it was.
	InitialSlots(spec *mapreduce.JobSpec) int64
	SetInitialSlots(id mapreduce.JobID, slots int64)
	// ReplayInput returns the spec and the documents of a job that repeats another.
	ReplayInput(ctx context.Context, asked mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (mapreduce.JobSpec, iter.Seq2[*mapreduce.Document, error], error)
}

// An Intake takes submissions: documents become staged units, and these a job. Its
// methods are safe for concurrent use.
type Intake struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	config     *Config
	node       Node
	signals    *notify.Jobs
	supervisor *supervise.Supervisor
	early      earlyJobs

	mu        sync.Mutex        // guards the variable below
	abandoned []mapreduce.JobID // submissions that could not be removed yet
}

// New returns an intake of jobs of a store.
func New(j *jobs.Jobs, specs *jobspec.Finder, n Node, signals *notify.Jobs, s *supervise.Supervisor, c Config) *Intake {
	return &Intake{jobs: j, specs: specs, config: &c, node: n, signals: signals, supervisor: s}
}

// keptUnits is how many units of a new job are kept in mind, so that its queue need
// not be read.
const keptUnits = 512

// SubmitJob makes a job of a spec and documents. These are staged as they come, in
// bounded memory; one transaction makes the job visible.
func (s *Intake) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	if spec.Replay != "" {
		var err error
		if spec, docs, err = s.node.ReplayInput(ctx, spec, docs); err != nil {
			return nil, err
		}
	}

	spec, err := s.config.Rules.Complete(spec)
	if err != nil {
		return nil, err
	}

	if spec.RequestID != "" {
		id, err := s.jobs.Submit.Requested(ctx, spec.Tenant, spec.RequestID)
		if err != nil {
			return nil, err
		}
		if id != "" {
			s.node.MarkOwnJob(id)
			return s.jobs.View.Job(ctx, id)
		}
	}

	id, winner, err := s.ingestJob(ctx, &spec, docs)
	// Another submission of the same request may have made the job before.
	if id != "" && (err != nil || winner != id) {
		s.abandonJob(ctx, id)
	}
	if err != nil {
		return nil, err
	}

	s.signals.NotifyWatchers(winner)
	if winner != id {
		s.node.MarkOwnJob(winner)
		if err := s.node.RefreshJob(ctx, winner); err != nil {
			return nil, err
		}
	}

	return s.jobs.View.Job(ctx, winner)
}

// reserveJobID draws a job id that is not taken.
func (s *Intake) reserveJobID(ctx context.Context, spec *mapreduce.JobSpec) (mapreduce.JobID, error) {
	for range 10 {
		id := mapreduce.NewJobID(time.Now(), rand.IntN)
		err := s.jobs.Submit.Begin(ctx, id, spec)
		if err == nil || errs.KindOf(err) != errs.Exists {
			return id, err
		}
	}
	return "", errs.New(errs.Unavailable, "no free job id was found; try again")
}

// abandonJob removes what was staged, even if the client has gone.
func (s *Intake) abandonJob(ctx context.Context, id mapreduce.JobID) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()

	err := s.jobs.Submit.Abandon(ctx, id)
	if err == nil {
		return
	}

	s.supervisor.LogFailure(ctx, "removing a submission that was given up; trying again", err, "job", id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned = append(s.abandoned, id); len(s.abandoned) == 1 {
		s.signals.CallAt(time.Now().Add(abandonAgain), s.abandonLeft)
	}
}

// abandonAgain is how long submissions rest that could not be removed. They count as what
// their tenants use, and nobody else removes what a live orchestrator has under way.
const abandonAgain = 5 * time.Second

// abandonLeft removes the submissions that could not be removed before.
func (s *Intake) abandonLeft(ctx context.Context) {
	s.mu.Lock()
	left := slices.Clone(s.abandoned)
	s.mu.Unlock()

	short, stop := context.WithTimeout(ctx, abandonAgain)
	defer stop()
	err := s.jobs.Submit.Abandon(short, left...)

	s.mu.Lock()
	defer s.mu.Unlock()
	// More may have come meanwhile.
	if err == nil {
		s.abandoned = s.abandoned[len(left):]
	}

	if len(s.abandoned) > 0 && ctx.Err() == nil {
		s.signals.CallAt(time.Now().Add(abandonAgain), s.abandonLeft)
	}
}

// ingestJob stages a job and makes it visible. It returns the id under which it is
// staged, which is "" as long as nothing is stored, and the id of the job that came of
// it, or of an earlier one of the same request.
func (s *Intake) ingestJob(ctx context.Context, spec *mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (id, winner mapreduce.JobID, err error) {
	compiled, err := s.specs.Compile(spec)
	if err != nil {
		return "", "", err
	}

	if s.jobs.RuleOf(spec.Tenant).Quota.TokensPerDay > 0 && spec.Budget == 0 && s.config.Rules.Provider(spec.Provider).Models {
		return "", "", errs.Field("budget", "is missing: tenant %q has a quota of tokens a day, of which each job that asks a model takes its budget", spec.Tenant)
	}

	in := &submission{
		intake: s, config: s.config, spec: spec, graph: compiled.Graph, begun: time.Now(),
		flip: submit.Publication{Spec: spec, Shards: int64(s.config.Shards)},
	}

	staging, giveUp := context.WithCancel(ctx)
	err = s.supervisor.ContainPanic(ctx, "taking a submission", func() error { return in.stageAll(staging, docs) }, "tenant", spec.Tenant)
	giveUp()           // if that failed, a part may be being stored
	_ = in.awaitPart() // err says why that is given up

	if err == nil {
		winner, err = in.publish(ctx, compiled)
	}

	return in.id, winner, err
}

// stageAll stages all documents.
func (in *submission) stageAll(ctx context.Context, docs iter.Seq2[*mapreduce.Document, error]) error {
	s, spec, graph := in.intake, in.spec, in.graph
	in.count = s.config.Rules.Counter(spec)
	in.flip.Warnings = s.config.Rules.Warnings(spec)

	if in.count.IsEstimate() {
		in.flip.Warnings = append(in.flip.Warnings, plan.Warning{Kind: plan.GuessedSize}.String())
		s.config.Logger.Info("tokens are guessed", "tenant", spec.Tenant, "estimator", spec.Estimator)
	}

	if cuts := graph.Cuts(); cuts >= 0 {
		if tree := graph.TreeAtOnce(cuts); tree >= 0 {
			in.flip.Tree, in.group = true, graph.TreeOf(tree).Group()
		}
	}

	in.cut = newCutter(s.config, spec, graph)
	in.bundle = newBundle(graph, spec, in.count)
	in.flip.MapEarly = !in.flip.Tree && mapsEarly(spec, graph, in.bundle)
	if g := newGatherer(s.config, spec, graph); g != nil {
		in.gather = &gathering{gatherer: g, meta: make(map[int64]map[string]string), ids: make(map[mapreduce.DocumentID]int64)}
	}

	for doc, err := range docs {
		if err != nil {
			return err
		}
		if err := in.stageDocument(ctx, doc); err != nil {
			return err
		}
	}

	in.flip.Warnings = append(in.flip.Warnings, graph.Pipeline().AdviceFor(in.flip.Documents-in.flip.Skipped)...)
	if err := in.finishIngest(ctx); err != nil {
		return err
	}

	// All units are known by now, so that the budget can be compared with them.
	if err := in.checkBudget(); err != nil {
		return err
	}

	if err := in.flushBatch(ctx); err != nil {
		return err
	}
	return in.awaitPart()
}

// publish makes the staged job visible, and puts it on the scheduler.
func (in *submission) publish(ctx context.Context, compiled *jobspec.Compiled) (mapreduce.JobID, error) {
	s, id, first := in.intake, in.id, *in.spec
	if in.flip.Parse == 0 {
		first = jobspec.ForStage(first, in.graph.Pipeline().Stages[in.flip.Level.Stage])
	}
	in.flip.Slots = s.node.InitialSlots(&first)

	end := s.config.Tracing.BeginSubmission(ctx, id, in.spec, jobspec.PresetOf(in.spec), in.begun)
	winner, err := s.jobs.Submit.Publish(ctx, id, &in.flip)
	end(err)

	if err == nil && winner == id {
		s.node.MarkOwnJob(id)
		s.node.SetInitialSlots(id, in.flip.Slots)
		s.node.ScheduleJob(ctx, id, in.flip.Standing(id), compiled, in.waitingUnits())
	}
	return winner, err
}

// waitingUnits returns the units that wait once the job is visible, or nil if there
// are too many to have been kept in mind.
func (in *submission) waitingUnits() []records.Candidate {
	if in.flip.Parse > 0 || in.flip.Tree || in.flip.Map > keptUnits {
		return nil
	}
	return in.first
}

// A submission is one submission under way.
type submission struct {
	intake *Intake
	config *Config
	id     mapreduce.JobID // "" as long as nothing is stored
	spec   *mapreduce.JobSpec
	begun  time.Time
	flip   submit.Publication
	batch  records.Batch
	stored chan error          // receives how the part before the batch was stored; nil if none is being stored
	first  []records.Candidate // the first units
	bytes  int

	graph     *plan.Graph
	count     jobspec.Counter
	tokens    int64        // of the documents that are cut, where a condition asks for them
	cut       *cutter      // nil if no stage has units of documents
	bundle    *directInput // documents that one unit may take; nil once they are too many
	gather    *gathering   // documents that units take some of together; nil if none does
	group     int64        // map units that one reduce of a tree takes; 0 if there is none
	why       string       // the first document was skipped
	least     int64        // tokens that the cheapest unit may need
	maxChunks int64
	unranked  int // citations whose relevance is no number
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

func (in *submission) stageDocument(ctx context.Context, d *mapreduce.Document) error {
	n := in.flip.Documents
	in.flip.Documents++

	skip := unfitReason(d, n)
	d.ID = documentID(in.graph.Pipeline(), d.ID)
	if skip = cmp.Or(skip, in.unprocessableReason(d)); skip != "" {
		in.flip.Skipped++
		in.flip.SkippedBytes += max(0, d.Size, int64(len(d.Content)))
		in.why = cmp.Or(in.why, fmt.Sprintf("%q: %s", d.ID, skip))
		doc := mapreduce.SkippedDocument{Document: d.ID, Reason: skip}
		in.batch.Skipped = append(in.batch.Skipped, records.SkippedAt{N: n, SkippedDocument: doc})
		return in.flushIfLarge(ctx, len(d.ID)+len(skip))
	}

	if err := in.checkTemplateNames(d); err != nil {
		return err
	}
	in.noteRelevance(d)
	if err := in.noteDocumentID(d.ID, n); err != nil {
		return err
	}

	switch {
	case needsParsing(d.MediaType):
		return in.stageParseUnit(ctx, d, n)
	case in.bundle != nil:
		return in.holdDocument(ctx, d, n)
	}
	return in.stageDocumentUnits(ctx, d, n)
}

// maxUnranked is how many citations are named that say nothing of their relevance which
// could be read.
const maxUnranked = 5

// noteRelevance warns of a citation whose relevance is no number. It is ranked by its text.
func (in *submission) noteRelevance(d *mapreduce.Document) {
	text, ok := d.Metadata[mapreduce.MetadataRelevance]
	if !ok || text == "null" || d.Metadata[mapreduce.MetadataCitation] == "" {
		return
	}
	if _, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
		return
	}
	if in.unranked++; in.unranked <= maxUnranked {
		in.flip.Warnings = append(in.flip.Warnings, fmt.Sprintf("citation %.80q has the relevance %.40q, which is no number: it is ranked by its text", d.ID, text))
	}
}

// noteDocumentID notes the id of the n-th document, which no other may have, where the
// ids of units do not tell.
func (in *submission) noteDocumentID(id mapreduce.DocumentID, n int64) error {
	var ids map[mapreduce.DocumentID]int64
	switch {
	case in.gather != nil:
		ids = in.gather.ids
	case in.bundle != nil:
		ids = in.bundle.ids
	default:
		return nil
	}

	if first, ok := ids[id]; ok {
		return errs.Field("documents", "documents %d and %d have the same id %q; give each its own", first+1, n+1, id)
	}
	ids[id] = n
	return nil
}

// stageDocumentUnits stages the units of the n-th document, which is text.
func (in *submission) stageDocumentUnits(ctx context.Context, d *mapreduce.Document, n int64) error {
	if in.gather != nil {
		return in.gatherDocument(ctx, d, n)
	}

	units, err := in.cut.makeUnits(d, d.Content, n)
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

	if err := in.stageText(ctx, d.Content, units[0].Source.SHA256); err != nil {
		return err
	}
	return in.stageUnits(ctx, units)
}

// checkTemplateNames refuses a document that lacks what the pipeline's templates name of it.
func (in *submission) checkTemplateNames(d *mapreduce.Document) error {
	return in.graph.Pipeline().CheckItem(string(d.ID), d.Metadata)
}

// maxMediaType is the longest media type of a document, in bytes: each of its units has
// it in its record.
const maxMediaType = 255

// unprocessableReason says why a document cannot be processed, if so.
func (in *submission) unprocessableReason(d *mapreduce.Document) string {
	metadata := d.ExcessMetadata()
	switch {
	case d.Skip != "":
		return records.ClipText(d.Skip) // whatever a client says, a record has to hold it
	case metadata != "":
		return metadata
	case len(d.MediaType) > maxMediaType:
		return fmt.Sprintf("its media type has %d bytes, more than the %d that are accepted", len(d.MediaType), maxMediaType)
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
func (in *submission) stageParseUnit(ctx context.Context, d *mapreduce.Document, n int64) error {
	sum := sha256.Sum256(d.Content)
	size := int64(len(d.Content))
	u := &records.Unit{
		ID: mapreduce.ParseUnit(d.ID), Document: d.ID, Kind: mapreduce.KindParse,
		Level: -1, Index: keys.MapIndex(n, 0), Shard: in.config.initialShard(n),
		Source: &records.Source{
			SHA256: sum[:], Length: size, CoreEnd: size, End: size, Chunks: 1, MediaType: d.MediaType, Metadata: d.Metadata,
		},
	}

	in.flip.Parse++
	if err := in.stageText(ctx, d.Content, sum[:]); err != nil {
		return err
	}
	return in.stageUnits(ctx, []*records.Unit{u})
}

// stageText stages the chunks of a text.
func (in *submission) stageText(ctx context.Context, content, sha []byte) error {
	for i := 0; i*store.ChunkSize < len(content); i++ {
		data := content[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(content))]
		in.batch.Blobs = append(in.batch.Blobs, records.BlobChunk{SHA256: sha, Index: int64(i), Data: data})
		if err := in.flushIfLarge(ctx, len(data)); err != nil {
			return err
		}
	}
	return nil
}

func (in *submission) stageUnits(ctx context.Context, units []*records.Unit) error {
	for _, u := range units {
		if len(in.first) < keptUnits {
			in.first = append(in.first, records.Candidate{
				Unit: u.ID, Class: keys.ClassNew, Shard: u.Shard, Seq: keys.Seq(u.Level, u.Index),
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
func stagedBytes(u *records.Unit) int {
	n := 2*len(string(u.ID)) + 300
	for k, v := range u.Source.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// flushIfLarge stages the batch once it is as large as a transaction should be.
func (in *submission) flushIfLarge(ctx context.Context, size int) error {
	in.bytes += size
	if in.bytes < store.TargetTxSize && len(in.batch.Units)+len(in.batch.Skipped) < stageUnits {
		return nil
	}
	return in.flushBatch(ctx)
}

// flushBatch has the batch stored while the next one is made. Parts are stored one after
// the other, so it waits for the one before.
func (in *submission) flushBatch(ctx context.Context) error {
	if len(in.batch.Units)+len(in.batch.Blobs)+len(in.batch.Skipped) == 0 {
		return nil
	}

	if err := in.awaitPart(); err != nil {
		return err
	}
	if err := in.begin(ctx); err != nil {
		return err
	}

	s, id, part := in.intake, in.id, in.batch
	in.batch, in.bytes = records.Batch{}, 0

	stored := make(chan error, 1)
	in.stored = stored
	go func() {
		stored <- s.supervisor.ContainPanic(ctx, "storing a part of a submission", func() error {
			return s.jobs.Submit.Stage(ctx, id, &part)
		}, "job", id)
	}()

	return nil
}

// awaitPart waits for the part that is being stored, if there is one.
func (in *submission) awaitPart() error {
	if in.stored == nil {
		return nil
	}
	err := <-in.stored
	in.stored = nil
	return err
}

// begin opens the submission in the store, unless it is open. That is done with the
// first of its documents that are stored: so what never comes to that leaves nothing
// there that would have to be collected.
func (in *submission) begin(ctx context.Context) (err error) {
	if in.id == "" {
		in.id, err = in.intake.reserveJobID(ctx, in.spec)
	}
	return err
}

// noteUnit remembers what the budget is checked against.
func (in *submission) noteUnit(u *records.Unit) {
	if in.least == 0 || u.Estimate < in.least {
		in.least = u.Estimate
	}
	in.maxChunks = max(in.maxChunks, u.Source.Chunks)
}

// checkBudget refuses a job that could not begin.
func (in *submission) checkBudget() error {
	f := &in.flip
	documents := f.Documents - f.Skipped
	if documents == 0 {
		if f.Documents == 0 {
			return errs.Field("documents", "there are none")
		}
		if f.Documents == 1 {
			return errs.Field("documents", "the only one cannot be processed: %s", in.why)
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

// unfitReason says why the n-th document cannot be kept as it is, if so, and gives it an id
// to be listed by: one document that is not fit refuses no other.
func unfitReason(d *mapreduce.Document, n int64) string {
	if !jobspec.ValidName(string(d.ID), false) {
		reason := "its id is not UTF-8, or has control characters"
		switch {
		case d.ID == "":
			reason = "it has no id"
		case len(d.ID) > mapreduce.MaxDocumentID:
			reason = fmt.Sprintf("its id has %d bytes, more than the %d that are accepted", len(d.ID), mapreduce.MaxDocumentID)
		}

		d.ID = listedID(d.ID, n)
		return reason
	}

	for k, v := range d.Metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Sprintf("its metadata %.60q is not valid UTF-8", k)
		}
	}
	return ""
}

// listedID returns an id by which the n-th document is listed, whose own id no document can
// have: what can be shown of that, and its number.
func listedID(id mapreduce.DocumentID, n int64) mapreduce.DocumentID {
	const shown = 100
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(string(id[:min(len(id), shown)]), "\uFFFD"))
	return mapreduce.DocumentID(fmt.Sprintf("%s… (document %d)", clean, n+1))
}
