package fakellm

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// A Use is a call of a tool: one that the model makes, or one of the conversation so far.
type Use struct {
	ID    string          // given by the server if it is empty
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	// The fields below are of calls that were made before.
	Turn     int    // of the model, from 1
	Answered bool   // by a result
	Result   string // its text
	Error    bool   // it was said to be one
}

// A part is a piece of an answer: a text, thinking, or a call of a tool.
type part struct {
	kind     string // "text", "thinking" or "tool"
	text     string // of a tool its input
	id, name string
}

// parts returns the pieces of a reply, in the order in which models say them. A tool that
// has to be called is called with the text.
func (x *exchange) parts(r Reply) []part {
	var all []part
	if r.Thinking != "" {
		all = append(all, part{kind: "thinking", text: r.Thinking})
	}

	switch {
	case x.Tool != "" && len(r.Calls) == 0:
		return append(all, part{kind: "tool", text: r.Text, id: x.callID(0), name: x.Tool})
	case r.Text != "" || len(r.Calls) == 0:
		all = append(all, part{kind: "text", text: r.Text})
	}

	for i, c := range r.Calls {
		id := c.ID
		if id == "" {
			id = x.callID(i)
		}
		all = append(all, part{kind: "tool", text: string(c.Input), id: id, name: c.Name})
	}

	return all
}

func (x *exchange) callID(i int) string {
	prefix := "call_"
	if x.Wire == Anthropic {
		prefix = "toolu_"
	}
	return fmt.Sprintf("%s%s_%d", prefix, x.RequestID, i)
}

// tokens is how many tokens a reply has.
func (r Reply) tokens() int64 {
	n := meter.Tokens(r.Text) + meter.Tokens(r.Thinking)
	for _, c := range r.Calls {
		n += meter.Tokens(c.Name + string(c.Input))
	}
	return n
}

// sign is the signature of thinking, which has to come back as it was.
func sign(thinking string) string {
	h := fnv.New64a()
	h.Write([]byte(thinking))
	return fmt.Sprintf("sig_%x", h.Sum64())
}

// A ledger follows the calls of tools through a conversation, as vendors do, and finds what
// they refuse: a call without a result right behind it, and a result of no call.
type ledger struct {
	uses []Use
	open map[string]int // calls of the latest turn that have no result, by id
	turn int

	// checkID refuses the id of a call that the vendor would not take, of any turn. Nil takes all.
	checkID func(id string, before []Use) error
}

// say notes a turn of the model.
func (l *ledger) say(calls []Use) error {
	if err := l.settled(); err != nil {
		return err
	}

	l.turn++
	l.open = make(map[string]int)
	for _, c := range calls {
		if _, twice := l.open[c.ID]; twice || c.ID == "" {
			return fmt.Errorf("messages: tool call ids must be unique, and %q is not", c.ID)
		}

		if l.checkID != nil {
			if err := l.checkID(c.ID, l.uses); err != nil {
				return err
			}
		}

		c.Turn = l.turn
		l.open[c.ID] = len(l.uses)
		l.uses = append(l.uses, c)
	}

	return nil
}

// checkAnthropicID refuses ids as Anthropic does: one with other signs, or that another turn had.
func checkAnthropicID(id string, before []Use) error {
	if strings.Trim(id, idSigns+"_-") != "" {
		return errors.New("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
	}
	if slices.ContainsFunc(before, func(u Use) bool { return u.ID == id }) {
		return errors.New("messages.3.content.0: `tool_use` ids must be unique")
	}
	return nil
}

// checkOpenAIID refuses ids as OpenAI does.
func checkOpenAIID(id string, _ []Use) error {
	if len(id) > 40 {
		return fmt.Errorf("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", len(id))
	}
	return nil
}

// idSigns may stand in every vendor's ids.
const idSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// answer notes the result of a call.
func (l *ledger) answer(id, text string, failed bool) error {
	i, ok := l.open[id]
	if !ok {
		return fmt.Errorf("messages: a result of %q, which is no call of the turn before", id)
	}
	delete(l.open, id)
	l.uses[i].Answered, l.uses[i].Result, l.uses[i].Error = true, text, failed
	return nil
}

// settled refuses calls without results.
func (l *ledger) settled() error {
	if len(l.open) > 0 {
		return fmt.Errorf("messages: %d tool calls have no result in the message right behind them", len(l.open))
	}
	return nil
}

// readBlocks notes a message of Anthropic's. Results come first in a message of the user;
// thinking that came with calls has to come back with them, and unchanged.
func (l *ledger) readBlocks(role string, blocks content) error {
	var calls []Use
	others := false
	for _, b := range blocks {
		switch b.Type {
		case "tool_use":
			calls = append(calls, Use{ID: b.ID, Name: b.Name, Input: b.Input})
		case "thinking":
			if b.Signature != sign(b.Thinking) {
				return errors.New("messages: invalid signature in a thinking block")
			}
		case "tool_result":
			if others {
				return errors.New("messages: tool_result blocks come first in their message")
			}
			if err := l.answer(b.ToolUseID, b.Content.joinText(), b.IsError); err != nil {
				return err
			}
		default:
			others = true
		}
	}

	if role == "assistant" {
		return l.say(calls)
	}
	return l.settled()
}

// lacksThinking reports whether a message has calls before which the model thought, without
// the thinking.
func lacksThinking(blocks content, thinks func(Use) bool) bool {
	for _, b := range blocks {
		if b.Type == "thinking" || b.Type == "redacted_thinking" {
			return false
		}
	}

	for _, b := range blocks {
		if b.Type == "tool_use" && thinks(Use{ID: b.ID, Name: b.Name, Input: b.Input}) {
			return true
		}
	}
	return false
}

// remember keeps the ids of calls that came with thinking.
func (x *exchange) remember(parts []part) {
	if parts[0].kind != "thinking" {
		return
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	for _, p := range parts {
		if p.kind == "tool" {
			x.s.thought[p.id] = parts[0].text
		}
	}
}

// thoughtOf returns what was thought before a call was made.
func (s *Server) thoughtOf(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thought[id]
}

// checkThinking refuses a conversation that leaves out what the model thought before it
// called tools, in the words of the format.
func (s *Server) checkThinking(c *Call) error {
	switch c.Wire {
	case Gemini:
		if s.lacksSignature(c.Body) {
			return errors.New("Function call is missing a thought_signature in functionCall parts.")
		}
	case Bedrock:
		var in bedrockRequest
		if json.Unmarshal(c.Body, &in) != nil {
			return nil // it is refused already
		}
		for _, m := range in.Messages {
			if s.lacksReasoning(m.Content) {
				return errors.New("Expected `thinking` or `redacted_thinking`, but found `tool_use`.")
			}
		}
	case Anthropic:
		var in struct {
			Messages []struct{ Content content }
		}
		if json.Unmarshal(c.Body, &in) != nil {
			return nil // it is refused already
		}
		for _, m := range in.Messages {
			if lacksThinking(m.Content, func(u Use) bool { return s.thoughtOf(u.ID) != "" }) {
				return errors.New("messages: expected thinking, but found tool_use; a final assistant message must start with a thinking block")
			}
		}
	case Responses:
		if s.lacksSealed(c.Body) {
			return errors.New("Item 'fc' of type 'function_call' was provided without its required 'reasoning' item.")
		}
	case OpenAI:
		var in struct {
			Messages []struct {
				Reasoning string                `json:"reasoning_content"`
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
		if json.Unmarshal(c.Body, &in) != nil {
			return nil // the same
		}
		for _, m := range in.Messages {
			for _, call := range m.ToolCalls {
				if want := s.thoughtOf(call.ID); want != "" && m.Reasoning != want {
					return errors.New("messages: missing reasoning_content in an assistant message with tool calls")
				}
			}
		}
	}
	return nil
}

// refuseUndefined refuses a conversation with calls whose request defines no tools.
func refuseUndefined(uses []Use, tools []string) error {
	if len(uses) > 0 && len(tools) == 0 {
		return errors.New("tools: requests with tool_use or tool_result blocks must define tools")
	}
	return nil
}

// ollamaCall returns a call as it stands in tool_calls of Ollama.
func ollamaCall(p part) fields {
	var input any = map[string]any{}
	if json.Unmarshal([]byte(p.text), &input) != nil {
		input = map[string]any{"text": strings.ToValidUTF8(p.text, "")}
	}
	return fields{"function": fields{"name": p.name, "arguments": input}}
}
