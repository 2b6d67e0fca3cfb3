// Package protocol is what workers and servers say to each other: the interface Fleet, the messages of a worker's session,
// the blobs that are too large for them, and the batches that workers see to. Beside that it has the Demand for workers,
// which a Demander tells autoscalers, who start and stop them. It says what things are, and
// imports nothing of the project but the vocabulary of jobs.
package protocol

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Fleet is an orchestrator as workers see it, in this process or on another machine.
type Fleet interface {
	// Work carries one worker's session until the stream ends. The worker
	// sends Hello first and gets Welcome. These things might happen then:
	//  1. the stream breaks: the worker connects again, to any orchestrator,
	//     with the same session, names in Hello what it holds, and sends again
	//     every report for which it saw no verdict;
	//  2. the worker sends Drain: it gets no more units, hands back what it
	//     has not started, and closes the stream when all verdicts are in;
	//  3. the orchestrator sends Goodbye: as 1, but at leisure.
	// Work returns when the stream has ended.
	Work(ctx context.Context, stream WorkStream) error

	// Blobs carries what is too large for the messages of a session. A transfer
	// ends with the stream of its session.
	Blobs
}

// A WorkStream is an orchestrator's end of a session. Send and Recv may be
// called at the same time, each by one goroutine.
type WorkStream interface {
	Send(*ToWorker) error
	Recv() (*FromWorker, error) // io.EOF once the worker has closed its side

	// ClosedByWorker reports whether the stream has ended because the worker's own system closed
	// its connection, as it does for a process that was killed. It is false whenever that is not
	// certain: when the network broke, and when a proxy stands between.
	ClosedByWorker() bool
}

// FromWorker is one message of a worker; any of its parts may be set, and they
// are taken in the order of the fields.
type FromWorker struct {
	Hello     *Hello
	Reports   []Report
	Started   []Held // units that have begun to run
	Reserve   []ReserveRequest
	Heartbeat *Heartbeat
	Drain     bool
	Limits    []LimitNote    // what models said of their limits
	Manners   []ModelManners // what servers of models refused
}

// Hello begins a session, or takes it up again.
type Hello struct {
	Session  mapreduce.SessionID
	Version  string // of the program
	Slots    int    // units that may run at once
	Prefetch int    // units it may hold beside those
	Offer    mapreduce.Offer
	Embedded bool   // it shares the orchestrator's process, and dies with it
	Address  string // of its end of the connection, as it sees it; "" if unknown
	Holding  []Held
}

// Held names an attempt that a worker holds.
type Held struct {
	Job     mapreduce.JobID
	Unit    mapreduce.UnitID
	Attempt int
	Running bool // begun, rather than waiting for a slot
}

// An Outcome is how an attempt ended.
type Outcome uint8

// The outcomes of an attempt.
const (
	OutcomeUnknown Outcome = iota
	Done                   // with a result
	Errored                // see Report.Class
	Returned               // not run, or stopped: costs no attempt
	Parked                 // it waits for something outside, see Report.Parking: costs no attempt
)

// A FailureClass says what a failure means for its unit and its job.
type FailureClass uint8

// The classes of failures.
const (
	Retryable     FailureClass = iota // try again after a pause
	PermanentUnit                     // no attempt can succeed
	PermanentJob                      // no unit of this job can: authentication, billing
)

// A Report is the outcome of one attempt. A worker keeps it until its verdict.
type Report struct {
	Job     mapreduce.JobID
	Unit    mapreduce.UnitID
	Attempt int
	Outcome Outcome

	Output     []byte // encoded output, if at most MaxInline bytes
	Length     int64  // else the bytes of the output, which was put before as BlobOutput,
	SHA256     []byte // and its hash
	Size       int64  // tokens of the output as its provider counted them, or of the text that a reduce would read
	Confidence float64

	Tokens     mapreduce.Tokens   // spent by this attempt, failed calls included
	CostMicros int64              // millionths of a US dollar
	Charges    []mapreduce.Charge // whose Tokens and CostMicros are, as far as that is known; at most MaxCharges
	Unmeasured bool               // said by the orchestrator of a refused report: nobody knows Tokens, and what was reserved is charged
	Calls      int                // of a model
	Latency    time.Duration      // of these
	Tools      int                // calls of tools
	ToolTime   time.Duration      // of these
	Prompt     int64              // bytes of text that a model was given in one call, at most
	Models     []string           // that answered, sorted: see AnsweredBy; at most MaxModels
	Failing    []string           // models of a job with fallbacks that were asked and did not answer: each "provider/model"
	Elapsed    time.Duration
	Savings    mapreduce.Savings

	Class      FailureClass
	Errors     []string
	RetryAfter time.Duration      // the least pause before another attempt
	Breaker    string             // the breaker that was open, for Returned: no more units of its model come for RetryAfter, or a lease
	Parking    *mapreduce.Parking // what the unit waits for, for Parked
}

// Charged returns what of a budget in a currency is charged for the attempt, given what it had
// reserved.
func (r *Report) Charged(in mapreduce.Currency, reserved int64) int64 {
	if r.Unmeasured {
		return reserved
	}
	return in.Of(r.Tokens, r.CostMicros)
}

// A WakeCall is the call that woke a parked unit.
type WakeCall struct {
	Handle string // what the unit waited for
	// Answer is what the caller said of it, of at most MaxWakeAnswer bytes. What people have decided about values of
	// the unit may be more: then it comes as BlobWakeAnswer, and takes the place of what stands here.
	Answer []byte
}

// MaxInline bounds an output that a report carries itself, in bytes.
const MaxInline = 4 << 10

// MaxOutput bounds an output, in bytes. A reader holds a whole output in memory.
const MaxOutput = 256 << 20

// A ReserveRequest asks for tokens before a call that might go beyond the
// attempt's reservation.
type ReserveRequest struct {
	Held
	Tokens int64 // the new reservation in all: spent so far, and the call at worst
}

// A Heartbeat carries the progress of what runs.
type Heartbeat struct {
	Progress []Progress
	Breakers []BreakerState
}

// Progress is how far a running unit is.
type Progress struct {
	Held
	Tokens mapreduce.Tokens
	Note   string // at most MaxNote bytes count
	Number int64  // of the note among those of the attempt, from 1; 0 if it has none
}

// MaxNote bounds what a unit says of itself at a time, in bytes.
const MaxNote = 256

// A BreakerState says that a worker's breaker is open, and how long it stays so.
type BreakerState struct {
	Name    string // provider/model
	OpenFor time.Duration
}

// ToWorker is one message to a worker; any of its parts may be set, and they
// are taken in the order of the fields.
type ToWorker struct {
	Welcome     *Welcome
	Jobs        []JobInfo // before the first assignment of the job, or of another stage of it, in this stream
	Assignments []Assignment
	Verdicts    []VerdictOn
	Reserved    []ReserveReply
	Cancel      []Held            // stop running these; no report is needed
	Goodbye     bool              // this orchestrator is leaving: connect to another
	Forget      []mapreduce.JobID // jobs whose info comes again, should there be more of them to do
	Limits      []LimitShare
	Manners     []ModelManners // what other workers have learned, before the first assignment of a model
}

// Welcome answers Hello.
type Welcome struct {
	Node      mapreduce.NodeID
	Epoch     int64 // of the session; raised by every Hello
	Heartbeat time.Duration
	Drop      []Held        // what the worker named and no longer holds
	Silence   time.Duration // of the orchestrator, after which the worker should connect to another; 0 if it is no sign
}

// A JobInfo holds the data that the following assignments of a job share, up to the
// next JobInfo of the job in the stream. The orchestrator sends another one when the
// job reaches another stage. Units that were assigned before keep the earlier one.
type JobInfo struct {
	Job   mapreduce.JobID
	Stage string            // stage of the pipeline that the job has reached; a tree may also run units of the next stage
	Spec  mapreduce.JobSpec // with the provider and the model of the stage
}

// An Assignment is one attempt at a unit.
type Assignment struct {
	Job      mapreduce.JobID
	Unit     mapreduce.UnitID
	Attempt  int
	Kind     mapreduce.UnitKind
	Level    int
	Stage    string // of the pipeline; empty for parse units
	Depth    int    // level within the stage: 0, and from 1 on in a tree of groups
	Index    int64  // order within the level
	Timeout  time.Duration
	Reserved int64 // tokens reserved for this attempt
	Alone    bool  // workers were lost that ran it: it is to run in a process of its own, so that its death tells something
	Last     bool  // if it fails, in whatever way, no other attempt follows

	// Tier is the one in which the unit's calls of models are made, of a job with a deadline: a value of the
	// parameter tier; else empty. RealTime is that of those which no batch can answer.
	Tier, RealTime string

	// Journal is what earlier attempts have remembered: entries of internal/outcome/journal, each
	// behind its length. The last JournalEntries of them are the unit's own; those
	// before are of the unit of another job that this one repeats.
	Journal        []byte
	JournalEntries int

	// WakeCall is the last call that woke the unit; nil if none has. A unit that was
	// woken by time since has it too: the handle tells.
	WakeCall *WakeCall

	Text   *Text   // of map and parse units
	Inputs []Input // of units that read outputs, in order, and the documents of direct units
	Item   []byte  // JSON of the element of an earlier output that the unit works on

	// EvidenceItems is how many items of evidence of the unit's own are stored. A
	// BlobEvidenceList lists them, behind those of the unit of another job that this one
	// repeats.
	EvidenceItems int

	// Blobs are what would make the assignment larger than MaxAssigned: the
	// content of Text, all Inputs, or Journal, which is then empty here; and the list of
	// what tools have brought to earlier attempts. The worker gets them before the unit runs.
	Blobs []Blob

	// TraceParent is the span of the claim, as a traceparent of W3C Trace Context; empty if
	// the attempt is not traced.
	TraceParent string
}

// MaxAssigned bounds what an assignment carries itself of texts, inputs and
// journals, in bytes: no message grows with a document.
const MaxAssigned = 64 << 10

// A Text is a document, or a chunk of one with its context.
type Text struct {
	Document   mapreduce.DocumentID
	SHA256     []byte // of the document's text
	MediaType  string
	Metadata   map[string]string
	Content    []byte // the chunk, with context before and after its core
	CoreStart  int    // bytes of Content; the core is [CoreStart, CoreEnd)
	CoreEnd    int
	ByteOffset int64 // of Content in the document
	CharOffset int64 // the same in Unicode code points
	ChunkIndex int
	Chunks     int
	Length     int64 // bytes of the document's text

	// Shown are pages whose pictures a model may be shown beside the content; nil if none is.
	Shown *ShownPages
}

// ShownPages are pages of a document as it was submitted: a blob of the kind BlobOriginal.
type ShownPages struct {
	SHA256 []byte // of the document as it was submitted
	Length int64  // bytes of it
	Pages  []int  // counted from 1, in their order; at most MaxShownPages
}

// MaxShownPages bounds the pages that one unit shows a model.
const MaxShownPages = 100

// An Input is the output of a unit, for the unit that reads it.
type Input struct {
	Unit   mapreduce.UnitID
	First  int64 // the map units that it stands for have indexes in
	End    int64 // [First, End), failed ones included
	Failed bool  // it has no output
	// Referred marks what is no input itself, but holds records that inputs
	// name without holding them, or the citations of an assignment's item.
	Referred bool
	Data     []byte // encoded output
}

// A Verdict says what became of a report.
type Verdict uint8

// The verdicts.
const (
	VerdictUnknown Verdict = iota
	Accepted               // durable: forget it
	Stale                  // refused: the unit has moved on (FailedPrecondition)
	Gone                   // refused: the job was cancelled or deleted
)

// VerdictOn is the verdict on one report.
type VerdictOn struct {
	Held
	Verdict Verdict
}

// A ReserveReply answers a ReserveRequest. If not granted the agent must not
// make the call.
type ReserveReply struct {
	Held
	Granted bool
}
