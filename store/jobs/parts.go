package jobs

// ingestWriter reads and writes submissions inside a transaction of its caller.
type ingestWriter struct{ *Records }

// A IngestPart stores submissions, and makes each a job when it is whole.
type IngestPart struct {
	db *DB
	ingestWriter
}

// NewIngest returns the operations on the records of db.
func NewIngest(db *DB, r *Records) *IngestPart { return &IngestPart{db, ingestWriter{r}} }

// reduceWriter reads what reduces wait for inside a transaction of its caller.
type reduceWriter struct{ *Records }

// A TurnsPart takes reports of ended attempts and claims units, and lets go reduces whose inputs have ended.
type TurnsPart struct {
	db *DB
	reduceWriter
	grants grantRecords
}

// NewTurns returns the operations on the records of db.
func NewTurns(db *DB, r *Records) *TurnsPart {
	return &TurnsPart{db, reduceWriter{r}, newGrantRecords(r)}
}

// levelWriter reads and writes what is planned of a level inside a transaction of its caller.
type levelWriter struct{ *Records }

// A LevelsPart plans the levels of jobs, and tells how far they are.
type LevelsPart struct {
	db *DB
	levelWriter
}

// NewLevels returns the operations on the records of db.
func NewLevels(db *DB, r *Records) *LevelsPart { return &LevelsPart{db, levelWriter{r}} }

// lifecycleWriter reads and writes what a change of a job takes inside a transaction of its caller.
type lifecycleWriter struct{ *Records }

// A LifecyclePart pauses, fails, cancels, deletes and resumes jobs.
type LifecyclePart struct {
	db *DB
	lifecycleWriter
}

// NewLifecycle returns the operations on the records of db.
func NewLifecycle(db *DB, r *Records) *LifecyclePart { return &LifecyclePart{db, lifecycleWriter{r}} }

// grantRecords reads and writes grants inside a transaction of its caller.
type grantRecords struct {
	*Records
	nodes nodeRecords
}

// A GrantsPart divides budgets, slots and rates among orchestrators.
type GrantsPart struct {
	db *DB
	grantRecords
}

// NewGrants returns the operations on the records of db.
func NewGrants(db *DB, r *Records) *GrantsPart { return &GrantsPart{db, newGrantRecords(r)} }

// nodeRecords reads and writes signs of life and doubts inside a transaction of its caller.
type nodeRecords struct{ *Records }

// A NodesPart keeps which orchestrators live, and which sessions they hold.
type NodesPart struct {
	db *DB
	nodeRecords
}

// NewNodes returns the operations on the records of db.
func NewNodes(db *DB, r *Records) *NodesPart { return &NodesPart{db, nodeRecords{r}} }

// A SessionsPart binds sessions of workers to orchestrators, and takes back what lost sessions held.
type SessionsPart struct {
	db *DB
	*Records
	grants grantRecords
	nodes  nodeRecords
}

// NewSessions returns the operations on the records of db.
func NewSessions(db *DB, r *Records) *SessionsPart {
	return &SessionsPart{db, r, newGrantRecords(r), nodeRecords{r}}
}

// queueRecords reads and writes the queues of a job inside a transaction of its caller.
type queueRecords struct{ *Records }

// A QueuesPart reads the queues of jobs, and wakes units that sleep.
type QueuesPart struct {
	db *DB
	queueRecords
}

// NewQueues returns the operations on the records of db.
func NewQueues(db *DB, r *Records) *QueuesPart { return &QueuesPart{db, queueRecords{r}} }

// auditReader reads seals inside a transaction of its caller.
type auditReader struct{ *Records }

// A AuditPart chains the checkpoints of jobs by hashes, and lists and verifies them.
type AuditPart struct {
	db *DB
	auditReader
}

// NewAudit returns the operations on the records of db.
func NewAudit(db *DB, r *Records) *AuditPart { return &AuditPart{db, auditReader{r}} }

// answerWriter reads and writes answers inside a transaction of its caller.
type answerWriter struct{ *Records }

// A AnswersPart keeps what models answered, for other jobs of the same tenant.
type AnswersPart struct {
	db *DB
	answerWriter
}

// NewAnswers returns the operations on the records of db.
func NewAnswers(db *DB, r *Records) *AnswersPart { return &AnswersPart{db, answerWriter{r}} }

// contentReader reads units inside a transaction of its caller.
type contentReader struct{ *Records }

// A ContentPart stores and reads outputs, states and texts: all that is kept in chunks.
type ContentPart struct {
	db *DB
	contentReader
}

// NewContent returns the operations on the records of db.
func NewContent(db *DB, r *Records) *ContentPart { return &ContentPart{db, contentReader{r}} }

// jobReader reads jobs inside a transaction of its caller.
type jobReader struct{ *Records }

// A ViewPart reads jobs and units.
type ViewPart struct {
	db *DB
	jobReader
	levels levelWriter
	queues queueRecords
}

// NewView returns the operations on the records of db.
func NewView(db *DB, r *Records) *ViewPart { return &ViewPart{db, jobReader{r}, levelWriter{r}, queueRecords{r}} }

// A ChecksPart finds what in a store does not agree.
type ChecksPart struct {
	db *DB
	*Records
	content *ContentPart
	audit   *AuditPart
}

// NewChecks returns the operations on the records of db.
func NewChecks(db *DB, r *Records, content *ContentPart, audit *AuditPart) *ChecksPart {
	return &ChecksPart{db, r, content, audit}
}

// newGrantRecords returns the grants among r.
func newGrantRecords(r *Records) grantRecords { return grantRecords{r, nodeRecords{r}} }
