package wire

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Bounds for messages from outside.
const (
	MaxDocumentID = 4 << 10 // bytes: the longest path of a file
	MaxUnitID     = 8 << 10 // bytes: made of a document's
	MaxNames      = 256     // bytes of an id of a tenant, request, session or node
	MaxParts      = 100_000 // entries of one list in one message
	MaxPage       = 1000    // entries of a page
)

// A decoder keeps the first thing that is wrong with a message. Its methods
// return the zero value for what they refuse.
type decoder struct {
	err *errs.Error
	job string // found valid before: parts of a message mostly share their job
}

// firstError returns what is wrong, without the trap of a nil *errs.Error in an error.
func (d *decoder) firstError() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

func (d *decoder) refuseField(field, format string, args ...any) {
	if d.err == nil {
		d.err = errs.Field(field, format, args...)
	}
}

// withinPath runs decode, and puts path in front of the field of what it refuses.
func (d *decoder) withinPath(path func() string, decode func()) {
	before := d.err
	decode()
	if before == nil && d.err != nil {
		d.err.Field = path() + "." + d.err.Field
	}
}

// decodePart decodes the message in a field.
func decodePart[P, T any](d *decoder, field string, p P, decode func(*decoder, P) T) (v T) {
	d.withinPath(func() string { return field }, func() { v = decode(d, p) })
	return v
}

// decodeOptional decodes the message in a field, if it is there.
func decodeOptional[P, T any](d *decoder, field string, p *P, decode func(*decoder, *P) T) *T {
	if p == nil {
		return nil
	}
	v := decodePart(d, field, p, decode)
	return &v
}

// decodeList decodes the messages in a repeated field, up to the first bad one.
func decodeList[P, T any](d *decoder, field string, in []P, decode func(*decoder, P) T) []T {
	if len(in) == 0 || d.err != nil {
		return nil
	}
	if len(in) > MaxParts {
		d.refuseField(field, "has %d entries, more than %d", len(in), MaxParts)
		return nil
	}

	out := make([]T, len(in))
	for i, p := range in {
		if out[i] = decode(d, p); d.err != nil {
			d.err.Field = fmt.Sprintf("%s[%d].%s", field, i, d.err.Field)
			return nil
		}
	}
	return out
}

func (d *decoder) jobID(field, s string) mapreduce.JobID {
	switch {
	case s != "" && s == d.job:
	case s == "":
		d.refuseField(field, "is missing")
		return ""
	case !mapreduce.JobID(s).Valid():
		d.refuseField(field, "is not the id of a job")
		return ""
	}

	d.job = s
	return mapreduce.JobID(s)
}

func (d *decoder) unitID(field, s string) mapreduce.UnitID {
	return mapreduce.UnitID(d.decodeID(field, s, MaxUnitID))
}

func (d *decoder) documentID(field, s string) mapreduce.DocumentID {
	return mapreduce.DocumentID(d.decodeID(field, s, MaxDocumentID))
}

func (d *decoder) decodeID(field, s string, most int) string {
	if s == "" {
		d.refuseField(field, "is missing")
	}
	return d.decodeName(field, s, most)
}

// decodeName bounds a string that may be empty.
func (d *decoder) decodeName(field, s string, most int) string {
	if len(s) > most {
		d.refuseField(field, "is longer than %d bytes", most)
		return ""
	}
	return s
}

// decodeCount takes an integer that cannot be negative.
func (d *decoder) decodeCount(field string, n int32) int {
	return int(d.decodeCount64(field, int64(n)))
}

func (d *decoder) decodeCount64(field string, n int64) int64 {
	if n < 0 {
		d.refuseField(field, "is negative")
		return 0
	}
	return n
}

// pageSize refuses negative sizes and bounds large ones, as AIP-158 says.
func (d *decoder) pageSize(n int32) int {
	return min(d.decodeCount("page_size", n), MaxPage)
}

// decodeFraction takes a number in [0, 1].
func (d *decoder) decodeFraction(field string, x float64) float64 {
	if math.IsNaN(x) || x < 0 || x > 1 {
		d.refuseField(field, "is not between 0 and 1")
		return 0
	}
	return x
}

// decodeDuration takes a duration that cannot be negative.
func (d *decoder) decodeDuration(field string, p *durationpb.Duration) time.Duration {
	if p == nil {
		return 0
	}
	if p.CheckValid() != nil || p.AsDuration() < 0 {
		d.refuseField(field, "is not a duration, or is negative")
		return 0
	}
	return p.AsDuration()
}

// decodeMoment returns a time that a client chose; the zero time of none.
func (d *decoder) decodeMoment(field string, p *timestamppb.Timestamp) time.Time {
	if p == nil {
		return time.Time{}
	}
	if p.CheckValid() != nil {
		d.refuseField(field, "is not a time")
		return time.Time{}
	}
	return p.AsTime()
}
