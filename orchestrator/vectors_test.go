package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// The tests of this file are the acceptance vectors of docs/requirements.md,
// section S1, by their numbers.

func TestA1Defaults(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	job, err := n.GetJob(t.Context(), n.Submit(enginetest.Script(nil), 1))
	if err != nil {
		t.Fatal(err)
	}
	want := mapreduce.JobSpec{
		Pipeline: "extract", Provider: "scripted", Schema: job.Spec.Schema, Parallelism: 20,
		MaxTokensPerUnit: 50_000, ChunkOverlap: 500, Estimator: "o200k_base", ReduceContextLimit: 100_000, ReduceBatchSize: 10,
		ReduceShare: 0.2, MaxAttempts: 5, UnitTimeout: 10 * time.Minute,
		BreakerThreshold: 3, BreakerTimeout: time.Minute, CheckpointInterval: 10,
	}
	got := job.Spec
	got.Vars = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// words returns a text of exactly n tokens.
func words(t *testing.T, n int) string {
	t.Helper()
	text := "word" + strings.Repeat(" word", n-1)
	if got := token.New().Count(text); got != n {
		t.Fatalf("text has %d tokens, want %d", got, n)
	}
	return text
}

func TestA2ChunksAndTheirNames(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	docs := map[string]string{"fits": words(t, 50_000), "cut": words(t, 50_001), "small": "a few words"}
	job, err := n.SubmitJob(t.Context(), enginetest.Script(nil), enginetest.Texts(docs, "fits", "cut", "small"))
	if err != nil {
		t.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobComplete)
	var got []string
	for id, u := range n.Units(job.ID) {
		got = append(got, fmt.Sprintf("%s: chunk %d of %d", id, u.ChunkIndex, u.Chunks))
	}
	slices.Sort(got)
	want := []string{"cut_chunk_0: chunk 0 of 2", "cut_chunk_1: chunk 1 of 2", "final: chunk 0 of 0", "fits: chunk 0 of 1", "small: chunk 0 of 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

func TestA3Shares(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(nil)
	spec.Budget = 1_000_003
	docs := map[string]string{"cut": words(t, 50_001), "a": "a", "b": "b"}
	job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, "cut", "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobComplete)
	units, sum := n.Units(job.ID), int64(0)
	for id, want := range map[mapreduce.UnitID]int64{"a": 333_334, "b": 333_334, "cut_chunk_0": 166_667, "cut_chunk_1": 166_667} {
		if got := units[id].Share; got != want {
			t.Errorf("share of %s is %d, want %d", id, got, want)
		}
		sum += units[id].Share
	}
	if sum > spec.Budget {
		t.Errorf("shares sum up to %d, more than the budget of %d", sum, spec.Budget)
	}
	none := func(func(*mapreduce.Document, error) bool) {}
	if _, err := n.SubmitJob(t.Context(), spec, none); errs.KindOf(err) != errs.Invalid {
		t.Errorf("no documents: %v, want it refused", err)
	}
	spec.Budget = 2
	if _, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, "a", "b", "cut")); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "budget") {
		t.Errorf("a budget of 2 tokens for 3 documents: %v, want it refused by name", err)
	}
	if page, err := n.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil || len(page.Jobs) != 1 {
		t.Errorf("refused submissions left jobs: %v %v", page, err)
	}
}

func TestA6ProgressIsMonotone(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	id := n.Submit(enginetest.Script(map[string]string{"script.latency": "5ms", "script.poison.doc-0000007": "permanent"}), 200)
	var last, ended int64
	err := n.WatchJob(t.Context(), id, func(j *mapreduce.Job) error {
		if ended = j.CompletedUnits + j.FailedUnits; ended < last || ended > j.TotalUnits {
			t.Errorf("progress went from %d to %d of %d", last, ended, j.TotalUnits)
		}
		last = ended
		return nil
	})
	if err != nil || last != 201 {
		t.Errorf("progress ended at %d of 201: %v", last, err)
	}
}

func TestA8Breaker(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	for _, tt := range []struct {
		name    string
		policy  mapreduce.OnBreaker
		timeout time.Duration // nothing waits for it where units are skipped, and none may come after it
	}{{"wait", mapreduce.BreakerWait, 200 * time.Millisecond}, {"skip", mapreduce.BreakerSkip, time.Minute}} {
		t.Run(tt.name, func(t *testing.T) {
			_, n := enginetest.One(t, &scripted.Agent{})
			spec := enginetest.Script(map[string]string{"script.breaker": "3"})
			spec.Parallelism, spec.BreakerTimeout, spec.OnBreaker = 1, tt.timeout, tt.policy
			id := n.Submit(spec, 20)
			job := n.End(id)
			skipped := 0
			for _, u := range n.Units(id) {
				if slices.Contains(u.Errors, "Circuit breaker open - skipped") {
					skipped++
				}
			}
			// Those that are skipped may be all, if they meet the breaker in time.
			wait := tt.policy == mapreduce.BreakerWait
			if wait && (job.State != mapreduce.JobComplete || job.FailedUnits != 0 || skipped != 0) || !wait && skipped == 0 {
				t.Errorf("%v: %d units failed, %d skipped by the breaker", job.State, job.FailedUnits, skipped)
			}
		})
	}
	t.Run("another provider is unaffected", func(t *testing.T) {
		bad, good := enginetest.Script(map[string]string{"script.poison.doc-0000000": "fail"}), enginetest.Script(nil)
		bad.Model, good.Model = "bad", "good"
		bad.BreakerThreshold, bad.BreakerTimeout = 1, time.Hour
		stuck := n.Submit(bad, 1)
		n.WantEnd(n.Submit(good, 10), mapreduce.JobComplete)
		if _, err := n.CancelJob(t.Context(), stuck); err != nil {
			t.Error(err)
		}
	})
}

func TestA14A18EveryEndIsInTheLedgerOnce(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.tokens_in": "10", "script.tokens_out": "3"})
	spec.CheckpointInterval = 7
	id := n.Submit(spec, 150)
	job := n.WantEnd(id, mapreduce.JobComplete)
	seen, tokens := make(map[mapreduce.UnitID]int), mapreduce.Tokens{}
	q := mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 3}
	var seals, completed, marks int
	for {
		page, err := n.ListEvents(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		seals += len(page.Seals)
		for _, c := range page.Checkpoints {
			tokens = tokens.Add(c.Tokens)
			for _, u := range c.Completed {
				seen[u.Unit]++
			}
			if len(c.Completed) > 64 {
				t.Errorf("a checkpoint holds %d units: too many could be lost with it", len(c.Completed))
			}
			before := completed
			completed += len(c.Completed)
			if crosses := before/7 < completed/7; crosses != (c.Progress != nil) {
				t.Errorf("from %d to %d units of an interval of 7, and the mark is %+v", before, completed, c.Progress)
			} else if crosses {
				marks++
				if want := (mapreduce.ProgressMark{Completed: int64(completed), Tokens: tokens}); *c.Progress != want {
					t.Errorf("the mark is %+v, want %+v", *c.Progress, want)
				}
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			break
		}
	}
	for u := range n.Units(id) {
		if seen[u] != 1 {
			t.Errorf("unit %s ends %d times in the ledger", u, seen[u])
		}
	}
	if tokens != job.TotalTokens || tokens != (mapreduce.Tokens{In: 1510, Out: 453}) {
		t.Errorf("ledger has %v, the job %v", tokens, job.TotalTokens)
	}
	if marks == 0 {
		t.Error("no progress is marked")
	}
	if seals == 0 || job.AuditHead == "" {
		t.Errorf("%d seals, head %q", seals, job.AuditHead)
	}
}

func TestA16KeysAsPublished(t *testing.T) {
	c, n := enginetest.One(t, &scripted.Agent{})
	id := n.Submit(enginetest.Script(map[string]string{"script.tokens_in": "5"}), 3)
	n.WantEnd(id, mapreduce.JobComplete)
	n.Stop()
	var job storagev1.Job
	var u storagev1.Unit
	var pairs []store.KeyValue
	err := store.NewDB(c.Store, store.Config{}).View(t.Context(), func(tx store.Tx) error {
		job.Reset()
		u.Reset()
		begin, end := tuple.Tuple{"mapreduce", "checkpoints", string(id)}.Range()
		var err error
		pairs, _, err = tx.GetRange(t.Context(), store.Range{Begin: begin, End: end}, store.RangeOptions{})
		return errors.Join(err,
			get(t.Context(), tx, tuple.Tuple{"mapreduce", "jobs", string(id)}, &job),
			get(t.Context(), tx, tuple.Tuple{"mapreduce", "units", string(id), "doc-0000001"}, &u))
	})
	if err != nil || len(pairs) < 3 {
		t.Fatalf("%d checkpoints: %v", len(pairs), err)
	}
	if job.JobId != string(id) || job.Status != uint32(mapreduce.JobComplete) || job.CreatedAtMicros == 0 || job.UpdatedAtMicros == 0 ||
		job.Config == nil || job.TotalUnits != 4 || job.CompletedUnits != 4 || job.TotalTokens != 20 || job.Error != "" {
		t.Errorf("job record: %v", &job)
	}
	if u.UnitId != "doc-0000001" || u.DocumentId != "doc-0000001" || u.Status != uint32(mapreduce.UnitComplete) || u.Result == nil || u.TokensIn != 5 {
		t.Errorf("unit record: %v", &u)
	}
	for _, kv := range pairs {
		key, err := tuple.Unpack(kv.Key)
		if err != nil || len(key) != 4 {
			t.Fatalf("key %x: %v %v", kv.Key, key, err)
		}
		if _, ok := key[3].(tuple.Versionstamp); !ok {
			t.Errorf("checkpoint id is a %T, want a versionstamp", key[3])
		}
	}
}

// get reads a message that is stored under key.
func get(ctx context.Context, tx store.Tx, key tuple.Tuple, m proto.Message) error {
	value, err := tx.Get(ctx, key.Pack())
	if err == nil && value == nil {
		err = fmt.Errorf("nothing is under %v", key)
	}
	return errors.Join(err, proto.Unmarshal(value, m))
}

func TestA19Utilisation(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 1, nil, enginetest.Steady())
		f.Join(worker.Config{Slots: 20, Prefetch: 20})
		begun := time.Now()
		job := f.Any().WantEnd(f.Any().Submit(enginetest.Script(map[string]string{"script.latency": "20ms"}), 1000), mapreduce.JobComplete)
		ideal := 1001 * 20 * time.Millisecond / 20
		if took := time.Since(begun); float64(ideal) < 0.8*float64(took) {
			t.Errorf("%d units took %v, ideally %v", job.CompletedUnits, took, ideal)
		}
	})
}

// Bad documents each get a reason, or refuse the submission by name.
func TestBadDocuments(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	submit := func(docs iter.Seq2[*mapreduce.Document, error]) error {
		_, err := n.SubmitJob(t.Context(), enginetest.Script(nil), docs)
		return err
	}
	for _, tt := range []struct {
		name string
		docs []string
		want string
	}{
		{"two of the same name", []string{"same", "same"}, `documents 1 and 2 have the same id "same"`},
		{"no name", []string{""}, "document_id: is missing"},
		{"a line break in a name", []string{"a\nb"}, "control characters"},
		{"a name that its chunk's would be", []string{"a_chunk_1", "a_chunk%5F1"}, "have the same id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			texts := make(map[string]string)
			for _, id := range tt.docs {
				texts[id] = "text"
			}
			err := submit(textsOf(texts, tt.docs))
			if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want it refused with %q", err, tt.want)
			}
		})
	}
	t.Run("named like units, or with the same content", func(t *testing.T) {
		ids := []string{"final", "direct", "reduce_L1_0", "parse_x", "x_chunk_0", "plan"}
		all := make(map[string]string)
		for _, id := range ids {
			all[id] = "the same text"
		}
		job, err := n.SubmitJob(t.Context(), enginetest.Script(nil), textsOf(all, ids))
		if err != nil {
			t.Fatal(err)
		}
		if job := n.WantEnd(job.ID, mapreduce.JobComplete); job.CompletedUnits != 7 || job.Coverage.Documents.Mapped != 6 {
			t.Errorf("job: %+v", job)
		}
	})
	t.Run("not text", func(t *testing.T) {
		all := map[string]string{"bad": "abc\xff", "empty": "", "good": "text"}
		job, err := n.SubmitJob(t.Context(), enginetest.Script(nil), textsOf(all, []string{"bad", "empty", "good"}))
		if err != nil {
			t.Fatal(err)
		}
		if l := n.WantEnd(job.ID, mapreduce.JobComplete).Coverage.Documents; l != (mapreduce.Ledger{Total: 3, Mapped: 1, Skipped: 2}) {
			t.Errorf("ledger: %+v", l)
		}
	})
}

func textsOf(all map[string]string, order []string) iter.Seq2[*mapreduce.Document, error] {
	return enginetest.Texts(all, order...)
}
