package fault_test

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/wire/fault"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// TestFieldsOfASpec: an error about a spec names the field of the message that a client
// has sent, and the Go client gives it back as the service had it.
func TestFieldsOfASpec(t *testing.T) {
	for name, want := range map[string]string{
		"schema": "spec.schema", "tenant": "spec.tenant_id", "max_tokens_per_unit": "spec.max_unit_tokens",
		"budget": "spec.budget_tokens", "deadline": "spec.deadline", "circuit_breaker_timeout": "spec.breaker_timeout", "vars.glean": "spec.vars.glean",
		"stages[1].model": "spec.pipeline_definition.stages[1].model", "documents": "documents", "page_token": "page_token",
	} {
		s := fault.Status(errs.Field(name, "is wrong"))
		got := ""
		for _, d := range s.Details() {
			if b, ok := d.(*errdetails.BadRequest); ok {
				got = b.GetFieldViolations()[0].GetField()
			}
		}
		if got != want || s.Message() != want+": is wrong" {
			t.Errorf("%s is told as %q in %q, want %q", name, got, s.Message(), want)
		}
		if e := fault.Classify(fault.Error(s.Err())); e.Field != name || e.Message != "is wrong" {
			t.Errorf("%s arrives as %q: %q", name, e.Field, e.Message)
		}
	}
}

// TestFieldsAreOfTheMessage finds names of fields that the message does not have.
func TestFieldsAreOfTheMessage(t *testing.T) {
	fields := (&pb.JobSpec{}).ProtoReflect().Descriptor().Fields()
	for name, field := range fault.SpecFields {
		if fields.ByName(protoreflect.Name(field)) == nil && name != "stages" {
			t.Errorf("%s stands for %s, which a spec does not have", name, field)
		}
	}
}
