// Package batch is the port to vendors that answer many requests together, later and for less: an
// order of lines becomes a batch at the vendor, which has a result for each line once it has ended.
//
// What it keeps to:
//   - A line is asked as the vendor's provider asks it in real time, byte for byte but for what asks
//     for a stream, and its answer is read by the same code.
//   - Each line of an order has at most one result. Results come in any order, and are matched by the id
//     of their line. Of lines that have none, Batch.Rest says what became.
//   - An order is made once. Its mark stands in the batch at the vendor, so that a batch whose creation
//     nobody has heard of is found again, and never made a second time.
//   - A vendor's limits are kept before the vendor says so: an order that passes one is refused unsent.
//
// It knows no vendor: those are rows of worker/llm/vendors. Of the project it imports package llm alone.
package batch

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
)

// A Vendor makes batches. It is safe for concurrent use, and keeps nothing that cannot be
// asked for again: whoever has its id may ask for a batch, in whatever process. Each method makes one attempt; errors are an *llm.Error, or wrap one.
type Vendor interface {
	// Limits returns the vendor's limits, for a model.
	Limits(model llm.Model) Limits

	// Size returns the bytes that a line takes in an order. The error says that the vendor cannot be
	// asked so, and has the kind that the same call would have in real time.
	Size(line Line) (int64, error)

	// Create makes a batch of an order.
	//  1. the batch: its id has to be stored before anything else is done;
	//  2. a *LostError: the answer was lost, and the vendor may have made the batch. It must not be
	//     created again before Find has said, for as long as Limits.Settle, that it is not there;
	//  3. any other error: there is no such batch.
	Create(ctx context.Context, order Order) (Batch, error)

	// Find returns the batches that may be of an order with a mark, among those created at since or
	// later, the newest first. Of one whose Mark is empty nobody knows before it has ended.
	Find(ctx context.Context, mark string, since time.Time) ([]Batch, error)

	// Get returns a batch as it stands. For as long as Limits.Settle after its creation, an error of
	// the kind NotFound says nothing.
	Get(ctx context.Context, id string) (Batch, error)

	// Results returns what became of the lines of a batch that has ended. An error ends it; what came
	// before that stands, and comes again if Results is called again.
	Results(ctx context.Context, id string) iter.Seq2[Result, error]

	// Cancel asks the vendor to stop. Lines that are done by then have results, and are paid for; the
	// batch has ended only when Get says so. Of one that has ended already, nil.
	Cancel(ctx context.Context, id string) error
}

// Limits are what a vendor takes. Zero fields are not limited, or not known.
type Limits struct {
	Lines          int           // of a batch, at most
	Fewest         int           // lines of a batch, at least
	Bytes          int64         // of a batch, by Vendor.Size, at most
	Queue          int64         // lines that wait at once in all batches of an account
	QueueTokens    int64         // tokens of prompts that wait at once, of a model
	QueueBatches   int           // batches that wait at once
	CreatesPerHour int           // batches
	LongestID      int           // bytes of Line.CustomID
	Within         time.Duration // after its creation a batch ends or expires
	Kept           time.Duration // after the creation of a batch its results are there; see also Batch.KeptUntil
	Settle         time.Duration // after its creation a batch may not be found
	Ordered        bool          // Result.N is known
}

// An Order is what a batch is made of. Check says what it has to keep to.
type Order struct {
	Mark  string // says whose it is, and is that of no other order: see CheckMark
	Model llm.Model
	Lines []Line
}

// A Line is one request of an order.
type Line struct {
	CustomID string // unique in its order; of the letters of CheckID
	Request  llm.Request
}

// A Status is how far a batch is.
type Status string

// The states of a batch. A vendor's word that is not known here counts as Running: it is asked again.
const (
	Running    Status = "running"
	Cancelling Status = "cancelling"
	Ended      Status = "ended"  // what there is of results is there
	Failed     Status = "failed" // as a whole, before any line was done: see Batch.Err
)

// Over reports whether nothing changes any more.
func (s Status) Over() bool { return s == Ended || s == Failed }

// A Batch is a batch as its vendor tells of it.
type Batch struct {
	ID        string
	Mark      string // of its order; "" if the vendor does not tell before the end
	Status    Status
	Word      string // the vendor's for Status
	Counts    Counts
	Created   time.Time
	Ended     time.Time  // zero until then, or if the vendor does not tell
	Expires   time.Time  // what is not done by then expires; zero if the vendor does not tell
	KeptUntil time.Time  // its results are there until then; zero if the vendor does not tell
	Err       *llm.Error // why it failed; nil unless it has

	// Rest is what became of lines that have no result once the batch has ended: nothing was paid for
	// them. It is Expired or Cancelled where the batch was; otherwise Errored: the vendor lost them.
	Rest Outcome
}

// Counts are the lines of a batch by what became of them, as far as the vendor tells; some tell
// nothing before the end.
type Counts struct {
	Total, Succeeded, Errored, Expired, Cancelled int
}

// An Outcome is what became of a line.
type Outcome string

// The outcomes of lines.
const (
	Succeeded Outcome = "succeeded" // Result.Response
	Errored   Outcome = "errored"   // Result.Err, whose Class says whether to ask again
	Expired   Outcome = "expired"   // it was not done in time
	Cancelled Outcome = "cancelled" // it was not done when the batch was cancelled
)

// A Result is what became of one line.
type Result struct {
	CustomID string // of the line; "" if the vendor does not tell: then N does
	Mark     string // of the order that the line is of; "" if the vendor does not tell
	N        int    // place of the line in its order, from 0, where Limits.Ordered; otherwise -1
	Outcome  Outcome

	// Response is set if it succeeded. Its Tier is llm.Batch. A refusal, or an answer that is cut off,
	// is a response, as in real time.
	Response *llm.Response

	// Err is set otherwise, with what was paid for in vain. Errors of the kind Invalid are worth one
	// call in real time: there a provider learns what a server would not take, and leaves it out.
	Err *llm.Error
}

// A LostError says that nobody knows whether a batch was made.
type LostError struct{ Err *llm.Error }

// Error implements error.
func (e *LostError) Error() string {
	return "the vendor may have made the batch or not: " + e.Err.Error()
}

// Unwrap returns the failure of the call.
func (e *LostError) Unwrap() error { return e.Err }

// Lost reports whether err says that nobody knows whether a batch was made.
func Lost(err error) bool {
	_, ok := errors.AsType[*LostError](err)
	return ok
}
