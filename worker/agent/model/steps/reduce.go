package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// runReduce merges as the schema decides, and asks the model about what the schema
// leaves open. It asks nothing about records that others may still join: such a question
// may be settled later.
func (s *attempt) runReduce(ctx context.Context) (*agent.Result, error) {
	asks := s.Merge == settings.MergeModel || s.Merge == settings.MergeBoth && s.Task.Kind == mapreduce.KindFinal

	var judge output.Judge
	if asks {
		judge = func(pairs []merge.Pair, entries map[string]*output.Entry) ([]bool, error) {
			return s.judgePairs(ctx, pairs, entries)
		}
	}

	room := unit.Room(s.Task.Spec)
	if s.Merge == settings.MergeModel {
		room = 0 // what it decided on a level below has to be passed on
	}

	out, err := unit.Reduce(s.Schema, s.Task, room, judge)
	if err != nil {
		return nil, err
	}

	if n := out.Unmerged(); asks && n > 0 {
		s.NoteError(fmt.Sprintf("%d entities with too many records to hold were left as the schema decides them", n), nil)
	}

	if asks {
		m := &mergeRun{attempt: s, out: out, issued: out.Issue(), joined: make(map[candidatePlace]string)}
		if err := m.askQuestions(ctx, m.listQuestions()); err != nil {
			return nil, err
		}
	}

	res, err := unit.Reduced(out)
	if err != nil {
		return nil, err
	}
	res.Errors = s.Notes
	return res, nil
}

// judgePairs has the model say which pairs of entities are one.
func (s *attempt) judgePairs(ctx context.Context, pairs []merge.Pair, entries map[string]*output.Entry) ([]bool, error) {
	m := &mergeRun{attempt: s, issued: new(output.Output).Issue()}
	verdicts := make([]bool, len(pairs))

	var open []*question
	for i, pair := range pairs {
		a, b := entries[pair.A], entries[pair.B]
		if a == nil || b == nil {
			continue // one of them is not here
		}
		open = append(open, &question{
			kind: askSame, ask: "field " + strings.Join(s.Schema.Key, ", ") + ": are these two records about the same?\n",
			options: []option{m.recordOption(a), m.recordOption(b)}, yes: func() { verdicts[i] = true },
		})
	}

	return verdicts, m.askQuestions(ctx, open)
}

// A mergeRun is a reduce that asks a model.
type mergeRun struct {
	*attempt
	out    *output.Output
	issued *output.Issued
	joined map[candidatePlace]string // into which other
	room   int64                     // tokens of questions in one call
}

// Tokens that questions and answers take besides their texts.
const (
	answerOf   = 160 // a decision, with its reason and references
	roundWords = 24  // a question
)

// askQuestions asks questions, and applies the answers.
func (m *mergeRun) askQuestions(ctx context.Context, open []*question) error {
	if len(open) == 0 {
		return nil
	}

	m.room = m.roomFor()
	if m.room < model.MinDocument {
		m.NoteError("the context window leaves no room to ask about what differs", nil)
		return nil
	}

	if m.Budget > 0 {
		m.room = min(m.room, max(m.Budget, model.MinDocument))
	}

	if m.Folds && m.out != nil {
		return m.foldQuestions(ctx, open)
	}

	// A question that is too large for one call is asked in several, by itself.
	var fit []*question
	for _, q := range open {
		if m.questionSize(q) <= m.room {
			fit = append(fit, q)
			continue
		}
		if err := m.askFolded(ctx, q, m.room); err != nil {
			return err
		}
	}

	sizes := make([]int64, len(fit))
	for i, q := range fit {
		sizes[i] = m.questionSize(q)
	}

	for _, bin := range pack.InOrder(sizes, m.room) {
		batch := make([]*question, len(bin.Items))
		for i, at := range bin.Items {
			batch[i] = fit[at]
		}
		if err := m.askBatches(ctx, batch); err != nil {
			return err
		}
	}

	return nil
}

// roomFor is how much of a prompt questions may take: what the job says that a
// reduce may read, or the model, less the instructions.
func (m *mergeRun) roomFor() int64 {
	limit := int64(m.Task.Spec.ReduceContextLimit)
	if limit == 0 {
		limit = mapreduce.DefaultReduceContextLimit
	}
	if m.Narrowest > 0 {
		limit = min(limit, m.Narrowest*4/5-m.Bound)
	}
	return limit - m.Agent.WithForm(m.Program, m.questionsRequest(nil)).Prompt
}

func (m *mergeRun) questionSize(q *question) int64 {
	return int64(m.Agent.Count.Count(q.questionText())) + roundWords
}

// askBatches asks questions, no more at once than an answer has room for.
func (m *mergeRun) askBatches(ctx context.Context, all []*question) error {
	most := int(max(1, m.MaxAnswer*3/4/answerOf))
	for batch := range slices.Chunk(all, most) {
		if err := m.askBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// askBatch asks questions in one call, or in two of half of them if it is too large.
func (m *mergeRun) askBatch(ctx context.Context, batch []*question) error {
	res, err := m.CompleteRequest(ctx, m.questionsRequest(batch))
	switch {
	case model.IsTooLarge(err) && len(batch) > 1:
		half := len(batch) / 2
		if err := m.askBatch(ctx, batch[:half]); err != nil {
			return err
		}
		return m.askBatch(ctx, batch[half:])
	case model.IsTooLarge(err) && len(batch[0].options) > 2:
		return m.askFolded(ctx, batch[0], m.questionSize(batch[0])/2)
	case err != nil:
		return m.allowUnanswered(ctx, err)
	}

	answers, err := readDecisions(res.Answer)
	if err != nil {
		return err
	}

	for _, a := range answers {
		if a.Question >= 1 && a.Question <= len(batch) {
			m.applyAnswer(batch[a.Question-1], a)
		}
	}

	return nil
}

// askFolded asks one question in several calls, each with as many options as fit: the
// option that the call before chose or wrote, and some more. If a call chooses none, no
// option was compared with all others, and the schema's decision remains.
func (m *mergeRun) askFolded(ctx context.Context, q *question, room int64) error {
	sizes := make([]int64, len(q.options))
	for i, o := range q.options {
		sizes[i] = int64(m.Agent.Count.Count(o.optionText(i + 1)))
	}

	var carried *option
	for _, call := range pack.Fold(sizes, room-m.questionSize(&question{ask: q.ask}), 0) {
		part := *q
		part.options = nil
		// The option chosen so far competes with each next lot.
		if carried != nil {
			part.options = append(part.options, *carried)
		}
		for _, p := range call.Parts {
			if p.Start == 0 { // an option is shown shortened, and asked about once
				part.options = append(part.options, q.options[p.Item])
			}
		}

		if len(part.options) < 2 {
			carried = firstOption(part.options)
			continue
		}

		res, err := m.CompleteRequest(ctx, m.questionsRequest([]*question{&part}))
		if err != nil {
			return m.allowUnanswered(ctx, err)
		}

		answers, err := readDecisions(res.Answer)
		if err != nil {
			return err
		}

		carried = nil
		if len(answers) > 0 {
			carried = m.chosenOption(&part, answers[0])
		}
		if carried == nil {
			return nil
		}
	}

	if carried != nil {
		m.applyDecision(q, *carried)
	}
	return nil
}

func firstOption(all []option) *option {
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// allowUnanswered lets what the schema decided stand where no attempt would be
// answered. It is the error itself where another attempt may be, or where the
// job wants a model's word.
func (m *mergeRun) allowUnanswered(ctx context.Context, err error) error {
	if m.Merge == settings.MergeBoth && m.InVain(ctx, err) {
		m.NoteError("what differs was left as the schema decides it", err)
		return nil
	}
	return err
}
