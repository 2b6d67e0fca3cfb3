package web

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/wire/fault"
)

// asStatus returns the status of an error. One that does not come from the server gets the
// details that the server's have.
func asStatus(err error) *status.Status {
	s, ok := status.FromError(err)
	if ok && len(s.Details()) > 0 {
		return s
	}
	if _, marked, found := strings.Cut(err.Error(), fieldMark); found {
		field, message, _ := strings.Cut(marked, fieldMark)
		return fieldStatus(field, message)
	}
	return fault.Status(err)
}

// A fieldError is about one field of a request, by its name in JSON. What is generated for
// REST keeps nothing of an error but its text, so that has the field, too, between marks.
type fieldError struct{ field, message string }

const fieldMark = "\x1f"

// wrongField returns the error about a field.
func wrongField(field, format string, args ...any) error {
	return fieldError{field, fmt.Sprintf(format, args...)}
}

// Error returns a text from which asStatus knows the field.
func (e fieldError) Error() string { return fieldMark + e.field + fieldMark + e.message }

// fieldStatus returns the status of the error about a field.
func fieldStatus(field, message string) *status.Status {
	reason := strings.ToUpper(errs.Invalid.String())
	field, message = strings.ToValidUTF8(field, "?"), strings.ToValidUTF8(message, "?")
	s := status.New(codes.InvalidArgument, field+": "+message)
	detailed, err := s.WithDetails(&errdetails.ErrorInfo{Domain: fault.Domain, Reason: reason},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: message, Reason: reason}}})
	if err != nil {
		return s // it has no details then
	}
	return detailed
}

// retryAfter returns how many seconds a peer should wait before it tries again, or "".
func retryAfter(s *status.Status) string {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return strconv.Itoa(int(math.Ceil(info.GetRetryDelay().AsDuration().Seconds())))
		}
	}
	return ""
}

// writeError answers a request with an error: as a google.rpc.Status, with its details.
func writeError(w http.ResponseWriter, err error) {
	writeErrorWith(w, runtime.HTTPStatusFromCode(asStatus(err).Code()), err)
}

// writeErrorWith is writeError with a status of HTTP.
func writeErrorWith(w http.ResponseWriter, code int, err error) {
	s := asStatus(err)
	data, err := marshaler{}.Marshal(s.Proto())
	if err != nil { // its details are not known here
		data, _ = marshaler{}.Marshal(status.New(s.Code(), s.Message()).Proto()) // cannot fail
	}

	h := w.Header()
	h.Del("Transfer-Encoding")
	h.Set("Content-Type", "application/json")
	if after := retryAfter(s); after != "" {
		h.Set("Retry-After", after)
	}
	if s.Code() == codes.Unauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}

	w.WriteHeader(code)
	_, _ = w.Write(data) //nolint:gosec // it is JSON and says so, with nosniff; a peer that is gone cannot be told
}

// connectError returns an error as Connect and gRPC-Web have it.
func connectError(err error) error {
	s := asStatus(err)
	e := connect.NewError(connect.Code(s.Code()), textError(s.Message()))

	for _, d := range s.Details() {
		m, ok := d.(proto.Message)
		if !ok {
			continue
		}
		if detail, err := connect.NewErrorDetail(m); err == nil {
			e.AddDetail(detail)
		}
	}

	if after := retryAfter(s); after != "" {
		e.Meta().Set("Retry-After", after)
	}
	return e
}

// A textError is an error that a message says all of.
type textError string

func (e textError) Error() string { return string(e) }
