package results

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// endTimes maps units to the times when they ended. Its keys are the first half of
// the SHA-256 of the units' names, so that a million of them need little memory.
type endTimes map[[16]byte]int64 // microseconds since 1970

func endingKey(u mapreduce.UnitID) [16]byte {
	sum := sha256.Sum256([]byte(u))
	return [16]byte(sum[:16])
}

func (e endTimes) add(u mapreduce.UnitID, t time.Time) { e[endingKey(u)] = t.UnixMicro() }

func (e endTimes) timeOf(u mapreduce.UnitID) time.Time {
	if micros, ok := e[endingKey(u)]; ok {
		return time.UnixMicro(micros)
	}
	return time.Time{}
}

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

// writeAudit writes audit.jsonl.
func (w *writer) writeAudit(ctx context.Context) error {
	w.ended = make(endTimes)
	return w.dir.WriteFile("audit.jsonl", func(out *folder.File) error {
		q := mapreduce.ListEventsQuery{Job: w.config.Job, PageSize: 1000}
		for {
			page, err := w.service.ListEvents(ctx, q)
			if err != nil {
				return err
			}
			if err := w.writeEvents(out, page); err != nil {
				return err
			}
			if q.PageToken = page.NextPageToken; q.PageToken == "" {
				return nil
			}
		}
	})
}

func (w *writer) writeEvents(out *folder.File, page *mapreduce.EventPage) error {
	seals := page.Seals
	for _, c := range page.Checkpoints {
		for _, refs := range [][]mapreduce.UnitRef{c.Completed, c.Failed} {
			for _, r := range refs {
				w.ended.add(r.Unit, c.Time)
			}
		}

		if err := writeLine(out, CheckpointOf(c)); err != nil {
			return err
		}
		// A seal stands behind the last checkpoint that it covers.
		for len(seals) > 0 && seals[0].Last <= c.ID {
			if err := writeLine(out, SealOf(seals[0])); err != nil {
				return err
			}
			seals = seals[1:]
		}
	}
	return nil
}

// writeLine writes v as a line of JSON.
func writeLine(out *folder.File, v any) error {
	data, err := resultfile.Encode(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", data)
	return err
}
