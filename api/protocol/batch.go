package protocol

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Line is a request of a unit's model that is to go by batch: with others of its job and model, for
// less, and answered within a day or so. Meanwhile its unit is parked. A unit has one at a time.
type Line struct {
	Key      []byte          `json:"key"` // SHA-256 of all that decides the answer
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Request  json.RawMessage `json:"request"`          // as the worker's own provider reads it
	Size     int64           `json:"size"`             // bytes that it takes in a batch of its vendor
	Tokens   int64           `json:"tokens,omitempty"` // of the prompt, or a few more

	// What the vendor takes of one batch; 0 is no limit.
	MostLines int64 `json:"most_lines,omitempty"`
	MostBytes int64 `json:"most_bytes,omitempty"`
	Fewest    int64 `json:"fewest,omitempty"` // lines
}

// MaxLine bounds a line, encoded, in bytes: one transaction writes it.
const MaxLine = 512 << 10

// LineHandle is what a unit is parked under whose line has a key.
func LineHandle(key []byte) string { return lineHandle + hex.EncodeToString(key[:min(8, len(key))]) }

// lineHandle begins the handles of units that wait for a batch.
const lineHandle = "batch-"

// IsLineHandle reports whether a unit that is parked under a handle waits for a batch.
func IsLineHandle(handle string) bool { return strings.HasPrefix(handle, lineHandle) }

// A LineOutcome says what became of a line.
type LineOutcome string

// The outcomes of lines. All but the first two are asked again in real time.
const (
	LineSucceeded LineOutcome = "succeeded"
	LineRefused   LineOutcome = "refused" // for good: the same would be refused again
	LineErrored   LineOutcome = "errored"
	LineExpired   LineOutcome = "expired"
	LineCancelled LineOutcome = "cancelled"
	LineLost      LineOutcome = "lost" // its batch has ended, and has nothing about it

	// LineAgain goes in another batch: this one was not begun to be created. It is no outcome that a
	// unit hears of.
	LineAgain LineOutcome = "again"
)

// A LineReply is what became of a line, and what it took.
type LineReply struct {
	Number   int64           `json:"number"` // of the line in its batch
	Outcome  LineOutcome     `json:"outcome"`
	Response json.RawMessage `json:"response,omitempty"` // if it succeeded, as the worker's own provider reads it
	Error    string          `json:"error,omitempty"`    // otherwise
	Kind     int             `json:"kind,omitempty"`     // of the error, as workers have it

	Tokens     mapreduce.Tokens  `json:"tokens"`
	CostMicros int64             `json:"cost_micros,omitempty"`
	Unpriced   int64             `json:"unpriced,omitempty"` // of Tokens, those whose price is not known
	Savings    mapreduce.Savings `json:"savings,omitzero"`
	Unmeasured bool              `json:"unmeasured,omitempty"` // the vendor did not say what it took: what was reserved is charged
}

// A BatchState says how far a batch is.
type BatchState uint8

// The states of batches. One whose lines have all been answered is gone.
const (
	BatchUnknown  BatchState = iota
	BatchPlanned             // it has its lines, and nobody has begun to create it
	BatchCreating            // its vendor may have it
	BatchCreated             // its vendor has it, under Batch.Vendor
)

// A Batch is a batch of calls of a job at a vendor.
type Batch struct {
	Job      mapreduce.JobID `json:"job"`
	Number   int64           `json:"number"` // within the job
	Mark     string          `json:"mark"`   // by which it is found at its vendor; no two batches have the same
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Lines    int64           `json:"lines"`
	Tokens   int64           `json:"tokens,omitempty"` // of the prompts of its lines
	State    BatchState      `json:"state"`
	Vendor   string          `json:"vendor,omitempty"` // its id there, once it is created
	Begun    time.Time       `json:"begun,omitzero"`   // when it was first begun to be created
	Answered int64           `json:"answered"`         // lines whose outcome is stored
	Done     int64           `json:"done"`             // lines that the vendor says it has done
	Tries    int64           `json:"tries,omitempty"`  // creations that made no batch
	Trouble  string          `json:"trouble,omitempty"`
	Ending   bool            `json:"ending,omitempty"` // it is cancelled, for a deadline: its lines are asked in real time
}

// WaitNote says for people what a unit waits for whose line is in the batch, or in none yet.
func (b *Batch) WaitNote() string {
	done := max(b.Done, b.Answered)
	if b.Ending {
		return fmt.Sprintf("waits until batch %d at %s has ended, which is cancelled as its job's deadline is near", b.Number, b.Provider)
	}

	switch b.State {
	case BatchPlanned, BatchCreating:
		return withTrouble(fmt.Sprintf("waits for batch %d at %s, which is being made", b.Number, b.Provider), b.Trouble)
	case BatchCreated:
		return withTrouble(fmt.Sprintf("waits for batch %s at %s (%d of %d done)", b.Vendor, b.Provider, done, b.Lines), b.Trouble)
	}
	return fmt.Sprintf("waits to be put in a batch at %s", b.Provider)
}

// withTrouble returns a note with what is wrong behind it, if anything is.
func withTrouble(note, trouble string) string {
	if trouble == "" {
		return note
	}
	return note + ": " + trouble
}

// A BatchRoom is what an account at a vendor may have of batches; 0 is no limit, or none that is known.
type BatchRoom struct {
	Lines   int64 // in batches that have not ended, of all models
	Tokens  int64 // of the prompts of these, of one model
	Batches int64 // that have not ended, of all models
	Creates int64 // batches that are made within an hour
}

// Or returns the room with what other says where it says nothing itself.
func (r BatchRoom) Or(other BatchRoom) BatchRoom {
	return BatchRoom{
		Lines: cmp.Or(r.Lines, other.Lines), Tokens: cmp.Or(r.Tokens, other.Tokens),
		Batches: cmp.Or(r.Batches, other.Batches), Creates: cmp.Or(r.Creates, other.Creates),
	}
}

// A BatchOrder is a batch that a worker is to see to.
type BatchOrder struct {
	Batch
	Cancel bool              `json:"cancel,omitempty"` // its job was cancelled, or is gone
	Wait   string            `json:"wait,omitempty"`   // why it is not begun yet: its account has no room; "" if it has
	Others []string          `json:"others,omitempty"` // ids at vendors of the job's other batches, of one that is looked for
	Own    bool              `json:"own,omitempty"`    // its provider is that of its job, whose Vars may say where it is
	Vars   map[string]string `json:"vars,omitempty"`   // of the job: where its models are, and what they cost
}

// BatchVars are the variables of a job without which its batches cannot be reached: where its models are,
// how they are asked, and what they cost. They are kept of batches whose job is gone.
func BatchVars() []string { return []string{"base_url", "tool_mode", "prices"} }

// A BatchLine is a line of a batch.
type BatchLine struct {
	Number  int64           `json:"number"`
	Request json.RawMessage `json:"request"`
}

// A BatchReport is what a worker says of a batch that it sees to.
type BatchReport struct {
	Mark    string      `json:"mark"`
	State   BatchState  `json:"state,omitempty"`   // that it is in from now on; BatchUnknown leaves it
	Vendor  string      `json:"vendor,omitempty"`  // with BatchCreated
	Done    int64       `json:"done,omitempty"`    // lines that the vendor says it has done
	Trouble string      `json:"trouble,omitempty"` // with BatchPlanned: why it could not be created, or is not yet
	Replies []LineReply `json:"replies,omitempty"`

	// Over says that there are no more replies: what became of the other lines is Rest, and the batch is
	// gone.
	Over bool        `json:"over,omitempty"`
	Rest LineOutcome `json:"rest,omitempty"`
	Why  string      `json:"why,omitempty"` // of Rest
}

// MaxBatchReport bounds a report of a batch, encoded, in bytes.
const MaxBatchReport = 1 << 20

// MaxReplies bounds the replies of one report: one transaction takes them.
const MaxReplies = 64

// A BatchDesk is what orchestrators do for a worker that sees to batches. Its methods make one attempt each.
type BatchDesk interface {
	// Orders returns the batches that the worker is to see to.
	Orders(ctx context.Context) ([]BatchOrder, error)

	// Lines returns the lines of a batch that have no outcome yet, in order. It returns errs.Precondition
	// if the worker does not see to it.
	Lines(ctx context.Context, job mapreduce.JobID, number int64) ([]BatchLine, error)

	// Report says what became of a batch. It returns errs.Precondition if the worker does not see to it
	// any more, and errs.Exhausted with the reason errs.NoBatchRoom if it is not to be made yet.
	Report(ctx context.Context, job mapreduce.JobID, number int64, r *BatchReport) error
}
