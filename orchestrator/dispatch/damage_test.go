package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// soonFailed is when a job has failed that meets damage. A worker that was cut has its lease
// of a minute, rather than the grace period, if the machine stood still meanwhile; what is
// tried again and again takes more than two minutes.
const soonFailed = 110 * time.Second

// A unit whose input is damaged ends its job with the reason, however often its job lets
// it be tried: no attempt can do better, whoever meets the damage.
func TestADamagedInputFailsItsUnit(t *testing.T) {
	for name, tt := range map[string]struct {
		size  int // of the input that is damaged
		early bool
		want  string
	}{
		"when it is assigned": {protocol.MaxInline, true, "input of the unit"},
		"when it is fetched":  {2 * protocol.MaxAssigned, true, "input of the unit"},
		"when it is reported": {2 * protocol.MaxAssigned, false, "what the output is checked against cannot be read"},
		"when it is shown":    {protocol.MaxInline, false, "its result cannot be assembled"}, // what was assigned is at hand until then
	} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			spec := enginetest.Script(nil)
			spec.MaxAttempts = 20
			id := n.Submit(spec, 2)
			w := enginetest.Greet(t, n, "w", 1)
			large := w.Assigned()
			data, err := (&output.Output{Reason: strings.Repeat("x", tt.size)}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			w.Report(large, putOutput(w, "w", large, data))
			damage := func() {
				err := store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
					tx.ClearRange(keys.New().Outputs(id).Results(large.Unit))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.early {
				damage()
			}
			w.Report(w.Assigned(), enginetest.AsIs)
			if !tt.early {
				reduce := w.Assigned()
				damage()
				w.Report(reduce, enginetest.AsIs)
			}
			w.Cut()
			c.Worker(&scripted.Agent{}, worker.Config{Slots: 1}, n)
			job := n.EndWithin(id, soonFailed)
			if gone := fmt.Sprintf("0 of its %d bytes are there", len(data)); job.State != mapreduce.JobFailed || !strings.Contains(job.Error, tt.want) || !strings.Contains(job.Error, gone) {
				t.Errorf("it ended %v with error %q, which does not say what is damaged", job.State, job.Error)
			}
		})
	}
}

// What is damaged of one job keeps no orchestrator from starting, and no other job
// from being run.
func TestADamagedRunStopsNobody(t *testing.T) {
	c := enginetest.NewCluster(t)
	err := store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
		tx.Set(keys.New().Tenant("default").Run("mr_20250101_aaaaaa"), []byte("damaged"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Beat: 50 * time.Millisecond}))
	lost := enginetest.Greet(t, n, "lost", 1)
	id := n.Submit(enginetest.Script(nil), 4)
	lost.Assigned()
	lost.Cut() // for good: its unit is another's after the grace period
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 1}, n)
	n.WantEnd(id, mapreduce.JobComplete)
}

// damage writes nonsense over the record of a unit.
func damage(c *enginetest.Cluster, id mapreduce.JobID, unit mapreduce.UnitID) {
	c.T.Helper()
	err := store.NewDB(c.Store, store.Config{}).Update(c.T.Context(), func(tx store.Tx) error {
		tx.Set(keys.New().Job(id).Unit(unit), []byte("\xffdamaged"))
		return nil
	})
	if err != nil {
		c.T.Fatal(err)
	}
}

// held returns n attempts that w is assigned.
func held(w enginetest.Bare, n int) (all []protocol.Held) {
	w.T.Helper()
	for len(all) < n {
		for _, a := range w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments {
			all = append(all, heldOf(a))
		}
	}
	return all
}

// verdicts reports attempts, all in one message, and returns what became of each.
func verdicts(w enginetest.Bare, all []protocol.Held) map[mapreduce.UnitID]protocol.Verdict {
	w.T.Helper()
	m := new(protocol.FromWorker)
	for _, h := range all {
		m.Reports = append(m.Reports, protocol.Report{Job: h.Job, Unit: h.Unit, Attempt: h.Attempt, Outcome: protocol.Done, Size: 1})
	}
	w.Say(m)
	got := make(map[mapreduce.UnitID]protocol.Verdict)
	for len(got) < len(all) {
		for _, v := range w.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 }).Verdicts {
			got[v.Unit] = v.Verdict
		}
	}
	return got
}

// A report that can never be stored keeps no report beside it from being stored: it is
// tried alone in the end, and its job fails with the reason, which names the record.
func TestAReportThatCannotBeStoredIsAlone(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	const units = 12
	w := enginetest.Greet(t, n, "w", units)
	id := n.Submit(enginetest.Script(nil), units)
	held := held(w, units)
	damage(c, id, held[7].Unit)
	for unit, v := range verdicts(w, held) {
		if want := protocol.Accepted; v != want && unit != held[7].Unit {
			t.Errorf("the report of %s, beside the one that cannot be stored, was given %v", unit, v)
		}
		if unit == held[7].Unit && v != protocol.Stale {
			t.Errorf("the report that cannot be stored was given %v", v)
		}
	}
	job := n.WantEnd(id, mapreduce.JobFailed)
	if want := fmt.Sprintf("value of %x", keys.New().Job(id).Unit(held[7].Unit)); !strings.Contains(job.Error, want) || job.CompletedUnits != units-1 {
		t.Errorf("the job failed with %d units complete and %q, want %d and what is damaged: %s", job.CompletedUnits, job.Error, units-1, want)
	}
	other := n.Submit(enginetest.Script(nil), 1) // the worker goes on with other jobs
	w.Report(w.Assigned(), enginetest.AsIs)
	w.Report(w.Assigned(), enginetest.AsIs)
	n.WantEnd(other, mapreduce.JobComplete)
}

// A unit that waits and cannot be claimed, because its record is damaged, ends its job:
// the others of the job run before, and other jobs go on.
func TestAUnitThatCannotBeClaimedFailsItsJob(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id, other := n.Submit(enginetest.Script(nil), 9), n.Submit(enginetest.Script(nil), 3)
	damage(c, id, "doc-0000004")
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 3}, n)
	if job := n.WantEnd(id, mapreduce.JobFailed); !strings.Contains(job.Error, "corrupt") {
		t.Errorf("the job failed with %q", job.Error)
	}
	n.WantEnd(other, mapreduce.JobComplete)
}

// What a lost worker held goes back, but for a unit whose record is damaged: that ends its
// job, and keeps neither other jobs' units nor the next orchestrator.
func TestADamagedUnitOfALostWorkerFailsItsJob(t *testing.T) {
	for name, restart := range map[string]bool{"the worker is lost": false, "the orchestrator too": true} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			config := enginetest.Quick(orchestrator.Config{Adopt: true, Exclusive: true})
			config.Lease = 2 * time.Second // which a lost worker has after a restart
			n := c.Orchestrator(config)
			lost := enginetest.Greet(t, n, "lost", 4)
			id := n.Submit(enginetest.Script(nil), 2)
			held(lost, 2)
			other := n.Submit(enginetest.Script(nil), 2)
			held(lost, 2)
			damage(c, id, "doc-0000001")
			if restart {
				n.Stop()
				n = c.Orchestrator(config)
			}
			lost.Cut()
			c.Worker(&scripted.Agent{}, worker.Config{Slots: 3}, n)
			if job := n.WantEnd(id, mapreduce.JobFailed); !strings.Contains(job.Error, "corrupt") {
				t.Errorf("the job failed with %q", job.Error)
			}
			n.WantEnd(other, mapreduce.JobComplete)
		})
	}
}

// A level that can never be planned ends its job within a minute, with what is wrong: the
// text of a document is gone that a worker has parsed.
func TestALevelThatCannotBePlannedFailsItsJob(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.GreetWith(t, n, &protocol.FromWorker{Hello: &protocol.Hello{
		Session: "w", Slots: 1, Offer: mapreduce.Offer{Providers: []string{"scripted"}, Parsers: []string{"text/html"}},
	}})
	spec := enginetest.Script(nil)
	spec.Strategy = mapreduce.StrategyStatic // its units are planned once all documents are parsed
	job, err := n.SubmitJob(t.Context(), spec, func(yield func(*mapreduce.Document, error) bool) {
		for _, id := range []mapreduce.DocumentID{"a.html", "b.html"} {
			yield(&mapreduce.Document{ID: id, MediaType: "text/html", Content: []byte("<p>a text</p>")}, nil)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	held := w.Assigned()
	parsed := func(text string) []byte {
		data, err := (&payload.Parsed{Format: "html", Text: []byte(text)}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	long := parsed(strings.Repeat("a text. ", 1000))
	w.Report(held, putOutput(w, "w", held, long))
	next := w.Assigned()
	err = store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
		tx.ClearRange(keys.New().Outputs(job.ID).Results(held.Unit))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Report(next, func(r *protocol.Report) { r.Output = parsed("another text") })
	gone := fmt.Sprintf("0 of its %d bytes are there", len(long))
	if end := n.EndWithin(job.ID, soonFailed); end.State != mapreduce.JobFailed || !strings.Contains(end.Error, gone) {
		t.Errorf("the job ended %v: %s", end.State, end.Error)
	}
}

// What is damaged of one job, whatever record it is, keeps no other from being found and
// run, by an orchestrator that runs already as by one that starts.
func TestADamagedJobStopsNoOther(t *testing.T) {
	for name, key := range map[string]func(*keys.Space, mapreduce.JobID) []byte{
		"switch": func(s *keys.Space, id mapreduce.JobID) []byte { return s.Job(id).Ctl() },
		"record": func(s *keys.Space, id mapreduce.JobID) []byte { return s.Job(id).Record() },
		"grant": func(s *keys.Space, id mapreduce.JobID) []byte {
			return s.Nodes().Grant(mapreduce.JobScope(id), "node-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			config := enginetest.Quick(orchestrator.Config{Adopt: true})
			n := c.Orchestrator(config)
			ids := []mapreduce.JobID{n.Submit(enginetest.Script(nil), 2), n.Submit(enginetest.Script(nil), 2), n.Submit(enginetest.Script(nil), 2)}
			n.Stop()
			err := store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
				tx.Set(key(keys.New(), slices.Min(ids)), []byte("\xffdamaged")) // which is looked at first
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			n = c.Orchestrator(config)
			c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
			slices.Sort(ids)
			for _, id := range ids[1:] {
				n.WantEnd(id, mapreduce.JobComplete)
			}
			n.WantEnd(n.Submit(enginetest.Script(nil), 2), mapreduce.JobComplete)
		})
	}
}
