package results

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/jsonform"
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

		if err := writeLine(out, jsonform.CheckpointOf(c)); err != nil {
			return err
		}
		// A seal stands behind the last checkpoint that it covers.
		for len(seals) > 0 && seals[0].Last <= c.ID {
			if err := writeLine(out, jsonform.SealOf(seals[0])); err != nil {
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
