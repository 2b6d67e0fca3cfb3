package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// wholeStream returns an answer that came whole as the stream of one chunk, which is how all
// answers are read. It is false if it is no such answer.
func wholeStream(raw []byte) ([]byte, bool) {
	var fields map[string]json.RawMessage
	var whole struct {
		Choices []map[string]json.RawMessage `json:"choices"`
	}
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(raw, &whole) != nil || len(whole.Choices) == 0 {
		return nil, false
	}
	for _, choice := range whole.Choices {
		message, ok := choice["message"]
		if !ok {
			return nil, false
		}
		choice["delta"] = indexCalls(message)
		delete(choice, "message")
	}
	choices, err := json.Marshal(whole.Choices)
	if err != nil {
		return nil, false
	}
	fields["choices"] = choices
	chunk, err := json.Marshal(fields)
	if err != nil {
		return nil, false
	}
	return append(append([]byte("data: "), chunk...), "\n\ndata: [DONE]\n\n"...), true
}

// indexCalls returns a message whose calls of tools are numbered, as they are in a stream.
func indexCalls(message json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var calls []map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || json.Unmarshal(fields["tool_calls"], &calls) != nil {
		return message
	}
	for i := range calls {
		index, err := json.Marshal(i)
		if err != nil {
			return message
		}
		calls[i]["index"] = index
	}
	raw, err := json.Marshal(calls)
	if err != nil {
		return message
	}
	fields["tool_calls"] = raw
	if raw, err = json.Marshal(fields); err != nil {
		return message
	}
	return raw
}

// streamed is how the SDK asks for a stream. In a text of a prompt its marks have escapes.
const streamed = `"stream":true`

// unstream makes a request one for an answer that comes whole: the SDK asks for streams alone.
func unstream(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if i := bytes.LastIndex(body, []byte(streamed)); i >= 0 {
		body = append(append(bytes.Clone(body[:i]), `"stream":false`...), body[i+len(streamed):]...)
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.ContentLength = int64(len(body))
	return next(req)
}
