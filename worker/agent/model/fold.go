package model

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
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/llm"
)

// A fold reads what is open in the order of the input, as much at a time as a call
// may read, and carries a scratchpad from call to call: notes in the model's own
// words, within the part of the budget that a call may pass on, as plans have it. The last call
// decides. So a later finding can be judged by those before it, however many there
// are.

const foldInstructions = `
HOW THE FINDINGS COME:
They come in the order of the input, some in each message. With each message you are given your scratchpad, which holds what you noted of the findings before. Answer with the scratchpad as it is to be now: all that you need of the findings so far, with the numbers of questions and options, and the references behind them as [REF_…]. What is not in it is forgotten. The message says how long it may be.
The last message says so. With it, answer every question, also those of findings that came before; until then answers is empty.
`

const foldSchema = `{"type":"object","additionalProperties":false,"required":["scratchpad","answers"],"properties":{
	"scratchpad":{"type":"string","description":"your notes, in place of those before"},
	"answers":` + answersSchema + `}}`

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
	carried := pack.Carried(m.room, m.reserved)

	sizes := make([]int64, len(items))
	for i := range items {
		// What is carried and the frame of the message leave room for so much of one
		// finding.
		items[i].text = m.fitTokens(items[i].text, m.room-carried-roundWords)
		sizes[i] = int64(m.agent.count.Count(items[i].text)) + roundWords
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

		res, err := m.completeRequest(ctx, m.foldRequest(len(open), n, len(calls), pad, carried, b.String()))
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
		m.noteError(fmt.Sprintf("%d references of a scratchpad were never given, and removed", made), nil)
	}

	fit := m.fitTokens(text, most)
	if len(fit) < len(text) {
		m.noteError(fmt.Sprintf("a scratchpad was cut to %d tokens", most), nil)
	}

	return fit
}

// fitTokens returns as much of the beginning of a text as has no more than so many
// tokens. Each round shortens the text by at least one character: it removes the line
// break that the round before added, which would make up for what is cut otherwise.
func (m *mergeRun) fitTokens(text string, most int64) string {
	for n := int64(m.agent.count.Count(text)); n > most; n = int64(m.agent.count.Count(text)) {
		r := []rune(strings.TrimSuffix(text, "\n"))
		keep := min(len(r)*int(max(0, most))/int(max(1, n)), len(r)-1)
		if keep <= 1 {
			return ""
		}
		text = string(r[:keep]) + "\n"
	}
	return text
}

// foldRequest asks about some of the findings.
func (p *program) foldRequest(questions, n, of int, pad string, carried int64, findings string) *llm.Request {
	mark := prompt.Mark(pad, findings)
	var b strings.Builder
	fmt.Fprintf(&b, "There are %d questions. This is message %d of %d.", questions, n+1, of)
	if n == of-1 {
		b.WriteString(" It is the last: answer every question now.\n")
	} else {
		// Models count words better than tokens, of which a word has about one and a half.
		fmt.Fprintf(&b, " More follow: answers is empty, and the scratchpad has at most %d words.\n", max(1, carried*2/3))
	}

	if pad != "" {
		fmt.Fprintf(&b, "<scratchpad %s>\n%s\n</scratchpad %s>\n", mark, pad, mark)
	}

	fmt.Fprintf(&b, "The findings stand between the lines <findings %s> and </findings %s>.\n<findings %s>\n%s</findings %s>\n", mark, mark, mark, findings, mark)
	return &llm.Request{
		Model: p.Model, System: p.foldSystem, Schema: p.padForm, MaxTokens: p.MaxAnswer,
		Messages: []llm.Message{llm.Say(llm.User, b.String())},
	}
}
