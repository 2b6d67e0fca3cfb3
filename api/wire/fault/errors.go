// Package fault turns errors of the service into statuses of gRPC, with the details
// that tell a client what was wrong and where, and back. It knows the names of fields
// in messages, and else nothing of these: package wire has them.
package fault

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coditect/mapreduce/api/errs"
)

// Domain is the domain of the google.rpc.ErrorInfo in every status.
const Domain = "coditect.mapreduce"

// Reasons of errors that arise between client and server.
const (
	ReasonTooLarge      = "MESSAGE_TOO_LARGE" // for one message; sending it again will not help
	ReasonUnimplemented = "UNIMPLEMENTED"     // by this server, which may be older
)

// opKey is the ErrorInfo's metadata key for the operation.
const opKey = "operation"

var codeOf = map[errs.Kind]codes.Code{
	errs.Internal:        codes.Internal,
	errs.Invalid:         codes.InvalidArgument,
	errs.NotFound:        codes.NotFound,
	errs.Exists:          codes.AlreadyExists,
	errs.Precondition:    codes.FailedPrecondition,
	errs.Exhausted:       codes.ResourceExhausted,
	errs.Unavailable:     codes.Unavailable,
	errs.Aborted:         codes.Aborted,
	errs.Unauthenticated: codes.Unauthenticated,
	errs.Denied:          codes.PermissionDenied,
	errs.Cancelled:       codes.Canceled,
	errs.Deadline:        codes.DeadlineExceeded,
	errs.DataLoss:        codes.DataLoss,
}

// kindOf is the inverse of codeOf, with the codes that the service itself does
// not send.
var kindOf = map[codes.Code]errs.Kind{
	codes.Internal:           errs.Internal,
	codes.InvalidArgument:    errs.Invalid,
	codes.NotFound:           errs.NotFound,
	codes.AlreadyExists:      errs.Exists,
	codes.FailedPrecondition: errs.Precondition,
	codes.ResourceExhausted:  errs.Exhausted,
	codes.Unavailable:        errs.Unavailable,
	codes.Aborted:            errs.Aborted,
	codes.Unauthenticated:    errs.Unauthenticated,
	codes.PermissionDenied:   errs.Denied,
	codes.Canceled:           errs.Cancelled,
	codes.DeadlineExceeded:   errs.Deadline,
	codes.DataLoss:           errs.DataLoss,
	codes.OutOfRange:         errs.Invalid,
	codes.Unimplemented:      errs.Precondition,
	codes.Unknown:            errs.Internal,
}

// Classify returns err as an error of the service: the first errs.Error in its
// chain, else what a bare kind, the end of a context, or a status says, else an
// internal error. It returns nil for nil.
func Classify(err error) *errs.Error {
	var e *errs.Error
	var kind errs.Kind
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.As(err, &kind):
		return &errs.Error{Kind: kind, Message: err.Error(), Err: err}
	case errors.Is(err, context.Canceled):
		return &errs.Error{Kind: errs.Cancelled, Message: "the call was cancelled", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &errs.Error{Kind: errs.Deadline, Message: "the deadline has passed", Err: err}
	}

	// An error of gRPC has its kind in its status.
	if s, ok := status.FromError(err); ok {
		return fromStatus(s)
	}
	return &errs.Error{Kind: errs.Internal, Message: err.Error(), Err: err}
}

// Status returns the status by which a caller learns of err. Lost on the way are the chain
// of causes, and for internal errors also the message, which may hold what is none of a
// caller's business: who calls Status logs them. A reason that only repeats the kind comes
// back empty.
func Status(err error) *status.Status {
	e := Classify(err)
	if e == nil {
		return nil
	}
	s := status.New(codeFor(e), validUTF8(publicMessage(e)))
	if detailed, err := s.WithDetails(errorDetails(e)...); err == nil {
		return detailed
	}
	return s
}

func codeFor(e *errs.Error) codes.Code {
	if e.Reason == ReasonUnimplemented {
		return codes.Unimplemented
	}
	if code, ok := codeOf[e.Kind]; ok {
		return code
	}
	return codes.Internal
}

func publicMessage(e *errs.Error) string {
	if e.Kind == errs.Internal {
		return "internal error"
	}
	if e.Field != "" {
		return encodeField(e.Field) + ": " + e.Message
	}
	return e.Message
}

func errorDetails(e *errs.Error) []protoadapt.MessageV1 {
	info := &errdetails.ErrorInfo{Domain: Domain, Reason: validUTF8(e.Reason)}
	if info.Reason == "" {
		info.Reason = strings.ToUpper(e.Kind.String())
	}
	if e.Op != "" {
		info.Metadata = map[string]string{opKey: validUTF8(e.Op)}
	}

	all := []protoadapt.MessageV1{info}

	if e.Field != "" {
		all = append(all, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: validUTF8(encodeField(e.Field)), Description: validUTF8(e.Message), Reason: info.Reason},
		}})
	}
	if e.RetryAfter > 0 {
		all = append(all, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	return all
}

// Error returns what a call returned as an error of the service. It leaves nil
// and io.EOF, which ends a stream, as they are. Cancelled and Deadline are also
// context.Canceled and context.DeadlineExceeded.
func Error(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return Classify(err)
}

func fromStatus(s *status.Status) *errs.Error {
	e := &errs.Error{Kind: kindOf[s.Code()], Message: s.Message(), Err: s.Err()}
	ours := false

	for _, detail := range s.Details() {
		switch v := detail.(type) {
		case *errdetails.ErrorInfo:
			if v.GetDomain() == Domain {
				ours = true
				e.Reason, e.Op = v.GetReason(), v.GetMetadata()[opKey]
			}
		case *errdetails.BadRequest:
			takeViolation(e, v)
		case *errdetails.RetryInfo:
			e.RetryAfter = max(v.GetRetryDelay().AsDuration(), 0)
		}
	}

	// Such a reason only repeats the kind.
	if e.Reason == strings.ToUpper(e.Kind.String()) {
		e.Reason = ""
	}

	if !ours {
		explainTransport(e, s)
	}

	switch e.Kind {
	case errs.Cancelled:
		e.Err = context.Canceled
	case errs.Deadline:
		e.Err = context.DeadlineExceeded
	}
	return e
}

func takeViolation(e *errs.Error, b *errdetails.BadRequest) {
	if v := b.GetFieldViolations(); len(v) > 0 {
		e.Field, e.Message = decodeField(v[0].GetField()), v[0].GetDescription()
	}
}

// explainTransport corrects what gRPC itself says, on either side. It reports a
// message that is too large as an exhausted resource, which it is not: the
// same message will be too large again.
func explainTransport(e *errs.Error, s *status.Status) {
	switch {
	case s.Code() == codes.Unimplemented:
		e.Reason = ReasonUnimplemented
	case s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max"):
		e.Kind, e.Reason = errs.Invalid, ReasonTooLarge
	}
}

// validUTF8 returns a text that a message may hold.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
