package messages

import (
	"encoding/json"

	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

type fields = map[string]any

// wholeEvents returns an answer that came whole as the events of a stream, which is how all
// answers are read: each block comes at once. It is false if it is no such answer.
func wholeEvents(raw []byte) ([]wire.Event, bool) {
	var message struct {
		Model       json.RawMessage   `json:"model"`
		Content     []json.RawMessage `json:"content"`
		StopReason  json.RawMessage   `json:"stop_reason"`
		StopDetails json.RawMessage   `json:"stop_details"`
		Usage       json.RawMessage   `json:"usage"`
	}
	if json.Unmarshal(raw, &message) != nil || message.Content == nil || message.StopReason == nil {
		return nil, false
	}

	all := []fields{{"type": "message_start", "message": fields{"model": message.Model, "usage": message.Usage}}}
	for i, block := range message.Content {
		all = append(all, fields{"type": "content_block_start", "index": i, "content_block": block})
	}
	end := fields{"stop_reason": message.StopReason, "stop_details": message.StopDetails}
	all = append(all, fields{"type": "message_delta", "delta": end, "usage": message.Usage}, fields{"type": "message_stop"})

	events := make([]wire.Event, len(all))
	for i := range all {
		data, err := json.Marshal(all[i])
		if err != nil {
			return nil, false
		}
		events[i].Data = data
	}
	return events, true
}
