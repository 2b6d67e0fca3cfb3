// Package agent is the seam between a worker and what does its work: the
// interface of an agent, what an agent is given, what it may ask for, and how
// its errors are understood.
//
// It imports the packages of api by which jobs are described, and internal/text/ground, and no
// provider of models: agents import it, the worker runs them.
package agent

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// An Agent runs units. Run is called concurrently, once for each attempt.
//
// These things might happen:
//  1. it returns a result: the unit is done, even after its deadline;
//  2. it returns an error, whose class decides what happens next: see Classify;
//  3. it returns an error that wraps ErrBudget or a *BreakerError from calls:
//     the attempt is handed back and costs the unit nothing;
//  4. it returns an error that wraps a *ParkedError: the unit waits for something
//     outside, and costs the unit nothing;
//  5. ctx ends, by deadline, cancellation or drain (see context.Cause): Run
//     should return at once. If it does not within a grace period it is
//     abandoned: its slot is given to another unit and what it returns is lost;
//  6. it panics: that is a failure which may be tried again.
//
// An agent must be done with calls when it returns.
type Agent interface {
	Run(ctx context.Context, task *Task, calls Calls) (*Result, error)
}

// A Task is one attempt at a unit, with all its inputs. It is read-only.
type Task struct {
	protocol.Assignment
	Spec *mapreduce.JobSpec // shared by all units of the job

	// StageSpec is what the pipeline says of the unit's stage, shared by all its
	// units. It is nil for parse units, and in jobs whose pipeline has no stages.
	StageSpec *StageSpec

	// Whole calls use with the text of the document that Text is a chunk of, for
	// quotes that do not stand in the chunk. It is nil if there is no more than
	// Text. Few texts are held at a time, so use must not wait for anything, nor
	// keep the text. Whole may have to fetch it, and may block while there is no
	// connection. It returns an error that wraps ErrTooLong, and does not call
	// use, if the text is longer than protocol.MaxWholeText: that depends on
	// nothing but the document.
	Whole func(ctx context.Context, use func(*ground.Text)) error

	// Pictures draws the pages of the document that a model may be shown beside Text, each as large
	// as fit says of its own size in pixels: those of Text.Shown, but for pages that cannot be drawn.
	// It is nil if no page is to be shown. It may have to fetch the document, and may block while
	// there is no connection. It returns an error that wraps ErrNoPages where nothing draws pages.
	// The same document and fit give the same bytes, on every worker of one version.
	Pictures func(ctx context.Context, fit func(width, height int) (int, int)) ([]Picture, error)
}

// A Picture is a page of a document as a viewer shows it.
type Picture struct {
	Page          int // counted from 1
	Width, Height int // pixels
	MediaType     string
	Data          []byte
}

// An OutputKind is the kind of output of a stage's units.
type OutputKind string

// The kinds of outputs.
const (
	Records OutputKind = "records" // records, each value with its citations
	// PassagesChosen are places of documents that are chosen for a query.
	PassagesChosen OutputKind = "passages"
	Items          OutputKind = "items"  // a value that holds a list
	Table          OutputKind = "table"  // a value that holds rows
	Report         OutputKind = "report" // a text for people
)

// A StageSpec is what the pipeline of a job says of a stage, as far as its units
// need it. It is read-only.
type StageSpec struct {
	Name      string
	Documents bool       // its units read documents; else outputs of an earlier stage
	Each      string     // what one unit gets, as the pipeline says it
	Group     bool       // its units are a tree that makes one output of many of the same form
	Order     string     // a field by which the outputs that a unit reads are sorted, as pipeline.Stage.Order; empty if they are not
	Passage   int64      // characters that are kept of each of them; 0 if all are
	Tokens    int64      // that a unit may spend, in and out; 0 is no limit
	Context   int64      // bytes that a prompt may have; 0 is no limit
	Tools     []string   // names of the tools that its units may use
	Turns     int64      // that an agent with tools may take; 0 is DefaultTurns
	ToolCalls int64      // that it may make in all; 0 is DefaultToolCalls
	Output    OutputKind // what its units come to
	Schema    []byte     // JSON Schema of that; of Records the schema of the job, if it is empty
	Reads     [][]byte   // JSON Schemas of the records that its units may read; none if they read values
	Passages  bool       // its units read passages: each is an input, see output.Passages
	Query     string     // what the run asks: what passages are chosen for, or the run's question; may be empty
	Size      int64      // of a stage that chooses passages: how many a unit chooses at most
	Check     bool       // the model that writes a report checks its claims
	// Choices are agents of later stages, by the property of the output that lists those of
	// them that are to work.
	Choices    map[string][]pipeline.Candidate
	Parameters parameters.Set // of the model's answers; what they leave out is the job's
	Merge      string         // how a group is merged: typed, model or typed-then-model; empty leaves it to the job

	cascading.Cascade              // who does its units, where several may
	Review            waiting.Rule // which values of its units wait for a person
}

// Limits of agents with tools, where their stage states none.
const (
	DefaultTurns     = 25
	DefaultToolCalls = 100
)

// MakesRecords reports whether the output of the task is records.
func (t *Task) MakesRecords() bool { return t.StageSpec == nil || t.StageSpec.Output == Records }

// RecordSchema returns the schema of the records that the task makes.
func (t *Task) RecordSchema() []byte {
	if t.StageSpec != nil && len(t.StageSpec.Schema) > 0 {
		return t.StageSpec.Schema
	}
	return t.Spec.Schema
}

// A Result is what an attempt made.
type Result struct {
	Output     []byte   // encoded; the worker owns it from here on
	Size       int64    // tokens of Text as its provider counted them, see token.Unknown
	Text       string   // what a reduce would read of the output; needed if Size is unknown
	Confidence float64  // in [0,1]
	Errors     []string // what went wrong without making the attempt fail
}

// Calls is what an agent may ask of the worker while it runs a unit. It is there so that an
// agent knows nothing of orchestrators, streams and blobs: it says what it does, and the worker
// meters money, remembers what was done, watches over calls of models, keeps evidence, and puts
// it all into its reports. All methods may be called concurrently. Tests of agents embed
// scripted.Calls, and override what they look at.
type Calls interface {
	Journal
	EvidenceKeeper

	// Reserve sets aside the worst case of a call about to be made: its tokens, in and out,
	// and what they cost, in millionths of a US dollar, negative if no price is known. It asks the orchestrator only for what the unit's
	// reservation lacks, and may block while there is no connection. It
	// returns an error that wraps ErrBudget when refused: the call must not be
	// made then. Without a budget it grants everything. It waits until the journal is
	// stored where more than KeepEvery tokens, with these, would else be paid twice if
	// the process died during the call.
	//
	// Every Reserve that returns nil is followed by one Spent.
	Reserve(ctx context.Context, tokens, costMicros int64) error

	// Spent reports what a call took, failed ones included: zeros if it was
	// never made.
	Spent(c mapreduce.Charge)

	// Saved reports what caches saved: a whole call, or a part of one.
	Saved(s mapreduce.Savings)

	// Call runs one model call under the breaker of name, "provider/model";
	// an empty name means that of the unit's stage. It returns the error of call, or a
	// *BreakerError if the breaker is open and call was not run. While a call
	// probes a breaker that is half open, others wait for its outcome.
	Call(ctx context.Context, name string, call func(ctx context.Context) error) error

	// TryCall is Call of a call that can be made to another model: it never waits for what
	// another call shows of a breaker, and returns a *BreakerError in its place.
	TryCall(ctx context.Context, name string, call func(ctx context.Context) error) error

	// Failing notes that a model, "provider/model", did not answer the unit, through no fault of
	// the unit.
	Failing(model string)

	// Answered notes that a model answered: see mapreduce.AnsweredBy.
	Answered(by string)

	// Prompted notes a prompt by the bytes of its texts, which limits.context bounds.
	Prompted(bytes int64)

	// ToolCalled notes a call of a tool that took d, whatever came of it.
	ToolCalled(d time.Duration)

	// Progress notes in a few words how far the unit is.
	Progress(note string)

	// Pause runs a wait for a turn at the processor, and returns its error. The time of the
	// unit stands still meanwhile, and begins anew behind it.
	Pause(wait func() error) error

	// Captures returns what Record keeps of calls, for the trace of the job. Prompts and
	// answers are recorded only with CaptureFull.
	Captures() mapreduce.Capture

	// Record adds a call that has just ended, however it did. When it began is
	// found out here.
	Record(c mapreduce.Call)

	// Shares reports whether the job shares the answers of models with other jobs of the
	// tenant. If not, Answer and Share are not to be called.
	Shares() bool

	// Answer returns what was kept under a key, the SHA-256 of all that decides
	// the answer; nil if nothing is. It may block while there is no connection.
	Answer(ctx context.Context, key []byte) ([]byte, error)

	// Share keeps an answer, unless it is longer than protocol.MaxAnswer. The
	// callee owns it from here on. It may be lost.
	Share(key, answer []byte)

	// PutLine stores a line of the unit, which a batch is to answer once the agent has parked the unit
	// with its key. An error of kind errs.Precondition and reason errs.LineOpen says that the unit waits
	// for another line already.
	PutLine(ctx context.Context, line *protocol.Line) error

	// LineReply returns what became of a line of the unit, by its key; nil while it is not answered, or
	// if there is none.
	LineReply(ctx context.Context, key []byte) (*protocol.LineReply, error)
}

// A Journal is the part of Calls that remembers what attempts at a unit have done: package
// journal says how, and what always holds. A key names what is done: it has to hold everything that decides
// the result, and, where the same is wanted again, which time it is.
type Journal interface {
	// Do returns what came of the thing that key names, in this attempt or an earlier
	// one. If none has done it, fn does it, and its result is remembered; an error is
	// not. A result that does not fit is returned, and not remembered.
	//
	// Results are stored when KeepEvery tokens were spent since the last were,
	// before a call (see Calls.Reserve) that would make them more, and when the attempt
	// ends without a result. So fn may run again after its process has died.
	Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error)

	// DoOnce is Do for what must not be done twice, such as a call of a tool that
	// changes something. Its begin is stored before fn runs, together with all that
	// was done before; its result is stored when DoOnce returns. It returns an
	// error that wraps journal.ErrInterrupted for what was begun and may have been
	// done, and journal.ErrFull if there is no room for it.
	DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error)

	// Recall returns what came of the thing that key names, if an attempt has done it.
	Recall(key string) ([]byte, bool)
}

// An EvidenceKeeper is the part of Calls that stores what tools bring to a unit, so that
// outputs can cite it.
type EvidenceKeeper interface {
	// KeepEvidence stores a text with the unit, and returns the id by which it is cited.
	// Fields that follow from the text are set here (see mapreduce.Evidence.DescribeText): e says
	// where it is from and which tool brought it. The text is durable when KeepEvidence
	// returns. The same text of the same place is stored once, whichever attempt kept it.
	// It returns an error
	//  1. that wraps ErrNoRoom if the unit has as much evidence as it may have: the text is
	//     not stored, and the unit goes on without it;
	//  2. of kind errs.Invalid if the text is empty, too long or not UTF-8, or a field of e
	//     is out of its bounds;
	//  3. why the attempt ended.
	KeepEvidence(ctx context.Context, e mapreduce.Evidence, text []byte) (mapreduce.DocumentID, error)

	// Evidence returns what all attempts at the unit have kept, in order.
	Evidence() []mapreduce.Evidence

	// EvidenceText returns the text of evidence of the unit, which must not be changed. It
	// may have to fetch it. It returns errs.NotFound if the unit has none of that id.
	EvidenceText(ctx context.Context, id mapreduce.DocumentID) ([]byte, error)
}

// KeepEvery is how many tokens are spent at most between two times that what was done is
// stored, unless one call alone takes more.
const KeepEvery = 10_000
