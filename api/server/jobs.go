package server

import (
	"bufio"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/fault"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

var (
	_ pb.MapReduceServiceServer = (*jobs)(nil)
	_ pb.AdminServiceServer     = (*admin)(nil)
)

// jobs serves what clients ask.
type jobs struct {
	pb.UnimplementedMapReduceServiceServer
	service     mapreduce.Service
	maxDocument int           // bytes
	maxPage     int           // bytes
	idle        time.Duration // that a submission waits for the next message
	leaving     <-chan struct{}
}

// GetJob returns a job.
func (j *jobs) GetJob(ctx context.Context, req *pb.GetJobRequest) (*pb.Job, error) {
	return j.onJob(ctx, req.GetJobId(), j.service.GetJob)
}

// PauseJob stops a job's claims.
func (j *jobs) PauseJob(ctx context.Context, req *pb.PauseJobRequest) (*pb.PauseJobResponse, error) {
	job, err := j.onJob(ctx, req.GetJobId(), j.service.PauseJob)
	return &pb.PauseJobResponse{Job: job}, err
}

// CancelJob ends a job.
func (j *jobs) CancelJob(ctx context.Context, req *pb.CancelJobRequest) (*pb.CancelJobResponse, error) {
	job, err := j.onJob(ctx, req.GetJobId(), j.service.CancelJob)
	return &pb.CancelJobResponse{Job: job}, err
}

func (j *jobs) onJob(ctx context.Context, id string, do func(context.Context, mapreduce.Principal, mapreduce.JobID) (*mapreduce.Job, error)) (*pb.Job, error) {
	job, err := wire.DecodeJobID(id)
	if err != nil {
		return nil, err
	}
	after, err := do(ctx, callerOf(ctx), job)
	if err != nil {
		return nil, err
	}
	return wire.EncodeJob(after), nil
}

// ResumeJob makes a job go on.
func (j *jobs) ResumeJob(ctx context.Context, req *pb.ResumeJobRequest) (*pb.ResumeJobResponse, error) {
	id, how, err := wire.DecodeResume(req)
	if err != nil {
		return nil, err
	}
	job, err := j.service.ResumeJob(ctx, callerOf(ctx), id, how)
	if err != nil {
		return nil, err
	}
	return &pb.ResumeJobResponse{Job: wire.EncodeJob(job)}, nil
}

// MarkCause says something of a cause of failed units.
func (j *jobs) MarkCause(ctx context.Context, req *pb.MarkCauseRequest) (*pb.MarkCauseResponse, error) {
	id, cause, state, err := wire.DecodeMarkCause(req)
	if err != nil {
		return nil, err
	}
	job, err := j.service.MarkCause(ctx, callerOf(ctx), id, cause, state)
	if err != nil {
		return nil, err
	}
	return &pb.MarkCauseResponse{Job: wire.EncodeJob(job)}, nil
}

// DeleteJob removes a job.
func (j *jobs) DeleteJob(ctx context.Context, req *pb.DeleteJobRequest) (*emptypb.Empty, error) {
	id, err := wire.DecodeJobID(req.GetJobId())
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, j.service.DeleteJob(ctx, callerOf(ctx), id)
}

// ListJobs returns a page of jobs.
func (j *jobs) ListJobs(ctx context.Context, req *pb.ListJobsRequest) (*pb.ListJobsResponse, error) {
	q, err := wire.DecodeListJobs(req)
	if err != nil {
		return nil, err
	}

	return fitPage(j.maxPage, &q.PageSize, func() (*pb.ListJobsResponse, int, error) {
		page, err := j.service.ListJobs(ctx, callerOf(ctx), q)
		if err != nil {
			return nil, 0, err
		}
		return wire.EncodeJobs(page), len(page.Jobs), nil
	})
}

// ListUnits returns a page of units.
func (j *jobs) ListUnits(ctx context.Context, req *pb.ListUnitsRequest) (*pb.ListUnitsResponse, error) {
	q, err := wire.DecodeListUnits(req)
	if err != nil {
		return nil, err
	}

	return fitPage(j.maxPage, &q.PageSize, func() (*pb.ListUnitsResponse, int, error) {
		page, err := j.service.ListUnits(ctx, callerOf(ctx), q)
		if err != nil {
			return nil, 0, err
		}
		return wire.EncodeUnits(page), len(page.Units) + len(page.Standings), nil
	})
}

// GetTenantUse says what a tenant uses of its quotas.
func (j *jobs) GetTenantUse(ctx context.Context, req *pb.GetTenantUseRequest) (*pb.TenantUse, error) {
	t, err := wire.DecodeTenant(req.GetTenantId())
	if err != nil {
		return nil, err
	}
	use, err := j.service.TenantUse(ctx, callerOf(ctx), t)
	if err != nil {
		return nil, err
	}
	return wire.EncodeTenantUse(use), nil
}

// SumCosts sums up what jobs have spent.
func (j *jobs) SumCosts(ctx context.Context, req *pb.SumCostsRequest) (*pb.SumCostsResponse, error) {
	q, err := wire.DecodeCostQuery(req)
	if err != nil {
		return nil, err
	}
	sums, err := j.service.SumCosts(ctx, callerOf(ctx), q)
	if err != nil {
		return nil, err
	}
	return wire.EncodeCostSums(sums), nil
}

// ListCertificates returns the certificates of a tenant.
func (j *jobs) ListCertificates(ctx context.Context, req *pb.ListCertificatesRequest) (*pb.ListCertificatesResponse, error) {
	t, err := wire.DecodeTenant(req.GetTenantId())
	if err != nil {
		return nil, err
	}
	all, err := j.service.ListCertificates(ctx, callerOf(ctx), t)
	if err != nil {
		return nil, err
	}
	return wire.EncodeCertificates(all), nil
}

// DeleteCertificate removes a certificate.
func (j *jobs) DeleteCertificate(ctx context.Context, req *pb.DeleteCertificateRequest) (*pb.DeleteCertificateResponse, error) {
	t, id, err := wire.DecodeDeleteCertificate(req)
	if err != nil {
		return nil, err
	}
	if err := j.service.DropCertificate(ctx, callerOf(ctx), t, id); err != nil {
		return nil, err
	}
	return new(pb.DeleteCertificateResponse), nil
}

// GetCaller says who calls.
func (j *jobs) GetCaller(ctx context.Context, _ *pb.GetCallerRequest) (*pb.Caller, error) {
	caller, err := j.service.Caller(ctx, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	return wire.EncodeCaller(caller), nil
}

// WakeUnit makes a parked unit go on.
func (j *jobs) WakeUnit(ctx context.Context, req *pb.WakeUnitRequest) (*pb.WakeUnitResponse, error) {
	id, name, call, err := wire.DecodeWakeUnit(req)
	if err != nil {
		return nil, err
	}
	unit, err := j.service.WakeUnit(ctx, callerOf(ctx), id, name, call.Handle, call.Answer)
	if err != nil {
		return nil, err
	}
	return &pb.WakeUnitResponse{Unit: wire.EncodeUnit(unit)}, nil
}

// DecideValue keeps a decision about a value of a result.
func (j *jobs) DecideValue(ctx context.Context, req *pb.DecideValueRequest) (*pb.DecideValueResponse, error) {
	d, err := wire.DecodeNewDecision(req)
	if err != nil {
		return nil, err
	}
	kept, err := j.service.DecideValue(ctx, callerOf(ctx), d)
	if err != nil {
		return nil, err
	}
	return &pb.DecideValueResponse{Decision: wire.EncodeDecision(kept)}, nil
}

// ListDecisions returns a page of decisions about values of a result.
func (j *jobs) ListDecisions(ctx context.Context, req *pb.ListDecisionsRequest) (*pb.ListDecisionsResponse, error) {
	q, err := wire.DecodeListDecisions(req)
	if err != nil {
		return nil, err
	}

	return fitPage(j.maxPage, &q.PageSize, func() (*pb.ListDecisionsResponse, int, error) {
		page, err := j.service.ListDecisions(ctx, callerOf(ctx), q)
		if err != nil {
			return nil, 0, err
		}
		return wire.EncodeDecisions(page), len(page.Decisions), nil
	})
}

// ListWaiting returns a page of units that wait for a person.
func (j *jobs) ListWaiting(ctx context.Context, req *pb.ListWaitingRequest) (*pb.ListWaitingResponse, error) {
	q, err := wire.DecodeListWaiting(req)
	if err != nil {
		return nil, err
	}

	return fitPage(j.maxPage, &q.PageSize, func() (*pb.ListWaitingResponse, int, error) {
		page, err := j.service.ListWaiting(ctx, callerOf(ctx), q)
		if err != nil {
			return nil, 0, err
		}
		return wire.EncodeWaiting(page), len(page.Units), nil
	})
}

// ClaimRecords says which records somebody is about to review.
func (j *jobs) ClaimRecords(ctx context.Context, req *pb.ClaimRecordsRequest) (*pb.ClaimRecordsResponse, error) {
	c, err := wire.DecodeClaim(req)
	if err != nil {
		return nil, err
	}
	all, err := j.service.ClaimRecords(ctx, callerOf(ctx), c)
	if err != nil {
		return nil, err
	}
	return wire.EncodeRecordClaims(all), nil
}

// ListEvents returns a page of checkpoints.
func (j *jobs) ListEvents(ctx context.Context, req *pb.ListEventsRequest) (*pb.ListEventsResponse, error) {
	q, err := wire.DecodeListEvents(req)
	if err != nil {
		return nil, err
	}

	return fitPage(j.maxPage, &q.PageSize, func() (*pb.ListEventsResponse, int, error) {
		page, err := j.service.ListEvents(ctx, callerOf(ctx), q)
		if err != nil {
			return nil, 0, err
		}
		return wire.EncodeEvents(page), len(page.Checkpoints), nil
	})
}

// fitPage asks for a page, and while it is larger than most bytes, for one half as
// long: a page may be shorter than asked for, and its token says where to go on.
func fitPage[P proto.Message](most int, size *int, ask func() (page P, entries int, err error)) (P, error) {
	for {
		page, entries, err := ask()
		if err != nil || entries <= 1 || proto.Size(page) <= most {
			return page, err
		}
		*size = entries / 2
	}
}

// WatchJob sends a job after each change.
func (j *jobs) WatchJob(req *pb.WatchJobRequest, stream grpc.ServerStreamingServer[pb.WatchJobResponse]) error {
	id, err := wire.DecodeJobID(req.GetJobId())
	if err != nil {
		return err
	}
	return whileServing(stream.Context(), j.leaving, func(ctx context.Context) error {
		return j.service.WatchJob(ctx, callerOf(ctx), id, func(job *mapreduce.Job) error {
			return fault.Error(stream.Send(&pb.WatchJobResponse{Job: wire.EncodeJob(job)}))
		})
	})
}

// whileServing makes a call that may last for ever, and ends it when the server
// leaves, so that the client can turn to another.
func whileServing(ctx context.Context, leaving <-chan struct{}, call func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})

	go func() {
		defer close(ended)
		select {
		case <-leaving:
			cancel(errs.New(errs.Unavailable, "the server is shutting down"))
		case <-ctx.Done():
		}
	}()

	// The goroutine ends with the call.
	defer func() {
		cancel(nil)
		<-ended
	}()

	err := call(ctx)
	if cause := context.Cause(ctx); err != nil && errs.KindOf(cause) == errs.Unavailable {
		return cause
	}
	return err
}

// GetResult sends the parts of a result, as many in a message as make it worth
// its while.
func (j *jobs) GetResult(req *pb.GetResultRequest, stream grpc.ServerStreamingServer[pb.GetResultResponse]) error {
	id, err := wire.DecodeJobID(req.GetJobId())
	if err != nil {
		return err
	}
	out := resultWriter{send: stream.Send}
	if err := j.service.GetResult(stream.Context(), callerOf(stream.Context()), id, req.GetPartial(), out.addPart); err != nil {
		return err
	}
	return out.flushParts()
}

// ReadText sends the text of a document.
func (j *jobs) ReadText(req *pb.ReadTextRequest, stream grpc.ServerStreamingServer[pb.ReadTextResponse]) error {
	id, err := wire.DecodeJobID(req.GetJobId())
	if err != nil {
		return err
	}

	unit, document := mapreduce.UnitID(req.GetUnitId()), mapreduce.DocumentID(req.GetDocumentId())
	return j.service.ReadText(stream.Context(), callerOf(stream.Context()), id, unit, document, func(part []byte) error {
		for some := range slices.Chunk(part, resultBatch) {
			if err := stream.Send(&pb.ReadTextResponse{Text: some}); err != nil {
				return fault.Error(err)
			}
		}
		return nil
	})
}

// resultBatch is the size of parts, in bytes, that are worth a message.
const resultBatch = 64 << 10

type resultWriter struct {
	send  func(*pb.GetResultResponse) error
	parts []*pb.ResultPart
	size  int // bytes of parts
}

func (w *resultWriter) addPart(part *mapreduce.ResultPart) error {
	p := wire.EncodeResultPart(part)
	w.parts = append(w.parts, p)
	if w.size += proto.Size(p); w.size < resultBatch {
		return nil
	}
	return w.flushParts()
}

func (w *resultWriter) flushParts() error {
	if len(w.parts) == 0 {
		return nil
	}
	err := w.send(&pb.GetResultResponse{Parts: w.parts})
	w.parts, w.size = nil, 0
	return fault.Error(err)
}

// GetResultFile sends result.json. It needs no files for that: package resultfile reads
// the result again for what is large.
func (j *jobs) GetResultFile(req *pb.GetResultFileRequest, stream grpc.ServerStreamingServer[pb.GetResultFileResponse]) error {
	id, err := wire.DecodeJobID(req.GetJobId())
	if err != nil {
		return err
	}

	ctx := stream.Context()
	room := resultRoom{ctx: ctx, lease: memory.Of(ctx)}
	out := bufio.NewWriterSize(fileSender{stream}, resultBatch)

	err = resultfile.Write(out, func(sink func(*mapreduce.ResultPart) error) error {
		err := j.service.GetResult(ctx, callerOf(ctx), id, req.GetPartial(), func(p *mapreduce.ResultPart) error {
			if err := room.holdPart(p); err != nil {
				return err
			}
			return sink(p)
		})

		// The result may be read again for what is large; no more is kept then.
		room.whole = true
		return err
	})
	if err != nil {
		return err
	}

	return out.Flush()
}

// A fileSender sends what is written to it.
type fileSender struct {
	stream grpc.ServerStreamingServer[pb.GetResultFileResponse]
}

// Write implements io.Writer.
func (s fileSender) Write(p []byte) (int, error) {
	for some := range slices.Chunk(p, resultBatch) {
		if err := s.stream.Send(&pb.GetResultFileResponse{Data: some}); err != nil {
			return 0, fault.Error(err)
		}
	}
	return len(p), nil
}

// A resultRoom holds room for what package resultfile keeps of a result.
type resultRoom struct {
	ctx         context.Context
	lease       *memory.Lease
	whole       bool  // the result was read once: no more is kept of it
	sections    int64 // bytes of small sections, at most resultfile.MaxHeld
	asked, held int64 // bytes that are needed, and that are held
}

// referenceBytes is what a reference of a citation takes, in bytes, with its place in a map.
const referenceBytes = 128

// holdPart waits for room for a part, or for several.
func (r *resultRoom) holdPart(p *mapreduce.ResultPart) error {
	if r.whole {
		return nil
	}

	if p.Citation != nil {
		r.asked += referenceBytes
	}
	if r.sections < resultfile.MaxHeld {
		n := int64(proto.Size(wire.EncodeResultPart(p)))
		r.sections += n
		r.asked += n
	}

	if r.asked <= r.held {
		return nil
	}

	// Room is taken in large steps, and not for each part.
	n := max(r.asked-r.held, beginBytes)
	r.held += n
	return r.lease.Hold(r.ctx, n)
}

// admin serves what operators ask.
type admin struct {
	pb.UnimplementedAdminServiceServer
	service mapreduce.Service
	leaving <-chan struct{}
}

// GetAnswerCache says what answers a tenant has.
func (a *admin) GetAnswerCache(ctx context.Context, req *pb.GetAnswerCacheRequest) (*pb.GetAnswerCacheResponse, error) {
	c, err := a.answerCache(ctx, req.GetTenantId(), false)
	return &pb.GetAnswerCacheResponse{Cache: c}, err
}

// ClearAnswerCache removes them.
func (a *admin) ClearAnswerCache(ctx context.Context, req *pb.ClearAnswerCacheRequest) (*pb.ClearAnswerCacheResponse, error) {
	c, err := a.answerCache(ctx, req.GetTenantId(), true)
	return &pb.ClearAnswerCacheResponse{Cleared: c}, err
}

func (a *admin) answerCache(ctx context.Context, tenant string, forget bool) (*pb.AnswerCache, error) {
	t, err := wire.DecodeTenant(tenant)
	if err != nil {
		return nil, err
	}
	c, err := a.service.AnswerCache(ctx, callerOf(ctx), t, forget)
	if err != nil {
		return nil, err
	}
	return wire.EncodeAnswerCache(c), nil
}

// GetFleet says how the fleet stands.
func (a *admin) GetFleet(ctx context.Context, _ *pb.GetFleetRequest) (*pb.FleetStatus, error) {
	f, err := a.service.FleetStatus(ctx, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	return wire.EncodeFleetStatus(f), nil
}

// CheckStore sends the findings of a check of the store.
func (a *admin) CheckStore(req *pb.CheckStoreRequest, stream grpc.ServerStreamingServer[pb.CheckStoreResponse]) error {
	return whileServing(stream.Context(), a.leaving, func(ctx context.Context) error {
		return a.service.CheckStore(ctx, callerOf(ctx), mapreduce.CheckQuery{RepairCounters: req.GetRepairCounters(), CountKeys: req.GetCountKeys()}, func(f mapreduce.Finding) error {
			return fault.Error(stream.Send(&pb.CheckStoreResponse{Finding: wire.EncodeFinding(f)}))
		})
	})
}
