package mapreduce

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Defaults of a job, by the names that ADR-028 gives them.
const (
	DefaultMaxTokensPerUnit   = 50_000  // tokens
	DefaultChunkOverlap       = 500     // tokens
	DefaultParallelism        = 20      // units at once: max_concurrent_agents
	DefaultReduceContextLimit = 100_000 // tokens
	DefaultReduceBatchSize    = 10      // outputs
	DefaultCheckpointInterval = 10      // units
	DefaultBreakerThreshold   = 3       // failures in a row
	DefaultBreakerTimeout     = 60 * time.Second
	DefaultMaxAttempts        = 5
	DefaultUnitTimeout        = 10 * time.Minute
	DefaultReduceShare        = 0.2     // of the budget
	MaxUnitDraw               = 100_000 // tokens a unit may hold reserved at once
	MaxFleetCalls             = 50      // model calls at once over the whole fleet
)

// OnError says what happens to a job when one of its units fails.
type OnError uint8

// The values of OnError.
const (
	Continue OnError = iota // it becomes an error entry; survivors are reduced
	FailFast                // it fails the job
)

// OnBreaker says what an open breaker does to a unit.
type OnBreaker uint8

// The values of OnBreaker.
const (
	BreakerWait OnBreaker = iota // units stay pending and lose no attempt
	BreakerSkip                  // units end with an error result
)

// A Capture says what a job's trace keeps of each call of a model. It always keeps the
// sums.
type Capture uint8

// The values of Capture.
const (
	CaptureOff      Capture = iota // nothing, but each turn and call of agents with tools, without what was said
	CaptureStandard                // each call, without what was said
	CaptureFull                    // what was asked and answered, as far as it is short
)

// A CallKind says what was called.
type CallKind uint8

// The kinds of calls.
const (
	CallModel CallKind = iota
	CallTool
)

// String names the kind.
func (k CallKind) String() string {
	if k == CallTool {
		return "tool"
	}
	return "model"
}

// MendedNote is how a note on a unit begins that lists what was mended in an answer of a model: the
// kinds of repairs, separated by a comma and a space.
const MendedNote = "the answer was mended: "

// MendedKinds returns the kinds of repairs that the notes on a unit list, sorted, each once; nil if
// there are none.
func MendedKinds(notes []string) []string {
	var kinds []string
	for _, note := range notes {
		if list, ok := strings.CutPrefix(note, MendedNote); ok {
			kinds = append(kinds, strings.Split(list, ", ")...)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// A Call is one call of a model, or of a tool, as it is captured.
type Call struct {
	Kind       CallKind
	Turn       int           // of the agent with tools that made it, from 1; 0 if there is none
	Name       string        // provider/model, or of the tool
	At         time.Duration // when it began, since the attempt did
	Latency    time.Duration
	Tokens     Tokens
	CostMicros int64
	Error      string
	Prompt     string
	Answer     string
	Cut        bool // Prompt or Answer is not whole
}

// A Strategy is how the outputs of a level are grouped to be reduced.
type Strategy uint8

// The strategies.
const (
	// StrategyDefault is the strategy of the fields of a JobSpec that are set. If
	// none are, or those of ADR-028, it is ADR-028's: one reduce if the outputs
	// fit it, else batches of them, level by level.
	StrategyDefault  Strategy = iota
	StrategyStatic            // groups of a fixed number: the tree is known before the run
	StrategyAdaptive          // packed by size under a budget, level by level
)

// A JobSpec is what a client asks for. Zero fields take the defaults.
type JobSpec struct {
	Tenant    TenantID
	RequestID RequestID // makes the submission idempotent within the tenant

	Pipeline string // by name; defaults to "extract"
	// Definition is the canonical JSON of a pipeline file, of the pipeline with
	// that name; empty for one that comes with the program.
	Definition []byte

	Provider string // defaults to "rules"
	Model    string // may be a list when a job is submitted: see SpreadModels
	// Fallbacks are asked while Model is away, in this order: each "provider/model".
	Fallbacks []string
	Schema    []byte            // canonical JSON of the schema
	Models    map[string]string // what aliases of models stand for: provider/model
	Vars      map[string]string // template variables, and settings of the provider

	Name   string            // what people call the job; may be empty, and that of others too: see CheckName
	Labels map[string]string // by which jobs are told apart and counted: see label.CheckAll

	Parallelism      int // units running at once
	MaxTokensPerUnit int // tokens
	ChunkOverlap     int // tokens; negative means none
	// Estimator says how to count tokens that no provider has counted: "o200k_base"
	// (the default), "characters" for a quarter of the characters, with a warning, or
	// "characters/N" for one token in N characters.
	Estimator string
	Priority  int // higher goes first, within the tenant

	// How outputs are reduced. Only a nil pointer means the default: a value that
	// makes no sense is refused and not replaced.
	Strategy           Strategy
	ReduceContextLimit int      // tokens; of the default strategy
	ReduceBatchSize    int      // outputs in one reduce; of the default strategy
	ChunkSize          *int64   // outputs of a group; of StrategyStatic
	TargetTokenBudget  *int64   // tokens that a call of a reduce may take; of StrategyAdaptive, as are the next
	ContextWindow      *int64   // tokens; with BudgetRatio another way to say the budget
	BudgetRatio        *float64 // part of ContextWindow
	MaxReduceLevels    *int64   // levels between the map and the final reduce
	PromptOverhead     *int64   // tokens of a prompt beside outputs; taken off every budget of reduces
	ReservedOutput     *int64   // tokens kept free for an answer; likewise

	Budget      int64    // over all attempts, as BudgetIn says: tokens, in and out, or money; 0 means none is set
	BudgetIn    Currency // of the budget
	ReduceShare float64  // part of the budget held back for reducing

	OnError   OnError
	OnBreaker OnBreaker
	// StrictSchema makes a map unit fail whose records break the schema, or lack what it
	// requires.
	StrictSchema       bool
	MaxAttempts        int
	UnitTimeout        time.Duration
	BreakerThreshold   int
	BreakerTimeout     time.Duration
	CheckpointInterval int // completed units from one mark of progress in the ledger to the next
	Capture            Capture

	Reading Reading // how its documents are read
	Output  Output  // where its client writes the result

	Cache bool // answers of models are shared with other jobs of the tenant
	// Replay is the job that this one repeats, with that job's documents and kept
	// answers, and without asking a model. All of that job's spec is used too, except
	// the tenant and the request.
	Replay JobID

	// Deadline is by when the job is to end. Its calls of models go by batch as long as the rest could still be
	// made at once, and a job that cannot end by then is refused. The zero time leaves the tier to Vars.
	Deadline time.Time

	// Keep is for how long the job is kept after its end. It shortens the time for which
	// the service keeps the jobs of its tenant, and does not lengthen it. 0 leaves it.
	Keep time.Duration

	// TraceParent is the span under which those of the job stand, as a traceparent of W3C
	// Trace Context; empty if it was submitted where nothing was traced. The service sets
	// it, whatever a client says.
	TraceParent string
}

// An Output says where the client that submitted a job writes its result, and in which forms.
// The service only keeps it, so that whoever resumes the job can write to the same place.
type Output struct {
	Folder    string   // on the machine of the client, by its whole path; at most MaxFolder bytes; empty if it did not say
	Formats   []string // of the records beside result.json, such as "csv"
	Citations bool     // those have the citation of each value
	NoReport  bool     // there are no reports for people
}

// MaxFolder bounds the name of the folder of an Output, in bytes.
const MaxFolder = 4096

// A Document is one input. Exactly one of Text-like content and Skip is given.
type Document struct {
	ID        DocumentID
	MediaType string            // "text/plain", "text/markdown", "text/html"; empty means text/plain
	Metadata  map[string]string // travels with the document
	Content   []byte
	Skip      string // why this input is not processed; it is kept in the ledger
	Size      int64  // bytes of the input as found; for skipped ones
}

// ExcessMetadata returns the reason to skip a document whose metadata has more than
// MaxMetadata bytes, or "" if it has no more.
func (d *Document) ExcessMetadata() string {
	size := 0
	for name, value := range d.Metadata {
		size += len(name) + len(value)
	}
	if size <= MaxMetadata {
		return ""
	}
	return fmt.Sprintf("it has %d bytes of metadata, more than the %d that are accepted", size, MaxMetadata)
}

// Tokens count what models read and wrote.
type Tokens struct {
	In, Out int64
}

// Total returns all tokens.
func (t Tokens) Total() int64 { return t.In + t.Out }

// Add returns the sum of t and u.
func (t Tokens) Add(u Tokens) Tokens { return Tokens{t.In + u.In, t.Out + u.Out} }

// A Job is a job's record with its counters, as of one moment.
type Job struct {
	ID      JobID
	Spec    JobSpec
	State   JobState
	Phase   JobState // the last running phase; where a resume goes on
	Level   int      // of reduction; 0 while mapping
	Epoch   int64    // raised by every change of State or Level
	Created time.Time
	Updated time.Time
	Error   string // why it failed or was paused

	TotalUnits     int64 // planned so far
	CompletedUnits int64
	FailedUnits    int64
	RunningUnits   int64
	ParkedUnits    int64 // that wait for something outside
	TotalTokens    Tokens
	CostMicros     int64 // millionths of a US dollar
	Savings        Savings
	// Plan is what the job was expected to take when it was submitted; nil if no plan was
	// made, as of jobs with very many units and of those of earlier versions.
	Plan *JobPlan
	// Calls counts those of models by all attempts, of jobs that have a plan.
	Calls     int64
	Coverage  Coverage
	AuditHead string    // hex; the head of the sealed chain of events
	Ended     time.Time // zero while it has not ended
	// DeleteAfter is when the service deletes the job, by its present rules; zero if it
	// does not.
	DeleteAfter time.Time
	Warnings    []string // what the owner should know about how outputs are reduced, by level
	// Superseded is what dropped units had spent, by level; resumes drop units. It is
	// part of the totals, but no unit has it any more.
	Superseded []Spent
	// Stages says how far each stage of the pipeline is, in order. Only GetJob
	// returns it.
	Stages []StageProgress
	// Skipped are the first of the skipped documents, at most MaxShownSkips. Only GetJob
	// returns them.
	Skipped []SkippedDocument
	// Causes are those of failed units that somebody has ignored or resolved. ListJobs leaves
	// them out.
	Causes []CauseMark
	// Activity is what running units said of themselves since the last call. Only
	// WatchJob gives it, and nothing keeps it.
	Activity []Activity
}

// Activity is what a running unit says of itself: a turn of its agent, a call of a tool.
type Activity struct {
	Unit    UnitID
	Attempt int
	Number  int64  // of the note among those of the attempt, from 1; some may be left out
	Tokens  Tokens // that the attempt had spent
	Note    string // for people, at most MaxNote bytes; it may hold words of documents and tools
}

// StageProgress says how far a stage of a job is. Its units are those that are
// planned so far, so a stage that the job has not reached has none, and neither has
// one that the job passes over.
type StageProgress struct {
	Name      string   // empty for the units that parse documents, which come first if there are any
	Phase     JobState // of the job while the units of the stage run
	Units     int64    // planned so far
	Completed int64
	Failed    int64 // for good
}

// Spent is what some units of a level had spent.
type Spent struct {
	Level      int
	Units      int64 // that had spent something
	Tokens     Tokens
	CostMicros int64 // millionths of a US dollar
	Savings    Savings
	CallSums   CallSums
}

// Coverage is the ledger: every document and every character ends in one of
// mapped, failed or skipped, and the sums agree once the job has ended.
type Coverage struct {
	Documents, Characters Ledger
	// Unread counts bytes of the documents that gave no text, so that they have no
	// characters: those that were skipped, and those whose reading failed.
	Unread Ledger
}

// MaxShownSkips bounds the skipped documents of a Job.
const MaxShownSkips = 20

// A Ledger counts one thing by what became of it.
type Ledger struct {
	Total, Mapped, Failed, Skipped int64
}

// A Unit is a unit's record.
type Unit struct {
	ID         UnitID
	Job        JobID
	Document   DocumentID // of map and parse units
	Kind       UnitKind
	Level      int   // -1 for parse units, 0 for map units
	Index      int64 // order within the level; with gaps in level 0
	State      UnitState
	Attempts   int   // claims so far
	Failures   int   // attempts that failed
	Share      int64 // tokens of the budget that are its share
	Tokens     Tokens
	CostMicros int64
	Elapsed    time.Duration // of the attempt that ended it
	CallSums   CallSums      // of all its attempts
	Savings    Savings       // of all its attempts
	Errors     []string
	Lasting    bool     // it failed, and another attempt would fail alike
	Parking    *Parking // what it waits for; nil if it is not parked
	ChunkIndex int
	Chunks     int   // of its document; 1 means the document is not cut
	Start, End int64 // characters of the document that are its core, half-open
	Confidence float64
	Stage      string   // of the pipeline; empty for parse units
	Models     []string // that answered its latest attempt, sorted: see AnsweredBy
	DependsOn  []UnitID // of units that take outputs, when asked for
	Continues  bool     // the next page begins with the same unit, and more of DependsOn
	Output     []byte   // encoded output, when asked for
	// Locations are where the citations of Output are in their documents, by their ids, as
	// far as these have such places. They come with Output.
	Locations map[string]*Location
}

// CallSums are what attempts called, and how long that took.
type CallSums struct {
	Calls    int64         // of a model
	Latency  time.Duration // of these
	Tools    int64         // calls of tools
	ToolTime time.Duration // of these
	Prompt   int64         // bytes of text that a model was given in one call, at most
}

// Add returns the sum of j and k.
func (j CallSums) Add(k CallSums) CallSums {
	return CallSums{j.Calls + k.Calls, j.Latency + k.Latency, j.Tools + k.Tools, j.ToolTime + k.ToolTime, max(j.Prompt, k.Prompt)}
}

// Savings are what caches saved: that of answers, which jobs of a tenant may
// share, and those in which vendors keep the beginnings of prompts.
type Savings struct {
	Answers      int64 // calls that were not made, for their answers were known
	AnswerMicros int64 // what those would have cost, in millionths of a US dollar
	CacheWrite   int64 // tokens of prompts that vendors wrote to their caches
	CacheRead    int64 // tokens of prompts that they read from there
	// PromptMicros is how much less prompts cost for that; it is negative if
	// writing cost more than reading saved.
	PromptMicros int64
}

// Add returns the sum of s and t.
func (s Savings) Add(t Savings) Savings {
	return Savings{
		s.Answers + t.Answers, s.AnswerMicros + t.AnswerMicros,
		s.CacheWrite + t.CacheWrite, s.CacheRead + t.CacheRead, s.PromptMicros + t.PromptMicros,
	}
}

// A Checkpoint is the record of one transaction that moved a job: the units
// that it completed, and the audit event.
type Checkpoint struct {
	ID        string // hex of the versionstamp: grows with time within a job
	Time      time.Time
	Kind      EventKind
	Node      NodeID
	State     JobState // of the job, for changes of state
	Completed []UnitRef
	Failed    []UnitRef
	Tokens    Tokens
	Message   string
	Principal string        // whose call caused it; empty if none did
	Tenant    TenantID      // that the principal called for
	Deleted   *DeletedJob   // of an event of the log of a tenant
	Proof     Proof         // only if it was asked for
	Progress  *ProgressMark // at every CheckpointInterval; nil at others, and until the checkpoint is sealed

	// How many units it completed and failed, if that was asked for in place of these.
	CompletedCount, FailedCount int64
}

// A DeletedJob is what is kept of a job that was deleted.
type DeletedJob struct {
	Job     JobID
	State   JobState // that it had
	Created time.Time
	Ended   time.Time // zero if it had not
	Rule    string    // of retention, that has deleted it; empty if a call has
	Seals   int64     // of its audit chain
	Head    []byte    // of its audit chain
}

// A Proof is a checkpoint as it is stored: what the hashes of seals are over.
type Proof struct {
	Key    []byte // its place in the chain
	Record []byte // an encoded storage.v1.Checkpoint
}

// A ProgressMark is how far a job was by a checkpoint.
type ProgressMark struct {
	Completed int64  // completions so far. A unit that is completed again counts again
	Tokens    Tokens // of all attempts so far
}

// A UnitRef names one attempt's outcome.
type UnitRef struct {
	Unit    UnitID
	Attempt int
	SHA256  []byte // of the result, for completed units
	Tokens  Tokens
}

// An EventKind is what a checkpoint records.
type EventKind uint8

// The kinds of events.
const (
	EventUnknown   EventKind = iota
	EventSubmitted           // the job became visible
	EventFinished            // units ended
	EventState               // the job's state or level changed
	EventReclaimed           // units of a lost or leaving worker went back
	EventRetried             // units failed and will be tried again
	EventWoken               // a call woke a parked unit, or units of a cascade go on
	EventDeleted             // the job was deleted: an event of the log of its tenant
	EventDecided             // somebody decided about a value of the result
	EventMarked              // somebody ignored, resolved or reopened a cause of failed units
)

var eventKindNames = [...]string{"unknown", "submitted", "finished", "state", "reclaimed", "retried", "woken", "deleted", "decided", "marked"}

// String returns the kind's name.
func (k EventKind) String() string { return stateName(eventKindNames[:], k) }
