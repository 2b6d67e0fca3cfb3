// Package jsonform has the forms in JSON of units and of events: lines of units.jsonl and audit.jsonl,
// and what the commands units and audit print. What a unit's output holds is decoded here.
//
// It reads nothing and writes nothing, so that files, commands and pages agree about these forms.
package jsonform

import (
	"encoding/json"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A UnitLine is a line of units.jsonl.
type UnitLine struct {
	Unit       mapreduce.UnitID     `json:"unit_id"`
	Document   mapreduce.DocumentID `json:"document_id,omitempty"`
	Kind       string               `json:"kind"`
	Stage      string               `json:"stage,omitempty"` // of the pipeline; none of units that parse
	Level      int                  `json:"level"`
	State      string               `json:"state"`
	Attempts   int                  `json:"attempts"`
	Tokens     int64                `json:"tokens_used"`
	Models     []string             `json:"models,omitempty"` // that answered it: "provider/model", or "provider/model as OWN" if it has another name for itself
	ElapsedMS  float64              `json:"elapsed_ms"`
	ChunkIndex int                  `json:"chunk_index"`
	Chunks     int                  `json:"total_chunks"`
	Confidence float64              `json:"confidence_score"`
	Citations  json.RawMessage      `json:"citations"`
	Errors     []string             `json:"errors"`
	Data       json.RawMessage      `json:"extracted_data"`
	Notes      []string             `json:"notes,omitempty"` // on the document, of units that parse
	Parked     *Parked              `json:"parked,omitempty"`
	LeftOut    int64                `json:"left_out_bytes,omitempty"` // of the output; then there are neither citations nor data
}

// Parked is what a unit waits for.
type Parked struct {
	Handle      string  `json:"handle"`
	WakeAfterMS float64 `json:"wake_after_ms"` // 0 if only a call wakes it
	Note        string  `json:"note"`
}

// UnitLineOf returns the line of a unit.
func UnitLineOf(u *mapreduce.Unit, e Extract) UnitLine {
	l := UnitLine{
		Unit: u.ID, Document: u.Document, Kind: u.Kind.String(), Stage: u.Stage, Level: u.Level, State: u.State.String(),
		Attempts: u.Attempts, Tokens: u.Tokens.Total(), Models: u.Models, ElapsedMS: toMilliseconds(u.Elapsed),
		ChunkIndex: u.ChunkIndex, Chunks: u.Chunks, Confidence: u.Confidence,
		Citations: resultfile.OrEmpty(e.Citations, "[]"), Errors: u.Errors, Data: resultfile.OrEmpty(e.Data, "{}"), Notes: e.Notes,
	}

	if p := u.Parking; p != nil {
		l.Parked = &Parked{Handle: p.Handle, WakeAfterMS: toMilliseconds(p.WakeAfter), Note: p.Note}
	}

	if l.Errors == nil {
		l.Errors = []string{}
	}
	return l
}

func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
