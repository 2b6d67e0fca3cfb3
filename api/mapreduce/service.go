package mapreduce

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/coditect/mapreduce/api/label"
)

// A Service is the interface for clients. The argument by is the caller; the edge that
// receives a call determines it. Errors carry a kind of package errs.
type Service interface {
	// SubmitJob takes a job and its documents. The job becomes visible whole,
	// when SubmitJob returns nil, or not at all. A submission with the
	// RequestID of an earlier one of its tenant returns that job. If docs
	// yields an error, nothing was submitted and that error is returned.
	SubmitJob(ctx context.Context, by Principal, spec JobSpec, docs iter.Seq2[*Document, error]) (*Job, error)

	// PlanJob returns what a job over these documents would do, and cost. It stores
	// nothing and spends nothing. It refuses what SubmitJob refuses. With q.Exact it
	// refuses, as errs.Precondition, a plan that depends on the outputs of units.
	PlanJob(ctx context.Context, by Principal, q PlanQuery, docs iter.Seq2[*Document, error]) (*Plan, error)

	// GetJob returns a job with its counters, or errs.NotFound.
	GetJob(ctx context.Context, by Principal, id JobID) (*Job, error)

	// ListJobs returns a page of jobs, newest first.
	ListJobs(ctx context.Context, by Principal, q ListJobsQuery) (*JobPage, error)

	// WatchJob calls fn with the job now and after each change, until the job
	// is not running (then it returns nil), ctx ends, or fn returns an error. What running
	// units say of themselves meanwhile comes with it, in Job.Activity.
	WatchJob(ctx context.Context, by Principal, id JobID, fn func(*Job) error) error

	// ResumeJob continues a paused, failed or interrupted job. For a job that is
	// complete with failures it tries the failed units again, but those whose cause is ignored.
	ResumeJob(ctx context.Context, by Principal, id JobID, r Resume) (*Job, error)

	// MarkCause says of all units of a job that failed for a cause, as CauseOf has it, and of
	// those that will, that they are ignored or resolved; or with CauseOpen that they are neither
	// any more. These things might happen:
	//  1. the job: what was said is stored;
	//  2. errs.NotFound: there is no such job;
	//  3. errs.Invalid: there is no such state, or no unit can have failed for the cause;
	//  4. errs.Precondition: no unit of the job has failed for the cause;
	//  5. errs.Exhausted: as many causes of the job are marked as are kept.
	MarkCause(ctx context.Context, by Principal, id JobID, cause string, state CauseState) (*Job, error)

	// PauseJob stops a job's claims. Running units may finish.
	PauseJob(ctx context.Context, by Principal, id JobID) (*Job, error)

	// CancelJob ends a job. Running units are stopped. Their late reports are
	// refused, but what they spent is counted.
	CancelJob(ctx context.Context, by Principal, id JobID) (*Job, error)

	// DeleteJob removes a job that does not run with everything it holds.
	DeleteJob(ctx context.Context, by Principal, id JobID) error

	// ListUnits returns a page of a job's units, in order of level and index.
	ListUnits(ctx context.Context, by Principal, q ListUnitsQuery) (*UnitPage, error)

	// WakeUnit wakes a unit that is parked under a handle. The unit's next attempt
	// gets the answer, of at most MaxWakeAnswer bytes. WakeUnit returns the woken
	// unit, or errs.NotFound if no such unit is parked under the handle. A second
	// call with the same handle changes nothing: the first answer counts.
	WakeUnit(ctx context.Context, by Principal, job JobID, unit UnitID, handle string, answer []byte) (*Unit, error)

	// ReadText calls sink with the text of a document, part after part: the whole text
	// that the citations of a unit count in. Evidence of the unit is a document, too. Of
	// a unit that parsed a document it is that document as it was submitted, and no text.
	// A part may end within a character. It returns errs.NotFound if the unit read no such
	// document.
	ReadText(ctx context.Context, by Principal, job JobID, unit UnitID, document DocumentID, sink func([]byte) error) error

	// GetResult calls sink with the parts of a job's result, in order. While
	// the job is not complete, partial must be true.
	GetResult(ctx context.Context, by Principal, id JobID, partial bool, sink func(*ResultPart) error) error

	// DecideValue keeps what the caller has decided about a value of a complete job's
	// result, beside that value, or about a value of a unit that waits for a person: with the
	// last of its values the unit goes on. These things might happen:
	//  1. the decision: it is stored, now or by an earlier call of the same request;
	//  2. errs.NotFound: there is no such job, or its result has no such record;
	//  3. errs.Invalid: the record has no such field, the schema refuses the value, the
	//     passage is not in the text, or the verdict does not go with the value;
	//  4. errs.Precondition: the job is not complete and the record's unit waits for nobody, or
	//     the value is not d.Model any more;
	//  5. errs.Denied: the unit waits for somebody with a role that the caller has not.
	DecideValue(ctx context.Context, by Principal, d NewDecision) (*Decision, error)

	// ListDecisions returns a page of what was decided about values of a job's result.
	ListDecisions(ctx context.Context, by Principal, q ListDecisionsQuery) (*DecisionPage, error)

	// ListWaiting returns a page of the units of a job that wait for a person, with what
	// they found.
	ListWaiting(ctx context.Context, by Principal, q ListWaitingQuery) (*WaitingPage, error)

	// ClaimRecords says that the caller is about to review some records of a job, for some time, and
	// returns who is about to review which, in the order of the records. Those that others hold stay
	// theirs. It keeps nobody from deciding, and lapses by itself.
	ClaimRecords(ctx context.Context, by Principal, c Claim) ([]RecordClaim, error)

	// ListEvents returns a page of a job's checkpoints, oldest first, or of the log of a
	// tenant.
	ListEvents(ctx context.Context, by Principal, q ListEventsQuery) (*EventPage, error)

	// AnswerCache describes the answers of models that a tenant's jobs share. With
	// forget it then removes them.
	AnswerCache(ctx context.Context, by Principal, t TenantID, forget bool) (*AnswerCache, error)

	// TenantUse returns what a tenant uses of its quotas, or of what could have one.
	TenantUse(ctx context.Context, by Principal, t TenantID) (*TenantUse, error)

	// SumCosts returns what jobs have spent, those that are gone included. It is errs.Invalid if there are
	// more groups than MaxCostRows.
	SumCosts(ctx context.Context, by Principal, q CostQuery) (*CostSums, error)

	// ListCertificates returns the certificates of cascades that a tenant's jobs use, by their ids.
	ListCertificates(ctx context.Context, by Principal, t TenantID) ([]Certificate, error)

	// DropCertificate removes a certificate, or returns errs.NotFound. Jobs that began to go by it and have not
	// decided certify anew.
	DropCertificate(ctx context.Context, by Principal, t TenantID, id CertificateID) error

	// Caller returns the caller itself, with all roles that it has.
	Caller(ctx context.Context, by Principal) (*Principal, error)

	// CheckStore reads the whole store and calls found with each thing that
	// is wrong in it. Progress lines go to found with Severity Info.
	CheckStore(ctx context.Context, by Principal, q CheckQuery, found func(Finding) error) error

	// FleetStatus returns the fleet as this server sees it. It stores nothing.
	FleetStatus(ctx context.Context, by Principal) (*FleetStatus, error)
}

// A CheckQuery says what a check of the store does beside it.
type CheckQuery struct {
	// RepairCounters has the counters of what tenants use corrected first, with a line of
	// Severity Info for each.
	RepairCounters bool
	// CountKeys has the keys of the store counted after the check, with their bytes: a line of
	// Severity Info for each kind.
	CountKeys bool
}

// An AnswerCache is the answers of models that jobs of a tenant share.
type AnswerCache struct {
	Answers  int64
	Bytes    int64
	Oldest   time.Time     // when the oldest was kept; zero if there is none
	MaxBytes int64         // that are kept: the oldest go first
	MaxAge   time.Duration // of one that is kept
}

// A ListJobsQuery chooses jobs.
type ListJobsQuery struct {
	States    []JobState     // none means all
	Tenant    TenantID       // empty means all
	Labels    []label.Filter // all of which a job must have
	PageSize  int            // at most 1000; 0 means 20
	PageToken string
}

// A JobPage is a page of jobs.
type JobPage struct {
	Jobs          []*Job
	NextPageToken string
}

// Resume holds the options of a resume.
type Resume struct {
	Budget   int64    // in all, replacing the job's; 0 keeps it
	BudgetIn Currency // of Budget; that of the job's budget

	// Cause tries only those failed units again that failed for it, as CauseOf has it; "" tries all.
	// It is errs.Precondition if there are none.
	Cause string

	// Deadline replaces the job's; zero keeps it. It is errs.Precondition if the job has none: its units were made
	// ready without one.
	Deadline time.Time
}

// A ListUnitsQuery chooses units of a job.
type ListUnitsQuery struct {
	Job       JobID
	States    []UnitState // none means all
	Outputs   bool        // with their outputs
	Inputs    bool        // with what they depend on
	Standings bool        // how they stand alone; an earlier server answers with units
	PageSize  int         // at most 1000; 0 means 100
	PageToken string
}

// A UnitPage is a page of units, or of how these stand if that alone was asked for.
type UnitPage struct {
	Units         []*Unit
	Standings     []UnitStanding
	NextPageToken string
}

// A UnitStanding is how a unit stands.
type UnitStanding struct {
	State  UnitState
	Parked bool // it waits for something outside the program
}

// A ListEventsQuery chooses checkpoints of a job, or of the log of a tenant.
type ListEventsQuery struct {
	Job       JobID    // empty: the log of a tenant, of its jobs that are gone
	Tenant    TenantID // whose log
	Proofs    bool     // with Checkpoint.Proof
	Counts    bool     // how many units each has completed and failed, in place of these; an earlier server answers with the units
	Verify    bool     // recompute the chain and fail at the first broken link
	PageSize  int      // at most 1000; 0 means 100
	PageToken string
}

// An EventPage is a page of checkpoints.
type EventPage struct {
	Checkpoints   []*Checkpoint
	Seals         []*Seal // that cover checkpoints of this page
	NextPageToken string
}

// A Seal is one link of the chain that makes tampering with checkpoints show:
// Hash is the SHA-256 of the link before it and of the checkpoints it covers.
type Seal struct {
	Number int64
	Count  int    // of checkpoints it covers
	Last   string // ID of the last of them
	Hash   []byte
}

// A ResultPart is one part of a streamed result: one field is set. Records come
// in input order, each with its citations behind it, and so do sources,
// conflicts, dropped and removed among themselves.
type ResultPart struct {
	Job      *Job           // first
	Record   []byte         // JSON of one entry of aggregated_data
	RecordID RecordID       // of Record; empty if nobody can decide about it, as it is no record of a schema
	Citation *Citation      // of a record before it; may come again with another
	Source   *Source        // every map unit that was reduced, or failed; every parse unit that failed
	Summary  *Summary       // last
	Conflict []byte         // JSON of one entry of conflict_resolutions
	Dropped  []byte         // JSON of one entry of dropped_citations
	Removed  []byte         // JSON of one entry of removed_references
	Report   []byte         // JSON of report: of a job that wrote one, with its references and claims
	Evidence *CitedEvidence // behind the first citation of it
}

// CitedEvidence is evidence that a result cites.
type CitedEvidence struct {
	Unit UnitID // that it was brought to: ReadText has its text
	Evidence
}

// A Citation is the quote in a document on which a value rests, and its place.
type Citation struct {
	Ref                string // REF_…, unique within the result
	Document           DocumentID
	Unit               UnitID
	Start, End         int64 // Unicode code points of the document's text, half-open
	ByteStart, ByteEnd int64
	Quote              string
	Grade              string // exact, normalised or fuzzy
	Before, After      string // the text around the quote, at most 60 code points each

	// Outside says that the quote does not stand in the chunk that the unit
	// read, but elsewhere in its document.
	Outside bool
	Others  int // other places, equally good, that the unit may have meant
	// Coverage is the share of the words looked for that the quote has. Density is the
	// share of the quote's words that were looked for. Both are 0 unless Grade is fuzzy.
	Coverage, Density float64

	// Via is the document's metadata MetadataVia, as the client gave it. It is ""
	// if the document has none.
	Via string

	// Location is where a reader of the document would look for the quote, by the stored
	// layout of the document; nil if that has none.
	Location *Location

	// Label describes the document in one line, of a citation that is a passage, or of
	// evidence: by whom, title and year, as far as they are known.
	Label string

	// URI is where the document is from, of a citation of evidence.
	URI string
}

// MetadataVia names the metadata of a document that is a record of another job. Its
// value is JSON that names the job, the record and the citations that the record rests
// on. The service stores it, shows it beside citations of the document, and does not
// read it.
const MetadataVia = "via"

// MetadataCitation names the metadata of a document that is a citation: a passage, whole,
// that somebody has chosen. Its value says from where. MetadataRelevance names the number
// that says how much the citation bears on the question; more is better.
const (
	MetadataCitation  = "citation"
	MetadataRelevance = "relevance"
)

// A Source is a map unit's part in the result.
type Source struct {
	Unit   UnitID
	Errors []string // why it failed; empty for units that are in the result
	// Document and Lasting are of a unit that failed: what it read, empty if that was not
	// one
	// document, and whether another attempt would fail alike.
	Document DocumentID
	Lasting  bool
}

// BreakerSkipped is the error of a unit that an open breaker has ended, in ADR-028's words.
const BreakerSkipped = "Circuit breaker open - skipped"

// A Summary ends a result.
type Summary struct {
	Single        bool   // aggregated_data is one object, not a list
	Deduplication []byte // JSON of deduplication_stats
	Statistics    []byte // JSON of statistics
	Cascades      []byte // JSON of cascades: what was certified of each cheaper member; empty without a cascade
	Skipped       []SkippedDocument
	Broken        []BrokenConstraint // by field, then constraint
	Notes         []DocumentNote     // in input order, at most MaxDocumentNotes
	MoreNotes     int64              // that are left out
	// Reviewed counts what people have decided about values; nil if nobody has.
	Reviewed *ReviewCount
}

// MaxDocumentNotes bounds the notes of a result.
const MaxDocumentNotes = 500

// A DocumentNote is what readers of a document should know of it, such as that pages of
// it have no text.
type DocumentNote struct {
	Document DocumentID
	Note     string
}

// A BrokenConstraint counts the records of a result in which a value was refused because
// it breaks a constraint of the schema, or which lack a value that the schema requires.
type BrokenConstraint struct {
	Field      string // path; "" if it is about the record as a whole
	Constraint string // the keyword of JSON Schema, "date_order", "number_form", "derived" or LeastConfidence
	Records    int64
}

// Required is the constraint that a record breaks by what it lacks.
const Required = "required"

// LeastConfidence is the constraint of a value that is no value because it was guessed, and guesses of its
// kind are wrong nine times out of ten. It is none of the schema.
const LeastConfidence = "least_confidence"

// SeenOnly is the constraint of a value that is no value because a model saw it in a picture, and nobody
// found it in the text that was recognised there.
const SeenOnly = "seen"

// FaultText says, for people and behind a noun, why a value was refused: which constraint it breaks and what
// that asks for, or that it is a guess, or was seen and not found.
func FaultText(constraint, message string) string {
	switch constraint {
	case LeastConfidence:
		return "is " + message
	case SeenOnly:
		return message
	}
	return "breaks " + constraint + ": " + message
}

// String returns the count as a warning.
func (b BrokenConstraint) String() string {
	if b.Constraint == Required {
		return fmt.Sprintf("%s is required; records without it: %d", b.Field, b.Records)
	}
	if b.Constraint == LeastConfidence {
		return fmt.Sprintf("%s: records with a guess that is most likely wrong, under _unverified: %d; give the field labels, or ask a model", b.Field, b.Records)
	}
	if b.Constraint == SeenOnly {
		return fmt.Sprintf("%s: records with a value that a model saw in a picture, and recognition did not read, under _seen: %d; look at the pages, and decide in a review", b.Field, b.Records)
	}
	if b.Field == "" {
		return fmt.Sprintf("records break %s as a whole; those with such values, under _unverified: %d", b.Constraint, b.Records)
	}
	return fmt.Sprintf("%s breaks %s; records with such a value, under _unverified: %d", b.Field, b.Constraint, b.Records)
}

// A SkippedDocument is a document that was not processed, with the reason.
type SkippedDocument struct {
	Document DocumentID
	Reason   string
}

// A Severity ranks a finding.
type Severity uint8

// The severities.
const (
	Info  Severity = iota // progress, and what was checked
	Wrong                 // a broken invariant
)

// A Finding is one line of a check of the store.
type Finding struct {
	Severity Severity
	Job      JobID
	Key      string
	Message  string
}
