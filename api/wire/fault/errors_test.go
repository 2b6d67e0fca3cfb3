package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/wire/fault"
)

// seen is what callers act on.
type seen struct {
	Kind       errs.Kind
	Op         string
	Field      string
	Reason     string
	Message    string
	RetryAfter time.Duration
}

func seenOf(err error) seen {
	var e *errs.Error
	if !errors.As(err, &e) {
		return seen{Message: fmt.Sprint("not an errs.Error: ", err)}
	}
	return seen{e.Kind, e.Op, e.Field, e.Reason, e.Message, e.RetryAfter}
}

func TestErrorsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := &errs.Error{
			Kind:       errs.Kind(rapid.Int64Range(1, int64(errs.DataLoss)).Draw(t, "kind")), // all but Internal
			Message:    rapid.String().Draw(t, "message"),
			RetryAfter: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "wait")),
			Err:        io.ErrUnexpectedEOF,
		}
		for _, field := range []*string{&sent.Op, &sent.Field, &sent.Reason} {
			if rapid.Bool().Draw(t, "has it") {
				*field = rapid.String().Draw(t, "field")
			}
		}

		got := fault.Error(fault.Status(fmt.Errorf("wrapped: %w", sent)).Err())
		if diff := cmp.Diff(seenOf(sent), seenOf(got)); diff != "" {
			t.Fatalf("sent (-), got (+):\n%s", diff)
		}
		if !errors.Is(got, sent.Kind) {
			t.Fatalf("%v is not %v", got, sent.Kind)
		}
		if errors.Is(got, io.ErrUnexpectedEOF) {
			t.Fatalf("the cause came along with %v", got)
		}
	})
}

func TestEveryKindHasItsCode(t *testing.T) {
	used := map[codes.Code]errs.Kind{}
	for kind := errs.Internal; kind <= errs.DataLoss; kind++ {
		s := fault.Status(kind) // a bare kind is an error as well
		if other, ok := used[s.Code()]; ok || s.Code() == codes.OK || s.Code() == codes.Unknown {
			t.Errorf("%v has code %v, like %v", kind, s.Code(), other)
		}
		used[s.Code()] = kind
		if got := errs.KindOf(fault.Error(s.Err())); got != kind {
			t.Errorf("%v came back as %v", kind, got)
		}
		if got := info(t, s); got.GetDomain() != fault.Domain || got.GetReason() != strings.ToUpper(kind.String()) {
			t.Errorf("%v has info %v, want a stable reason", kind, got)
		}
	}
	if next := (errs.DataLoss + 1).String(); next != errs.Internal.String() {
		t.Errorf("kind %q has no code", next)
	}
}

func info(t *testing.T, s *status.Status) *errdetails.ErrorInfo {
	t.Helper()
	for _, d := range s.Details() {
		if v, ok := d.(*errdetails.ErrorInfo); ok {
			return v
		}
	}
	t.Fatalf("%v has no ErrorInfo", s)
	return nil
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		code    codes.Code
		message string
	}{
		{"field", errs.Field("spec.schema", "is empty"), codes.InvalidArgument, "spec.schema: is empty"},
		{"internal", errs.New(errs.Internal, "open /secret: %w", io.EOF), codes.Internal, "internal error"},
		{"foreign", errors.New("password is 12345"), codes.Internal, "internal error"},
		{"cancelled", fmt.Errorf("reading: %w", context.Canceled), codes.Canceled, "the call was cancelled"},
		{"deadline", context.DeadlineExceeded, codes.DeadlineExceeded, "the deadline has passed"},
		{"typed error wins over its cause", errs.New(errs.Unavailable, "leaving: %w", context.Canceled), codes.Unavailable, "leaving: context canceled"},
		{"status of a stream", status.Error(codes.Canceled, "reset"), codes.Canceled, "reset"},
		{"status of an unknown method", status.Error(codes.Unimplemented, "not implemented"), codes.Unimplemented, "not implemented"},
		{"message not UTF-8", errs.New(errs.NotFound, "no \xff"), codes.NotFound, "no \uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := fault.Status(tt.err)
			if s.Code() != tt.code || s.Message() != tt.message {
				t.Errorf("got %v %q, want %v %q", s.Code(), s.Message(), tt.code, tt.message)
			}
			if strings.Contains(s.String(), "secret") || strings.Contains(s.String(), "12345") {
				t.Errorf("%v shows what is internal", s)
			}
		})
	}
	if s := fault.Status(nil); s != nil {
		t.Errorf("no error has status %v", s)
	}
}

func TestError(t *testing.T) {
	t.Run("contexts", func(t *testing.T) {
		for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
			if got := fault.Error(status.FromContextError(want).Err()); !errors.Is(got, want) {
				t.Errorf("%v came back as %v", want, got)
			}
		}
	})
	t.Run("end of stream and no error stay", func(t *testing.T) {
		if !errors.Is(fault.Error(io.EOF), io.EOF) || fault.Error(nil) != nil {
			t.Error("changed")
		}
	})
	t.Run("every code is known", func(t *testing.T) {
		for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
			got := seenOf(fault.Error(status.Error(c, "m")))
			if got.Message != "m" {
				t.Errorf("%v became %+v", c, got)
			}
		}
	})
	t.Run("what only gRPC says", func(t *testing.T) {
		tests := []struct {
			err  error
			want seen
		}{
			{
				status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 8)"),
				seen{Kind: errs.Invalid, Reason: fault.ReasonTooLarge, Message: "grpc: received message larger than max (9 vs. 8)"},
			},
			{
				status.Error(codes.Unimplemented, "unknown method"),
				seen{Kind: errs.Precondition, Reason: fault.ReasonUnimplemented, Message: "unknown method"},
			},
			{
				status.Error(codes.Unavailable, "connection refused"),
				seen{Kind: errs.Unavailable, Message: "connection refused"},
			},
		}
		for _, tt := range tests {
			if diff := cmp.Diff(tt.want, seenOf(fault.Error(tt.err))); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		}
	})
	t.Run("our own exhaustion stays", func(t *testing.T) {
		e := errs.New(errs.Exhausted, "the queue is larger than max")
		if got := errs.KindOf(fault.Error(fault.Status(e).Err())); got != errs.Exhausted {
			t.Errorf("got %v", got)
		}
	})
	t.Run("an info of another domain is not believed", func(t *testing.T) {
		s, err := status.New(codes.Unavailable, "m").WithDetails(&errdetails.ErrorInfo{Domain: "proxy.example", Reason: "NO"})
		if err != nil {
			t.Fatal(err)
		}
		if got := seenOf(fault.Error(s.Err())); got.Reason != "" {
			t.Errorf("got reason %q", got.Reason)
		}
	})
}
