package show

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"reflect"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/jsonform"
	"github.com/coditect/mapreduce/store/jobs/view"
)

// A VerifiedAudit is what a file that holds has.
type VerifiedAudit struct {
	Job         mapreduce.JobID    `json:"job_id,omitempty"`
	Tenant      mapreduce.TenantID `json:"tenant"`
	Checkpoints int                `json:"checkpoints"`
	Seals       int64              `json:"seals"`
	Head        string             `json:"head"`
	// Unsealed are checkpoints at the end that no seal covers: nothing vouches for them.
	Unsealed int `json:"unsealed"`
	// Bound says that the chain begins with the job and its tenant. If not, an earlier
	// version began it, or wrote the file, and nothing but the first line says whose it is.
	Bound bool `json:"bound"`
}

// WhoseAudit names the job, or the tenant, whose trail it is.
func WhoseAudit(job mapreduce.JobID, tenant mapreduce.TenantID) string {
	name := "the log"
	if job != "" {
		name = "job " + string(job)
	}
	if tenant != "" {
		name += " of tenant " + string(tenant)
	}
	return name
}

// maxLine is the most bytes of a line: those of a checkpoint, and of what is shown of it.
const maxLine = 4 << 20

// A verifier goes over a file.
type verifier struct {
	name    string
	number  int // of the line, counted from 1
	found   VerifiedAudit
	begun   bool
	ended   bool
	head    head
	lines   hash.Hash // of the lines so far
	hash    []byte    // of the last seal
	covered []line    // checkpoints since then, and
	first   int       // the line of the first of them
	lastID  string
}

// VerifyAudit reads a file, and returns an error that names the first line that does not hold,
// and why. If want is not empty, the chain has to end in that hash: a person who can write
// the file can make up a whole chain, but one with another head.
func VerifyAudit(name string, r io.Reader, want string) (*VerifiedAudit, error) {
	v := &verifier{name: name, lines: sha256.New()}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	in.Split(wholeLines)

	for in.Scan() {
		v.number++
		if err := v.take(in.Bytes()); err != nil {
			return nil, err
		}
	}

	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		// Scan has not counted the line that is too long.
		v.number++
		return nil, v.fault("is longer than %d bytes", maxLine)
	} else if err != nil {
		return nil, err
	}

	switch {
	case !v.begun:
		return nil, fmt.Errorf("%s: is empty", name)
	case !v.ended:
		return nil, fmt.Errorf("%s: ends after line %d, and its last line is not the end of an audit trail: the file was cut off", name, v.number)
	case want != "" && !sameHash(v.hash, strings.ToLower(want)):
		return nil, fmt.Errorf("%s: the chain ends in the hash %x, not in %s: the file is of another job, or was forged as a whole", name, v.hash, want)
	}

	v.found.Unsealed = len(v.covered)
	return &v.found, nil
}

// wholeLines splits a file into its lines, each with its end.
func wholeLines(data []byte, atEnd bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEnd && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func (v *verifier) fault(format string, args ...any) error {
	return fmt.Errorf("%s: line %d %s", v.name, v.number, fmt.Sprintf(format, args...))
}

// take checks a line.
func (v *verifier) take(data []byte) error {
	// The line itself is hashed last: the end is checked against the lines before it.
	defer v.lines.Write(data)

	var l line
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&l); err != nil {
		return v.fault("is no line of an audit trail: %v", err)
	}

	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return v.fault("has more than one object")
	}

	switch {
	case v.ended:
		return v.fault("comes after the line that ends the audit trail")
	case (l.Head != nil) == v.begun:
		return v.fault("is out of place: the first line must be the head of the audit trail, and no other line may be")
	case l.Head != nil:
		return v.begin(l.Head)
	case l.Checkpoint != nil && l.Seal == nil && l.End == nil:
		return v.checkpoint(l)
	case l.Seal != nil && l.End == nil && l.Record == nil:
		return v.seal(l.Seal)
	case l.End != nil && l.Record == nil:
		return v.end(l.End, data)
	}
	return v.fault("is neither a checkpoint nor a seal nor the end")
}

func (v *verifier) begin(h *head) error {
	if h.Version != version && h.Version != bareVersion {
		return v.fault("says format %d, and this program reads the formats %d and %d", h.Version, bareVersion, version)
	}
	v.head = *h
	v.begun, v.found.Job, v.found.Tenant = true, h.Job, h.Tenant
	return nil
}

// checkpoint checks that what a line shows of a checkpoint is what its record says.
func (v *verifier) checkpoint(l line) error {
	c, err := view.DecodeCheckpoint(l.Record)
	if err != nil {
		return v.fault("has a record that cannot be read: %v", err)
	}

	if c.ID, err = idOf(l); err != nil {
		return v.fault("%v", err)
	}
	if c.ID <= v.lastID {
		return v.fault("has checkpoint %s, which must not come after %s: one was moved, or is there twice", c.ID, v.lastID)
	}

	if field := differs(jsonform.CheckpointOf(c), *l.Checkpoint); field != "" {
		return v.fault("shows a %s of checkpoint %s that differs from its record: one of them was changed", field, c.ID)
	}

	v.lastID = c.ID
	v.found.Checkpoints++
	if len(v.covered) == 0 {
		v.first = v.number
	}
	v.covered = append(v.covered, l)
	return nil
}

// A key: a byte for its type, a versionstamp, and two bytes behind it. Were keys of any length
// taken, one could hold what the chain begins with.
const (
	stampBytes = 10
	orderBytes = 2
	keyBytes   = 1 + stampBytes + orderBytes
)

// idOf returns the id of a checkpoint: of its key, or in the log of a tenant, whose entries
// have none, that which is shown.
func idOf(l line) (string, error) {
	if len(l.Key) == 0 {
		return l.Checkpoint.ID, nil
	}
	if len(l.Key) != keyBytes {
		return "", fmt.Errorf("has a key of %d bytes, and those of checkpoints have %d", len(l.Key), keyBytes)
	}
	stamp := l.Key[len(l.Key)-stampBytes-orderBytes : len(l.Key)-orderBytes]
	return hex.EncodeToString(stamp), nil
}

// differs returns the name of a field in which two checkpoints differ, or "".
func differs(a, b jsonform.Checkpoint) string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		f := x.Type().Field(i)
		one, _ := json.Marshal(x.Field(i).Interface())
		other, _ := json.Marshal(y.Field(i).Interface())
		if !bytes.Equal(one, other) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return name
		}
	}

	return ""
}

// seal checks that a seal is the next, and over the checkpoints before it.
func (v *verifier) seal(s *jsonform.Seal) error {
	switch {
	case s.Number != v.found.Seals+1:
		return v.fault("has seal %d where seal %d is expected: a seal was left out, or moved", s.Number, v.found.Seals+1)
	case s.Count != len(v.covered):
		return v.fault("has seal %d over %s, but the number of checkpoints since the seal before is %d: one was left out, or added", s.Number, plural.Count(s.Count, "checkpoint"), len(v.covered))
	case s.Count == 0 || s.Last != v.lastID:
		return v.fault("has seal %d up to checkpoint %s, but the last checkpoint before it is %s", s.Number, s.Last, v.lastID)
	}

	hash := link(v.hash, v.covered)

	// The first seal may also follow the origin, which chains of earlier versions do not.
	if origin := v.head.origin(); s.Number == 1 && origin != nil {
		if bound := link(origin, v.covered); sameHash(bound, s.Hash) {
			hash, v.found.Bound = bound, true
		}
	}

	if !sameHash(hash, s.Hash) {
		return v.fault("has seal %d, whose hash does not match %s and the checkpoints of lines %d to %d: one of them, or this seal, was changed", s.Number, v.before(s.Number), v.first, v.number-1)
	}

	v.hash, v.covered = hash, nil
	v.found.Seals, v.found.Head = s.Number, s.Hash
	return nil
}

// before names what a seal follows.
func (v *verifier) before(seal int64) string {
	if seal == 1 {
		return "the job, the tenant and the times of line 1"
	}
	return "the seal before"
}

func (v *verifier) end(e *end, data []byte) error {
	written, err := json.Marshal(line{End: e})
	if err != nil {
		return err
	}

	switch {
	case v.head.Version != bareVersion && !bytes.Equal(append(written, '\n'), data):
		return v.fault("is not as the end of an audit trail is written: it was changed")
	case e.Checkpoints != v.found.Checkpoints || e.Seals != v.found.Seals:
		return v.fault("says that the file has %d checkpoints and %d seals, but it has %d and %d", e.Checkpoints, e.Seals, v.found.Checkpoints, v.found.Seals)
	case !sameHash(v.hash, e.Head):
		return v.fault("says that the chain ends in the hash %s, but it ends in %x", e.Head, v.hash)
	case v.head.Version != bareVersion && !sameHash(v.lines.Sum(nil), e.File):
		return v.fault("says that the lines before have the hash %s, but they have %x: one of them was changed", e.File, v.lines.Sum(nil))
	}

	v.ended = true
	return nil
}
