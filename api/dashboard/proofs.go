package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A proofLine is a line of what a browser needs to compute the chain of a job's log again.
type proofLine struct {
	Origin []byte  `json:"origin,omitempty"` // of the first line: what the chain begins with
	Key    []byte  `json:"key,omitempty"`    // of a checkpoint: its place
	Record []byte  `json:"record,omitempty"` // the checkpoint as it is stored
	Seal   *sealOf `json:"seal,omitempty"`
}

// A sealOf is a seal behind the checkpoints that it covers.
type sealOf struct {
	Number int64  `json:"number"`
	Count  int    `json:"count"`
	Hash   []byte `json:"hash"`
}

// sendProofs sends the log of a job as it is stored, with its seals.
func (d *Dashboard) sendProofs(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}
	j, err := v.Jobs.GetJob(v, id)
	if err != nil {
		return err
	}

	lines := json.NewEncoder(w)
	query := mapreduce.ListEventsQuery{Job: id, Proofs: true, PageSize: 500}
	for sent := false; ; sent = true {
		page, err := v.Jobs.ListEvents(v, query)
		switch {
		case err != nil && !sent:
			return err
		case err != nil:
			panic(http.ErrAbortHandler) // the browser must see that it has not got all
		case !sent:
			w.Header().Set("Content-Type", "application/jsonl")
			if lines.Encode(proofLine{Origin: chainOrigin(j)}) != nil {
				return nil // the browser has gone
			}
		}

		if sendPage(lines, page) != nil {
			return nil // the browser has gone
		}
		if query.PageToken = page.NextPageToken; query.PageToken == "" {
			return nil
		}
	}
}

func sendPage(lines *json.Encoder, page *mapreduce.EventPage) error {
	seals := page.Seals
	for _, c := range page.Checkpoints {
		if err := lines.Encode(proofLine{Key: c.Proof.Key, Record: c.Proof.Record}); err != nil {
			return err
		}

		for len(seals) > 0 && seals[0].Last == c.ID {
			s := seals[0]
			if err := lines.Encode(proofLine{Seal: &sealOf{s.Number, s.Count, s.Hash}}); err != nil {
				return err
			}
			seals = seals[1:]
		}
	}
	return nil
}

// chainOrigin is what the chain of a job begins with, so that a chain is of one job alone.
func chainOrigin(j *mapreduce.Job) []byte {
	return fmt.Appendf(nil, "audit chain 2: job %q, tenant %q, submitted %d\n", j.ID, j.Spec.Tenant, j.Created.UnixMicro())
}
