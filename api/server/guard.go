package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/concurrency"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/wire/fault"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func (s *Server) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
	messageCame(ctx)
	err = s.guardCall(ctx, info.FullMethod, func(ctx context.Context, _ *concurrency.Slot) (err error) {
		reply, err = handle(ctx, req)
		return err
	})
	return reply, err
}

func (s *Server) guardStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return s.guardCall(stream.Context(), info.FullMethod, func(ctx context.Context, slot *concurrency.Slot) error {
		return handle(service, &guardedStream{stream, ctx, slot})
	})
}

// A guardedStream is a stream with the context that its handler should obey.
type guardedStream struct {
	grpc.ServerStream
	ctx  context.Context   // for Context: here the stream carries it
	slot *concurrency.Slot // of the call; nil if it has none
}

func (s *guardedStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream. A peer that reads slowly holds up no other calls.
func (s *guardedStream) SendMsg(m any) error {
	return s.slot.Await(func() error { return s.ServerStream.SendMsg(m) })
}

// RecvMsg implements grpc.ServerStream.
func (s *guardedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	messageCame(s.ctx)
	return err
}

// openingKey is the key of a call's opening in its context.
type openingKey struct{}

// An opening can end a call: whoever waits for its peer, to send or to read, waits no more.
type opening struct {
	timer  *time.Timer // ends the call unless its first message comes
	forget func() bool // stops the look at the call's end, which stops the timer
	end    context.CancelCauseFunc
}

// firstMessage is how long a caller may take for the first message of a call.
const firstMessage = 20 * time.Second

// tapCall bounds how long a call waits for its first message: until then no handler
// sees it.
func (s *Server) tapCall(ctx context.Context, info *tap.Info) (context.Context, error) {
	most := firstMessage
	if submits[info.FullMethodName] {
		most = s.config.SubmitIdle // it comes with the first document
	}
	ended := ctx
	ctx, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(most, func() { end(nil) })
	forget := context.AfterFunc(ended, func() { timer.Stop() }) // also of a call that no handler sees: it must not be kept until then
	return context.WithValue(ctx, openingKey{}, &opening{timer, forget, end}), nil
}

// messageCame notes that the first message of a call has come.
func messageCame(ctx context.Context) {
	if o, ok := ctx.Value(openingKey{}).(*opening); ok {
		o.timer.Stop()
		o.forget()
	}
}

// admit asks the guard of the server whether a call may begin.
func (s *Server) admit(ctx context.Context, method string) (admitted context.Context, done func(), err error) {
	if s.config.Guard == nil {
		return ctx, func() {}, nil
	}
	o, ok := ctx.Value(openingKey{}).(*opening)
	if !ok { // tapCall has not seen it, so nothing could cut it off
		return ctx, nil, errs.New(errs.Internal, "a call of %s has no opening", method)
	}
	return s.config.Guard.Admit(ctx, method, o.end)
}

// submits lists the calls that bring documents.
var submits = map[string]bool{
	pb.MapReduceService_SubmitJob_FullMethodName: true,
	pb.MapReduceService_PlanJob_FullMethodName:   true,
}

// guardCall makes a call within the caller's deadline, turns panics into errors, and
// errors into statuses, and logs them.
func (s *Server) guardCall(ctx context.Context, method string, call func(context.Context, *concurrency.Slot) error) error {
	ctx, cancel, err := s.shortenDeadline(ctx, method)
	if err == nil {
		defer cancel()
		var done func()
		if ctx, done, err = s.admit(ctx, method); err == nil {
			defer done()
		}
	}

	if err == nil {
		var account *memory.Connection
		if c := connectionFrom(ctx); c != nil {
			account = c.account
		}
		var lease *memory.Lease
		ctx, lease = s.budget.Open(ctx, account)
		defer lease.Close()
		err = s.carryOut(ctx, lease, method, call)
	}

	// The cause of the end says more than the error that the call made of it.
	if cause := context.Cause(ctx); err != nil && (errs.ReasonOf(cause) == errs.StoreAway || errs.KindOf(cause) == errs.Exhausted || auth.WasCutOff(cause)) {
		err = cause
	}

	if err == nil {
		return nil
	}

	e := classifyError(ctx, err)
	s.logFailure(ctx, method, e)
	return fault.Status(e).Err()
}

// carryOut makes a call, when it is its turn among those of its connection, and among those of all.
func (s *Server) carryOut(ctx context.Context, lease *memory.Lease, method string, call func(context.Context, *concurrency.Slot) error) error {
	c := connectionFrom(ctx)
	if c == nil || unbounded(method) {
		return s.recoverPanic(ctx, method, func(ctx context.Context) error { return call(ctx, nil) })
	}

	if heavy[method] {
		done, err := c.await(ctx)
		if err != nil {
			return err
		}
		defer done()
	}

	slot, err := s.calls.Enter(ctx, c)
	if err != nil {
		return err
	}
	defer slot.Leave()
	lease.Around(slot.Await)
	return s.recoverPanic(ctx, method, func(ctx context.Context) error { return call(ctx, slot) })
}

// unbounded reports whether calls of a method are carried out however many others are: those of
// workers, as all work under way waits for them; those that wait nearly all the time; and those by which
// others ask whether the process lives.
func unbounded(method string) bool {
	switch method {
	case pb.MapReduceService_WatchJob_FullMethodName, pb.AdminService_CheckStore_FullMethodName:
		return true
	}
	return !strings.HasPrefix(method, "/"+pb.MapReduceService_ServiceDesc.ServiceName+"/") && !strings.HasPrefix(method, "/"+pb.AdminService_ServiceDesc.ServiceName+"/")
}

// heavy lists the calls that read or change much, and end: those of one connection are
// carried out some at a time.
var heavy = map[string]bool{
	pb.MapReduceService_ListJobs_FullMethodName:          true,
	pb.MapReduceService_ListUnits_FullMethodName:         true,
	pb.MapReduceService_ListEvents_FullMethodName:        true,
	pb.MapReduceService_SumCosts_FullMethodName:          true,
	pb.MapReduceService_ListCertificates_FullMethodName:  true,
	pb.MapReduceService_DeleteCertificate_FullMethodName: true,
	pb.MapReduceService_DecideValue_FullMethodName:       true,
	pb.MapReduceService_ListDecisions_FullMethodName:     true,
	pb.MapReduceService_ListWaiting_FullMethodName:       true,
	pb.MapReduceService_ClaimRecords_FullMethodName:      true,
	pb.MapReduceService_GetResult_FullMethodName:         true,
	pb.MapReduceService_GetResultFile_FullMethodName:     true,
	pb.MapReduceService_ResumeJob_FullMethodName:         true,
	pb.MapReduceService_MarkCause_FullMethodName:         true,
	pb.MapReduceService_PauseJob_FullMethodName:          true,
	pb.MapReduceService_CancelJob_FullMethodName:         true,
	pb.MapReduceService_DeleteJob_FullMethodName:         true,
	pb.MapReduceService_WakeUnit_FullMethodName:          true,
	pb.AdminService_CheckStore_FullMethodName:            true,
	pb.AdminService_GetAnswerCache_FullMethodName:        true,
	pb.AdminService_ClearAnswerCache_FullMethodName:      true,
}

// prompt lists the calls that need one small transaction and change nothing. A call that
// changes something runs until its outcome is known or the caller is gone.
var prompt = map[string]bool{
	pb.MapReduceService_GetJob_FullMethodName:       true,
	pb.MapReduceService_ListJobs_FullMethodName:     true,
	pb.MapReduceService_GetTenantUse_FullMethodName: true,
	pb.MapReduceService_GetCaller_FullMethodName:    true,
	pb.AdminService_GetFleet_FullMethodName:         true,
}

// shortenDeadline takes the margin off the caller's deadline, and gives a call that has none
// one of its own, if it should not take long.
func (s *Server) shortenDeadline(ctx context.Context, method string) (context.Context, context.CancelFunc, error) {
	deadline, ok := ctx.Deadline()
	switch {
	case !ok && prompt[method]:
		ctx, cancel := context.WithTimeoutCause(ctx, s.config.Patience, &errs.Error{
			Kind: errs.Unavailable, Reason: errs.StoreAway,
			Message: fmt.Sprintf("the store has not answered for %v; jobs wait until it does, and nothing is lost", s.config.Patience),
		})
		return ctx, cancel, nil
	case !ok:
		return ctx, func() {}, nil
	}

	// The margin is for the way of the answer.
	left := time.Until(deadline)
	if left < 2*s.config.Margin {
		return ctx, nil, errs.New(errs.Deadline, "only %v is left until the deadline of the call, too little to begin it; set a later deadline", left)
	}

	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-s.config.Margin))
	return ctx, cancel, nil
}

func (s *Server) recoverPanic(ctx context.Context, method string, call func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Logger.ErrorContext(ctx, "panic in a call", "method", method, "panic", p, "stack", string(debug.Stack()))
			err = errs.New(errs.Internal, "panic: %v", p)
		}
	}()
	return call(ctx)
}

// classifyError finds the kind of err. Once the caller has gone, an internal error is most
// likely a layer that wrapped the end of the context as its own failure.
func classifyError(ctx context.Context, err error) *errs.Error {
	e := fault.Classify(err)
	if e.Kind != errs.Internal || ctx.Err() == nil {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Classify(ctx.Err())
	}
	return e
}

func (s *Server) logFailure(ctx context.Context, method string, e *errs.Error) {
	attrs := []slog.Attr{
		slog.String("method", method),
		slog.String("kind", e.Kind.String()),
		slog.String("error", e.Error()),
	}

	if by, ok := mapreduce.CallerOf(ctx); ok {
		attrs = append(attrs, slog.String("principal", by.Name), slog.String("tenant", string(by.Tenant)))
	}
	if p, ok := peer.FromContext(ctx); ok {
		attrs = append(attrs, slog.String("peer", p.Addr.String()))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("cause", e.Err.Error()))
	}

	level := logLevel(e.Kind)
	switch {
	case e.Reason == errs.StoreFull:
		level = slog.LevelDebug // the store has said so, once
	case e.Kind == errs.Exhausted:
		unsaid, due := s.refusals.note(method+" "+e.Reason, time.Now())
		if !due {
			return
		}
		if unsaid > 0 {
			attrs = append(attrs, slog.Int("refused_besides", unsaid))
		}
	}

	s.config.Logger.LogAttrs(ctx, level, "call failed", attrs...)
}

// refusals notes which refusals were logged: a server of which too much is asked refuses thousands a
// second, and has better to do than to write that down each time.
type refusals struct {
	mu  sync.Mutex         // guards all
	all map[string]*unsaid // by what was refused, and why
}

// unsaid is how many refusals of a kind were not logged since one was.
type unsaid struct {
	logged time.Time
	count  int
}

// note notes a refusal of a kind, and reports whether it should be logged, and how many were not since
// the last one that was.
func (r *refusals) note(kind string, now time.Time) (besides int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[string]*unsaid)
	}

	u := r.all[kind]
	if u == nil {
		u = new(unsaid)
		r.all[kind] = u
	}
	if now.Sub(u.logged) < logEvery {
		u.count++
		return 0, false
	}
	besides = u.count
	u.logged, u.count = now, 0
	return besides, true
}

// logLevel ranks a failure by the person who must look at it: the operator, perhaps the
// operator, the person responsible for security, or only the caller.
func logLevel(kind errs.Kind) slog.Level {
	switch kind {
	case errs.Internal, errs.DataLoss:
		return slog.LevelError
	case errs.Unavailable, errs.Exhausted:
		return slog.LevelWarn
	case errs.Unauthenticated, errs.Denied:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
