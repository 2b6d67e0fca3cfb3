package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/answer"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// AnswerOf returns the answer of a response to a schema: the input of the tool that takes it, or
// the text, as a model wrote it. Nil means that there is none.
func AnswerOf(r *llm.Response, tool bool) json.RawMessage {
	for _, c := range r.Calls() {
		if c.Name == llm.AnswerTool && tool {
			return c.Input
		}
	}
	// A model that calls other tools has not answered yet.
	if tool && len(r.Calls()) > 0 {
		return nil
	}

	if text := strings.TrimSpace(r.Text()); text != "" {
		return json.RawMessage(text)
	}
	return nil
}

// ToolInput returns what a model wrote as the input of a tool as JSON, with faults of notation
// mended. It is false if there is none in it, or if it breaks off.
func ToolInput(text string) (json.RawMessage, bool) {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), true
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}

	found := answer.Find(text)
	if len(found) != 1 || found[0].Unfinished {
		return nil, false
	}

	raw, err := answer.Encode(found[0].Value)
	return raw, err == nil
}

// ToolFields returns a tool's schema, and whether the vendor may be strict about
// it. Tools of others often take what no dialect can express: their input is
// then only checked by us.
func ToolFields(t llm.Tool, d llm.Dialect) (fields map[string]any, strict bool, err error) {
	if fields, err = SchemaMap(t.Schema, d); err == nil {
		return fields, true, nil
	}
	fields, err = SchemaMap(t.Schema, llm.Dialect{Name: "any", All: true})
	return fields, false, err
}

// WithAnswer returns the tools and which of them is forced, with the one that
// takes the answer. It is forced if no other may be called.
func WithAnswer(req *llm.Request) (tools []llm.Tool, force string) {
	if len(req.Tools) == 0 || req.NoCalls {
		force = llm.AnswerTool
	}
	one := llm.Tool{Name: llm.AnswerTool, Description: "Give the answer.", Schema: req.Schema}
	return append(slices.Clip(req.Tools), one), force
}

// SchemaMap returns In in the form that the SDKs need. Below the top, properties keep
// their order.
func SchemaMap(s *llm.Schema, d llm.Dialect) (map[string]any, error) {
	raw, err := s.In(d)
	if err != nil {
		return nil, err
	}

	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, llm.WrapError(llm.BadSchema, err)
	}

	out := make(map[string]any, len(fields))
	for k, v := range fields {
		out[k] = v
	}
	return out, nil
}

// TellForm returns the instructions that stand for a form of answers that a server does not hold
// the model to; "" if it does.
func TellForm(req *llm.Request, with manners.Manners) string {
	switch {
	case req.Schema == nil:
		return ""
	case with.Form == manners.ByTool && with.FreeTools:
		return "\nGive the answer by calling the tool " + llm.AnswerTool + ".\n"
	case with.Form < manners.ByObject:
		return ""
	}
	return "\nFORM OF THE ANSWER (JSON Schema):\n" + req.Schema.Document() + "\nAnswer with one JSON object of this form, and nothing else.\n"
}

// WithInstructions returns messages with instructions before the first of the user's, for servers
// without a place of their own for them.
func WithInstructions(system string, messages []llm.Message) []llm.Message {
	i := slices.IndexFunc(messages, func(m llm.Message) bool { return m.Role == llm.User })
	if system == "" || i < 0 {
		return messages
	}
	out := slices.Clone(messages)
	out[i].Parts = append([]llm.Part{{Text: system + "\n\n"}}, out[i].Parts...)
	return out
}
