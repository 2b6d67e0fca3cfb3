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
