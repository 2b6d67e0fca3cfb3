package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/wire/fault"
)

// TestService runs one suite on the service itself and through every edge: a
// client cannot tell the difference.
func TestService(t *testing.T) {
	t.Run("near", func(t *testing.T) {
		s := new(servertest.Service)
		exercise(t, near(s), s)
	})
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			s := new(servertest.Service)
			c := e.open(t, newServer(t, s, nil, server.Config{}))
			exercise(t, c, s)
			exerciseWrongDecisions(t, c)
		})
	}
}

// exercise uses all of s, which keeps what it is told in memory.
func exercise(t *testing.T, s mapreduce.Client, memory *servertest.Service) {
	spec := mapreduce.JobSpec{Tenant: "t", RequestID: "r", Schema: []byte(`{"type":"object"}`), Budget: 1000, UnitTimeout: time.Minute}
	docs := []*mapreduce.Document{
		aDocument("a/b.txt", "alpha"), aDocument("é.md", "beta"), aDocument("empty", ""),
		{ID: "image.png", Skip: "binary", Size: 12345},
	}
	job := submitted(t, s, spec, docs...)
	t.Run("submission", func(t *testing.T) {
		if diff := cmp.Diff(docs, memory.Documents(job.ID), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("documents sent (-), kept (+):\n%s", diff)
		}
		if diff := cmp.Diff(spec, job.Spec); diff != "" {
			t.Errorf("spec sent (-), kept (+):\n%s", diff)
		}
		if again := submitted(t, s, spec, aDocument("other", "")); again.ID != job.ID {
			t.Errorf("the same request id got job %s, want %s", again.ID, job.ID)
		}
	})
	t.Run("plan", func(t *testing.T) { exercisePlan(t, s) })
	t.Run("control", func(t *testing.T) { exerciseControl(t, s, job.ID) })
	t.Run("watch", func(t *testing.T) { exerciseWatch(t, s, memory, job.ID) })
	t.Run("result", func(t *testing.T) { exerciseResult(t, s, memory, job.ID) })
	t.Run("lists", func(t *testing.T) { exerciseLists(t, s, job.ID) })
	t.Run("check", func(t *testing.T) { exerciseCheck(t, s) })
	t.Run("parked units", func(t *testing.T) { exerciseWake(t, s, job.ID, memory) })
	t.Run("decisions", func(t *testing.T) { exerciseDecisions(t, s, job.ID) })
	t.Run("claims", func(t *testing.T) { exerciseClaims(t, s, job.ID) })
	t.Run("answers", func(t *testing.T) { exerciseAnswers(t, s) })
	t.Run("use", func(t *testing.T) { exerciseUse(t, s) })
	t.Run("fleet", func(t *testing.T) { exerciseFleet(t, s, memory) })
	t.Run("delete", func(t *testing.T) {
		if err := s.DeleteJob(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
		_, err := s.GetJob(t.Context(), job.ID)
		wantKind(t, err, errs.NotFound)
	})
}

func exercisePlan(t *testing.T, s mapreduce.Client) {
	q := mapreduce.PlanQuery{Spec: mapreduce.JobSpec{Schema: []byte(`{}`), Parallelism: 3, Strategy: mapreduce.StrategyStatic}, Exact: true}
	p, err := s.PlanJob(t.Context(), q, documents(aDocument("a", "12345"), aDocument("b", "1"), aDocument("large", strings.Repeat("x", 600<<10))))
	if err != nil {
		t.Fatal(err)
	}
	want := &mapreduce.Plan{
		Strategy: mapreduce.StrategyStatic, Exact: true,
		Tasks: []mapreduce.PlanTask{
			{Unit: "a", Kind: mapreduce.KindMap, Items: 1, Read: 5, Written: 5},
			{Unit: "b", Kind: mapreduce.KindMap, Items: 1, Read: 1, Written: 1},
			{Unit: "large", Kind: mapreduce.KindMap, Items: 1, Read: 600 << 10, Written: 600 << 10},
			{Unit: "final", Kind: mapreduce.KindFinal, Level: 1, DependsOn: []mapreduce.UnitID{"a", "b", "large"}, Read: 600<<10 + 6},
		},
		Levels:   []mapreduce.PlanLevel{{Tasks: 3}, {Level: 1, Tasks: 1}},
		Estimate: mapreduce.PlanEstimate{Maps: 3, Reduces: 1, Levels: 1, Parallelism: 3, Makespan: time.Second},
		Warnings: []mapreduce.PlanWarning{{Kind: "test", Message: "there is no model"}},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	q.Spec.Strategy = mapreduce.StrategyAdaptive
	_, err = s.PlanJob(t.Context(), q, documents(aDocument("a", "")))
	wantKind(t, err, errs.Precondition)
	broken := errors.New("broken")
	_, err = s.PlanJob(t.Context(), q, func(yield func(*mapreduce.Document, error) bool) { yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("documents that cannot be read gave %v", err)
	}
}

func exerciseControl(t *testing.T, s mapreduce.Client, id mapreduce.JobID) {
	if job, err := s.PauseJob(t.Context(), id); err != nil || job.State != mapreduce.JobPaused {
		t.Errorf("pause gave %v and %v", job, err)
	}
	if _, err := s.PauseJob(t.Context(), id); !errors.Is(err, errs.Precondition) {
		t.Errorf("a second pause gave %v", err)
	}
	if job, err := s.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 5000}); err != nil || job.Spec.Budget != 5000 {
		t.Errorf("resume gave %v and %v", job, err)
	}
	err := s.DeleteJob(t.Context(), id)
	wantKind(t, err, errs.Precondition)

	other := submitted(t, s, mapreduce.JobSpec{}, aDocument("a", ""))
	if job, err := s.CancelJob(t.Context(), other.ID); err != nil || job.State != mapreduce.JobCancelled {
		t.Errorf("cancel gave %v and %v", job, err)
	}
}

func exerciseWatch(t *testing.T, s mapreduce.Client, memory *servertest.Service, id mapreduce.JobID) {
	errEnough := errors.New("enough")
	if err := s.WatchJob(t.Context(), id, func(*mapreduce.Job) error { return errEnough }); !errors.Is(err, errEnough) {
		t.Errorf("got %v, want the watcher's own error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.WatchJob(ctx, id, func(*mapreduce.Job) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v from a watch that was cancelled", err)
	}
	var last mapreduce.JobState
	err = s.WatchJob(t.Context(), id, func(job *mapreduce.Job) error {
		if last == mapreduce.JobUnknown { // the first call, so that the rest is news
			if _, err := memory.Finish(id); err != nil {
				return err
			}
		}
		last = job.State
		return nil
	})
	if err != nil || last != mapreduce.JobComplete {
		t.Errorf("the watch ended with %v at %v", err, last)
	}
}

func exerciseResult(t *testing.T, s mapreduce.Client, memory *servertest.Service, id mapreduce.JobID) {
	var want, got []*mapreduce.ResultPart
	if err := memory.GetResult(t.Context(), mapreduce.Local(""), id, false, func(p *mapreduce.ResultPart) error { want = append(want, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.GetResult(t.Context(), id, false, func(p *mapreduce.ResultPart) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || len(got) != 1+3+3+3+1 {
		t.Errorf("%d parts; want (-), got (+):\n%s", len(got), diff)
	}
	n := 0
	err := s.GetResult(t.Context(), id, false, func(*mapreduce.ResultPart) error {
		if n++; n == 2 {
			return io.ErrShortWrite
		}
		return nil
	})
	if !errors.Is(err, io.ErrShortWrite) || n != 2 {
		t.Errorf("got %v after %d parts, want the sink's own error after 2", err, n)
	}
}

func exerciseLists(t *testing.T, s mapreduce.Client, id mapreduce.JobID) {
	page, err := s.ListJobs(t.Context(), mapreduce.ListJobsQuery{Tenant: "t", States: []mapreduce.JobState{mapreduce.JobComplete}})
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != id {
		t.Errorf("got %v and %v, want job %s", page, err, id)
	}
	q := mapreduce.ListUnitsQuery{Job: id, PageSize: 2, Outputs: true}
	var units []string
	for {
		page, err := s.ListUnits(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Units {
			units = append(units, fmt.Sprintf("%s=%s", u.ID, u.Output))
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"a/b.txt=alpha", "é.md=beta", "empty="}, units); diff != "" {
		t.Errorf("units want (-), got (+):\n%s", diff)
	}
	events, err := s.ListEvents(t.Context(), mapreduce.ListEventsQuery{Job: id, PageSize: 1})
	if err != nil || len(events.Checkpoints) != 1 || events.Checkpoints[0].Kind != mapreduce.EventSubmitted || len(events.Seals) != 1 || events.NextPageToken != "1" {
		t.Errorf("got %+v and %v, want a page of the submission", events, err)
	}
	_, err = s.ListJobs(t.Context(), mapreduce.ListJobsQuery{PageToken: "x"})
	wantField(t, err, "page_token")
}

func exerciseWake(t *testing.T, s mapreduce.Client, id mapreduce.JobID, memory *servertest.Service) {
	want := mapreduce.Parking{Handle: "batch 1", WakeAfter: time.Hour, Note: "a batch"}
	if err := memory.Park(id, "a/b.txt", want); err != nil {
		t.Fatal(err)
	}
	page, err := s.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: id, PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, page.Units[0].Parking); diff != "" {
		t.Errorf("what the unit waits for, want (-), got (+):\n%s", diff)
	}
	if _, err := s.WakeUnit(t.Context(), id, "a/b.txt", "batch 2", nil); errs.KindOf(err) != errs.NotFound || err == nil {
		t.Errorf("waking it by another handle: %v", err)
	}
	unit, err := s.WakeUnit(t.Context(), id, "a/b.txt", "batch 1", []byte("an answer"))
	if err != nil || unit.ID != "a/b.txt" || unit.Parking != nil || string(unit.Output) != "an answer" {
		t.Errorf("waking it returned %+v and %v", unit, err)
	}
	_, err = s.WakeUnit(t.Context(), id, "a/b.txt", "batch 1", make([]byte, mapreduce.MaxWakeAnswer+1))
	wantField(t, err, "answer")
	_, err = s.WakeUnit(t.Context(), id, "a/b.txt", "", nil)
	wantField(t, err, "handle")
}

func exerciseAnswers(t *testing.T, s mapreduce.Client) {
	limits := mapreduce.AnswerCache{MaxBytes: 1 << 20, MaxAge: time.Hour}
	full := limits
	full.Answers, full.Bytes, full.Oldest = 4, 40, time.Unix(1_700_000_000, 0).UTC()
	for i, want := range []mapreduce.AnswerCache{full, full, limits} {
		got, err := s.AnswerCache(t.Context(), "acme", i == 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("look %d: -want +got:\n%s", i, diff)
		}
	}
}

func exerciseUse(t *testing.T, s mapreduce.Client) {
	caller, err := s.Caller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(caller.Roles) == 0 || !caller.Has(mapreduce.Viewer) || !slices.Equal(caller.Roles, caller.AllRoles()) {
		t.Errorf("the caller is %+v", caller)
	}
	got, err := s.TenantUse(t.Context(), "nobody")
	if err != nil {
		t.Fatal(err)
	}
	want := &mapreduce.TenantUse{Tenant: "nobody", Quotas: []mapreduce.QuotaUse{{Name: "jobs", Limit: 10}}, Keep: time.Hour}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	exerciseCertificates(t, s)

	sums, err := s.SumCosts(t.Context(), mapreduce.CostQuery{Tenant: "nobody", By: []mapreduce.CostDimension{mapreduce.ByDay, "label:team"}})
	if err != nil {
		t.Fatal(err)
	}
	spent := mapreduce.Charge{Calls: 1, Tokens: mapreduce.Tokens{In: 20, Out: 3}, CostMicros: 45, Unpriced: 6}
	wantSums := &mapreduce.CostSums{Rows: []mapreduce.CostRow{{Group: []string{"day of nobody", "label:team of nobody"}, Charge: spent}}, Sum: spent}
	if diff := cmp.Diff(wantSums, sums); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// exerciseCertificates wants every field of a certificate, and drops it.
func exerciseCertificates(t *testing.T, s mapreduce.Client) {
	t.Helper()
	list, err := s.ListCertificates(t.Context(), "nobody")
	if err != nil {
		t.Fatal(err)
	}
	want := []mapreduce.Certificate{{
		ID: "cccccccccccccccccccccccccccccccc", Kind: "bills", Member: "rules", Oracle: "scripted/m", Target: 0.9, Confidence: 0.95, Schema: "ab",
		Job: "mr_20260101_a1b2c3", Made: time.Unix(1_700_000_000, 0).UTC(), Seed: 7, Units: 300, Labels: 40, Uses: 2, Used: time.Unix(1_700_000_100, 0).UTC(),
		Measures: []mapreduce.CertificateMeasure{{Field: "total", Floor: 0.5, Labels: 39, Right: 38, AuditLabels: 20, AuditedRight: 19}},
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if err := s.DropCertificate(t.Context(), "nobody", "other"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("another one: %v", err)
	}
	if err := s.DropCertificate(t.Context(), "nobody", list[0].ID); err != nil {
		t.Error(err)
	}
	if list, err = s.ListCertificates(t.Context(), "nobody"); len(list) > 0 || err != nil {
		t.Errorf("after it was dropped: %+v, %v", list, err)
	}
}

// exerciseFleet wants every field of what the service says of its fleet.
func exerciseFleet(t *testing.T, s mapreduce.Client, memory *servertest.Service) {
	got, err := s.FleetStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := memory.FleetStatus(t.Context(), mapreduce.Principal{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(got.Tenants) == 0 || len(got.Workers) != 3 {
		t.Errorf("got %+v, want what waits of a tenant, and three workers", got)
	}
}

func exerciseCheck(t *testing.T, s mapreduce.Client) {
	var lines []mapreduce.Finding
	err := s.CheckStore(t.Context(), mapreduce.CheckQuery{}, func(f mapreduce.Finding) error { lines = append(lines, f); return nil })
	if err != nil || len(lines) != 2 || lines[0].Severity != mapreduce.Info || lines[0].Message != "checked" {
		t.Errorf("got %v and %v, want two lines", lines, err)
	}
	if err := s.CheckStore(t.Context(), mapreduce.CheckQuery{}, func(mapreduce.Finding) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field != field {
		t.Errorf("got %v, want field %q to be invalid", err, field)
	}
}

// A failing service answers GetJob with an error.
type failing struct {
	mapreduce.Service
	err error
}

func (f failing) GetJob(context.Context, mapreduce.Principal, mapreduce.JobID) (*mapreduce.Job, error) {
	return nil, f.err
}

const someJob mapreduce.JobID = "mr_20260704_000000"

func TestErrorsSurvive(t *testing.T) {
	for kind := errs.Invalid; kind <= errs.DataLoss; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			sent := &errs.Error{Kind: kind, Op: "get job", Field: "job_id", Reason: "WHY", Message: "is odd", RetryAfter: 1500 * time.Millisecond}
			overEveryEdge(t, func() mapreduce.Service { return failing{err: sent} }, nil, func(t *testing.T, c *client.Client) {
				_, err := c.GetJob(t.Context(), someJob)
				var got *errs.Error
				if !errors.As(err, &got) {
					t.Fatalf("got %v, want an *errs.Error", err)
				}
				if diff := cmp.Diff(sent, got, cmpopts.IgnoreFields(errs.Error{}, "Err")); diff != "" {
					t.Errorf("sent (-), got (+):\n%s", diff)
				}
			})
		})
	}
}

func TestRequestsAreChecked(t *testing.T) {
	overEveryEdge(t, memory, nil, func(t *testing.T, c *client.Client) {
		_, err := c.GetJob(t.Context(), "job 1")
		wantField(t, err, "job_id")
		_, err = c.SubmitJob(t.Context(), mapreduce.JobSpec{MaxAttempts: -1}, documents(aDocument("a", "")))
		wantField(t, err, "max_attempts")
		_, err = c.SubmitJob(t.Context(), mapreduce.JobSpec{}, documents(aDocument("", "")))
		wantField(t, err, "documents.document_id")
		_, err = c.SubmitJob(t.Context(), mapreduce.JobSpec{}, documents(aDocument("a\xff", ""))) // which is skipped
		if err != nil {
			t.Errorf("a document whose id is not UTF-8 refuses all: %v", err)
		}
		_, err = c.SubmitJob(t.Context(), mapreduce.JobSpec{}, documents())
		wantField(t, err, "documents")
	})
}

func TestLargeDocuments(t *testing.T) {
	overEveryEdge(t, memory, nil, func(t *testing.T, c *client.Client) {
		large := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
		docs := []*mapreduce.Document{aDocument("small", "s"), {ID: "large", Content: large}, aDocument("next", "n")}
		job := submitted(t, c, mapreduce.JobSpec{}, docs...)
		err := c.GetResult(t.Context(), job.ID, true, func(p *mapreduce.ResultPart) error {
			if p.Citation != nil && p.Citation.Document == "large" && p.Citation.Quote != string(large) {
				t.Error("the large document arrived changed")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		_, err = c.SubmitJob(t.Context(), mapreduce.JobSpec{}, documents(&mapreduce.Document{ID: "giant", Content: make([]byte, 8<<20+1)})) // which is skipped
		if err != nil {
			t.Errorf("a document that is too large refuses all: %v", err)
		}
	})
}

func TestManySmallDocuments(t *testing.T) {
	s := new(servertest.Service)
	c := inProcess(t, newServer(t, s, nil, server.Config{}))
	job, err := c.SubmitJob(t.Context(), mapreduce.JobSpec{}, func(yield func(*mapreduce.Document, error) bool) {
		for i := range 20_000 {
			if !yield(aDocument(mapreduce.DocumentID(fmt.Sprint(i)), "text"), nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range s.Documents(job.ID) {
		if string(doc.ID) != fmt.Sprint(i) {
			t.Fatalf("document %d is %s", i, doc.ID)
		}
	}
	if job.TotalUnits != 20_000 {
		t.Errorf("got %d units", job.TotalUnits)
	}
}

func TestDocumentsThatFailSubmitNothing(t *testing.T) {
	overEveryEdge(t, memory, nil, func(t *testing.T, c *client.Client) {
		errDisk := errors.New("disk on fire")
		_, err := c.SubmitJob(t.Context(), mapreduce.JobSpec{}, func(yield func(*mapreduce.Document, error) bool) {
			if yield(aDocument("a", strings.Repeat("x", 1<<20)), nil) {
				yield(nil, errDisk)
			}
		})
		if !errors.Is(err, errDisk) {
			t.Errorf("got %v, want the error of the documents", err)
		}
		if page, err := c.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil || len(page.Jobs) != 0 {
			t.Errorf("got %v and %v, want no job", page, err)
		}
	})
}

func TestMessagesThatAreTooLarge(t *testing.T) {
	tooLarge := func(t *testing.T, err error) {
		t.Helper()
		var e *errs.Error
		if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Reason != fault.ReasonTooLarge || !strings.Contains(e.Message, "larger than max") {
			t.Errorf("got %v, want the message to be refused as too large", err)
		}
	}
	spec := mapreduce.JobSpec{Schema: make([]byte, 1<<20)}
	s := new(servertest.Service)
	job := submitted(t, near(s), spec, aDocument("a", ""))

	t.Run("by the client", func(t *testing.T) {
		c, err := client.NewInProcess(newServer(t, s, nil, server.Config{}), client.Config{MaxSend: 1 << 19, MaxReceive: 1 << 19})
		opened(t, c, err)
		_, err = c.SubmitJob(t.Context(), spec, documents(aDocument("a", "")))
		tooLarge(t, err)
		_, err = c.GetJob(t.Context(), job.ID)
		tooLarge(t, err)
	})
	t.Run("by the server", func(t *testing.T) {
		c := inProcess(t, newServer(t, s, nil, server.Config{MaxSend: 1 << 19, MaxReceive: 1 << 19}))
		_, err := c.SubmitJob(t.Context(), spec, documents(aDocument("a", "")))
		tooLarge(t, err)
		_, err = c.GetJob(t.Context(), job.ID)
		tooLarge(t, err)
	})
}

func TestPagesAreShortenedToFit(t *testing.T) {
	s := new(servertest.Service)
	var docs []*mapreduce.Document
	for i := range 10 {
		docs = append(docs, &mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: make([]byte, 1<<20)})
	}
	job := submitted(t, near(s), mapreduce.JobSpec{}, docs...)
	if _, err := s.Finish(job.ID); err != nil {
		t.Fatal(err)
	}
	c := inProcess(t, newServer(t, s, nil, server.Config{}))
	q := mapreduce.ListUnitsQuery{Job: job.ID, Outputs: true}
	var pages, units int
	for ; pages == 0 || q.PageToken != ""; pages++ {
		page, err := c.ListUnits(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		units += len(page.Units)
		q.PageToken = page.NextPageToken
	}
	if units != 10 || pages < 3 {
		t.Errorf("got %d units in %d pages, want 10 in several", units, pages)
	}
}

func TestDialRefusesBadTargets(t *testing.T) {
	for _, target := range []string{"", "localhost", "localhost:", ":7600", "unix:", "http://localhost:7600/x:1"} {
		c, err := client.Dial(target, client.Config{})
		if c != nil {
			t.Errorf("%q gave a client", target)
			_ = c.Close()
		}
		wantField(t, err, "server")
	}
}

// TestNobodyListens asks for a server where there is none, or one of something
// else: the error names the place, and says nothing of gRPC.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	socket := "unix:" + t.TempDir() + "/none"
	for _, test := range []struct{ name, target, reason string }{
		{"unix", socket, "no such file or directory"},
		{"tcp", closed, "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, test.target)
			want := fmt.Sprintf("cannot reach %s: %s; is \"coditect serve\" running there?", test.target, test.reason)
			_, got := c.GetJob(t.Context(), someJob)
			watched := c.WatchJob(t.Context(), someJob, func(*mapreduce.Job) error { return nil })
			for call, err := range map[string]error{"a call": got, "a stream": watched} {
				wantKind(t, err, errs.Unavailable)
				if err != nil && err.Error() != want {
					t.Errorf("%s says %q, want %q", call, err, want)
				}
			}
		})
	}
}

// TestAServerThatWasAway is reached soon once it is back, however often it was not.
func TestAServerThatWasAway(t *testing.T) {
	s := newServer(t, new(servertest.Service), nil, server.Config{})
	l := listen(t, s, "tcp", "127.0.0.1:0")
	var dials atomic.Int64
	away := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		if dials.Add(1) <= 6 {
			return nil, errors.New("away")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
	patient := grpc.WithDefaultCallOptions(grpc.WaitForReady(true))
	c, err := client.Dial(l.Addr().String(), client.Config{Options: []grpc.DialOption{away, patient}})
	c = opened(t, c, err)
	begun := time.Now()
	if _, err := c.GetJob(t.Context(), someJob); errs.KindOf(err) == errs.Unavailable {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 15*time.Second { // gRPC's own waits would take 20 s at least
		t.Errorf("a server that could be reached at the seventh attempt was reached after %v", took)
	}
}

func exerciseDecisions(t *testing.T, s mapreduce.Client, id mapreduce.JobID) {
	d := mapreduce.NewDecision{
		Job: id, Record: "0.0", Field: "total", Request: "r1", Verdict: mapreduce.ReviewCorrect, Value: []byte(`"2.50"`), Note: "typed wrong", Model: []byte("null"),
		Passage: &mapreduce.Passage{Document: "a/b.txt", Unit: "a/b.txt", ByteStart: 3, ByteEnd: 7},
	}
	kept, err := s.DecideValue(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	want := mapreduce.Decision{
		Record: "0.0", Field: "total", Number: 1, Request: "r1", By: kept.By, Time: kept.Time, Verdict: mapreduce.ReviewCorrect, Value: d.Value, Note: d.Note, Model: d.Model,
		Passage: &mapreduce.Citation{Document: "a/b.txt", Unit: "a/b.txt", ByteStart: 3, ByteEnd: 7},
	}
	if diff := cmp.Diff(&want, kept); diff != "" {
		t.Errorf("kept, want (-), got (+):\n%s", diff)
	}

	// The same request is the same decision, and none at all is a new one each time.
	if again, err := s.DecideValue(t.Context(), d); err != nil || again.Number != 1 {
		t.Errorf("again: %+v, %v", again, err)
	}
	for want := range int64(2) {
		other, err := s.DecideValue(t.Context(), mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewAbsent})
		if err != nil || other.Number != want+2 {
			t.Errorf("without a request: %+v, %v", other, err)
		}
	}

	page, err := s.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id, Record: "0.0", PageSize: 2})
	if err != nil || len(page.Decisions) != 2 || page.NextPageToken == "" {
		t.Fatalf("a page of two: %+v, %v", page, err)
	}
	if diff := cmp.Diff(kept, page.Decisions[0]); diff != "" {
		t.Errorf("listed, want (-), got (+):\n%s", diff)
	}
	if page, err = s.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id, PageToken: page.NextPageToken}); err != nil || len(page.Decisions) != 1 {
		t.Errorf("the next page: %+v, %v", page, err)
	}
}

// exerciseClaims holds records of a complete job, and gives one back.
func exerciseClaims(t *testing.T, s mapreduce.Client, id mapreduce.JobID) {
	all, err := s.ClaimRecords(t.Context(), mapreduce.Claim{Job: id, Records: []mapreduce.RecordID{"0.0", "1048576.3"}, Time: 5 * time.Minute})
	if err != nil || len(all) != 2 || all[1].Record != "1048576.3" || !all[0].Own || all[0].End.IsZero() {
		t.Fatalf("held: %+v, %v", all, err)
	}
	all, err = s.ClaimRecords(t.Context(), mapreduce.Claim{Job: id, Records: []mapreduce.RecordID{"0.0"}})
	if err != nil || len(all) != 1 || all[0].Record != "1048576.3" {
		t.Errorf("given back: %+v, %v", all, err)
	}
	if again, err := s.ClaimRecords(t.Context(), mapreduce.Claim{Job: id}); err != nil || !cmp.Equal(all, again) {
		t.Errorf("asked for: %+v, %v", again, err)
	}
}

// exerciseWrongDecisions sends decisions that no edge lets through.
func exerciseWrongDecisions(t *testing.T, s mapreduce.Client) {
	for _, records := range [][]mapreduce.RecordID{make([]mapreduce.RecordID, mapreduce.MaxClaimedRecords+1), {""}} {
		_, err := s.ClaimRecords(t.Context(), mapreduce.Claim{Job: "mr_20260704_aaaaaa", Records: records})
		wantField(t, err, "record_ids")
	}

	d := mapreduce.NewDecision{
		Job: "mr_20260704_aaaaaa", Record: "0.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("1"),
		Passage: &mapreduce.Passage{Document: "a", ByteStart: 3, ByteEnd: 7},
	}
	for field, change := range map[string]func(*mapreduce.NewDecision){
		"job_id":              func(d *mapreduce.NewDecision) { d.Job = "x" },
		"record_id":           func(d *mapreduce.NewDecision) { d.Record = "" },
		"field":               func(d *mapreduce.NewDecision) { d.Field = "" },
		"verdict":             func(d *mapreduce.NewDecision) { d.Verdict = 0 },
		"value":               func(d *mapreduce.NewDecision) { d.Value = make([]byte, mapreduce.MaxReviewedValue+1) },
		"note":                func(d *mapreduce.NewDecision) { d.Note = strings.Repeat("n", mapreduce.MaxReviewNote+1) },
		"passage.start_byte":  func(d *mapreduce.NewDecision) { d.Passage.ByteStart = -1 },
		"passage.document_id": func(d *mapreduce.NewDecision) { d.Passage.Document = "" },
	} {
		wrong, passage := d, *d.Passage
		wrong.Passage = &passage
		change(&wrong)
		_, err := s.DecideValue(t.Context(), wrong)
		wantField(t, err, field)
	}
}
