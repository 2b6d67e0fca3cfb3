package server

import (
	"context"
	"testing"

	"google.golang.org/grpc/stats"

	"github.com/coditect/mapreduce/api/memory"
)

// Calls that are given up leave bytes that nobody reads. While another call of the
// connection goes on, these must not add up until the connection is cut.
func TestBytesOfCallsThatWereGivenUpAreForgotten(t *testing.T) {
	b := memory.New(memory.Limits{Total: 1 << 30})
	c := &connection{account: b.Connect(func(err error) { t.Errorf("the connection was cut: %v", err) })}
	c.calls.Store(1) // the stream of a worker
	for range 10_000 {
		ctx := context.WithValue(context.WithValue(t.Context(), connectionKey{}, c), callKey{}, new(callMeter))
		meter{}.HandleRPC(ctx, &stats.Begin{})
		c.in.data.Add(streamWindow) // and none of it is read
		meter{}.HandleRPC(ctx, &stats.End{})
	}
	if n, most := b.Used(), int64(streamWindow*(beginning+3)); n > most {
		t.Errorf("%d bytes are charged for one call under way; want %d at most", n, most)
	}
}
