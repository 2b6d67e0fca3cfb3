package mapreduce

import (
	"context"
	"iter"
)

// A Client is a Service as one principal sees it: its connection says who calls. Its
// methods are those of Service of the same names.
type Client interface {
	SubmitJob(ctx context.Context, spec JobSpec, docs iter.Seq2[*Document, error]) (*Job, error)
	PlanJob(ctx context.Context, q PlanQuery, docs iter.Seq2[*Document, error]) (*Plan, error)
	GetJob(ctx context.Context, id JobID) (*Job, error)
	ListJobs(ctx context.Context, q ListJobsQuery) (*JobPage, error)
	WatchJob(ctx context.Context, id JobID, fn func(*Job) error) error
	ResumeJob(ctx context.Context, id JobID, r Resume) (*Job, error)
	MarkCause(ctx context.Context, id JobID, cause string, state CauseState) (*Job, error)
	PauseJob(ctx context.Context, id JobID) (*Job, error)
	CancelJob(ctx context.Context, id JobID) (*Job, error)
	DeleteJob(ctx context.Context, id JobID) error
	ListUnits(ctx context.Context, q ListUnitsQuery) (*UnitPage, error)
	WakeUnit(ctx context.Context, job JobID, unit UnitID, handle string, answer []byte) (*Unit, error)
	ReadText(ctx context.Context, job JobID, unit UnitID, document DocumentID, sink func([]byte) error) error
	GetResult(ctx context.Context, id JobID, partial bool, sink func(*ResultPart) error) error
	DecideValue(ctx context.Context, d NewDecision) (*Decision, error)
	ListDecisions(ctx context.Context, q ListDecisionsQuery) (*DecisionPage, error)
	ListWaiting(ctx context.Context, q ListWaitingQuery) (*WaitingPage, error)
	ClaimRecords(ctx context.Context, c Claim) ([]RecordClaim, error)
	ListEvents(ctx context.Context, q ListEventsQuery) (*EventPage, error)
	AnswerCache(ctx context.Context, t TenantID, forget bool) (*AnswerCache, error)
	TenantUse(ctx context.Context, t TenantID) (*TenantUse, error)
	SumCosts(ctx context.Context, q CostQuery) (*CostSums, error)
	ListCertificates(ctx context.Context, t TenantID) ([]Certificate, error)
	DropCertificate(ctx context.Context, t TenantID, id CertificateID) error
	Caller(ctx context.Context) (*Principal, error)
	CheckStore(ctx context.Context, q CheckQuery, found func(Finding) error) error
	FleetStatus(ctx context.Context) (*FleetStatus, error)
}
