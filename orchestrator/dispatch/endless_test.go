package dispatch_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// A worker that hands its unit back each time, or parks it each time for no time at all,
// is given it ever more seldom: after a while it keeps the store no busier than failures
// would.
func TestNoUnitIsHandedBackForEver(t *testing.T) {
	returned := func(r *protocol.Report) { r.Outcome = protocol.Returned }
	parked := func(r *protocol.Report) {
		r.Outcome, r.Parking = protocol.Parked, &mapreduce.Parking{Handle: "h", WakeAfter: time.Microsecond}
	}
	for name, tt := range map[string]struct {
		say func(*protocol.Report)
	}{
		"handed back": {returned},
		"parked":      {parked},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Variant(t, name == "handed back")

			enginetest.Virtually(t, func(t *testing.T) {
				f := enginetest.NewFleet(t, 0, 1, nil, enginetest.Steady())
				n := f.Any()
				n.Submit(enginetest.Script(nil), 1)
				if times := refuse(n, t, 3*time.Minute, tt.say); times < 100 || times > 130 {
					t.Errorf("the worker was given the unit %d times within three minutes, want at most 130", times)
				}
			})
		})
	}
}

// refuse is a worker that says the same of each unit for so long, and returns how many it
// was given.
func refuse(n *enginetest.Node, t *testing.T, long time.Duration, say func(*protocol.Report)) (times int) {
	t.Helper()
	w, _ := enginetest.Hello(t, n, protocol.Hello{Session: "idle", Slots: 1})
	received := make(chan *protocol.ToWorker)
	go func() {
		defer close(received)
		for {
			m, err := w.Stream.Recv()
			if err != nil {
				return
			}
			received <- m
		}
	}()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for end := time.After(long); ; {
		select {
		case <-end:
			w.Send(&protocol.FromWorker{Drain: true})
			_ = w.Stream.CloseSend() // nothing more is said
			for range received {
			}
			return times
		case <-beat.C:
			w.Send(&protocol.FromWorker{Heartbeat: &protocol.Heartbeat{}})
		case m, ok := <-received:
			if !ok {
				t.Fatal("the stream has ended")
			}
			for _, a := range m.Assignments {
				times++
				r := protocol.Report{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt}
				say(&r)
				w.Send(&protocol.FromWorker{Reports: []protocol.Report{r}})
			}
		}
	}
}
