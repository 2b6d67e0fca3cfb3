package mapreduce

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of a decision, in bytes.
const (
	MaxReviewedValue  = 32 << 10 // of a value that is decided about, or stands in its place, as JSON
	MaxReviewPassage  = 16 << 10 // of the passage that is marked for it
	MaxReviewNote     = 2 << 10  // of the note on it
	MaxValueDecisions = 1000     // decisions of one value: all are kept
	MaxDecided        = 4 << 20  // of all that was decided about values of one unit, beyond what it had found
)

// A RecordID names a record of a result: by the index of the map unit that made the first of the
// records that it stands for, a dot, and the number of that record among those of the unit. It
// stays the same for as long as the job does not map that document anew.
type RecordID string

// NewRecordID returns the id of a record of a map unit.
func NewRecordID(unit, record int64) RecordID {
	return RecordID(strconv.FormatInt(unit, 10) + "." + strconv.FormatInt(record, 10))
}

// Parse returns the index of the map unit and the number of the record; false if id is none.
func (id RecordID) Parse() (unit, record int64, ok bool) {
	u, r, _ := strings.Cut(string(id), ".")
	unit, e1 := strconv.ParseInt(u, 10, 64)
	record, e2 := strconv.ParseInt(r, 10, 64)

	// A number has many spellings, and a record one id.
	ok = e1 == nil && e2 == nil && unit >= 0 && record >= 0 && NewRecordID(unit, record) == id
	return unit, record, ok
}

// A ReviewVerdict is what somebody has decided about a value of a result.
type ReviewVerdict uint8

// The verdicts of a review.
const (
	ReviewUnknown  ReviewVerdict = iota
	ReviewAccept                 // the value is right as it is
	ReviewCorrect                // another value is right
	ReviewReject                 // the value is wrong, and nobody said what is right
	ReviewAbsent                 // the document has no such value
	ReviewWithdraw               // what was decided before counts no more
)

var reviewNames = [...]string{"unknown", "accept", "correct", "reject", "absent", "withdraw"}

// String returns the verdict as results and commands have it.
func (v ReviewVerdict) String() string {
	if int(v) < len(reviewNames) {
		return reviewNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// ReviewVerdictOf returns the verdict of a name; ReviewUnknown if there is none.
func ReviewVerdictOf(name string) ReviewVerdict {
	for v := ReviewAccept; v <= ReviewWithdraw; v++ {
		if v.String() == name {
			return v
		}
	}
	return ReviewUnknown
}

// A Passage is a part of a document that somebody has marked.
type Passage struct {
	Document           DocumentID
	Unit               UnitID // a unit that read the document; empty for the one that made the record
	ByteStart, ByteEnd int64  // of the document's text, half-open
}

// A NewDecision is a decision that is to be taken.
type NewDecision struct {
	Job    JobID
	Record RecordID
	Field  string // path of a field of the schema
	// Request makes the decision idempotent: a second one of the same value with the same
	// request is the first. Empty for one that is never sent again.
	Request RequestID
	Verdict ReviewVerdict
	Value   []byte   // JSON; of ReviewCorrect alone
	Passage *Passage // on which the value rests; of ReviewCorrect alone, nil if it was typed
	Note    string
	// Model is JSON of the value that was decided about, so that none is decided about unseen.
	// Empty decides about whatever stands there.
	Model []byte
}

// A Decision is what was decided about a value. Decisions are never changed: of several, the
// last one counts.
type Decision struct {
	Record  RecordID
	Field   string
	Number  int64 // among those of the value, from 1
	Request RequestID
	Time    time.Time // by the clock of the orchestrator that stored it
	By      string    // name of the principal
	Verdict ReviewVerdict
	Value   []byte    // JSON; of ReviewCorrect alone
	Passage *Citation // that the server found in the text; nil if there is none
	Note    string
	Model   []byte // JSON of the value that was decided about: null if there was none
	// Waited says that it was taken while the unit that found the value waited for it. The output of
	// the unit has it, and so has all that followed.
	Waited bool
}

// A WaitingValue is a value of the output of a unit that waits for a person.
type WaitingValue struct {
	Record RecordID
	Field  string // path
	Why    string // unverified, conflict, fuzzy, doubtful, missing, sample or all
}

// A WaitingUnit is a unit that waits until a person has decided about some of its values.
type WaitingUnit struct {
	Unit   UnitID
	Role   Role           // that whoever decides needs
	Values []WaitingValue // all that wait, those that are decided about too
	// Parts are the records of its output as they were found, with their citations and conflicts as in a
	// result.
	Parts []*ResultPart
}

// A ListWaitingQuery chooses units of a job that wait for a person.
type ListWaitingQuery struct {
	Job       JobID
	PageSize  int    // units, at most 1000; 0 means 100. A page has fewer if their outputs are large
	PageToken string // empty, or NextPageToken of the page before
}

// A WaitingPage is a page of units that wait, by name.
type WaitingPage struct {
	Units         []*WaitingUnit
	NextPageToken string
}

// EachWaiting calls visit with each unit of a job that waits for a person.
func EachWaiting(ctx context.Context, jobs Client, id JobID, visit func(*WaitingUnit) error) error {
	q := ListWaitingQuery{Job: id}
	for {
		page, err := jobs.ListWaiting(ctx, q)
		if err != nil {
			return err
		}
		for _, u := range page.Units {
			if err := visit(u); err != nil {
				return err
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return nil
		}
	}
}

// Bounds of claims of records.
const (
	MaxClaimedRecords = 200       // in one call
	MaxHeldRecords    = 1000      // of one principal in a job
	MaxClaimTime      = time.Hour // until it lapses, unless it is said again
)

// A Claim says which records of a job somebody is about to review.
type Claim struct {
	Job     JobID
	Records []RecordID    // at most MaxClaimedRecords; none only asks
	Time    time.Duration // for how long, at most MaxClaimTime; 0 gives the records back
}

// A RecordClaim says that somebody is about to review a record.
type RecordClaim struct {
	Record RecordID
	By     string    // name of the principal
	Own    bool      // it is who asks
	End    time.Time // by the clock of the orchestrator that stored it
}

// A ListDecisionsQuery chooses decisions of a job.
type ListDecisionsQuery struct {
	Job       JobID
	Record    RecordID // empty means all
	PageSize  int      // at most 1000; 0 means 100
	PageToken string
}

// A DecisionPage is a page of decisions: by record in input order, field and number.
type DecisionPage struct {
	Decisions     []*Decision
	NextPageToken string
}

// AllDecisions returns all that was decided about values of a job's result.
func AllDecisions(ctx context.Context, jobs Client, id JobID) (all []*Decision, err error) {
	q := ListDecisionsQuery{Job: id, PageSize: 1000}
	for {
		page, err := jobs.ListDecisions(ctx, q)
		if err != nil {
			return nil, err
		}

		all = append(all, page.Decisions...)
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return all, nil
		}
	}
}

// A ReviewCount counts the values of a result that somebody has decided about.
type ReviewCount struct {
	Accepted, Corrected, Rejected, Absent int64
	// Unfitting are decisions that are not in the result: its record is gone, its value is
	// another by now, or the schema refuses what was decided.
	Unfitting int64
}

// Decided returns how many values are as somebody has decided.
func (c ReviewCount) Decided() int64 { return c.Accepted + c.Corrected + c.Rejected + c.Absent }
