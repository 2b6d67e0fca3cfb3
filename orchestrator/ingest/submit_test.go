package ingest_test

import (
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

const slots = 3

// newIntake returns an intake over a store that holds nothing, whose documents are counted
// by their characters.
func newIntake(t *testing.T) *ingest.Intake {
	t.Helper()
	j := jobs.New(store.NewDB(new(memory.Store), store.Config{}), keys.New(), "node", time.Now)
	if _, _, err := j.Nodes.Epoch(t.Context(), "node"); err != nil {
		t.Fatal(err)
	}

	logger := slog.New(slog.DiscardHandler)
	var signals cluster.Signals
	supervisor := cluster.NewSupervisor(j, &signals, cluster.SupervisorConfig{Logger: logger, Grace: time.Second, Lease: time.Second, Beat: time.Second})
	count := func(text string) int { return len(text) }
	rules := &jobspec.Rules{
		Provider: func(name string) mapreduce.Provider { return mapreduce.Provider{Name: name} },
		Overhead: func(*mapreduce.JobSpec) (prompt, answer int64) { return 0, 0 },
		Count:    count,
	}
	specs := jobspec.NewFinder(j, func(mapreduce.JobID) *jobspec.Compiled { return nil })

	return ingest.New(j, specs, &signals, supervisor, ingest.Config{
		Rules: rules, Shards: 1, MaxDocument: 1 << 20, MaxCalls: 8, Count: count, Logger: logger,
		Estimate:     func(*mapreduce.JobSpec, int64) int64 { return 0 },
		Rates:        func(*mapreduce.JobSpec) plan.Rates { return plan.Rates{} },
		InitialSlots: func(*mapreduce.JobSpec) int64 { return slots },
	})
}

func documents(texts ...string) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i, text := range texts {
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(string(rune('a' + i))), Content: []byte(text)}, nil) {
				return
			}
		}
	}
}

func extraction() mapreduce.JobSpec {
	schema := []byte("title: receipt\ntype: object\nproperties:\n  total: {type: string}\nx-coditect: {key: [total]}\n")
	return mapreduce.JobSpec{Tenant: "t", Schema: schema, RequestID: "once"}
}

// What was accepted says how the job stands and which units wait, so that it can be
// scheduled without reading it; the same request again names the job and nothing else.
func TestAcceptedSaysWhatWaits(t *testing.T) {
	in := newIntake(t)
	accepted, err := in.SubmitJob(t.Context(), extraction(), documents("total: 1", "total: 2"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := accepted.New
	if fresh == nil || len(fresh.Waiting) != 2 || fresh.Slots != slots || fresh.Compiled == nil {
		t.Fatalf("accepted %+v, want two units that wait, %d slots and what was compiled", fresh, slots)
	}

	again, err := in.SubmitJob(t.Context(), extraction(), documents("total: 1", "total: 2"))
	if err != nil || again.Job != accepted.Job || again.New != nil {
		t.Errorf("the same request made %+v, %v, want job %s and nothing new", again, err, accepted.Job)
	}
}

// A submission that is refused makes no job, so that the same request may follow.
func TestRefusedSubmissionsMakeNoJob(t *testing.T) {
	in := newIntake(t)
	one := &mapreduce.Document{ID: "a", Content: []byte("total: 1")}
	twice := func(yield func(*mapreduce.Document, error) bool) {
		for range 2 {
			if !yield(one, nil) {
				return
			}
		}
	}
	for _, tt := range []struct {
		name string
		ask  func(*mapreduce.JobSpec)
		docs iter.Seq2[*mapreduce.Document, error]
		kind errs.Kind
		want string
	}{
		{"documents of a job that repeats another", func(s *mapreduce.JobSpec) { s.Replay = "mr_other" }, documents("total: 1"), errs.Invalid, "none are taken with replay_job_id"},
		{"a job that is not there is repeated", func(s *mapreduce.JobSpec) { s.Replay = "mr_other" }, documents(), errs.NotFound, "mr_other"},
		{"more at once than may be", func(s *mapreduce.JobSpec) { s.Parallelism = 10_001 }, documents("total: 1"), errs.Invalid, "must be 1 to 10000"},
		{"two documents of one name", func(*mapreduce.JobSpec) {}, twice, errs.Invalid, "have the same id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := extraction()
			tt.ask(&spec)
			_, err := in.SubmitJob(t.Context(), spec, tt.docs)
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want kind %v with %q", err, tt.kind, tt.want)
			}
		})
	}

	if accepted, err := in.SubmitJob(t.Context(), extraction(), documents("total: 1")); err != nil || accepted.New == nil {
		t.Errorf("after refusals the request made %+v, %v, want a job", accepted, err)
	}
}
