package fakellm

import (
	"encoding/json"
	"errors"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// A responsesWire speaks OpenAI's Responses. Nothing is stored: what a model thought is sealed, and has
// to come back as it was with the calls that it made.
type responsesWire struct{}

// A responsesItem is an item of the input.
type responsesItem struct {
	Type, Role string
	Content    content
	CallID     string `json:"call_id"`
	Name       string
	Arguments  string
	Output     string
	Sealed     string `json:"encrypted_content"`
}

// A responsesRequest is what is asked.
type responsesRequest struct {
	Model        string
	Stream       bool
	Store        *bool
	Max          int64 `json:"max_output_tokens"`
	Instructions string
	Include      []string
	Input        []responsesItem
	Tools        []struct {
		Name       string
		Parameters json.RawMessage
	}
	ToolChoice responsesChoice `json:"tool_choice"`
	Text       struct {
		Format struct{ Schema json.RawMessage }
	}
}

// A responsesChoice is tool_choice: a word, or a function.
type responsesChoice struct {
	none bool
	name string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *responsesChoice) UnmarshalJSON(raw []byte) error {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		c.none = word == "none"
		return nil
	}
	var of struct{ Name string }
	err := json.Unmarshal(raw, &of)
	c.name = of.Name
	return err
}

func (responsesWire) readCall(c *Call, body []byte) error {
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	c.Model, c.MaxTokens, c.System, c.Schema = in.Model, in.Max, in.Instructions, in.Text.Format.Schema

	c.prompt = append(c.prompt, meter.Section{Text: in.Instructions})
	for _, t := range in.Tools {
		c.prompt = append(c.prompt, meter.Section{Text: t.Name + string(t.Parameters)})
		c.Tools = append(c.Tools, t.Name)
		if t.Name == in.ToolChoice.name {
			c.Tool, c.Schema = t.Name, t.Parameters
		}
	}

	c.NoCalls = in.ToolChoice.none
	if err := c.readItems(in.Input); err != nil {
		return err
	}

	switch {
	case in.Store == nil || *in.Store:
		return errors.New("store: this server keeps nothing")
	case !in.Stream:
		return errStrict
	}
	return checkRequest(in.Model, len(in.Input), true)
}

// readItems reads the items of an input: calls that follow each other are of one turn.
func (c *Call) readItems(items []responsesItem) error {
	var l ledger
	var calls []Use

	flush := func() error {
		if calls == nil {
			return nil
		}
		said := calls
		calls = nil
		return l.say(said)
	}

	for _, it := range items {
		text := it.Content.joinText()
		c.prompt = append(c.prompt, meter.Section{Text: text + it.Arguments + it.Output + it.Sealed})
		if err := c.showAll(it.Content); err != nil {
			return err
		}
		if it.Type == "function_call" {
			calls = append(calls, Use{ID: it.CallID, Name: it.Name, Input: json.RawMessage(it.Arguments)})
			continue
		}

		if err := flush(); err != nil {
			return err
		}

		switch it.Type {
		case "function_call_output":
			if err := l.answer(it.CallID, it.Output, false); err != nil {
				return err
			}
		case "", "message":
			c.Turns = append(c.Turns, Turn{it.Role, text})
		}
	}

	// The last calls may have no item behind them.
	if err := flush(); err != nil {
		return err
	}

	c.Uses = l.uses
	return l.settled()
}

// lacksSealed reports whether a conversation has calls before which the model thought, without what
// it thought, right before them.
func (s *Server) lacksSealed(body []byte) bool {
	var in responsesRequest
	if json.Unmarshal(body, &in) != nil {
		return false // it is refused already
	}
	sealed := ""

	// Nothing but the reasoning right before a call counts as its own.
	for _, it := range in.Input {
		switch it.Type {
		case "reasoning":
			sealed = it.Sealed
		case "function_call":
			if thought := s.thoughtOf(it.CallID); thought != "" && sealed != sign(thought) {
				return true
			}
		default:
			sealed = ""
		}
	}

	return false
}

func (responsesWire) mediaType() string { return "text/event-stream; charset=utf-8" }

// write writes an event under its own name.
func (responsesWire) write(x *exchange, name string, data fields) {
	data["type"] = name
	x.writeEvent(name, data)
}

// responseOf returns an answer so far.
func responseOf(x *exchange, status string, output []any) fields {
	return fields{"id": "resp_" + x.RequestID, "object": "response", "created_at": 1, "model": x.Model, "status": status, "output": output, "error": nil}
}

func (w responsesWire) openAnswer(x *exchange) {
	x.items = nil
	w.write(x, "response.created", fields{"response": responseOf(x, "in_progress", []any{})})
}

// itemOf returns a part as an item of the output, whole.
func (responsesWire) itemOf(x *exchange, p part) fields {
	switch p.kind {
	case "tool":
		return fields{"id": "fc_" + p.id, "type": "function_call", "status": "completed", "call_id": p.id, "name": p.name, "arguments": p.text}
	case "thinking":
		return fields{"id": "rs_" + x.RequestID, "type": "reasoning", "summary": []any{}, "encrypted_content": sign(p.text)}
	}
	return fields{"id": "msg_" + x.RequestID, "type": "message", "role": "assistant", "status": "completed", "content": []any{
		fields{"type": "output_text", "text": p.text, "annotations": []any{}},
	}}
}

func (w responsesWire) openPart(x *exchange, n int, p part) {
	begun := w.itemOf(x, part{kind: p.kind, id: p.id, name: p.name})
	w.write(x, "response.output_item.added", fields{"output_index": n, "item": begun})
}

func (w responsesWire) writePiece(x *exchange, n int, p part, text string) {
	switch p.kind {
	case "tool":
		w.write(x, "response.function_call_arguments.delta", fields{"output_index": n, "delta": text})
	case "text":
		w.write(x, "response.output_text.delta", fields{"output_index": n, "content_index": 0, "delta": text})
	}
}

func (w responsesWire) closePart(x *exchange, n int, p part) {
	item := w.itemOf(x, p)
	x.items = append(x.items, item)
	w.write(x, "response.output_item.done", fields{"output_index": n, "item": item})
}

func (w responsesWire) closeAnswer(x *exchange, r Reply) {
	whole := w.endOf(x, r)
	w.write(x, "response."+whole["status"].(string), fields{"response": whole})
}

// endOf returns the whole answer.
func (w responsesWire) endOf(x *exchange, r Reply) fields {
	if r.Why != "" {
		x.items = []any{fields{"id": "msg_" + x.RequestID, "type": "message", "role": "assistant", "content": []any{fields{"type": "refusal", "refusal": r.Why}}}}
	}

	whole := responseOf(x, "completed", x.items)
	if r.Stop != "completed" {
		whole["status"], whole["incomplete_details"] = "incomplete", fields{"reason": r.Stop}
	}

	x.Output = r.tokens()
	if x.Fault == NoUsage {
		x.clearUsage()
		return whole
	}

	usage := fields{
		"input_tokens": x.In(), "input_tokens_details": fields{"cached_tokens": x.CacheRead},
		"output_tokens": x.Output, "output_tokens_details": fields{"reasoning_tokens": meter.Tokens(r.Thinking)}, "total_tokens": x.In() + x.Output,
	}

	x.tellUsage(usage)
	whole["usage"] = usage
	return whole
}

// writeWhole writes an answer that was not asked for as a stream.
func (w responsesWire) writeWhole(x *exchange, parts []part, r Reply) {
	x.items = nil
	for _, p := range parts {
		x.items = append(x.items, w.itemOf(x, p))
	}

	x.writeAtOnce("application/json", w.endOf(x, r))
}

func (w responsesWire) writeBroken(x *exchange) {
	x.clearUsage()
	failed := responseOf(x, "failed", []any{})
	failed["error"] = fields{"code": "server_error", "message": "The server had an error while processing your request"}
	w.write(x, "response.failed", fields{"response": failed})
}

func (responsesWire) errorBody(status int, kind, message string) (int, any) {
	return openaiWire{}.errorBody(status, kind, message)
}

func (responsesWire) stopReason(f Fault, _ bool) string {
	switch f {
	case Truncated:
		return "max_output_tokens"
	case Filter:
		return "content_filter"
	case UnknownStop, Pause:
		return "bored"
	}
	return "completed"
}
