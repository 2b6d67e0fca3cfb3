package records

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// SubmittedSum returns the SHA-256 of what a job's record says of its submission: its
// specification, but for the budget, which a resume may change, and how much there was to
// process. The first checkpoint of the job has it, so that the audit chain holds it. It
// does not depend on how messages are encoded.
func SubmittedSum(job *storagev1.Job) []byte {
	config := new(storagev1.Spec)
	if job.Config != nil {
		config = proto.CloneOf(job.Config)
	}

	config.Budget = 0

	h := sha256.New()
	sumMessage(h, (&storagev1.Job{
		JobId: job.JobId, CreatedAtMicros: job.CreatedAtMicros, Config: config, Shards: job.Shards, Documents: job.Documents,
		Characters: job.Characters, SkippedDocuments: job.SkippedDocuments, SkippedBytes: job.SkippedBytes,
	}).ProtoReflect())
	return h.Sum(nil)
}

// sumMessage adds the fields of a message that are set to a hash, by their numbers.
func sumMessage(h hash.Hash, m protoreflect.Message) {
	var fields []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		fields = append(fields, f)
		return true
	})

	// Range visits the fields in any order.
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
	sumText(h, fmt.Sprintf("message of %d fields", len(fields)))

	for _, f := range fields {
		sumText(h, fmt.Sprintf("field %d", f.Number()))
		switch v := m.Get(f); {
		case f.IsMap():
			sumMap(h, v.Map())
		case f.IsList():
			sumList(h, v.List())
		case f.Kind() == protoreflect.MessageKind:
			sumMessage(h, v.Message())
		case f.Kind() == protoreflect.BytesKind:
			sumText(h, string(v.Bytes()))
		default:
			sumText(h, v.String())
		}
	}
}

// sumMap adds a map between texts to a hash.
func sumMap(h hash.Hash, m protoreflect.Map) {
	all := make(map[string]string, m.Len())
	keys := make([]string, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		keys, all[k.String()] = append(keys, k.String()), v.String()
		return true
	})

	// Range visits the entries in any order.
	slices.Sort(keys)

	sumText(h, fmt.Sprintf("map of %d entries", len(keys)))
	for _, k := range keys {
		sumText(h, k)
		sumText(h, all[k])
	}
}

// sumList adds a list of texts to a hash.
func sumList(h hash.Hash, l protoreflect.List) {
	sumText(h, fmt.Sprintf("list of %d entries", l.Len()))
	for i := range l.Len() {
		sumText(h, l.Get(i).String())
	}
}

// sumText adds a text behind its length to a hash.
func sumText(h hash.Hash, s string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(s)))
	h.Write(size[:])
	h.Write([]byte(s))
}
