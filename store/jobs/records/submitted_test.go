package records_test

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// TestSubmittedSum: a change to any field of the specification shows, but for the budget,
// and what goes on changing in the record of a job does not.
func TestSubmittedSum(t *testing.T) {
	job := func() *storagev1.Job {
		return &storagev1.Job{JobId: "j", Documents: 3, Config: &storagev1.Spec{
			Tenant: "t", Schema: []byte("{}"), Vars: map[string]string{"a": "1", "b": "2"}, Budget: 7, ReduceShare: 0.5, ContextWindow: proto.Int64(0),
		}}
	}
	want := records.SubmittedSum(job())
	fields := (&storagev1.Spec{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		changed := job()
		m := changed.Config.ProtoReflect()
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("b").MapKey(), protoreflect.ValueOfString("3"))
		case f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfString("x"))
			sameTwice(t, changed)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString("x"))
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte("x")))
		case f.Kind() == protoreflect.Int64Kind:
			m.Set(f, protoreflect.ValueOfInt64(math.MaxInt64))
		case f.Kind() == protoreflect.Uint32Kind:
			m.Set(f, protoreflect.ValueOfUint32(9))
		case f.Kind() == protoreflect.DoubleKind:
			m.Set(f, protoreflect.ValueOfFloat64(0.25))
		case f.Name() == "output":
			m.Mutable(f).Message().Set(f.Message().Fields().ByName("folder"), protoreflect.ValueOfString("/x"))
			sameTwice(t, changed)
			m.Mutable(f).Message().Mutable(f.Message().Fields().ByName("formats")).List().Append(protoreflect.ValueOfString("csv"))
			sameTwice(t, changed)
		case f.Kind() == protoreflect.MessageKind:
			of := m.Mutable(f).Message()
			of.Set(of.Descriptor().Fields().ByNumber(2), protoreflect.ValueOfInt64(1))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		default:
			t.Fatalf("field %s is of a kind that is not summed: %v", f.Name(), f.Kind())
		}
		if same := bytes.Equal(want, records.SubmittedSum(changed)); same != (f.Name() == "budget") {
			t.Errorf("a change of %s leaves the sum as it is: %t", f.Name(), same)
		}
	}
	moved := job()
	moved.Status, moved.UpdatedAtMicros, moved.TotalUnits, moved.CompletedUnits, moved.TotalTokens = 3, 4, 5, 6, 7
	moved.Error, moved.Warnings, moved.AuditNumber, moved.AuditHead = "e", []*storagev1.Warning{{Text: "w"}}, 8, []byte("h")
	if !bytes.Equal(want, records.SubmittedSum(moved)) {
		t.Error("a job that moves on has another sum")
	}
	if bytes.Equal(want, records.SubmittedSum(&storagev1.Job{})) {
		t.Error("an empty record has the same sum")
	}
}

// sameTwice checks that the sum of a record is that of its copy: lists are summed by what is in
// them.
func sameTwice(t *testing.T, job *storagev1.Job) {
	t.Helper()
	if !bytes.Equal(records.SubmittedSum(job), records.SubmittedSum(proto.CloneOf(job))) {
		t.Errorf("two copies of a record have different sums: %v", job)
	}
}
