package jsonform

import (
	"encoding/hex"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A UnitRef is the outcome of one attempt.
type UnitRef struct {
	Unit    mapreduce.UnitID `json:"unit_id"`
	Attempt int              `json:"attempt"`
	SHA256  string           `json:"sha256,omitempty"` // of the output
	Tokens  int64            `json:"tokens"`
}

// A Checkpoint is a line of audit.jsonl, and an entry of the output of the command
// audit.
type Checkpoint struct {
	ID        string    `json:"checkpoint_id"`
	Time      *string   `json:"timestamp"`
	Kind      string    `json:"kind"`
	Node      string    `json:"node"`
	State     string    `json:"state,omitempty"`
	Message   string    `json:"message,omitempty"`
	Completed []UnitRef `json:"completed_units,omitempty"`
	Failed    []UnitRef `json:"failed_units,omitempty"`
	Tokens    int64     `json:"tokens"`
	Progress  *Progress `json:"progress,omitempty"`
	Principal string    `json:"principal,omitempty"` // whose call caused it
	Tenant    string    `json:"tenant,omitempty"`    // that the principal called for
	Deleted   *Deleted  `json:"deleted,omitempty"`   // of the log of a tenant
}

// A Deleted is what is kept of a job that was deleted.
type Deleted struct {
	Job       mapreduce.JobID `json:"job_id"`
	Status    string          `json:"status"` // that it had
	Created   *string         `json:"created_at"`
	Ended     *string         `json:"ended_at,omitempty"`
	Retention string          `json:"retention,omitempty"` // the rule that has deleted it
	Seals     int64           `json:"seals"`
	AuditHead string          `json:"audit_head"`
}

func deletedOf(d *mapreduce.DeletedJob) *Deleted {
	if d == nil {
		return nil
	}
	return &Deleted{
		Job: d.Job, Status: d.State.String(), Created: formatTime(d.Created), Ended: formatTime(d.Ended),
		Retention: d.Rule, Seals: d.Seals, AuditHead: hex.EncodeToString(d.Head),
	}
}

// Progress is how far the job was by a checkpoint, at every --checkpoint-interval.
type Progress struct {
	Completed int64 `json:"completed_units"`
	Tokens    int64 `json:"tokens"`
}

// A Seal is a line of audit.jsonl. It follows the last checkpoint that it covers.
type Seal struct {
	Number int64  `json:"seal"`
	Count  int    `json:"checkpoints"`
	Last   string `json:"last_checkpoint_id"`
	Hash   string `json:"hash"`
}

// CheckpointOf returns the JSON form of a checkpoint.
func CheckpointOf(c *mapreduce.Checkpoint) Checkpoint {
	out := Checkpoint{
		ID: c.ID, Time: formatTime(c.Time), Kind: c.Kind.String(), Node: string(c.Node), Message: c.Message,
		Completed: unitRefs(c.Completed), Failed: unitRefs(c.Failed), Tokens: c.Tokens.Total(),
		Principal: c.Principal, Tenant: string(c.Tenant), Deleted: deletedOf(c.Deleted),
	}

	if c.State != mapreduce.JobUnknown {
		out.State = c.State.String()
	}

	if p := c.Progress; p != nil {
		out.Progress = &Progress{Completed: p.Completed, Tokens: p.Tokens.Total()}
	}

	return out
}

// SealOf returns the JSON form of a seal.
func SealOf(s *mapreduce.Seal) Seal {
	return Seal{Number: s.Number, Count: s.Count, Last: s.Last, Hash: hex.EncodeToString(s.Hash)}
}

func unitRefs(refs []mapreduce.UnitRef) []UnitRef {
	var out []UnitRef
	for _, r := range refs {
		out = append(out, UnitRef{Unit: r.Unit, Attempt: r.Attempt, SHA256: hex.EncodeToString(r.SHA256), Tokens: r.Tokens.Total()})
	}
	return out
}

// formatTime formats a time for the files. It returns nil for the zero time.
func formatTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000000Z")
	return &s
}
