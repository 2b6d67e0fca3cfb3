package model

import (
	"encoding/json"
	"slices"

	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/llm"
)

// PassageRequest returns the request for the records of a passage. Pages come before the text, as
// vendors advise.
func (p *Program) PassageRequest(system string, answer *llm.Schema, text prompt.Passage, shown Pages) *llm.Request {
	text.Pages = shown.Numbers
	said := llm.Message{Role: llm.User, Parts: append(slices.Clip(shown.Parts), llm.Part{Text: text.Message()})}
	return &llm.Request{
		Model: p.Model, System: system, Schema: answer, MaxTokens: p.MaxAnswer, Cache: llm.FiveMinutes,
		Messages: []llm.Message{said},
	}
}

// FollowUp returns the request that continues the conversation after an answer.
func FollowUp(req *llm.Request, answer json.RawMessage, text string) *llm.Request {
	next := *req
	next.Messages = append(slices.Clip(req.Messages),
		llm.Say(llm.Assistant, string(answer)),
		llm.Say(llm.User, text))
	return &next
}

// Pages are pictures of pages of a document, as a model is shown them.
type Pages struct {
	Numbers []int
	Parts   []llm.Part
}
