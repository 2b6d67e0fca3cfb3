package show

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/jsonform"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/view"
)

// Versions of the format. Files of the first have no hash of their lines, and no time of
// submission, without which nothing says that a chain is of the job that the head names.
const (
	version     = 2
	bareVersion = 1
)

// A file of an audit trail has a JSON object on each line: a head, checkpoints each with its
// record as it is stored, behind those that a seal covers the seal, and an end, so that a file
// that was cut off shows it. The readable part of a checkpoint is compared with its record, and
// the records with the chain of seals.

// A line is one line of a file: one of its fields is set.
type line struct {
	Head       *head                `json:"audit,omitempty"`
	Checkpoint *jsonform.Checkpoint `json:"checkpoint,omitempty"`
	Key        []byte               `json:"key,omitempty"`    // of the checkpoint: its place in the chain
	Record     []byte               `json:"record,omitempty"` // the checkpoint as it is stored
	Seal       *jsonform.Seal       `json:"seal,omitempty"`
	End        *end                 `json:"end,omitempty"`
}

// A head begins a file.
type head struct {
	Version  int                `json:"version"`
	Job      mapreduce.JobID    `json:"job_id,omitempty"` // none of the log of a tenant
	Tenant   mapreduce.TenantID `json:"tenant"`
	Created  string             `json:"created_at,omitempty"`
	Exported string             `json:"exported_at"`
}

// origin returns what the chain of a file begins with, nil if the head does not say.
func (h *head) origin() []byte {
	created, err := time.Parse(time.RFC3339Nano, h.Created)
	switch {
	case h.Version == bareVersion:
		return nil
	case h.Job == "":
		return records.LogOrigin(h.Tenant)
	case err != nil:
		return nil
	}
	return view.ChainOrigin(h.Job, h.Tenant, created)
}

// An end ends a file.
type end struct {
	Checkpoints int    `json:"checkpoints"`
	Seals       int64  `json:"seals"`
	Head        string `json:"head"`                  // hash of the last seal, in hexadecimal
	File        string `json:"file_sha256,omitempty"` // of all lines before this one
}

// pageSize is how many checkpoints are asked for at a time.
const pageSize = 500

// WriteAudit writes the audit trail of a job; or, if q names none, the log of a tenant.
func WriteAudit(ctx context.Context, w io.Writer, c mapreduce.Client, q mapreduce.ListEventsQuery, now time.Time) error {
	lines := sha256.New()
	out := json.NewEncoder(io.MultiWriter(w, lines))
	h := head{Version: version, Job: q.Job, Tenant: q.Tenant, Exported: now.UTC().Format(time.RFC3339)}

	if q.Job != "" {
		job, err := c.GetJob(ctx, q.Job)
		if err != nil {
			return err
		}
		h.Tenant, h.Created = job.Spec.Tenant, job.Created.UTC().Format(time.RFC3339Nano)
	}

	if err := out.Encode(line{Head: &h}); err != nil {
		return err
	}

	q.Proofs, q.Verify, q.PageSize, q.PageToken = true, false, pageSize, ""
	var last end
	for {
		page, err := c.ListEvents(ctx, q)
		if err != nil {
			return err
		}
		if err := writePage(out, page, &last); err != nil {
			return err
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			// The end holds the hash of all lines before it.
			last.File = hex.EncodeToString(lines.Sum(nil))
			return out.Encode(line{End: &last})
		}
	}
}

func writePage(out *json.Encoder, page *mapreduce.EventPage, last *end) error {
	seals := page.Seals
	for _, c := range page.Checkpoints {
		shown := jsonform.CheckpointOf(c)
		shown.Progress = nil // which seals have
		if err := out.Encode(line{Checkpoint: &shown, Key: c.Proof.Key, Record: c.Proof.Record}); err != nil {
			return err
		}
		last.Checkpoints++

		for len(seals) > 0 && seals[0].Last == c.ID {
			s := jsonform.SealOf(seals[0])
			if err := out.Encode(line{Seal: &s}); err != nil {
				return err
			}
			last.Seals, last.Head = s.Number, s.Hash
			seals = seals[1:]
		}
	}
	return nil
}

// link returns the hash of a seal behind one that has a hash, or behind the origin of the
// chain, over checkpoints.
func link(before []byte, covered []line) []byte {
	h := sha256.New()
	h.Write(before)
	for _, l := range covered {
		value := sha256.Sum256(l.Record)
		h.Write(l.Key)
		h.Write(value[:])
	}
	return h.Sum(nil)
}

// sameHash reports whether a hash is that which a line has, as it is written: in small letters.
func sameHash(hash []byte, text string) bool { return hex.EncodeToString(hash) == text }
