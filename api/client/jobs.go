package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/fault"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A jobReply is one with a job.
type jobReply interface{ GetJob() *pb.Job }

// jobAfter makes a call, again if need be, and returns the job of its reply.
func jobAfter[R jobReply](ctx context.Context, c *Client, call func() (R, error)) (job *mapreduce.Job, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, failed := call()
		job, failed = jobOf(p.GetJob(), failed)
		return failed
	})
	return job, err
}

// jobOf returns the job of a reply.
func jobOf(p *pb.Job, err error) (*mapreduce.Job, error) {
	switch {
	case err != nil:
		return nil, fault.Error(err)
	case p == nil:
		return nil, errs.New(errs.Internal, "the server's reply holds no job")
	}
	return wire.DecodeJob(p), nil
}

// GetJob implements mapreduce.Client.
func (c *Client) GetJob(ctx context.Context, id mapreduce.JobID) (job *mapreduce.Job, err error) {
	err = callAgain(ctx, c.patience, func() (err error) {
		job, err = jobOf(c.jobs.GetJob(ctx, &pb.GetJobRequest{JobId: string(id)}))
		return err
	})
	return job, err
}

// PauseJob implements mapreduce.Client.
func (c *Client) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return jobAfter(ctx, c, func() (*pb.PauseJobResponse, error) {
		return c.jobs.PauseJob(ctx, &pb.PauseJobRequest{JobId: string(id)})
	})
}

// CancelJob implements mapreduce.Client.
func (c *Client) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return jobAfter(ctx, c, func() (*pb.CancelJobResponse, error) {
		return c.jobs.CancelJob(ctx, &pb.CancelJobRequest{JobId: string(id)})
	})
}

// ResumeJob implements mapreduce.Client.
func (c *Client) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	return jobAfter(ctx, c, func() (*pb.ResumeJobResponse, error) { return c.jobs.ResumeJob(ctx, wire.EncodeResume(id, r)) })
}

// MarkCause implements mapreduce.Client.
func (c *Client) MarkCause(ctx context.Context, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	return jobAfter(ctx, c, func() (*pb.MarkCauseResponse, error) {
		return c.jobs.MarkCause(ctx, wire.EncodeMarkCause(id, cause, state))
	})
}

// DeleteJob implements mapreduce.Client.
func (c *Client) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	return callAgain(ctx, c.patience, func() error {
		_, err := c.jobs.DeleteJob(ctx, &pb.DeleteJobRequest{JobId: string(id)})
		return fault.Error(err)
	})
}

// ListJobs implements mapreduce.Client.
func (c *Client) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (page *mapreduce.JobPage, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, err := c.jobs.ListJobs(ctx, wire.EncodeListJobs(&q))
		if err == nil {
			page = wire.DecodeJobs(p)
		}
		return fault.Error(err)
	})
	return page, err
}

// ListUnits implements mapreduce.Client. Pages with large outputs may be much
// shorter than asked for.
func (c *Client) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (page *mapreduce.UnitPage, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, err := c.jobs.ListUnits(ctx, wire.EncodeListUnits(&q))
		if err == nil {
			page = wire.DecodeUnits(p)
		}
		return fault.Error(err)
	})
	return page, err
}

// WakeUnit implements mapreduce.Client.
func (c *Client) WakeUnit(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	var p *pb.WakeUnitResponse
	err := callAgain(ctx, c.patience, func() (err error) {
		p, err = c.jobs.WakeUnit(ctx, &pb.WakeUnitRequest{JobId: string(job), UnitId: string(unit), Handle: handle, Answer: answer})
		return fault.Error(err)
	})

	switch {
	case err != nil:
		return nil, err
	case p.GetUnit() == nil:
		return nil, errs.New(errs.Internal, "the server's reply holds no unit")
	}
	return wire.DecodeUnit(p.GetUnit()), nil
}

// DecideValue implements mapreduce.Client. A decision without a request is given one, so that it is kept
// once however often it has to be sent.
func (c *Client) DecideValue(ctx context.Context, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	if d.Request == "" {
		d.Request = mapreduce.RequestID(rand.Text())
	}

	var p *pb.DecideValueResponse
	err := callAgain(ctx, c.patience, func() (err error) {
		p, err = c.jobs.DecideValue(ctx, wire.EncodeNewDecision(&d))
		return fault.Error(err)
	})

	switch {
	case err != nil:
		return nil, err
	case p.GetDecision() == nil:
		return nil, errs.New(errs.Internal, "the server's reply holds no decision")
	}
	return wire.DecodeDecision(p.GetDecision()), nil
}

// ListDecisions implements mapreduce.Client.
func (c *Client) ListDecisions(ctx context.Context, q mapreduce.ListDecisionsQuery) (page *mapreduce.DecisionPage, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, err := c.jobs.ListDecisions(ctx, wire.EncodeListDecisions(&q))
		if err == nil {
			page = wire.DecodeDecisions(p)
		}
		return fault.Error(err)
	})
	return page, err
}

// ListWaiting implements mapreduce.Client.
func (c *Client) ListWaiting(ctx context.Context, q mapreduce.ListWaitingQuery) (page *mapreduce.WaitingPage, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, err := c.jobs.ListWaiting(ctx, wire.EncodeListWaiting(&q))
		if err == nil {
			page = wire.DecodeWaiting(p)
		}
		return fault.Error(err)
	})
	return page, err
}

// ClaimRecords implements mapreduce.Client.
func (c *Client) ClaimRecords(ctx context.Context, claim mapreduce.Claim) (all []mapreduce.RecordClaim, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, err := c.jobs.ClaimRecords(ctx, wire.EncodeClaim(&claim))
		if err == nil {
			all = wire.DecodeRecordClaims(p)
		}
		return fault.Error(err)
	})
	return all, err
}

// ListEvents implements mapreduce.Client.
func (c *Client) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (page *mapreduce.EventPage, err error) {
	err = callAgain(ctx, c.patience, func() error {
		p, err := c.jobs.ListEvents(ctx, wire.EncodeListEvents(&q))
		if err == nil {
			page = wire.DecodeEvents(p)
		}
		return fault.Error(err)
	})
	return page, err
}

// WatchJob implements mapreduce.Client.
func (c *Client) WatchJob(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	return drainStream(ctx, c, func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchJobResponse], error) {
		return c.jobs.WatchJob(ctx, &pb.WatchJobRequest{JobId: string(id)})
	}, func(p *pb.WatchJobResponse) error {
		job, err := jobOf(p.GetJob(), nil)
		if err != nil {
			return err
		}
		return fn(job)
	})
}

// GetResult implements mapreduce.Client.
func (c *Client) GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	return drainStream(ctx, c, func(ctx context.Context) (grpc.ServerStreamingClient[pb.GetResultResponse], error) {
		return c.jobs.GetResult(ctx, &pb.GetResultRequest{JobId: string(id), Partial: partial})
	}, func(p *pb.GetResultResponse) error {
		for _, part := range p.GetParts() {
			if v := wire.DecodeResultPart(part); v != nil {
				if err := sink(v); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// GetResultFile writes result.json of a job to out, in the very bytes that the command
// line writes. While the job is not complete, partial must be true. After an error, what
// was written is to be thrown away.
func (c *Client) GetResultFile(ctx context.Context, id mapreduce.JobID, partial bool, out io.Writer) error {
	return drainStream(ctx, c, func(ctx context.Context) (grpc.ServerStreamingClient[pb.GetResultFileResponse], error) {
		return c.jobs.GetResultFile(ctx, &pb.GetResultFileRequest{JobId: string(id), Partial: partial})
	}, func(p *pb.GetResultFileResponse) error {
		_, err := out.Write(p.GetData())
		return err
	})
}

// ReadText implements mapreduce.Client.
func (c *Client) ReadText(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	return drainStream(ctx, c, func(ctx context.Context) (grpc.ServerStreamingClient[pb.ReadTextResponse], error) {
		return c.jobs.ReadText(ctx, &pb.ReadTextRequest{JobId: string(job), UnitId: string(unit), DocumentId: string(document)})
	}, func(p *pb.ReadTextResponse) error { return sink(p.GetText()) })
}

// AnswerCache implements mapreduce.Client.
func (c *Client) AnswerCache(ctx context.Context, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	if !forget {
		p, err := c.admin.GetAnswerCache(ctx, &pb.GetAnswerCacheRequest{TenantId: string(t)})
		return wire.DecodeAnswerCache(p.GetCache()), fault.Error(err)
	}
	p, err := c.admin.ClearAnswerCache(ctx, &pb.ClearAnswerCacheRequest{TenantId: string(t)})
	return wire.DecodeAnswerCache(p.GetCleared()), fault.Error(err)
}

// SumCosts implements mapreduce.Client.
func (c *Client) SumCosts(ctx context.Context, q mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	p, err := c.jobs.SumCosts(ctx, wire.EncodeCostQuery(&q))
	return wire.DecodeCostSums(p), fault.Error(err)
}

// ListCertificates implements mapreduce.Client.
func (c *Client) ListCertificates(ctx context.Context, t mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	p, err := c.jobs.ListCertificates(ctx, &pb.ListCertificatesRequest{TenantId: string(t)})
	return wire.DecodeCertificates(p), fault.Error(err)
}

// DropCertificate implements mapreduce.Client.
func (c *Client) DropCertificate(ctx context.Context, t mapreduce.TenantID, id mapreduce.CertificateID) error {
	_, err := c.jobs.DeleteCertificate(ctx, &pb.DeleteCertificateRequest{TenantId: string(t), CertificateId: string(id)})
	return fault.Error(err)
}

// TenantUse implements mapreduce.Client.
func (c *Client) TenantUse(ctx context.Context, t mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	p, err := c.jobs.GetTenantUse(ctx, &pb.GetTenantUseRequest{TenantId: string(t)})
	return wire.DecodeTenantUse(p), fault.Error(err)
}

// Caller implements mapreduce.Client.
func (c *Client) Caller(ctx context.Context) (*mapreduce.Principal, error) {
	p, err := c.jobs.GetCaller(ctx, &pb.GetCallerRequest{})
	if err != nil {
		return nil, fault.Error(err)
	}
	return wire.DecodeCaller(p), nil
}

// CheckStore implements mapreduce.Client.
func (c *Client) CheckStore(ctx context.Context, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	return drainStream(ctx, c, func(ctx context.Context) (grpc.ServerStreamingClient[pb.CheckStoreResponse], error) {
		return c.admin.CheckStore(ctx, &pb.CheckStoreRequest{RepairCounters: q.RepairCounters, CountKeys: q.CountKeys})
	}, func(p *pb.CheckStoreResponse) error {
		return found(wire.DecodeFinding(p.GetFinding()))
	})
}

// FleetStatus implements mapreduce.Client.
func (c *Client) FleetStatus(ctx context.Context) (*mapreduce.FleetStatus, error) {
	p, err := c.admin.GetFleet(ctx, &pb.GetFleetRequest{})
	if err != nil {
		return nil, fault.Error(err)
	}
	return wire.DecodeFleetStatus(p), nil
}

// drainStream opens a stream and takes what it brings until it ends. It opens the stream
// again only if nothing has come.
func drainStream[P any](ctx context.Context, c *Client, open func(context.Context) (grpc.ServerStreamingClient[P], error), take func(*P) error) error {
	var begun error // what has ended a stream of which something was taken
	err := callAgain(ctx, c.patience, func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // take may have stopped it early

		stream, err := open(ctx)
		if err != nil {
			return fault.Error(err)
		}

		for first := true; ; first = false {
			p, err := stream.Recv()
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil && first:
				return fault.Error(err)
			case err != nil:
				begun = fault.Error(err)
				return nil
			}

			if begun = take(p); begun != nil {
				return nil
			}
		}
	})

	if begun != nil {
		return begun
	}
	return err
}

// SubmitJob implements mapreduce.Client. Documents are taken from docs as fast
// as the server takes them, and large ones are sent in pieces.
func (c *Client) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (job *mapreduce.Job, err error) {
	err = callAgain(ctx, c.patience, func() (err error) {
		job, err = submit(ctx, c.jobs, spec, docs)
		return err
	})
	return job, err
}

func submit(ctx context.Context, jobs pb.MapReduceServiceClient, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	// Whatever stops the sending must break the stream, not end it: the server
	// takes an ended stream for the whole submission.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := jobs.SubmitJob(ctx)
	if err != nil {
		return nil, fault.Error(err)
	}

	asked := wire.EncodeSpec(&spec)
	out := submission{send: func(pieces []*pb.DocumentPiece) error {
		err := stream.Send(&pb.SubmitJobRequest{Spec: asked, Documents: pieces})
		asked = nil // in the first message only
		return err
	}}

	if err := out.sendWhole(ctx, docs); err != nil && !errors.Is(err, errEnded) {
		return nil, err
	}

	p, err := stream.CloseAndRecv()
	return jobOf(p.GetJob(), err)
}

// PlanJob implements mapreduce.Client. Documents are sent as SubmitJob sends
// them.
func (c *Client) PlanJob(ctx context.Context, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (p *mapreduce.Plan, err error) {
	err = callAgain(ctx, c.patience, func() (err error) {
		p, err = plan(ctx, c.jobs, q, docs)
		return err
	})
	return p, err
}

func plan(ctx context.Context, jobs pb.MapReduceServiceClient, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := jobs.PlanJob(ctx)
	if err != nil {
		return nil, fault.Error(err)
	}

	asked := wire.EncodePlanQuery(&q)
	out := submission{send: func(pieces []*pb.DocumentPiece) error {
		asked.Documents = pieces
		err := stream.Send(asked)
		// The settings are in the first message alone.
		asked = &pb.PlanJobRequest{}
		return err
	}}

	if err := out.sendWhole(ctx, docs); err != nil && !errors.Is(err, errEnded) {
		return nil, err
	}

	if err := stream.CloseSend(); err != nil {
		return nil, fault.Error(err)
	}

	whole, err := parts.JoinPlan(func() (*pb.Plan, error) {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return p.GetPlan(), fault.Error(err)
	})
	if err != nil {
		return nil, err
	}

	return wire.DecodePlan(whole), nil
}

// errEnded says that the server has answered before all was sent.
var errEnded = errors.New("the server has ended the stream")

// A submission gathers small documents into messages of wire.PartSize.
type submission struct {
	send   func([]*pb.DocumentPiece) error // sends a message
	pieces []*pb.DocumentPiece             // of the next message
	size   int                             // of these, in bytes, about
}

// sendWhole sends all documents. If ctx has ended it fails, though all that came was sent:
// documents may stop coming because of that, without an error, and gRPC breaks the stream
// by and by, so that it could still be ended as a whole one.
func (s *submission) sendWhole(ctx context.Context, docs iter.Seq2[*mapreduce.Document, error]) error {
	err := s.sendAll(docs)
	if err == nil && ctx.Err() != nil {
		err = fault.Error(ctx.Err())
	}
	return err
}

func (s *submission) sendAll(docs iter.Seq2[*mapreduce.Document, error]) error {
	for doc, err := range docs {
		if err != nil {
			return err
		}
		if err := s.addDocument(doc); err != nil {
			return err
		}
	}
	return s.flushPieces()
}

// addDocument adds the pieces of a document. A document with too much metadata is sent
// as a skipped one, as its metadata may not even fit into a message.
func (s *submission) addDocument(doc *mapreduce.Document) error {
	if excess := doc.ExcessMetadata(); excess != "" {
		doc = &mapreduce.Document{ID: doc.ID, Skip: cmp.Or(doc.Skip, excess), Size: doc.Size}
	}

	for _, p := range parts.CutDocument(doc) {
		n := proto.Size(p)
		if s.size > 0 && s.size+n > wire.PartSize {
			if err := s.flushPieces(); err != nil {
				return err
			}
		}
		s.pieces = append(s.pieces, p)
		s.size += n
	}
	return nil
}

func (s *submission) flushPieces() error {
	err := s.send(s.pieces)
	s.pieces, s.size = nil, 0
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return fault.Error(err)
}
