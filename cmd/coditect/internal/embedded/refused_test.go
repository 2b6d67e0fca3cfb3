package embedded_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A stranger that knows the protocol alone submits jobs that no worker could run to a
// server of the program. Each is refused with INVALID_ARGUMENT and a BadRequest that names
// the field of the message, before and after the documents; nothing is stored of it.
func TestBadJobsAreRefusedWithTheField(t *testing.T) {
	r := runners.Runners{Getenv: func(string) string { return "" }}
	r.Models.Fleet = true
	check, err := r.SpecCheck()
	if err != nil {
		t.Fatal(err)
	}
	n, err := embedded.Open(embedded.Config{Dir: t.TempDir(), Check: check})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.Serve(l)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stranger := pb.NewMapReduceServiceClient(conn)

	const good = `{"type":"object","properties":{"a":{"type":"string"}}}`
	document := []*pb.DocumentPiece{{DocumentId: "d.txt", Content: []byte("a: b")}}
	asks := func(change func(*pb.JobSpec)) *pb.SubmitJobRequest {
		spec := &pb.JobSpec{Schema: good, Provider: "rules"}
		change(spec)
		return &pb.SubmitJobRequest{Spec: spec, Documents: document}
	}
	tests := []struct {
		name, field string
		request     *pb.SubmitJobRequest
	}{
		{"no spec", "spec", &pb.SubmitJobRequest{Documents: document}},
		{"no schema", "spec.schema", asks(func(s *pb.JobSpec) { s.Schema = "" })},
		{"a schema that is no JSON", "spec.schema", asks(func(s *pb.JobSpec) { s.Schema = `{"type":` })},
		{"a schema with an unknown hint", "spec.schema", asks(func(s *pb.JobSpec) {
			s.Schema = `{"type":"object","properties":{"a":{"type":"string","x-coditect":{"lable":"A"}}}}`
		})},
		{"a hostile pattern", "spec.schema", asks(func(s *pb.JobSpec) {
			s.Schema = `{"type":"object","properties":{"a":{"type":"string","pattern":"` + strings.Repeat("(?=", 300) + `"}}}`
		})},
		{"an unknown provider", "spec.provider", asks(func(s *pb.JobSpec) { s.Provider = "clippy" })},
		{"no model", "spec.model", asks(func(s *pb.JobSpec) { s.Provider = "openai" })},
		{"a model for rules", "spec.model", asks(func(s *pb.JobSpec) { s.Model = "gpt" })},
		{"reviews by rules", "spec.vars.glean", asks(func(s *pb.JobSpec) { s.Vars = map[string]string{"glean": "1"} })},
		{"an alias for nothing", "spec.model_aliases", asks(func(s *pb.JobSpec) { s.ModelAliases = map[string]string{"cheap": "haiku"} })},
		{"an unknown pipeline", "spec.pipeline", asks(func(s *pb.JobSpec) { s.Pipeline = "magic" })},
		{"two budgets of a tree", "spec.context_window", asks(func(s *pb.JobSpec) {
			s.Strategy = pb.ReduceStrategy_REDUCE_STRATEGY_ADAPTIVE
			s.TargetTokenBudget, s.ContextWindow = new(int64(9)), new(int64(9))
		})},
		{"a negative parallelism", "spec.parallelism", asks(func(s *pb.JobSpec) { s.Parallelism = -1 })},
		{"an overlap of half a unit", "spec.chunk_overlap_tokens", asks(func(s *pb.JobSpec) { s.MaxUnitTokens, s.ChunkOverlapTokens = 100, 50 })},
		{"an unknown estimator", "spec.estimator", asks(func(s *pb.JobSpec) { s.Estimator = "guess" })},
		{"no documents", "documents", &pb.SubmitJobRequest{Spec: asks(func(*pb.JobSpec) {}).Spec}},
		{"two documents of one id", "documents", &pb.SubmitJobRequest{Spec: asks(func(*pb.JobSpec) {}).Spec, Documents: append(document, document...)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream, err := stranger.SubmitJob(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(tt.request); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			_, err = stream.CloseAndRecv()
			if got := refusedField(err); status.Code(err) != codes.InvalidArgument || got != tt.field {
				t.Errorf("got field %q of %.300v, want %q", got, err, tt.field)
			}
			if strings.Contains(err.Error(), "--") || strings.Contains(err.Error(), "max_tokens_per_unit") {
				t.Errorf("the service speaks of flags: %v", err)
			}
		})
	}
	jobs, err := stranger.ListJobs(t.Context(), &pb.ListJobsRequest{})
	if err != nil || len(jobs.GetJobs()) != 0 {
		t.Errorf("there are jobs %v, error %v; want none", jobs.GetJobs(), err)
	}
}

// refusedField returns the one field that the BadRequest of an error names, or "".
func refusedField(err error) string {
	for _, d := range status.Convert(err).Details() {
		if b, ok := d.(*errdetails.BadRequest); ok && len(b.GetFieldViolations()) == 1 && b.GetFieldViolations()[0].GetDescription() != "" {
			return b.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}
