package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// What a stream holds: events, of which those that end an item or the answer have all of it.
type (
	event struct {
		Type     string   `json:"type"`
		Item     item     `json:"item"`
		Response response `json:"response"`
	}
	response struct {
		Model      string          `json:"model"`
		Status     string          `json:"status"`
		Error      json.RawMessage `json:"error"`
		Output     []item          `json:"output"`
		Usage      usage           `json:"usage"`
		Tier       string          `json:"service_tier"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	}
	item struct {
		Type    string `json:"type"`
		Content []struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		} `json:"content"`
		ID        string          `json:"id"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Summary   json.RawMessage `json:"summary"`
		Sealed    string          `json:"encrypted_content"`
	}
	usage struct {
		Input        wire.Count `json:"input_tokens"`
		Output       wire.Count `json:"output_tokens"`
		InputDetails struct {
			Cached     wire.Count `json:"cached_tokens"`
			CacheWrite wire.Count `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning wire.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
)

// A turn is what came of a model: its items, and the end.
type turn struct {
	items []item
	end   response
}

// A sealedItem is what a model thought, as it is handed back. It has no id: nothing is stored at
// the vendor that has it.
type sealedItem struct {
	Type    string          `json:"type"`
	Summary json.RawMessage `json:"summary"`
	Sealed  string          `json:"encrypted_content"`
}

// usage subtracts the tokens of the cache from those of the prompt, which include them.
func (t *turn) usage() llm.Usage {
	u := t.end.Usage
	read, write := u.InputDetails.Cached.N, u.InputDetails.CacheWrite.N
	if read <= u.Input.N {
		write = min(write, u.Input.N-read)
	}
	return llm.Usage{
		Input: u.Input.N - read - write, CacheRead: read, CacheWrite: write,
		Output: u.Output.N, Reported: u.Input.Known && u.Output.Known,
	}.IfPossible()
}

// toResponse is the finished turn.
func (t *turn) toResponse(c *wire.Call, tool bool) (*llm.Response, error) {
	r := &llm.Response{
		Model: llm.Model(t.end.Model), RequestID: c.RequestID(), Stop: t.stop(), Usage: t.usage(), Limits: c.ParseLimits(), Tier: llm.TierNamed(t.end.Tier),
	}
	thinking, thought := t.end.Usage.OutputDetails.Reasoning, false
	var refusal strings.Builder
	for i, it := range t.items {
		thought = thought || it.Type == "reasoning"
		part, refused, err := it.part(i)
		refusal.WriteString(refused)
		if err != nil && r.Stop.Cut() {
			continue
		}
		if err != nil {
			e := c.FailError(err)
			e.Usage = r.Usage
			return nil, e
		}
		if part.Text != "" || part.Call != nil || part.Opaque != nil {
			r.Parts = append(r.Parts, part)
		}
	}

	// What was written can be told from what was thought only if the latter is counted or
	// absent.
	if r.Usage.Reported && (thinking.Known || !thought) {
		r.Written = new(min(max(r.Usage.Output-thinking.N, 0), r.Usage.Output))
	}
	if len(r.Calls()) > 0 && r.Stop == llm.StopEnd {
		r.Stop = llm.StopTool
	}
	if refusal.Len() > 0 {
		r.Stop, r.Reason = llm.StopRefusal, c.CleanText(refusal.String())
	}
	r.Answer = wire.AnswerOf(r, tool)
	return r, nil
}

// part returns an item as a part, and what it says of a refusal. Kinds that are not known say
// nothing: they are of the vendor's own tools.
func (it item) part(i int) (part llm.Part, refusal string, err error) {
	switch it.Type {
	case "message":
		for _, piece := range it.Content {
			part.Text += piece.Text
			refusal += piece.Refusal
		}
	case "function_call":
		part, err = it.call(i)
	case "reasoning":
		if it.Sealed == "" {
			return part, "", nil // what is not sealed cannot be handed back
		}

		summary := it.Summary
		if len(summary) == 0 {
			summary = json.RawMessage("[]")
		}
		part.Opaque, err = json.Marshal(sealedItem{"reasoning", summary, it.Sealed})
	}

	return part, refusal, err
}

// call returns the call of a tool. What a model wrote as its answer is read elsewhere if it is no
// JSON.
func (it item) call(i int) (llm.Part, error) {
	input, ok := wire.ToolInput(it.Arguments)
	if !ok && it.Name == llm.AnswerTool {
		return llm.Part{Text: it.Arguments}, nil
	}
	if !ok {
		return llm.Part{}, llm.NewError(llm.Garbled, "the input for tool %s is no JSON", it.Name)
	}
	id := cmp.Or(it.CallID, it.ID, fmt.Sprintf("call_%d", i))
	return llm.Part{Call: &llm.ToolCall{ID: id, Name: it.Name, Input: input}}, nil
}

// stop translates the vendor's words for the end.
func (t *turn) stop() llm.Stop {
	if t.end.Status != "incomplete" {
		return llm.StopEnd
	}
	switch t.end.Incomplete.Reason {
	case "max_output_tokens", "max_tokens":
		return llm.StopMax
	case "content_filter":
		return llm.StopFilter
	}
	return llm.Stop("openai:" + t.end.Incomplete.Reason)
}
