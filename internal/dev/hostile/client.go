package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// lieTime bounds how long a lie waits for its answer.
const lieTime = 10 * time.Second

// A call is one of the service, with a message that an honest client might send.
type call struct {
	method string
	truth  proto.Message
	reply  func() proto.Message
	send   bool // a stream of the client's
}

// clientLies lies in every field of what clients may send, once and again.
func clientLies(ctx context.Context, a *attacker) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()

	own, err := submitJob(ctx, conn, villainSpec(), orders(4)...)
	if err != nil {
		return err
	}

	for ctx.Err() == nil {
		other := map[string]string{"job_id": a.honest.jobID(), "tenant_id": victim, "unit_id": "map:order00.txt", "replay_job_id": a.honest.jobID()}
		for _, c := range clientCalls(own.GetJobId()) {
			for l := range lies(c.truth, other) {
				if ctx.Err() != nil {
					return nil
				}
				// The honest tenant's jobs must live, so that their results can be
				// compared.
				if destroys(c.method, l.message, a.honest.jobID()) {
					continue
				}
				a.report.answered("lies of a client", c.method+": "+l.name, tellClientLie(ctx, conn, c, l))
			}
		}
	}
	return nil
}

// destroys reports whether a message would do to another's job what its owner may do:
// there is no authentication, so any client that names a job may cancel it.
func destroys(method string, m proto.Message, job string) bool {
	named, ok := m.(interface{ GetJobId() string })
	switch method {
	case pb.MapReduceService_CancelJob_FullMethodName, pb.MapReduceService_PauseJob_FullMethodName, pb.MapReduceService_DeleteJob_FullMethodName:
		return ok && named.GetJobId() == job
	}
	return false
}

func villainSpec() *pb.JobSpec {
	return &pb.JobSpec{
		TenantId: villain, Provider: vendor, Model: "m", Schema: labelled, Parallelism: 10, MaxAttempts: 2, BudgetTokens: 1 << 40,
		UnitTimeout: durationpb.New(time.Minute), BreakerTimeout: durationpb.New(time.Minute), Vars: map[string]string{"k": "v"},
	}
}

func orders(n int) []*pb.DocumentPiece {
	docs := make([]*pb.DocumentPiece, n)
	for i := range docs {
		docs[i] = &pb.DocumentPiece{DocumentId: fmt.Sprintf("order%05d.txt", i), Content: fmt.Appendf(nil, "ORDER: K-%d\n", i), MediaType: "text/plain", Metadata: map[string]string{"k": "v"}}
	}
	return docs
}

// clientCalls are all calls of clients, with what an honest one would send.
func clientCalls(job string) []call {
	return []call{
		{pb.MapReduceService_SubmitJob_FullMethodName, &pb.SubmitJobRequest{Spec: villainSpec(), Documents: orders(2)}, newReply[pb.SubmitJobResponse], true},
		{pb.MapReduceService_PlanJob_FullMethodName, &pb.PlanJobRequest{Spec: villainSpec(), Documents: orders(2)}, newReply[pb.PlanJobResponse], true},
		{pb.MapReduceService_GetJob_FullMethodName, &pb.GetJobRequest{JobId: job}, newReply[pb.Job], false},
		{pb.MapReduceService_ListJobs_FullMethodName, &pb.ListJobsRequest{TenantId: villain, PageSize: 10}, newReply[pb.ListJobsResponse], false},
		{pb.MapReduceService_WatchJob_FullMethodName, &pb.WatchJobRequest{JobId: job}, newReply[pb.WatchJobResponse], false},
		{pb.MapReduceService_ListUnits_FullMethodName, &pb.ListUnitsRequest{JobId: job, Outputs: true, Inputs: true, PageSize: 10}, newReply[pb.ListUnitsResponse], false},
		{pb.MapReduceService_WakeUnit_FullMethodName, &pb.WakeUnitRequest{JobId: job, UnitId: "map:order00000.txt", Handle: "h"}, newReply[pb.WakeUnitResponse], false},
		{pb.MapReduceService_DecideValue_FullMethodName, &pb.DecideValueRequest{
			JobId: job, RecordId: "0.0", Field: "order", RequestId: "r", Verdict: pb.ReviewVerdict_REVIEW_VERDICT_CORRECT, Value: `"K-1"`, Note: "n", ModelValue: `"K-0"`,
			Passage: &pb.Passage{DocumentId: "order00000.txt", UnitId: "map:order00000.txt", StartByte: 7, EndByte: 10},
		}, newReply[pb.DecideValueResponse], false},
		{pb.MapReduceService_ListDecisions_FullMethodName, &pb.ListDecisionsRequest{JobId: job, RecordId: "0.0", PageSize: 10}, newReply[pb.ListDecisionsResponse], false},
		{pb.MapReduceService_ListWaiting_FullMethodName, &pb.ListWaitingRequest{JobId: job, PageSize: 10}, newReply[pb.ListWaitingResponse], false},
		{pb.MapReduceService_ClaimRecords_FullMethodName, &pb.ClaimRecordsRequest{JobId: job, RecordIds: []string{"0.0"}, Time: durationpb.New(time.Minute)}, newReply[pb.ClaimRecordsResponse], false},
		{pb.MapReduceService_GetResult_FullMethodName, &pb.GetResultRequest{JobId: job, Partial: true}, newReply[pb.GetResultResponse], false},
		{pb.MapReduceService_GetResultFile_FullMethodName, &pb.GetResultFileRequest{JobId: job, Partial: true}, newReply[pb.GetResultFileResponse], false},
		{pb.MapReduceService_ListEvents_FullMethodName, &pb.ListEventsRequest{JobId: job, Verify: true, PageSize: 10}, newReply[pb.ListEventsResponse], false},
		{pb.MapReduceService_PauseJob_FullMethodName, &pb.PauseJobRequest{JobId: job}, newReply[pb.PauseJobResponse], false},
		{pb.MapReduceService_ResumeJob_FullMethodName, &pb.ResumeJobRequest{JobId: job, BudgetTokens: 1 << 40}, newReply[pb.ResumeJobResponse], false},
		{pb.MapReduceService_MarkCause_FullMethodName, &pb.MarkCauseRequest{JobId: job, Cause: "cause", State: pb.CauseState_CAUSE_STATE_IGNORED}, newReply[pb.MarkCauseResponse], false},
		{pb.MapReduceService_CancelJob_FullMethodName, &pb.CancelJobRequest{JobId: job}, newReply[pb.CancelJobResponse], false},
		{pb.MapReduceService_GetTenantUse_FullMethodName, &pb.GetTenantUseRequest{TenantId: villain}, newReply[pb.TenantUse], false},
		{pb.MapReduceService_SumCosts_FullMethodName, &pb.SumCostsRequest{TenantId: villain, By: []string{"day", "label:team"}}, newReply[pb.SumCostsResponse], false},
		{pb.MapReduceService_ListCertificates_FullMethodName, &pb.ListCertificatesRequest{TenantId: villain}, newReply[pb.ListCertificatesResponse], false},
		{pb.MapReduceService_DeleteCertificate_FullMethodName, &pb.DeleteCertificateRequest{TenantId: villain, CertificateId: "0123456789abcdef0123456789abcdef"}, newReply[pb.DeleteCertificateResponse], false},
		{pb.MapReduceService_GetCaller_FullMethodName, &pb.GetCallerRequest{}, newReply[pb.Caller], false},
		{pb.AdminService_GetAnswerCache_FullMethodName, &pb.GetAnswerCacheRequest{TenantId: villain}, newReply[pb.GetAnswerCacheResponse], false},
		{pb.AdminService_ClearAnswerCache_FullMethodName, &pb.ClearAnswerCacheRequest{TenantId: villain}, newReply[pb.ClearAnswerCacheResponse], false},
		{pb.WorkerService_GetBlob_FullMethodName, &pb.GetBlobRequest{SessionId: "s", Held: &pb.Held{JobId: job, UnitId: "map:order00000.txt", Attempt: 1}, Blob: &pb.Blob{Kind: pb.BlobKind_BLOB_KIND_TEXT, EndByte: 10}}, newReply[pb.GetBlobResponse], false},
		{pb.WorkerService_PutBlob_FullMethodName, putOf("s", &pb.Held{JobId: job, UnitId: "map:order00000.txt", Attempt: 1}), newReply[pb.PutBlobResponse], true},
		{pb.MapReduceService_DeleteJob_FullMethodName, &pb.DeleteJobRequest{JobId: "mr_20260101_000000"}, newReply[pb.DeleteJobRequest], false},
	}
}

func putOf(session string, held *pb.Held) *pb.PutBlobRequest {
	return &pb.PutBlobRequest{SessionId: session, Held: held, Blob: &pb.Blob{Kind: pb.BlobKind_BLOB_KIND_OUTPUT, SizeBytes: 5, Sha256: make([]byte, 32)}, Part: &pb.BlobPart{Data: []byte("bytes")}}
}

// A messageOf is a pointer to a message.
type messageOf[T any] interface {
	*T
	proto.Message
}

func newReply[T any, P messageOf[T]]() proto.Message { return P(new(T)) }

// tellClientLie sends a lie, and returns how it was answered.
func tellClientLie(ctx context.Context, conn *grpc.ClientConn, c call, l lie) error {
	ctx, stop := context.WithTimeout(ctx, lieTime)
	defer stop()
	return sendAll(ctx, conn, c, l.message)
}

// sendAll makes a call with messages, and reads what comes back, up to a few replies.
func sendAll(ctx context.Context, conn *grpc.ClientConn, c call, messages ...proto.Message) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, c.method)
	if err != nil {
		return err
	}

	for _, m := range messages {
		// io.EOF means that the call has ended; RecvMsg returns why.
		if err := stream.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}

	if err := stream.CloseSend(); err != nil {
		return err
	}

	for range 3 {
		if err := stream.RecvMsg(c.reply()); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return nil
}

// wrongOrders sends messages that may be sent, but not in this order.
func wrongOrders(ctx context.Context, a *attacker) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()

	spec, doc := &pb.SubmitJobRequest{Spec: villainSpec()}, &pb.SubmitJobRequest{Documents: orders(1)}
	piece := func(id string, more bool) *pb.SubmitJobRequest {
		return &pb.SubmitJobRequest{Documents: []*pb.DocumentPiece{{DocumentId: id, Content: []byte("x"), More: more}}}
	}

	hello := &pb.WorkRequest{Hello: &pb.Hello{SessionId: "disorder", Slots: 1, Offer: &pb.Offer{Providers: []string{"nothing"}}}}
	report := &pb.WorkRequest{Reports: []*pb.Report{{JobId: a.honest.jobID(), UnitId: "map:order00.txt", Attempt: 1, Outcome: pb.Outcome_OUTCOME_DONE}}}
	part := &pb.PutBlobRequest{Part: &pb.BlobPart{StartByte: 5, Data: []byte("x")}}

	submits := call{method: pb.MapReduceService_SubmitJob_FullMethodName, reply: newReply[pb.SubmitJobResponse]}
	works := call{method: pb.WorkerService_Work_FullMethodName, reply: newReply[pb.WorkResponse]}
	puts := call{method: pb.WorkerService_PutBlob_FullMethodName, reply: newReply[pb.PutBlobResponse]}

	orders := []struct {
		name     string
		call     call
		messages []proto.Message
	}{
		{"nothing", submits, nil},
		{"documents first", submits, []proto.Message{doc, spec}},
		{"spec twice", submits, []proto.Message{spec, spec, doc}},
		{"no documents", submits, []proto.Message{spec}},
		{"half a document", submits, []proto.Message{spec, piece("a", true)}},
		{"documents in pieces that mix", submits, []proto.Message{spec, piece("a", true), piece("b", true), piece("a", false)}},
		{"the same document twice", submits, []proto.Message{spec, doc, doc}},
		{"nothing", works, nil},
		{"a report before hello", works, []proto.Message{report, hello}},
		{"hello twice", works, []proto.Message{hello, hello}},
		{"another's report", works, []proto.Message{hello, report, report}},
		{"reports after drain", works, []proto.Message{hello, &pb.WorkRequest{Drain: true}, report}},
		{"empty messages", works, []proto.Message{hello, &pb.WorkRequest{}, &pb.WorkRequest{}}},
		{"nothing", puts, nil},
		{"a part first", puts, []proto.Message{part, putOf("s", &pb.Held{})}},
		{"a part twice", puts, []proto.Message{putOf("s", &pb.Held{}), part, part}},
	}

	for ctx.Err() == nil {
		for _, o := range orders {
			// Some of these calls do not end by themselves.
			short, stop := context.WithTimeout(ctx, 3*time.Second)
			err := sendAll(short, conn, o.call, o.messages...)
			stop()
			a.report.answered("calls in the wrong order", o.call.method+": "+o.name, err)
		}
		pause(ctx, 500*time.Millisecond)
	}
	return nil
}
