package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/tap"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A call that is refused before a handler sees it, as one whose deadline is over when it
// comes, must not be kept until its first message would be overdue.
func TestCallsThatNobodySeesAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{config: Config{SubmitIdle: 5 * time.Minute}}
		ctx, end := context.WithCancel(t.Context())
		tapped, err := s.tapCall(ctx, &tap.Info{FullMethodName: pb.MapReduceService_SubmitJob_FullMethodName})
		if err != nil {
			t.Fatal(err)
		}
		end()
		synctest.Wait()
		if o, ok := tapped.Value(openingKey{}).(*opening); !ok || o.timer.Stop() {
			t.Error("the timer of a call that has ended still runs")
		}
	})
}

// Of refusals of a kind one is logged in a while, and says how many there were besides.
func TestFewRefusalsAreLogged(t *testing.T) {
	var r refusals
	start := time.Unix(1_800_000_000, 0)
	logged, besides := 0, 0
	for i := range 1000 { // one each millisecond
		unsaid, due := r.note("SubmitJob BUSY", start.Add(time.Duration(i)*time.Millisecond))
		if due {
			logged++
			besides += unsaid
		}
	}
	if logged != 10 || besides != 891 { // those behind the last are said with the next
		t.Errorf("%d lines say that %d more were refused", logged, besides)
	}
	if unsaid, due := r.note("GetJob BUSY", start); !due || unsaid != 0 {
		t.Errorf("the first of another kind: %t, %d", due, unsaid)
	}
}
