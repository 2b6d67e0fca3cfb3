package results

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A UnitLine is a line of units.jsonl.
type UnitLine struct {
	Unit       mapreduce.UnitID     `json:"unit_id"`
	Document   mapreduce.DocumentID `json:"document_id,omitempty"`
	Kind       string               `json:"kind"`
	Level      int                  `json:"level"`
	State      string               `json:"state"`
	Attempts   int                  `json:"attempts"`
	Tokens     int64                `json:"tokens_used"`
	ElapsedMS  float64              `json:"elapsed_ms"`
	ChunkIndex int                  `json:"chunk_index"`
	Chunks     int                  `json:"total_chunks"`
	Confidence float64              `json:"confidence_score"`
	Citations  json.RawMessage      `json:"citations"`
	Errors     []string             `json:"errors"`
	Data       json.RawMessage      `json:"extracted_data"`
	Parked     *Parked              `json:"parked,omitempty"`
}

// Parked is what a unit waits for.
type Parked struct {
	Handle      string  `json:"handle"`
	WakeAfterMS float64 `json:"wake_after_ms"` // 0 if only a call wakes it
	Note        string  `json:"note"`
}

// UnitLineOf returns a unit as JSON shows it.
func UnitLineOf(u *mapreduce.Unit, e Extract) UnitLine {
	l := UnitLine{
		Unit: u.ID, Document: u.Document, Kind: u.Kind.String(), Level: u.Level, State: u.State.String(),
		Attempts: u.Attempts, Tokens: u.Tokens.Total(), ElapsedMS: milliseconds(u.Elapsed),
		ChunkIndex: u.ChunkIndex, Chunks: u.Chunks, Confidence: u.Confidence,
		Citations: orEmpty(e.Citations, "[]"), Errors: u.Errors, Data: orEmpty(e.Data, "{}"),
	}
	if p := u.Parking; p != nil {
		l.Parked = &Parked{Handle: p.Handle, WakeAfterMS: milliseconds(p.WakeAfter), Note: p.Note}
	}
	if l.Errors == nil {
		l.Errors = []string{}
	}
	return l
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// units writes units.jsonl, dag.json, dag.svg, trace.json and the part of
// metrics.json that is about units, in one pass over them.
func (w *writer) units(ctx context.Context) error {
	w.tally.spec, w.tally.levels = &w.job.Spec, make(map[int]*levelTally)
	calls, err := w.dir.scratch(".calls")
	if err != nil {
		return err
	}
	w.tally.calls = list{out: calls, prefix: "    "}
	unpack, err := NewUnpacker(w.job)
	if err != nil {
		return err
	}
	return w.dir.fill("units.jsonl", func(lines *file) error {
		return w.dir.fill("dag.json", func(dag *file) error {
			p := &pass{w: w, unpack: unpack, lines: lines, dag: newDAG(w.job, dag)}
			return p.run(ctx)
		})
	})
}

// A pass is one reading of all units.
type pass struct {
	w      *writer
	unpack *Unpacker
	lines  *file
	dag    *dag
	trace  *traced
}

func (p *pass) run(ctx context.Context) (err error) {
	if p.trace, err = newTrace(p.w); err != nil {
		return err
	}
	if err := p.dag.begin(); err != nil {
		return err
	}
	q := mapreduce.ListUnitsQuery{Job: p.w.config.Job, Outputs: true, Inputs: true}
	if err := eachUnit(ctx, p.w.service, q, p.unit); err != nil {
		return err
	}
	if err := p.dag.end(); err != nil {
		return err
	}
	if err := p.w.dir.fill("dag.svg", p.dag.picture); err != nil {
		return err
	}
	return p.w.dir.fill("trace.json", p.trace.assemble)
}

func (p *pass) unit(u *mapreduce.Unit) error {
	e, err := p.unpack.Unpack(u)
	if err != nil {
		return err
	}
	if err := line(p.lines, UnitLineOf(u, e)); err != nil {
		return err
	}
	if err := p.dag.add(u); err != nil {
		return err
	}
	if err := p.w.tally.add(u); err != nil {
		return err
	}
	return p.trace.add(u)
}

// eachUnit visits the units of a query, in order, each with all that it depends
// on, of which pages may hold a part.
func eachUnit(ctx context.Context, s Service, q mapreduce.ListUnitsQuery, visit func(*mapreduce.Unit) error) error {
	q.PageSize = 1000
	var begun *mapreduce.Unit // goes on with the next page
	for {
		page, err := s.ListUnits(ctx, q)
		if err != nil {
			return err
		}
		for _, u := range page.Units {
			if u, err = joined(begun, u); err != nil {
				return err
			}
			if begun = nil; u.Continues {
				begun = u
				continue
			}
			if err := visit(u); err != nil {
				return fmt.Errorf("unit %s: %w", u.ID, err)
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return nil
		}
	}
}

// joined returns a unit with what the page before had of it.
func joined(begun, u *mapreduce.Unit) (*mapreduce.Unit, error) {
	if begun == nil {
		return u, nil
	}
	if begun.ID != u.ID {
		return nil, fmt.Errorf("units changed while they were read: %s was to go on, and %s came", begun.ID, u.ID)
	}
	begun.DependsOn = append(begun.DependsOn, u.DependsOn...)
	begun.Continues = u.Continues
	return begun, nil
}
