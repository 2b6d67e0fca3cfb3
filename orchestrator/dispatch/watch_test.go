package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// watched follows a job in the background, and passes on what its units say. Watching returns
// once it has begun.
func watched(t *testing.T, n *enginetest.Node, id mapreduce.JobID) <-chan []mapreduce.Activity {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended, begun, said := make(chan struct{}), make(chan struct{}, 1), make(chan []mapreduce.Activity, 1<<16)
	go func() {
		defer close(ended)
		err := n.WatchJob(ctx, id, func(j *mapreduce.Job) error {
			select {
			case begun <- struct{}{}:
			default:
			}
			if len(j.Activity) > 0 {
				said <- j.Activity
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	<-begun
	return said
}

// saying is a message that says something of an attempt, notes in a row from a number on.
func saying(held protocol.Held, from int64, texts ...string) *protocol.FromWorker {
	m := &protocol.FromWorker{Heartbeat: &protocol.Heartbeat{}}
	for i, text := range texts {
		m.Heartbeat.Progress = append(m.Heartbeat.Progress, protocol.Progress{
			Held: held, Tokens: mapreduce.Tokens{In: 10 * (from + int64(i))}, Note: text, Number: from + int64(i),
		})
	}
	return m
}

// What a unit says while it runs reaches all who watch its job, once, in order, as it is said;
// whoever comes later begins with what was said last. A sign of life repeats the last note,
// which is shown once.
func TestWatchersSeeWhatUnitsSay(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		w := enginetest.Greet(t, n, "worker", 1)
		id := n.Submit(enginetest.Script(nil), 1)
		held := w.Assigned()
		first := watched(t, n, id)
		w.Say(saying(held, 1, "turn 1 of 3: m thinks", "turn 1 of 3: fetch https://a.test/"))
		entry := func(number int64, note string) mapreduce.Activity {
			return mapreduce.Activity{Unit: held.Unit, Attempt: 1, Number: number, Tokens: mapreduce.Tokens{In: 10 * number}, Note: note}
		}
		want := []mapreduce.Activity{entry(1, "turn 1 of 3: m thinks"), entry(2, "turn 1 of 3: fetch https://a.test/")}
		if diff := cmp.Diff(want, <-first); diff != "" {
			t.Errorf("the first watcher sees (-want +got):\n%s", diff)
		}
		second := watched(t, n, id)
		if diff := cmp.Diff(want, <-second); diff != "" {
			t.Errorf("who comes later sees (-want +got):\n%s", diff)
		}
		w.Say(saying(held, 2, "turn 1 of 3: fetch https://a.test/"))
		w.Say(saying(held, 3, "turn 2 of 3: m thinks"))
		for name, said := range map[string]<-chan []mapreduce.Activity{"first": first, "second": second} {
			if diff := cmp.Diff([]mapreduce.Activity{entry(3, "turn 2 of 3: m thinks")}, <-said); diff != "" {
				t.Errorf("the %s watcher sees (-want +got):\n%s", name, diff)
			}
		}
		if v := w.Report(held, enginetest.AsIs); v != protocol.Accepted {
			t.Errorf("the verdict is %v", v)
		}
	})
}

// A hostile worker says too much, in texts that are too long and hold control characters, of
// units that it was not given, of attempts that are over, and again and again the same. Those
// who watch see a bounded number of bounded notes, and of its own units alone.
func TestAWorkerCannotFloodWatchers(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		w, other := enginetest.Greet(t, n, "hostile", 1), enginetest.Greet(t, n, "other", 1)
		id := n.Submit(enginetest.Script(nil), 2)
		held, foreign := w.Assigned(), other.Assigned()
		said := watched(t, n, id)
		stale := held
		stale.Attempt = 7
		const seconds, each = 20, 100
		long := "\x1b[2J\r\n" + strings.Repeat("Größe ", 300)
		for second := range int64(seconds) {
			var texts []string
			for i := range each {
				texts = append(texts, fmt.Sprintf("%d %s", i, long))
			}
			w.Say(saying(held, 1+second*each, texts...))
			w.Say(saying(held, 1, "again"))
			w.Say(saying(foreign, 1+second, "of another worker's unit"))
			w.Say(saying(stale, 1+second, "of no attempt"))
			w.Say(saying(protocol.Held{Job: "mr_20260101_aaaaaa", Unit: "x", Attempt: 1}, 1, "of no job"))
			enginetest.Pass(t, time.Second)
		}
		count := 0
		for len(said) > 0 {
			some := <-said
			if len(some) > 256 {
				t.Errorf("%d notes came at once", len(some))
			}
			for _, a := range some {
				count++
				if a.Unit != held.Unit || a.Attempt != 1 || len(a.Note) > protocol.MaxNote || strings.ContainsFunc(a.Note, unicode.IsControl) || strings.ContainsRune(a.Note, unicode.ReplacementChar) {
					t.Fatalf("a watcher sees %+v", a)
				}
			}
		}
		if most := 64 + 8*(seconds+1); count < 64 || count > most {
			t.Errorf("watchers saw %d of %d notes, want 64 to %d", count, seconds*each, most)
		}
		t.Logf("of %d notes of %d bytes %d were shown, with at most %d bytes", seconds*each, len(long), count, protocol.MaxNote)
		if v := w.Report(held, enginetest.AsIs); v != protocol.Accepted {
			t.Errorf("the verdict is %v", v)
		}
		if v := other.Report(foreign, enginetest.AsIs); v != protocol.Accepted {
			t.Errorf("the verdict on the other is %v", v)
		}
	})
}

// Whoever watches a job at one orchestrator sees what its units say at another, within two
// signs of life, and nothing else is stored than in those.
func TestWatchersSeeWhatUnitsSayElsewhere(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		here, there := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true})), c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		w := enginetest.Greet(t, there, "worker", 1)
		id := here.Submit(enginetest.Script(nil), 1)
		held := w.Assigned()
		w.Say(saying(held, 1, "nobody watches"))
		said := watched(t, here, id)
		enginetest.Pass(t, time.Second)
		w.Say(saying(held, 2, "turn 1 of 3: m thinks"))
		w.Say(saying(held, 2, "turn 1 of 3: m thinks", "turn 1 of 3: fetch https://a.test/"))
		enginetest.Pass(t, time.Second)
		var got []mapreduce.Activity
		for len(said) > 0 {
			got = append(got, <-said...)
		}
		want := []mapreduce.Activity{
			{Unit: held.Unit, Attempt: 1, Number: 2, Tokens: mapreduce.Tokens{In: 20}, Note: "turn 1 of 3: m thinks"},
			{Unit: held.Unit, Attempt: 1, Number: 3, Tokens: mapreduce.Tokens{In: 30}, Note: "turn 1 of 3: fetch https://a.test/"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("who watches elsewhere sees (-want +got):\n%s", diff)
		}
		if v := w.Report(held, enginetest.AsIs); v != protocol.Accepted {
			t.Errorf("the verdict is %v", v)
		}
	})
}
