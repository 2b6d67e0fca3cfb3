// Package gate is where values of a unit wait for a person: which values of an output do, and what the
// output is once somebody has decided about each.
//
// It keeps to these:
//   - which values wait follows from the output, the schema, the reasons of the stage and a seed alone: a
//     worker and an orchestrator find the same, and so does an attempt after a death;
//   - the handle that a unit waits under names its output, so no decision is applied to another one;
//   - an output to which decisions were applied differs from what was found in the fields that they are
//     about, and in nothing else.
//
// It is pure: it imports the vocabulary, outputs and how they are merged.
package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/judge"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// Why a value waits. It is shown to people with the word of the page that has the same name.
const (
	Unverified = "unverified"
	Conflict   = "conflict"
	Fuzzy      = "fuzzy"
	Doubtful   = "doubtful"
	Missing    = "missing"
	Sample     = "sample"
	All        = "all"
	Compared   = "compared"
)

// Seed returns what decides which values of a job chance chooses. A job that repeats another chooses as
// that one did.
func Seed(job, repeats mapreduce.JobID) uint64 {
	if repeats != "" {
		job = repeats
	}
	sum := sha256.Sum256([]byte("review of " + job))
	return binary.BigEndian.Uint64(sum[:])
}

// Asks returns the values of the output of a unit that wait for a person, in the order of the records and
// of the fields of the schema.
func Asks(s *schema.Schema, why waiting.Reasons, seed uint64, out *output.Output) (all []mapreduce.WaitingValue) {
	for i := range out.Entries {
		e := &out.Entries[i]
		m := e.Members[0]
		record := mapreduce.NewRecordID(m.Unit, m.Record)

		one := judged{s: s, why: why, out: out, Result: merge.Resolve(s, output.Believed(s, e.Accumulator, out.Citations))}
		for _, f := range s.Fields() {
			reason := one.reason(f.Path)
			if reason == "" && chance(seed, record, f.Path) < why.Sample {
				reason = Sample
			}
			if reason == "" && why.Compared && out.Ascent != nil && len(out.Ascent.Found) > 0 {
				reason = Compared
			}
			if reason != "" {
				all = append(all, mapreduce.WaitingValue{Record: record, Field: f.Path, Why: reason})
			}
		}
	}
	return all
}

// Found returns the value of a field of a record of an output that was found, as JSON: null if none was;
// nil if there is no such record or field.
func Found(s *schema.Schema, out *output.Output, record mapreduce.RecordID, field string) json.RawMessage {
	for i := range out.Entries {
		e := &out.Entries[i]
		if mapreduce.NewRecordID(e.Members[0].Unit, e.Members[0].Record) != record || s.Field(field) == nil {
			continue
		}

		r := merge.Resolve(s, output.Believed(s, e.Accumulator, out.Citations))
		value := r.Values[field]
		if refused, held := r.Refused[field]; value == nil && held {
			value = refused.Value
		} else if value == nil {
			value = r.Unverified[field]
		}
		return encode(value)
	}
	return nil
}

// encode writes a value of a record as JSON, which such values always have.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("gate: a value of a record cannot be encoded: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// A judged record is one with what its values come to.
type judged struct {
	s   *schema.Schema
	why waiting.Reasons
	out *output.Output
	merge.Result
}

// reason returns why the value of a field waits, the best one if there are several; "" if it does not.
func (j *judged) reason(field string) string {
	_, has := j.Values[field]
	sure, known := j.Confidence[field]

	switch {
	case j.why.Unverified && j.isUnverified(field):
		return Unverified
	case j.why.Conflict && slices.ContainsFunc(j.Conflicts, func(c merge.Conflict) bool { return c.Field == field }):
		return Conflict
	case j.why.Missing && !has && slices.ContainsFunc(j.Lacking, func(b judge.Breach) bool { return b.Field == field }):
		return Missing
	case j.why.Fuzzy && has && slices.ContainsFunc(j.Citations[field], j.isFuzzy):
		return Fuzzy
	case has && known && sure < j.why.Confidence:
		return Doubtful
	case j.why.All:
		return All
	}
	return ""
}

// isUnverified reports whether something was found for a field, or for a part of it, that is no value of
// the record.
func (j *judged) isUnverified(field string) bool {
	if _, held := j.Unverified[field]; held {
		return true
	}
	for path := range j.Refused {
		if path == field || strings.HasPrefix(path, field+"[") || strings.HasPrefix(path, field+".") && j.s.Field(path) == nil {
			return true
		}
	}
	return false
}

// isFuzzy reports whether a quote is not quite the text, or only looks like it.
func (j *judged) isFuzzy(id merge.Citation) bool {
	grade := ground.Grade(j.out.Citations[id].Grade)
	return grade == ground.Fuzzy || grade == ground.Lookalike
}

// chance returns a number in [0,1) of a value that follows from the seed and the value alone.
func chance(seed uint64, record mapreduce.RecordID, field string) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, seed)) // never fails
	_, _ = h.Write([]byte(string(record) + "\x00" + field))

	// The last bytes that FNV hashes hardly reach its first bits.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (math.MaxUint64 >> 11)
}

// handle begins the handles under which units wait for people.
const handle = "review/"

// Handle is under what a unit waits with an output, given its encoding.
func Handle(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return handle + hex.EncodeToString(sum[:16])
}

// IsHandle reports whether a unit waits for a person under a handle.
func IsHandle(waits string) bool { return strings.HasPrefix(waits, handle) }

// A Held is what a unit has found and waits with. It is kept in the journal of the unit, by the handle.
type Held struct {
	Output []byte   `json:"-"` // encoded
	Errors []string `json:"errors,omitempty"`
	// Confidence is that of the unit as whoever found the values has stated it.
	Confidence float64 `json:"confidence"`
}

// Encode returns the encoding of what is held: the rest, with its length before it, and the output.
func (h *Held) Encode() ([]byte, error) {
	rest, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return slices.Concat(binary.AppendUvarint(nil, uint64(len(rest))), rest, h.Output), nil
}

// DecodeHeld returns what was encoded.
func DecodeHeld(data []byte) (*Held, error) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return nil, fmt.Errorf("gate: %d bytes hold no output", len(data))
	}
	at := n + int(size)
	h := &Held{Output: bytes.Clone(data[at:])}
	return h, json.Unmarshal(data[n:at], h)
}
