package steps

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/llm"
)

// isShort reports whether an answer about a passage is to have values alone: if what that is likely to
// save of the answer costs more than to read the passage once more. How long a list of records is nobody
// knows before. Pages that are shown are read once.
func (s *attempt) isShort(text prompt.Passage, shown model.Pages) bool {
	if s.Short == nil || len(shown.Parts) > 0 {
		return false
	}
	count := s.Agent.Count
	return int64(count.Count(text.Before)+count.Count(text.Core)+count.Count(text.After)) <= s.MostShort()
}

// read takes an answer about a passage. Of one with values alone it finds where these stand, and asks,
// once for all, where those stand whose place is not clear.
func (s *attempt) read(ctx context.Context, req *llm.Request, res *llm.Response, r *answerReading) error {
	if !r.short {
		r.tokens = writtenOf(res)
		return r.readAnswer(ctx, res.Answer)
	}

	answers, none, err := s.Form.ReadShort(res.Answer)
	if err != nil {
		return err
	}
	r.reason, r.tokens = found.Line(none), writtenOf(res)

	text := found.NewText(r.aligner.Chunk)
	if open := text.Settle(s.Form, answers); len(open) > 0 {
		if err := s.askPlaces(ctx, req, res, r, text, answers, open); err != nil {
			return err
		}
	}
	return r.place(ctx, answers)
}

// place looks for the quotes of an answer.
func (r *answerReading) place(ctx context.Context, answers []form.Record) error {
	places, note, err := unit.Find(ctx, r.task, r.aligner, found.Quotes(r.form, answers))
	if err != nil {
		return err
	}
	r.note = note

	// Where pages were shown the text was recognised, and may differ from what the model reads.
	if len(r.shown) > 0 {
		unit.Resemble(r.task.Text, r.aligner, found.Quotes(r.form, answers), places)
	}
	shown := found.Pages{Document: string(r.task.Text.Document), Shown: r.shown, Line: r.lineOf}
	r.records, r.faults = found.SeenRecords(r.form, answers, places, shown)
	return nil
}

// mostOpen bounds the values that are asked about in one call. What is beyond it stays without a place.
const mostOpen = 500

// askPlaces asks where values stand, and gives these the passages. Values of which the model says
// nothing stay without. If it cannot be asked, or does not answer in the form, the others remain.
func (s *attempt) askPlaces(ctx context.Context, req *llm.Request, res *llm.Response, r *answerReading, text found.Text, answers []form.Record, open []found.Open) error {
	asked := open[:min(len(open), mostOpen)]
	next := model.FollowUp(req, res.Answer, model.PlacesQuestion(s.Form, answers, asked))
	next.Schema = s.Places
	more, err := s.CompleteRequest(ctx, next)
	if err != nil {
		if !model.IsTooLarge(err) {
			err = s.dropGleanError(ctx, err)
		}
		return err
	}
	if more, n := writtenOf(more), r.tokens; more >= 0 && n >= 0 {
		r.tokens = n + more
	}

	var told struct {
		Places []struct {
			Number   int `json:"number"`
			Passages []struct{ Begin, End string }
		} `json:"places"`
	}
	if err := json.Unmarshal(more.Answer, &told); err != nil {
		return err
	}
	for _, one := range told.Places {
		if one.Number < 1 || one.Number > len(asked) {
			continue
		}
		of := asked[one.Number-1]
		to := &answers[of.Record].Fields[of.Field.Key][of.Finding]
		for _, p := range one.Passages {
			if q := text.Between(p.Begin, p.End); q != "" && !slices.Contains(to.Quotes, q) {
				to.Quotes = append(to.Quotes, q)
			}
		}
	}
	return nil
}
