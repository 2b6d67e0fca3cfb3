package apart

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/protocol"
)

// TestRelaysPassShares: processes that run are told of shares when they come, and one that starts
// later is told what is left of them.
func TestRelaysPassShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := NewRelays()
		early, gone := newRelay(nil), newRelay(nil)
		rs.add(early)
		rs.add(gone)
		rs.remove(gone)

		share := protocol.LimitShare{Name: "m/1", For: 10 * time.Second, Pause: 3 * time.Second, OpenFor: 5 * time.Second}
		rs.PassShares([]protocol.LimitShare{{Name: "m/1", For: time.Hour}})
		rs.PassShares([]protocol.LimitShare{share}) // takes its place

		if len(gone.out) != 0 || len(early.out) != 2 {
			t.Errorf("%d messages to the process that runs, %d to the one that has ended; want 2 and 0", len(early.out), len(gone.out))
		}

		for _, after := range []struct {
			time.Duration
			want protocol.LimitShare
		}{
			{0, share},
			{4 * time.Second, protocol.LimitShare{Name: "m/1", For: 6 * time.Second, OpenFor: time.Second}},
			{time.Minute, protocol.LimitShare{Name: "m/1", For: 1}}, // over, which 0 would not say
		} {
			<-time.After(after.Duration)
			if diff := cmp.Diff([]protocol.LimitShare{after.want}, rs.knownShares()); diff != "" {
				t.Errorf("%v later (-want +got):\n%s", after.Duration, diff)
			}
		}
	})
}

// TestRelaysWaitForNobody: a process that reads nothing does not hold up the worker.
func TestRelaysWaitForNobody(t *testing.T) {
	rs, r := NewRelays(), newRelay(nil)
	rs.add(r)
	for range 2 * maxUnread {
		rs.PassShares([]protocol.LimitShare{{Name: "m/1"}})
	}
	if n := len(r.out); n != maxUnread {
		t.Errorf("%d messages wait; want %d, and the others dropped", n, maxUnread)
	}
}
