package anthropic

import (
	"bytes"
	"encoding/json"
)

type fields = map[string]json.RawMessage

// wholeStream returns an answer that came whole as a stream of the same, which is how all answers
// are read. It is false if it is no such answer.
func wholeStream(raw []byte) ([]byte, bool) {
	var message fields
	var blocks []fields
	if json.Unmarshal(raw, &message) != nil || json.Unmarshal(message["content"], &blocks) != nil || message["stop_reason"] == nil {
		return nil, false
	}
	end := fields{"delta": encode(fields{"stop_reason": message["stop_reason"], "stop_details": message["stop_details"]}), "usage": message["usage"]}
	message["content"], message["stop_reason"] = json.RawMessage("[]"), json.RawMessage("null")
	var b bytes.Buffer
	write := func(kind string, event fields) {
		event["type"] = encode(kind)
		for key, v := range event {
			if v == nil {
				delete(event, key)
			}
		}
		b.WriteString("event: " + kind + "\ndata: ")
		b.Write(encode(event))
		b.WriteString("\n\n")
	}
	write("message_start", fields{"message": encode(message)})
	for i, block := range blocks {
		index := encode(i)
		deltas := emptyBlock(block)
		write("content_block_start", fields{"index": index, "content_block": encode(block)})
		for _, d := range deltas {
			write("content_block_delta", fields{"index": index, "delta": encode(d)})
		}
		write("content_block_stop", fields{"index": index})
	}
	write("message_delta", end)
	write("message_stop", fields{})
	return b.Bytes(), true
}

// emptyBlock takes out of a block what comes after its beginning in a stream, and returns that.
func emptyBlock(block fields) (deltas []fields) {
	take := func(key, kind, as string, left string) {
		v := block[key]
		if v == nil {
			return
		}
		if as == "partial_json" { // as a text
			v = encode(string(v))
		}
		deltas = append(deltas, fields{"type": encode(kind), as: v})
		block[key] = json.RawMessage(left)
	}
	switch string(block["type"]) {
	case `"text"`:
		take("text", "text_delta", "text", `""`)
	case `"tool_use"`:
		take("input", "input_json_delta", "partial_json", "{}")
	case `"thinking"`:
		take("thinking", "thinking_delta", "thinking", `""`)
		take("signature", "signature_delta", "signature", `""`)
	}
	return deltas
}

// encode returns a value as JSON. What came as JSON, and texts, can be encoded.
func encode(v any) json.RawMessage {
	if f, ok := v.(fields); ok {
		for key, raw := range f {
			if raw == nil {
				delete(f, key)
			}
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}
