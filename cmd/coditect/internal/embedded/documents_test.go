package embedded_test

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A document with too much metadata is skipped, and the others are processed. The first
// submission sends it by the protocol alone, the second by the client with more metadata
// than a message may have.
func TestDocumentsWithTooMuchMetadata(t *testing.T) {
	open := make(gate)
	close(open)
	n := owner(t, t.TempDir(), open)
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
	const schema = `{"type":"object"}`
	submissions := map[string]func() (mapreduce.JobID, error){
		"by the protocol": func() (mapreduce.JobID, error) {
			stream, err := pb.NewMapReduceServiceClient(conn).SubmitJob(t.Context())
			if err != nil {
				return "", err
			}
			err = stream.Send(&pb.SubmitJobRequest{
				Spec: &pb.JobSpec{Provider: "gate", Schema: schema},
				Documents: []*pb.DocumentPiece{
					{DocumentId: "large", Content: []byte("text"), Metadata: map[string]string{"k": strings.Repeat("v", mapreduce.MaxMetadata)}},
					{DocumentId: "full", Content: []byte("text"), Metadata: map[string]string{"k": strings.Repeat("v", mapreduce.MaxMetadata-1)}},
				},
			})
			if err != nil {
				return "", err
			}
			reply, err := stream.CloseAndRecv()
			return mapreduce.JobID(reply.GetJob().GetJobId()), err
		},
		"by the client": func() (mapreduce.JobID, error) {
			job, err := n.SubmitJob(t.Context(), mapreduce.JobSpec{Provider: "gate", Schema: []byte(schema)}, func(yield func(*mapreduce.Document, error) bool) {
				_ = yield(&mapreduce.Document{ID: "large", Content: []byte("text"), Metadata: map[string]string{"k": strings.Repeat("v", 40<<20)}}, nil) &&
					yield(&mapreduce.Document{ID: "full", Content: []byte("text")}, nil)
			})
			if err != nil {
				return "", err
			}
			return job.ID, nil
		},
	}
	for name, submit := range submissions {
		t.Run(name, func(t *testing.T) {
			id, err := submit()
			if err != nil {
				t.Fatal(err)
			}
			job, err := n.GetJob(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if d := job.Coverage.Documents; d.Total != 2 || d.Skipped != 1 {
				t.Errorf("%d documents, %d of them skipped; want 2 and 1", d.Total, d.Skipped)
			}
		})
	}
}
