package llm

import (
	"encoding/json"

	"github.com/coditect/mapreduce/api/parameters"
)

// encodedRequest is a request as it is kept until somebody else asks it.
type encodedRequest struct {
	Model      Model          `json:"model"`
	System     string         `json:"system,omitempty"`
	Tools      []encodedTool  `json:"tools,omitempty"`
	Force      string         `json:"force,omitempty"`
	NoCalls    bool           `json:"no_calls,omitempty"`
	Messages   []Message      `json:"messages"`
	Schema     *encodedSchema `json:"schema,omitempty"`
	MaxTokens  int64          `json:"max_tokens,omitempty"`
	Prompt     int64          `json:"prompt,omitempty"`
	Cache      TTL            `json:"cache,omitempty"`
	Parameters parameters.Set `json:"parameters,omitzero"`
	CacheKey   string         `json:"cache_key,omitempty"`
}

type encodedTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Schema      *encodedSchema `json:"schema,omitempty"`
}

type encodedSchema struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document"`
}

func encodeSchema(s *Schema) *encodedSchema {
	if s == nil {
		return nil
	}
	return &encodedSchema{s.Name(), json.RawMessage(s.Document())}
}

// A Decoder decodes requests of which many have the same text for the system, and the same schemas: these are there once,
// however many requests have them. The zero Decoder is ready. It is for one goroutine at a time.
type Decoder struct {
	texts   map[string]string
	schemas map[namedSchema]*Schema
}

type namedSchema struct{ name, document string }

// text returns what an earlier request had for the same text.
func (d *Decoder) text(s string) string {
	if had, ok := d.texts[s]; ok {
		return had
	}
	if d.texts == nil {
		d.texts = make(map[string]string)
	}
	d.texts[s] = s
	return s
}

// schema returns a schema, which is compiled once.
func (d *Decoder) schema(e *encodedSchema) (*Schema, error) {
	if e == nil {
		return nil, nil
	}
	if had, ok := d.schemas[namedSchema{e.Name, string(e.Document)}]; ok { // which copies nothing
		return had, nil
	}

	s, err := NewSchema(e.Name, e.Document)
	if err != nil {
		return nil, err
	}
	if d.schemas == nil {
		d.schemas = make(map[namedSchema]*Schema)
	}
	d.schemas[namedSchema{e.Name, string(e.Document)}] = s
	return s, nil
}

// EncodeRequest returns a request as JSON, without its Trace: whoever asks it has one of its own. Its
// schemas are those that a model sees; what they tolerate in answers is left out.
func EncodeRequest(r *Request) ([]byte, error) {
	if len(r.Pictures()) > 0 { // whose bytes are never kept with a request
		return nil, NewError(Invalid, "a call with pictures is not kept")
	}

	e := encodedRequest{
		Model: r.Model, System: r.System, Force: r.Force, NoCalls: r.NoCalls, Messages: r.Messages, Schema: encodeSchema(r.Schema),
		MaxTokens: r.MaxTokens, Prompt: r.Prompt, Cache: r.Cache, Parameters: r.Parameters, CacheKey: r.CacheKey,
	}
	for _, t := range r.Tools {
		e.Tools = append(e.Tools, encodedTool{t.Name, t.Description, encodeSchema(t.Schema)})
	}
	return json.Marshal(e)
}

// DecodeRequest returns a request that EncodeRequest has encoded.
func DecodeRequest(data []byte) (*Request, error) { return new(Decoder).Request(data) }

// Request returns a request that EncodeRequest has encoded.
func (d *Decoder) Request(data []byte) (*Request, error) {
	var e encodedRequest
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, NewError(Invalid, "what was kept is no request: %v", err)
	}

	r := &Request{
		Model: e.Model, System: d.text(e.System), Force: e.Force, NoCalls: e.NoCalls, Messages: e.Messages,
		MaxTokens: e.MaxTokens, Prompt: e.Prompt, Cache: e.Cache, Parameters: e.Parameters, CacheKey: e.CacheKey,
	}
	var err error
	if r.Schema, err = d.schema(e.Schema); err != nil {
		return nil, err
	}
	for _, t := range e.Tools {
		schema, err := d.schema(t.Schema)
		if err != nil {
			return nil, err
		}
		r.Tools = append(r.Tools, Tool{Name: t.Name, Description: d.text(t.Description), Schema: schema})
	}
	return r, nil
}

// encodedResponse is a response as it is kept. What a model wrote as its answer may be no JSON.
type encodedResponse struct {
	Response *Response `json:"response"`
	Written  *string   `json:"written,omitempty"` // the Answer, if it is no JSON
}

// EncodeResponse returns a response as JSON, as far as the vendor brought it.
func EncodeResponse(r *Response) ([]byte, error) {
	e := encodedResponse{Response: r}
	if r.Answer != nil && !json.Valid(r.Answer) {
		bare := *r
		bare.Answer = nil
		e.Response, e.Written = &bare, new(string(r.Answer))
	}
	return json.Marshal(e)
}

// DecodeResponse returns a response that EncodeResponse has encoded.
func DecodeResponse(data []byte) (*Response, error) {
	var e encodedResponse
	if err := json.Unmarshal(data, &e); err != nil || e.Response == nil {
		return nil, NewError(Garbled, "what was kept is no answer of a model: %v", err)
	}
	if e.Written != nil {
		e.Response.Answer = json.RawMessage(*e.Written)
	}
	return e.Response, nil
}
