package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
)

// wordy makes outputs that workers send in chunks, each of which is stored before
// anything behind it is heard.
func wordy() mapreduce.JobSpec {
	spec := enginetest.Script(map[string]string{"script.latency": "lognormal:700ms,1", "script.output_bytes": "70000"})
	spec.ReduceContextLimit = 1 << 30
	return spec
}

// The store is away for longer than the lease. Workers that run say so all the
// time, but their streams wait until results are stored; others lose their streams
// meanwhile, and cannot come back before the store does. Nobody is given up, no
// attempt is made again, and work goes on soon.
func TestNobodyIsLostInAnOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes  int
		away   time.Duration
		breaks bool // streams of the first orchestrator end while the store is away
	}{
		"short":                        {1, 5 * time.Second, false},
		"long":                         {1, 30 * time.Second, false},
		"very long":                    {1, 10 * time.Minute, false},
		"two nodes":                    {2, 30 * time.Second, false},
		"two nodes, very long":         {2, 10 * time.Minute, false},
		"streams break":                {1, 30 * time.Second, true},
		"streams break, very long":     {1, 10 * time.Minute, true},
		"streams break, two nodes":     {2, 30 * time.Second, true},
		"streams break, two nodes, vl": {2, 10 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 2 {
				at := 3*time.Second + time.Duration(i)*370*time.Millisecond
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					if i > 0 {
						testenv.Lengthy(t)
					}
					testenv.Variant(t, strings.HasPrefix(name, "streams break, two nodes"))

					enginetest.Virtually(t, func(t *testing.T) { outlive(t, tt.nodes, at, tt.away, tt.breaks) })
				})
			}
		})
	}
}

func outlive(t *testing.T, nodes int, at, away time.Duration, breaks bool) {
	config, log := enginetest.Logged(orchestrator.Config{Adopt: true})
	f := enginetest.NewFleet(t, 1, nodes, nil, config)
	for range 2 {
		f.Join(worker.Config{Slots: 4})
	}
	id := f.Any().Submit(wordy(), 60)
	<-time.After(at)
	f.Faults.BeginOutage()
	if breaks {
		<-time.After(away / 3)
		f.Cut(f.Node(0))
		<-time.After(100 * time.Millisecond)
		f.Mend(f.Node(0))
		away -= away / 3
	}
	<-time.After(away)
	begun, back := f.Counter.Attempts(), time.Now()
	f.Faults.EndOutage()
	for f.Counter.Attempts() == begun {
		<-time.After(10 * time.Millisecond)
		if took := time.Since(back); took > 5*time.Second {
			t.Fatalf("nothing was begun within %v of the store's return", took)
		}
	}
	job := f.Any().WantEnd(id, mapreduce.JobComplete)
	if got := f.Counter.Attempts(); int64(got) != job.TotalUnits {
		t.Errorf("%d attempts were begun for %d units", got, job.TotalUnits)
	}
	for _, line := range []string{"worker is silent", "worker lost", "orchestrator is dead"} {
		if found := log.Lines(line); len(found) > 0 {
			t.Errorf("taken for lost: %s", found)
		}
	}
}

// A worker that dies while the store is away is found to be gone once it is back,
// and so is one that says nothing more.
func TestWhoIsGoneAfterAnOutageIsFound(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		config, log := enginetest.Logged(enginetest.Steady())
		f := enginetest.NewFleet(t, 1, 1, nil, config)
		n := f.Any()
		silent, _ := enginetest.Hello(t, n, protocol.Hello{Session: "silent", Slots: 1})
		dies, _ := enginetest.Hello(t, n, protocol.Hello{Session: "dies", Slots: 1})
		id := n.Submit(enginetest.Script(nil), 2)
		held := silent.Assigned()
		dies.Assigned()
		f.Faults.BeginOutage()
		<-time.After(time.Minute)
		if err := dies.Stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		f.Faults.EndOutage()
		f.Join(worker.Config{Slots: 1})
		n.WantEnd(id, mapreduce.JobComplete)
		if u := n.Units(id)[held.Unit]; u.Attempts != 2 {
			t.Errorf("the unit of the silent worker had %d attempts, want 2", u.Attempts)
		}
		if n := len(log.Lines("worker is silent")); n != 1 {
			t.Errorf("%d workers were silent, want 1", n)
		}
		if n := len(log.Lines("worker lost")); n != 2 {
			t.Errorf("%d workers were lost, want 2", n)
		}
	})
}

// An orchestrator tells a worker how long it will never be silent, and keeps to
// that, whether the store answers or not.
func TestSignsOfLifeForWorkers(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 1, nil, orchestrator.Config{Adopt: true})
		w, welcome := enginetest.Hello(t, f.Any(), protocol.Hello{Session: "w", Slots: 1})
		if s := welcome.Silence; s <= 0 || s > 2500*time.Millisecond {
			t.Fatalf("silent for up to %v, want at most 2.5 s", s)
		}
		f.Faults.BeginOutage()
		for range 100 {
			before := time.Now()
			w.Recv()
			if took := time.Since(before); took >= welcome.Silence {
				t.Errorf("silent for %v, and said it would be for less than %v", took, welcome.Silence)
			}
			w.Send(&protocol.FromWorker{Heartbeat: &protocol.Heartbeat{}})
		}
		f.Faults.EndOutage()
		_, welcome = enginetest.Hello(t, f.Any(), protocol.Hello{Session: "in the same process", Slots: 1, Embedded: true})
		if welcome.Silence != 0 {
			t.Errorf("silent for up to %v, want no limit where there is nobody else", welcome.Silence)
		}
	})
}

// The store is away for long when a result has been stored, and its unit is to end. The
// unit must not be left to a session that lives and does nothing.
func TestAResultIsReportedAfterAnOutage(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 1, nil, orchestrator.Config{Adopt: true, SmallResult: 1})
		f.Join(worker.Config{Slots: 4})
		f.BeginOutageAt(failpoint.Assemble.After())
		id := f.Any().Submit(wordy(), 6)
		<-time.After(30 * time.Minute)
		if f.HasPassed(failpoint.Assemble.After()) == 0 {
			t.Fatal("no result was stored before the store went away")
		}
		f.Faults.EndOutage()
		f.Any().WantEnd(id, mapreduce.JobComplete)
		if n := f.HasPassed(failpoint.Complete.After()); n != 1 {
			t.Errorf("the job ended %d times", n)
		}
	})
}

// A submission fails while the store refuses everything, so what it has staged cannot be
// removed. It goes once the store is back: it counts as what its tenant uses.
func TestSubmissionsThatCouldNotBeRemovedAreRemovedLater(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 1, nil, orchestrator.Config{Adopt: true})
		broken, gate := errors.New("the client has gone"), f.Node(0).Gate
		_, err := f.Any().SubmitJob(t.Context(), enginetest.Script(nil), func(yield func(*mapreduce.Document, error) bool) {
			large := bytes.Repeat([]byte("a long line of text\n"), 100_000)
			for _, id := range []mapreduce.DocumentID{"staged", "being staged", "held"} {
				if !yield(&mapreduce.Document{ID: id, Content: large}, nil) {
					return
				}
			}
			gate.Dead.Store(true)
			yield(nil, broken)
		})
		if err == nil {
			t.Fatal("a submission whose client has gone became a job")
		}
		j := jobs.New(store.NewDB(f.Cluster.Store, store.Config{}), keys.New(), "other", time.Now)
		gate.Dead.Store(false)
		if refs, err := j.Submit.Ingests(t.Context(), ""); err != nil || len(refs) != 1 {
			t.Fatalf("submissions under way are %v (%v); want the one that could not be removed", refs, err)
		}
		<-time.After(time.Minute)
		if refs, err := j.Submit.Ingests(t.Context(), ""); err != nil || len(refs) > 0 {
			t.Errorf("submissions under way are %v (%v); want none", refs, err)
		}
	})
}
