package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A finding in a fold: an option of a question, in its place in the input.
type foldItem struct {
	question, option int // from 0
	order            merge.Order
	text             string
}

// foldItems are the options of all questions in the order of the input.
func (m *mergeRun) foldItems(open []*question) []foldItem {
	var items []foldItem
	for i, q := range open {
		for j, o := range q.options {
			text := fmt.Sprintf("QUESTION %d (%s): %s%s\n", i+1, q.kind, q.ask, o.optionText(j+1))
			items = append(items, foldItem{i, j, o.order, text})
		}
	}
	slices.SortStableFunc(items, func(a, b foldItem) int { return a.order.Compare(b.order) })
	return items
}

// foldQuestions asks all questions over as many calls as it takes.
func (m *mergeRun) foldQuestions(ctx context.Context, open []*question) error {
	items := m.foldItems(open)
	carried := pack.Carried(m.room, m.Reserved)

	sizes := make([]int64, len(items))
	for i := range items {
		// What is carried and the frame of the message leave room for so much of one
		// finding.
		items[i].text = m.fitTokens(items[i].text, m.room-carried-roundWords)
		sizes[i] = int64(m.Agent.Count.Count(items[i].text)) + roundWords
	}

	pad, given := "", make(map[string]bool)
	calls := pack.Fold(sizes, m.room, carried)
	for n, call := range calls {
		var b strings.Builder
		for _, p := range call.Parts {
			b.WriteString(items[p.Item].text)
			it := items[p.Item]
			for _, name := range open[it.question].options[it.option].refs {
				given[name] = true
			}
		}

		res, err := m.CompleteRequest(ctx, m.FoldRequest(len(open), n, len(calls), pad, carried, b.String()))
		if err != nil {
			return m.allowUnanswered(ctx, err)
		}

		var a struct {
			Scratchpad string    `json:"scratchpad"`
			Answers    []decided `json:"answers"`
		}
		if err := json.Unmarshal(res.Answer, &a); err != nil {
			return err
		}

		pad = m.trimScratchpad(a.Scratchpad, given, carried)
		// Answers before the last call are of a part of the findings alone.
		if n == len(calls)-1 {
			m.applyAll(open, a.Answers)
		}
	}
	return nil
}

// applyAll applies answers, the first of each question.
func (m *mergeRun) applyAll(open []*question, answers []decided) {
	done := make(map[int]bool)
	for _, a := range answers {
		if a.Question >= 1 && a.Question <= len(open) && !done[a.Question] {
			done[a.Question] = true
			m.applyAnswer(open[a.Question-1], a)
		}
	}
}

// anyRef matches a text with the form of a reference.
var anyRef = regexp.MustCompile(`REF_[0-9A-Za-z]+`)

// trimScratchpad is a scratchpad as it is carried on: with no references but those
// that were given by then, and no longer than it may be.
func (m *mergeRun) trimScratchpad(text string, given map[string]bool, most int64) string {
	made := 0
	text = anyRef.ReplaceAllStringFunc(strings.ToValidUTF8(text, ""), func(name string) string {
		if given[name] {
			return name
		}
		made++
		return refs.Unknown
	})

	if made > 0 {
		m.NoteError(fmt.Sprintf("%d references of a scratchpad were never given, and removed", made), nil)
	}

	fit := m.fitTokens(text, most)
	if len(fit) < len(text) {
		m.NoteError(fmt.Sprintf("a scratchpad was cut to %d tokens", most), nil)
	}

	return fit
}

// fitTokens returns as much of the beginning of a text as has no more than so many
// tokens. Each round shortens the text by at least one character: it removes the line
// break that the round before added, which would make up for what is cut otherwise.
func (m *mergeRun) fitTokens(text string, most int64) string {
	for n := int64(m.Agent.Count.Count(text)); n > most; n = int64(m.Agent.Count.Count(text)) {
		r := []rune(strings.TrimSuffix(text, "\n"))
		keep := min(len(r)*int(max(0, most))/int(max(1, n)), len(r)-1)
		if keep <= 1 {
			return ""
		}
		text = string(r[:keep]) + "\n"
	}
	return text
}
