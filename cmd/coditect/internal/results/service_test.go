package results_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
)

// A resultService is a service with the result of a store.
type resultService struct {
	servertest.Service
	store *store
}

func (s *resultService) GetResult(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	return s.store.GetResult(ctx, id, partial, sink)
}

// The service sends the very bytes that the command line writes, small and large.
func TestServiceSendsResultFile(t *testing.T) {
	for _, n := range []int{0, 3, 20_000} {
		s := complete(records(n)...)
		want := readFile(t, write(t, s, results.Config{NoReport: true}), "result.json")
		served, err := server.New(&resultService{store: s}, new(servertest.Fleet), server.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.NewInProcess(served, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		err = c.GetResultFile(t.Context(), s.job.ID, false, &got)
		if err != nil || got.String() != want {
			t.Errorf("%d records: %d bytes came, want other %d; error %v", n, got.Len(), len(want), err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
