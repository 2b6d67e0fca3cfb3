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
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/staging"
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
	// Estimate returns what of its budget the first call of a unit may spend at worst, given
	// the tokens of its text.
	Estimate func(spec *mapreduce.JobSpec, tokens int64) int64
	// Rates returns what the plan of a job assumes of its calls.
	Rates func(spec *mapreduce.JobSpec) plan.Rates
	// Look returns what a document of a media type that is a picture will come to, as far as its header
	// tells, and false of any other document. Nil looks at none.
	Look func(spec *mapreduce.JobSpec, mediaType string, data []byte) (plan.Look, bool)
	// InitialSlots returns how many of a new job's slots this node is granted at once.
	InitialSlots func(spec *mapreduce.JobSpec) int64
	// Count counts the tokens of what models write.
	Count func(text string) int
	// Logger gets a line for each job whose tokens are guessed.
	Logger *slog.Logger
	// Tracing makes spans of submissions; it may be nil.
	Tracing *observe.Tracer
}

// An Intake takes submissions: documents become staged units, and these a job. Its
// methods are safe for concurrent use.
type Intake struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	config     *Config
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	early      earlyJobs

	mu        sync.Mutex        // guards the variable below
	abandoned []mapreduce.JobID // submissions that could not be removed yet
}

// New returns an intake of jobs of a store.
func New(j *jobs.Jobs, specs *jobspec.Finder, signals *cluster.Signals, s *cluster.Supervisor, c Config) *Intake {
	return &Intake{jobs: j, specs: specs, config: &c, signals: signals, supervisor: s}
}

// keptUnits is how many units of a new job are kept in mind, so that its queue need
// not be read.
const keptUnits = 512

// Accepted is what became of a submission: a job that all of its documents are in.
type Accepted struct {
	// Job is the job, or the one that an earlier submission of the same request made.
	Job mapreduce.JobID
	// New is how the job stands, with what it was compiled to; nil if an earlier submission
	// made the job.
	New *NewJob
}

// A NewJob is what is known of a job when it begins.
type NewJob struct {
	Standing *records.Standing
	Compiled *jobspec.Compiled
	// Waiting holds all units that wait; nil if they are too many to have been kept in mind.
	Waiting []records.Candidate
	// Slots is how many of the job's slots this node was granted with it.
	Slots int64
}

// SubmitJob makes a job of a spec and documents. These are staged as they come, in
// bounded memory; one transaction makes the job visible.
func (in *Intake) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*Accepted, error) {
	if spec.Replay != "" {
		var err error
		if spec, docs, err = in.replayInput(ctx, spec, docs); err != nil {
			return nil, err
		}
	}

	completed, err := in.config.Rules.Complete(spec)
	if err != nil {
		return nil, err
	}

	if spec.RequestID != "" {
		id, err := in.jobs.Submit.Requested(ctx, spec.Tenant, spec.RequestID)
		if err != nil || id != "" {
			return &Accepted{Job: id}, err
		}
	}

	staged, accepted, err := in.ingestJob(ctx, completed, docs)
	// Another submission of the same request may have made the job before.
	if staged != "" && (err != nil || accepted.New == nil) {
		in.abandonJob(ctx, staged)
	}
	return accepted, err
}

// reserveJobID draws a job id that is not taken.
func (in *Intake) reserveJobID(ctx context.Context, spec *mapreduce.JobSpec) (mapreduce.JobID, error) {
	for range 10 {
		id := mapreduce.NewJobID(time.Now(), rand.IntN)
		err := in.jobs.Submit.Begin(ctx, id, spec)
		if err == nil || errs.KindOf(err) != errs.Exists {
			return id, err
		}
	}
	return "", errs.New(errs.Unavailable, "no free job id was found; try again")
}

// abandonJob removes what was staged, even if the client has gone.
func (in *Intake) abandonJob(ctx context.Context, id mapreduce.JobID) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()

	err := in.jobs.Submit.Abandon(ctx, id)
	if err == nil {
		return
	}

	in.supervisor.LogFailure(ctx, "removing a submission that was given up; trying again", err, "job", id)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.abandoned = append(in.abandoned, id); len(in.abandoned) == 1 {
		in.signals.CallAt(time.Now().Add(abandonAgain), in.abandonLeft)
	}
}

// abandonAgain is how long submissions rest that could not be removed. They count as what
// their tenants use, and nobody else removes what a live orchestrator has under way.
const abandonAgain = 5 * time.Second

// abandonLeft removes the submissions that could not be removed before.
func (in *Intake) abandonLeft(ctx context.Context) {
	in.mu.Lock()
	left := slices.Clone(in.abandoned)
	in.mu.Unlock()

	short, stop := context.WithTimeout(ctx, abandonAgain)
	defer stop()
	err := in.jobs.Submit.Abandon(short, left...)

	in.mu.Lock()
	defer in.mu.Unlock()
	// More may have come meanwhile.
	if err == nil {
		in.abandoned = in.abandoned[len(left):]
	}

	if len(in.abandoned) > 0 && ctx.Err() == nil {
		in.signals.CallAt(time.Now().Add(abandonAgain), in.abandonLeft)
	}
}

// ingestJob stages a job and makes it visible. It returns the id under which the job is
// staged, which is "" as long as nothing is stored, and what became of it.
func (in *Intake) ingestJob(ctx context.Context, completed *jobspec.Completed, docs iter.Seq2[*mapreduce.Document, error]) (staged mapreduce.JobID, accepted *Accepted, err error) {
	spec := completed.Spec
	if in.jobs.RuleOf(spec.Tenant).Quota.TokensPerDay > 0 && spec.TokenBudget() == 0 && in.config.Rules.Provider(spec.Provider).Models {
		return "", nil, errs.Field("budget", "is missing: tenant %q has a quota of tokens a day, of which each job that asks a model takes its budget in tokens", spec.Tenant)
	}

	s := &submission{
		intake: in, config: in.config, spec: spec, graph: completed.Graph, begun: time.Now(),
		publication: staging.Publication{Spec: spec, Shards: int64(in.config.Shards)},
	}

	whileStaging, giveUp := context.WithCancel(ctx)
	err = in.supervisor.ContainPanic(ctx, "taking a submission", func() error {
		s.publication.Warnings = in.config.Rules.Warnings(completed)
		return s.stageAll(whileStaging, docs)
	}, "tenant", spec.Tenant)
	giveUp()          // if that failed, a part may be being stored
	_ = s.awaitPart() // err says why that is given up

	if err == nil {
		accepted, err = s.publish(ctx, jobspec.Compile(spec, completed.Graph))
	}

	return s.id, accepted, err
}

// stageAll stages all documents.
func (s *submission) stageAll(ctx context.Context, docs iter.Seq2[*mapreduce.Document, error]) error {
	in, spec, graph := s.intake, s.spec, s.graph
	s.count = in.config.Rules.Counter(spec)

	if s.count.IsEstimate() {
		s.publication.Warnings = append(s.publication.Warnings, plan.Warning{Kind: plan.GuessedSize}.String())
		in.config.Logger.Info("tokens are guessed", "tenant", spec.Tenant, "estimator", spec.Estimator)
	}

	if cuts := graph.Cuts(); cuts >= 0 {
		if tree := graph.TreeAtOnce(cuts); tree >= 0 {
			s.publication.Tree, s.group = true, graph.TreeOf(tree).Group()
		}
	}

	s.cut = newCutter(in.config, spec, graph)
	s.bundle = newBundle(graph, spec, s.count)
	s.publication.MapEarly = !s.publication.Tree && mapsEarly(spec, graph, s.bundle)
	if g := newGatherer(in.config, spec, graph); g != nil {
		s.gather = &gathering{gatherer: g, meta: make(map[int64]map[string]string), ids: make(map[mapreduce.DocumentID]int64)}
	}

	s.sketch = newSketch(s)
	for doc, err := range docs {
		if err != nil {
			return err
		}
		if err := s.stageDocument(ctx, doc); err != nil {
			return err
		}
	}

	s.publication.Warnings = append(s.publication.Warnings, graph.Pipeline().AdviceFor(s.publication.Documents-s.publication.Skipped)...)
	if err := s.finishIngest(ctx); err != nil {
		return err
	}

	planned, takes := s.sketch.plan(s)
	s.publication.Plan = planned

	// All units are known by now, so that the budget can be compared with them.
	if err := s.checkBudget(); err != nil {
		return err
	}
	if err := s.checkDeadline(takes, min(spec.Parallelism, in.config.MaxCalls)); err != nil {
		return err
	}

	if err := s.flushBatch(ctx); err != nil {
		return err
	}
	return s.awaitPart()
}

// publish makes the staged job visible.
func (s *submission) publish(ctx context.Context, compiled *jobspec.Compiled) (*Accepted, error) {
	in, id, first := s.intake, s.id, *s.spec
	if s.publication.Parse == 0 {
		first = jobspec.ForStage(first, s.graph.Pipeline().Stages[s.publication.Level.Stage])
	}
	s.publication.Slots = in.config.InitialSlots(&first)

	end := in.config.Tracing.BeginSubmission(ctx, id, s.spec, jobspec.PresetOf(s.spec), s.begun)
	winner, err := in.jobs.Submit.Publish(ctx, id, &s.publication)
	end(err)

	if err != nil || winner != id {
		return &Accepted{Job: winner}, err
	}
	return &Accepted{Job: id, New: &NewJob{
		Standing: s.publication.Standing(id), Compiled: compiled, Waiting: s.waitingUnits(), Slots: s.publication.Slots,
	}}, nil
}

// waitingUnits returns the units that wait once the job is visible, or nil if there
// are too many to have been kept in mind.
func (s *submission) waitingUnits() []records.Candidate {
	if s.publication.Parse > 0 || s.publication.Tree || s.publication.Map > keptUnits {
		return nil
	}
	return s.first
}

// A submission is one submission under way.
type submission struct {
	intake      *Intake
	config      *Config
	id          mapreduce.JobID // "" as long as nothing is stored
	spec        *mapreduce.JobSpec
	begun       time.Time
	publication staging.Publication
	batch       records.Batch
	stored      chan error          // receives how the part before the batch was stored; nil if none is being stored
	first       []records.Candidate // the first units
	bytes       int

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
	sketch    *sketch
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

func (s *submission) stageDocument(ctx context.Context, d *mapreduce.Document) error {
	n := s.publication.Documents
	s.publication.Documents++

	skip := unfitReason(d, n)
	d.ID = documentID(s.graph.Pipeline(), d.ID)
	if skip = cmp.Or(skip, s.unprocessableReason(d)); skip != "" {
		s.publication.Skipped++
		s.publication.SkippedBytes += max(0, d.Size, int64(len(d.Content)))
		s.why = cmp.Or(s.why, fmt.Sprintf("%q: %s", d.ID, skip))
		doc := mapreduce.SkippedDocument{Document: d.ID, Reason: skip}
		s.batch.Skipped = append(s.batch.Skipped, records.SkippedAt{N: n, SkippedDocument: doc})
		return s.flushIfLarge(ctx, len(d.ID)+len(skip))
	}

	if err := s.checkTemplateNames(d); err != nil {
		return err
	}
	s.noteRelevance(d)
	if err := s.noteDocumentID(d.ID, n); err != nil {
		return err
	}

	s.sketch.addDocument(d, n)
	switch {
	case needsParsing(d.MediaType):
		return s.stageParseUnit(ctx, d, n)
	case s.bundle != nil:
		return s.holdDocument(ctx, d, n)
	}
	return s.stageDocumentUnits(ctx, d, n)
}

// maxUnranked is how many citations are named that say nothing of their relevance which
// could be read.
const maxUnranked = 5

// noteRelevance warns of a citation whose relevance is no number. It is ranked by its text.
func (s *submission) noteRelevance(d *mapreduce.Document) {
	text, ok := d.Metadata[mapreduce.MetadataRelevance]
	if !ok || text == "null" || d.Metadata[mapreduce.MetadataCitation] == "" {
		return
	}
	if _, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
		return
	}
	if s.unranked++; s.unranked <= maxUnranked {
		s.publication.Warnings = append(s.publication.Warnings, fmt.Sprintf("citation %.80q has the relevance %.40q, which is no number: it is ranked by its text", d.ID, text))
	}
}

// noteDocumentID notes the id of the n-th document, which no other may have, where the
// ids of units do not tell.
func (s *submission) noteDocumentID(id mapreduce.DocumentID, n int64) error {
	var ids map[mapreduce.DocumentID]int64
	switch {
	case s.gather != nil:
		ids = s.gather.ids
	case s.bundle != nil:
		ids = s.bundle.ids
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
func (s *submission) stageDocumentUnits(ctx context.Context, d *mapreduce.Document, n int64) error {
	if s.gather != nil {
		return s.gatherDocument(ctx, d, n)
	}

	text := string(d.Content)
	pieces, err := s.cut.cutText(d.ID, text)
	if err != nil {
		return err
	}
	units := s.cut.unitsOf(d, text, n, pieces)
	s.sketch.addPieces(d.ID, text, pieces)

	if s.graph.Measures(s.graph.Cuts()) {
		s.tokens = pack.Sum(s.tokens, int64(s.count.Count(string(d.Content))))
	}

	for _, u := range units {
		s.publication.Characters += u.Source.CharEnd - u.Source.CharStart
		s.noteUnit(u)
		if s.group > 0 {
			u.Parent = 1 + s.publication.Map/s.group
		}
		s.publication.Map++
	}

	if err := s.stageText(ctx, d.Content, units[0].Source.SHA256); err != nil {
		return err
	}
	return s.stageUnits(ctx, units)
}

// checkTemplateNames refuses a document that lacks what the pipeline's templates name of it.
func (s *submission) checkTemplateNames(d *mapreduce.Document) error {
	return s.graph.Pipeline().CheckItem(string(d.ID), d.Metadata)
}

// maxMediaType is the longest media type of a document, in bytes: each of its units has
// it in its record.
const maxMediaType = 255

// unprocessableReason says why a document cannot be processed, if so.
func (s *submission) unprocessableReason(d *mapreduce.Document) string {
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
	case int64(len(d.Content)) > s.config.MaxDocument:
		return fmt.Sprintf("it has %d bytes, more than the %d that are taken; split it", len(d.Content), s.config.MaxDocument)
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
func (s *submission) stageParseUnit(ctx context.Context, d *mapreduce.Document, n int64) error {
	sum := sha256.Sum256(d.Content)
	size := int64(len(d.Content))
	u := &records.Unit{
		ID: mapreduce.ParseUnit(d.ID), Document: d.ID, Kind: mapreduce.KindParse,
		Level: -1, Index: keys.MapIndex(n, 0), Shard: s.config.initialShard(n),
		Source: &records.Source{
			SHA256: sum[:], Length: size, CoreEnd: size, End: size, Chunks: 1, MediaType: d.MediaType, Metadata: d.Metadata,
		},
	}

	s.publication.Parse++
	if err := s.stageText(ctx, d.Content, sum[:]); err != nil {
		return err
	}
	return s.stageUnits(ctx, []*records.Unit{u})
}

// stageText stages the chunks of a text.
func (s *submission) stageText(ctx context.Context, content, sha []byte) error {
	for i := 0; i*store.ChunkSize < len(content); i++ {
		data := content[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(content))]
		s.batch.Blobs = append(s.batch.Blobs, records.BlobChunk{SHA256: sha, Index: int64(i), Data: data})
		if err := s.flushIfLarge(ctx, len(data)); err != nil {
			return err
		}
	}
	return nil
}

func (s *submission) stageUnits(ctx context.Context, units []*records.Unit) error {
	for _, u := range units {
		if len(s.first) < keptUnits {
			s.first = append(s.first, records.Candidate{
				Unit: u.ID, Class: keys.ClassNew, Shard: u.Shard, Seq: keys.Seq(u.Level, u.Index),
			})
		}

		s.batch.Units = append(s.batch.Units, u)
		if err := s.flushIfLarge(ctx, stagedBytes(u)); err != nil {
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
func (s *submission) flushIfLarge(ctx context.Context, size int) error {
	s.bytes += size
	if s.bytes < store.TargetTxSize && len(s.batch.Units)+len(s.batch.Skipped) < stageUnits {
		return nil
	}
	return s.flushBatch(ctx)
}

// flushBatch has the batch stored while the next one is made. Parts are stored one after
// the other, so it waits for the one before.
func (s *submission) flushBatch(ctx context.Context) error {
	if len(s.batch.Units)+len(s.batch.Blobs)+len(s.batch.Skipped) == 0 {
		return nil
	}

	if err := s.awaitPart(); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}

	in, id, part := s.intake, s.id, s.batch
	s.batch, s.bytes = records.Batch{}, 0

	stored := make(chan error, 1)
	s.stored = stored
	go func() {
		stored <- in.supervisor.ContainPanic(ctx, "storing a part of a submission", func() error {
			return in.jobs.Submit.Stage(ctx, id, &part)
		}, "job", id)
	}()

	return nil
}

// awaitPart waits for the part that is being stored, if there is one.
func (s *submission) awaitPart() error {
	if s.stored == nil {
		return nil
	}
	err := <-s.stored
	s.stored = nil
	return err
}

// begin opens the submission in the store, unless it is open. That is done with the
// first of its documents that are stored: so what never comes to that leaves nothing
// there that would have to be collected.
func (s *submission) begin(ctx context.Context) (err error) {
	if s.id == "" {
		s.id, err = s.intake.reserveJobID(ctx, s.spec)
	}
	return err
}

// noteUnit remembers what the budget is checked against.
func (s *submission) noteUnit(u *records.Unit) {
	if s.least == 0 || u.Estimate < s.least {
		s.least = u.Estimate
	}
	s.maxChunks = max(s.maxChunks, u.Source.Chunks)
}

// checkBudget refuses a job that could not begin.
func (s *submission) checkBudget() error {
	f := &s.publication
	documents := f.Documents - f.Skipped
	if documents == 0 {
		if f.Documents == 0 {
			return errs.Field("documents", "there are none")
		}
		if f.Documents == 1 {
			return errs.Field("documents", "the only one cannot be processed: %s", s.why)
		}
		return errs.Field("documents", "none of the %d can be processed; the first is %s", f.Documents, s.why)
	}

	budget, in := s.spec.Budget, s.spec.BudgetIn
	if budget == 0 {
		return nil
	}

	if share := budget / documents / max(1, s.maxChunks); share == 0 {
		return errs.Field(in.Field(), "is %s, which leaves none for each of %d documents in up to %d chunks; raise it",
			in.Text(budget), documents, max(1, s.maxChunks))
	}

	if mapping := budget - int64(float64(budget)*s.spec.ReduceShare); s.least > mapping {
		return errs.Field(in.Field(), "is %s, %s of it for mapping, but the smallest unit may need %s; raise it",
			in.Text(budget), in.Text(mapping), in.Text(s.least))
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
