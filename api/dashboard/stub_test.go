package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

const jobID = mapreduce.JobID("mr_20260131_1a2b3c")

// A stub answers as a service would that has one job.
type stub struct {
	mapreduce.Client // nil: what is not answered here is not asked

	mu        sync.Mutex // guards the variables below
	job       mapreduce.Job
	units     []*mapreduce.Unit
	parts     []*mapreduce.ResultPart
	events    []*mapreduce.Checkpoint
	seals     []*mapreduce.Seal
	text      string
	submitted []byte // each document as it was submitted; nil if as text
	err       error
	planErr   error
	resultErr error

	roles     []mapreduce.Role // of the caller
	decisions []*mapreduce.Decision
	held      []mapreduce.RecordClaim // by others
	claimed   []mapreduce.RecordID    // by the pages
	done      []string                // what was asked to be done
	changed   chan struct{}
	left      chan struct{} // gets something when somebody watches the job no more
}

// newStub returns a service whose job has some units, records and events, in all of which a text
// of somebody else's stands.
func newStub(text string) *stub {
	created := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	s := &stub{text: "Total 12.50 EUR, " + text, roles: mapreduce.Roles(), changed: make(chan struct{}, 1), left: make(chan struct{}, 1)}
	title, _ := json.Marshal(text)
	schema := fmt.Appendf(nil, `{"title": %s, "type": "object", "properties": {"total": {"type": "number", "title": %s}}}`, title, title)
	s.job = mapreduce.Job{
		ID: jobID, State: mapreduce.Mapping, Phase: mapreduce.Mapping, Created: created, Updated: created,
		Spec:       mapreduce.JobSpec{Name: text, Tenant: mapreduce.TenantID(text), Pipeline: text, Provider: text, Model: text, Schema: schema, Budget: 9_007_199_254_740_993},
		TotalUnits: 3, CompletedUnits: 1, FailedUnits: 1, Error: text, Warnings: []string{text},
		TotalTokens: mapreduce.Tokens{In: 9_007_199_254_740_993, Out: 7}, CostMicros: 1_234_567,
		Plan:     &mapreduce.JobPlan{Units: 4, PlanSpend: mapreduce.PlanSpend{Calls: 3, Tokens: mapreduce.Tokens{In: 9_007_199_254_740_991, Out: 14}, CostMicros: 1_000_000}},
		Calls:    2,
		Coverage: mapreduce.Coverage{Documents: mapreduce.Ledger{Total: 3, Mapped: 1, Failed: 1, Skipped: 1}},
		Stages:   []mapreduce.StageProgress{{Name: text, Phase: mapreduce.Mapping, Units: 3, Completed: 1, Failed: 1}},
		Skipped:  []mapreduce.SkippedDocument{{Document: mapreduce.DocumentID(text), Reason: text}},
	}
	for i, state := range []mapreduce.UnitState{mapreduce.UnitComplete, mapreduce.UnitFailed, mapreduce.Pending} {
		u := &mapreduce.Unit{
			ID: mapreduce.UnitID(fmt.Sprint("u", i, text)), Job: jobID, Document: mapreduce.DocumentID(text), Kind: mapreduce.KindMap,
			Index: int64(i), State: state, Stage: text, Models: []string{text}, Errors: []string{text}, End: 5,
		}
		if state == mapreduce.Pending {
			u.Parking = &mapreduce.Parking{Handle: text, Note: text}
		}
		if state == mapreduce.UnitComplete {
			u.Output = []byte(text)
		}
		s.units = append(s.units, u)
	}

	value := fmt.Sprintf("%q", text)
	s.parts = []*mapreduce.ResultPart{
		{RecordID: "0.0", Record: []byte(`{"_sources": [` + value + `], "_reviewed": {` + value + `: {"verdict": ` + value + `, "by": ` + value + `, "model": ` + value + `}}, "total": 12.5, ` + value + `: ` + value + `, "_citations": {"total": ["REF_1"]}, "_confidence": {"total": 0.4}, "_missing": {` + value + `: ` + value + `}, "_warnings": [` + value + `]}`)},
		{Citation: &mapreduce.Citation{Ref: "REF_1", Document: mapreduce.DocumentID(text), Unit: mapreduce.UnitID(text), Start: 6, End: 11, Quote: text}},
		{RecordID: "1.0", Record: []byte(`{"total": 3, ` + value + `: null, "_unverified": {` + value + `: ` + value + `}}`)},
	}
	s.events = []*mapreduce.Checkpoint{{
		ID: "00", Time: created, Kind: mapreduce.EventFinished, Node: mapreduce.NodeID(text), Message: text, Principal: text,
		Completed: []mapreduce.UnitRef{{Unit: mapreduce.UnitID(text)}}, Tokens: mapreduce.Tokens{In: 3},
	}}
	return s
}

// change changes the job, and tells those that watch it.
func (s *stub) change(do func(*mapreduce.Job)) {
	s.mu.Lock()
	do(&s.job)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// fail has every call fail from now on; nil has them succeed again.
func (s *stub) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// failResult has no result read any more; nil has it read again.
func (s *stub) failResult(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resultErr = err
}

func (s *stub) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

func (s *stub) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.done, "\n")
}

func (s *stub) GetJob(_ context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if id != jobID {
		return nil, errs.New(errs.NotFound, "there is no job %s", id)
	}
	job := s.job
	return &job, nil
}

func (s *stub) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	job, err := s.GetJob(ctx, jobID)
	if err != nil {
		return nil, err
	}
	page := &mapreduce.JobPage{}
	if len(q.States) == 0 || q.States[0] == job.State {
		page.Jobs = append(page.Jobs, job)
	}
	return page, nil
}

func (s *stub) WatchJob(ctx context.Context, _ mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	defer func() {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changed:
			if err := fn(nil); err != nil {
				return err
			}
		}
	}
}

func (s *stub) ListUnits(_ context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	var level, from int
	if q.PageToken != "" {
		if _, err := fmt.Sscanf(q.PageToken, "%d:%d:0", &level, &from); err != nil {
			return nil, errs.Field("page_token", "is not one that a list returned")
		}
	}
	s.note("read units")
	page := &mapreduce.UnitPage{}
	for _, u := range s.units[min(from, len(s.units)):] {
		if len(q.States) > 0 && u.State != q.States[0] {
			continue
		}
		if len(page.Units) == max(1, q.PageSize) {
			page.NextPageToken = fmt.Sprintf("0:%d:0", u.Index)
			break
		}
		page.Units = append(page.Units, u)
	}
	return page, nil
}

func (s *stub) GetResult(_ context.Context, _ mapreduce.JobID, _ bool, sink func(*mapreduce.ResultPart) error) error {
	s.note("read the result")
	s.mu.Lock()
	parts, err := s.parts, s.resultErr
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := sink(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *stub) ReadText(_ context.Context, _ mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	if unit != mapreduce.ParseUnit(document) {
		return sink([]byte(s.text))
	}
	if s.submitted == nil {
		return errs.New(errs.NotFound, "the document was submitted as text")
	}
	return sink(s.submitted)
}

func (s *stub) ListEvents(context.Context, mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	s.note("read the log")
	s.mu.Lock()
	defer s.mu.Unlock()
	return &mapreduce.EventPage{Checkpoints: s.events, Seals: s.seals}, nil
}

func (s *stub) SumCosts(context.Context, mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	return new(mapreduce.CostSums), nil
}

func (s *stub) ListCertificates(context.Context, mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	return nil, nil
}

func (s *stub) DropCertificate(context.Context, mapreduce.TenantID, mapreduce.CertificateID) error {
	return errs.New(errs.NotFound, "there is none")
}

func (s *stub) TenantUse(context.Context, mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	return &mapreduce.TenantUse{Tenant: s.job.Spec.Tenant, Quotas: []mapreduce.QuotaUse{{Name: "jobs", Used: 1, Limit: 2}}}, nil
}

func (s *stub) FleetStatus(context.Context) (*mapreduce.FleetStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	text := s.units[0].Stage
	return &mapreduce.FleetStatus{
		Node: mapreduce.NodeID(text), Time: s.job.Created,
		Servers: []mapreduce.ServerStatus{{Node: mapreduce.NodeID(text)}, {Node: "n2", Silent: time.Minute, Dead: true}},
		Workers: []mapreduce.WorkerStatus{
			{
				Session: mapreduce.SessionID(text), Node: mapreduce.NodeID(text), Known: true, Version: text, Tenant: mapreduce.TenantID(text), Slots: 4, Held: 3,
				Offer: mapreduce.Offer{Providers: []string{text}, Tools: []string{text}, Parsers: []string{text}}, Breakers: []string{text}, Seen: s.job.Created.Add(-time.Minute),
			},
			{Session: "w2", Node: "n2"},
			{Session: "w3"},
		},
		MoreWorkers: 7,
		Tenants:     []mapreduce.TenantQueue{{Tenant: mapreduce.TenantID(text), Jobs: 2, Running: 3, Ready: 9_007_199_254_740_993, Age: time.Minute}},
		Models:      []mapreduce.ModelStatus{{Name: text, BreakerOpen: true, Pause: time.Second, Calls: 5}},
		Store:       mapreduce.StoreStatus{Answers: true, Full: true, Read: time.Millisecond, Write: time.Second, Commits: 11},
	}, nil
}

func (s *stub) Caller(context.Context) (*mapreduce.Principal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errs.KindOf(s.err) == errs.Unauthenticated {
		return nil, s.err
	}
	return &mapreduce.Principal{Name: s.units[0].Stage, Roles: s.roles}, nil
}

func (s *stub) CheckStore(_ context.Context, _ mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	s.note("check the store")
	text := s.units[0].Stage
	for i := range maxStubFindings {
		if err := found(mapreduce.Finding{Severity: mapreduce.Severity(i % 2), Job: mapreduce.JobID(text), Key: text, Message: text}); err != nil {
			return err
		}
	}
	return nil
}

// maxStubFindings are more than a page shows.
const maxStubFindings = 1000

func (s *stub) ListDecisions(context.Context, mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	return &mapreduce.DecisionPage{Decisions: s.decisions}, nil
}

func (s *stub) ListWaiting(context.Context, mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	return &mapreduce.WaitingPage{}, nil
}

func (s *stub) ClaimRecords(_ context.Context, c mapreduce.Claim) ([]mapreduce.RecordClaim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = append(s.claimed, c.Records...)
	return s.held, nil
}

func (s *stub) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	s.note("pause %s", id)
	return s.GetJob(ctx, id)
}

func (s *stub) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	s.note("cancel %s", id)
	return s.GetJob(ctx, id)
}

func (s *stub) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	s.note("resume %s %d%s", id, r.Budget, r.Cause)
	return s.GetJob(ctx, id)
}

func (s *stub) MarkCause(ctx context.Context, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	s.note("mark %s %s %s", id, state, cause)
	return s.GetJob(ctx, id)
}

func (s *stub) DeleteJob(_ context.Context, id mapreduce.JobID) error {
	s.note("delete %s", id)
	return nil
}

func (s *stub) WakeUnit(_ context.Context, id mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	s.note("wake %s %s %s %s", id, unit, handle, answer)
	return s.units[2], nil
}

func (s *stub) PlanJob(_ context.Context, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	if s.planErr != nil {
		return nil, s.planErr
	}
	for doc, err := range docs {
		if err != nil {
			return nil, err
		}
		s.note("plan %s %d %s", doc.ID, len(doc.Content), q.Spec.Provider)
	}
	return &mapreduce.Plan{Estimate: mapreduce.PlanEstimate{Maps: 2, Expected: mapreduce.PlanSpend{Calls: 2, CostMicros: 500_000}}}, nil
}

func (s *stub) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	for doc, err := range docs {
		if err != nil {
			return nil, err
		}
		s.note("submit %s %d %s %s", doc.ID, len(doc.Content), spec.RequestID, spec.Schema)
	}
	return s.GetJob(ctx, jobID)
}

// stubBench finds the first word of each document in each field, and does not look at the schema.
var stubBench = bench.Tools{
	Try: func(ctx context.Context, s *schema.Schema, sample *bench.Sample) (*bench.Report, error) {
		r := &bench.Report{}
		for _, f := range s.Fields() {
			r.Fields = append(r.Fields, bench.Count{Field: f.Path, Found: len(sample.Documents), Records: len(sample.Documents), Reasons: []string{s.Title}})
		}
		for _, d := range sample.Documents {
			if d.Text == "slow" {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			word, _, _ := strings.Cut(d.Text, " ")
			record := bench.Record{}
			for _, f := range s.Fields() {
				field := bench.Field{Name: f.Path, Accepted: true, Values: []bench.Value{{Text: word, Quote: word, End: len(word), Basis: "hint", Rivals: 1}}}
				record.Fields = append(record.Fields, field)
			}
			record.Fields = append(record.Fields, bench.Field{Name: s.Title, Refused: s.Title}, bench.Field{Name: s.Title, Reason: s.Title})
			r.Documents = append(r.Documents, bench.Tried{Document: d.Name, Records: []bench.Record{record}, Notes: []string{s.Title}, Reason: s.Title, Skipped: s.Title})
		}
		if sample.Truth != "" {
			r.Score = &bench.Score{Fields: []bench.FieldScore{{Field: s.Title, F1: 0.5, Support: 2, Wrong: []string{sample.Truth}}}, All: bench.FieldScore{F1: 0.5}}
		}
		return r, nil
	},
	Infer: func(docs []bench.Document) (string, error) { return "# " + docs[0].Name + "\n" + triedSchema, nil },
	Read: func(_ context.Context, name string, data []byte) (bench.Document, error) {
		return bench.Document{Name: name, Text: string(data)}, nil
	},
}

const triedSchema = "title: plain\ntype: object\nproperties:\n  total: {type: number, x-coditect: {labels: [Total]}}\n"

// open serves the pages of a stub, below a prefix.
func open(t testing.TB, s *stub, change func(*dashboard.Config)) *httptest.Server {
	t.Helper()
	c := dashboard.Config{
		Jobs: s, Tick: 50 * time.Millisecond, Bench: stubBench,
		Decode: func(_ *mapreduce.Job, u *mapreduce.Unit) (*jobs.Output, error) {
			text := string(u.Output)
			return &jobs.Output{Records: text, Notes: []string{text}, Calls: []mapreduce.Call{{Name: text, Prompt: text, Answer: text, Error: text}}}, nil
		},
	}
	if change != nil {
		change(&c)
	}
	d, err := dashboard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return server
}

// pagesOfAJob are the addresses of all pages that show something of the stub's job.
var pagesOfAJob = []string{
	"/", "/use", "/new?like=" + string(jobID), "/jobs/" + string(jobID), "/jobs/" + string(jobID) + "/units", "/jobs/" + string(jobID) + "/units/0.0",
	"/jobs/" + string(jobID) + "/units/0.1", "/jobs/" + string(jobID) + "/units/0.2", "/jobs/" + string(jobID) + "/records", "/jobs/" + string(jobID) + "/review",
	"/jobs/" + string(jobID) + "/document?unit=u&document=d&start=6&end=11", "/jobs/" + string(jobID) + "/history", "/jobs/" + string(jobID) + "/errors",
	"/compare?a=" + string(jobID) + "&b=" + string(jobID), "/jobs/" + string(jobID) + "/events?check=1", "/fleet?check=1", "/try", "/try?job=" + string(jobID),
}

var _ http.Handler = (*dashboard.Dashboard)(nil)
