package chat

import (
	"encoding/json"

	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// wholeEvents returns an answer that came whole as the stream of one chunk, which is how all
// answers are read. It is false if it is no such answer.
func wholeEvents(raw []byte) ([]wire.Event, bool) {
	var fields map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["choices"], &choices) != nil || len(choices) == 0 {
		return nil, false
	}
	for _, choice := range choices {
		message, ok := choice["message"]
		if !ok {
			return nil, false
		}
		choice["delta"] = indexCalls(message)
		delete(choice, "message")
	}

	chunk := make(map[string]any, len(fields))
	for name, v := range fields {
		chunk[name] = v
	}
	chunk["choices"] = choices
	data, err := json.Marshal(chunk)
	return []wire.Event{{Data: data}, {Data: []byte(mark)}}, err == nil
}

// indexCalls returns a message whose calls of tools are numbered, as they are in a stream.
func indexCalls(message json.RawMessage) json.RawMessage {
	var fields map[string]any
	var calls struct {
		All []map[string]any `json:"tool_calls"`
	}
	if json.Unmarshal(message, &fields) != nil || json.Unmarshal(message, &calls) != nil || calls.All == nil {
		return message
	}

	for i := range calls.All {
		calls.All[i]["index"] = i
	}
	fields["tool_calls"] = calls.All

	raw, err := json.Marshal(fields)
	if err != nil {
		return message
	}
	return raw
}
