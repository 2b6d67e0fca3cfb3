package bedrock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// The messages to the server.
type (
	body struct {
		System    []block       `json:"system,omitempty"`
		Messages  []message     `json:"messages"`
		Inference inference     `json:"inferenceConfig"`
		Tools     *toolConfig   `json:"toolConfig,omitempty"`
		Output    *outputConfig `json:"outputConfig,omitempty"`

		// More is handed on to the model in its vendor's words.
		More map[string]any `json:"additionalModelRequestFields,omitempty"`
	}
	inference struct {
		MaxTokens   int64    `json:"maxTokens"`
		Temperature *float64 `json:"temperature,omitempty"`
		TopP        *float64 `json:"topP,omitempty"`
		Stop        []string `json:"stopSequences,omitempty"`
	}
	message struct {
		Role    llm.Role `json:"role"`
		Content []block  `json:"content"`
	}
	// A block has exactly one field.
	block struct {
		Text       string          `json:"text,omitempty"`
		Image      *imageBlock     `json:"image,omitempty"`
		ToolUse    *toolUse        `json:"toolUse,omitempty"`
		ToolResult *toolResult     `json:"toolResult,omitempty"`
		Reasoning  json.RawMessage `json:"reasoningContent,omitempty"`
		CachePoint *cachePoint     `json:"cachePoint,omitempty"`
	}
	imageBlock struct {
		Format string `json:"format"`
		Source struct {
			Bytes []byte `json:"bytes"`
		} `json:"source"`
	}
	toolUse struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolResult struct {
		ID      string  `json:"toolUseId"`
		Content []block `json:"content"`
		Status  string  `json:"status,omitempty"`
	}
	cachePoint struct {
		Type string  `json:"type"`
		TTL  llm.TTL `json:"ttl,omitempty"`
	}
	toolConfig struct {
		Tools  []tool `json:"tools"`
		Choice any    `json:"toolChoice,omitempty"`
	}
	tool struct {
		Spec       *toolSpec   `json:"toolSpec,omitempty"`
		CachePoint *cachePoint `json:"cachePoint,omitempty"`
	}
	toolSpec struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		InputSchema struct {
			JSON map[string]any `json:"json"`
		} `json:"inputSchema"`
		Strict *bool `json:"strict,omitempty"`
	}
	outputConfig struct {
		TextFormat textFormat `json:"textFormat"`
	}
	textFormat struct {
		Type      string `json:"type"`
		Structure struct {
			JSONSchema struct {
				Name   string `json:"name"`
				Schema string `json:"schema"`
			} `json:"jsonSchema"`
		} `json:"structure"`
	}
)

// noCalls stands for a choice that the interface has not.
const noCalls = "\nCall no tool now.\n"

// newBody puts a request into the vendor's words, without what the model refuses.
func newBody(req *llm.Request, with manners.Manners) (*body, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	set := wire.ParametersOf(req, with)
	b := &body{
		Inference: inference{MaxTokens: wire.AnswerBound(req, with), Temperature: set.Temperature, TopP: set.TopP, Stop: set.Stop},
		More:      thinkingFor(req.Model, set),
	}
	if err := b.addForm(req, with); err != nil {
		return nil, err
	}

	messages, system := req.Messages, req.System+wire.TellForm(req, with)
	// The interface has no choice that forbids calls, so the instructions do.
	if req.NoCalls && len(req.Tools) > 0 {
		system += noCalls
	}
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else if system != "" {
		b.System = append([]block{{Text: system}}, cacheFor(req.Cache, with)...)
	}

	for _, m := range messages {
		b.addMessage(m.Role, contentOf(m, with))
	}
	return b, nil
}

// addMessage adds a message. Those of one speaker that follow each other are one, as the server
// wants speakers to alternate.
func (b *body) addMessage(role llm.Role, content []block) {
	last := len(b.Messages) - 1
	switch {
	case len(content) == 0:
	case last >= 0 && b.Messages[last].Role == role:
		b.Messages[last].Content = append(b.Messages[last].Content, content...)
	default:
		b.Messages = append(b.Messages, message{role, content})
	}
}

// cacheFor returns the mark of the end of what is kept warm, if anything is.
func cacheFor(ttl llm.TTL, with manners.Manners) []block {
	if ttl == "" || with.NoCache {
		return nil
	}
	return []block{{CachePoint: pointFor(ttl)}}
}

// pointFor returns a mark. Five minutes are what a mark means that does not say.
func pointFor(ttl llm.TTL) *cachePoint {
	if ttl == llm.FiveMinutes {
		ttl = ""
	}
	return &cachePoint{Type: "default", TTL: ttl}
}

// contentOf returns the blocks of a message. The server refuses texts that are empty.
func contentOf(m llm.Message, with manners.Manners) []block {
	var out []block
	for _, p := range m.Parts {
		switch {
		case p.Opaque != nil:
			var kept block
			if json.Unmarshal(p.Opaque, &kept) == nil && kept.Reasoning != nil { // else it is another vendor's
				out = append(out, block{Reasoning: kept.Reasoning})
			}
		case p.Picture != nil:
			shown := &imageBlock{Format: strings.TrimPrefix(p.Picture.MediaType, "image/")}
			shown.Source.Bytes = p.Picture.Data
			out = append(out, block{Image: shown})
		case p.Call != nil:
			out = append(out, block{ToolUse: &toolUse{p.Call.ID, p.Call.Name, p.Call.Input}})
		case p.Result != nil:
			out = append(out, block{ToolResult: resultOf(p.Result)})
		case p.Text != "":
			out = append(out, block{Text: p.Text})
		}

		// A mark needs a block before it.
		if p.Cache != "" && len(out) > 0 {
			out = append(out, cacheFor(p.Cache, with)...)
		}
	}

	return out
}

// resultOf returns the result of a tool, which must say something.
func resultOf(r *llm.ToolResult) *toolResult {
	said := r.Text
	if said == "" {
		said = "(nothing)"
	}
	out := &toolResult{ID: r.ID, Content: []block{{Text: said}}}
	if r.Error {
		out.Status = "error"
	}
	return out
}

// addForm adds tools and the answer's schema.
func (b *body) addForm(req *llm.Request, with manners.Manners) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.BySchema:
		schema, err := req.Schema.In(dialectFor(with))
		if err != nil {
			return err
		}
		b.Output = &outputConfig{textFormat{Type: "json_schema"}}
		b.Output.TextFormat.Structure.JSONSchema.Name = req.Schema.Name()
		b.Output.TextFormat.Structure.JSONSchema.Schema = string(schema)
	}
	if len(tools) == 0 {
		return nil
	}

	b.Tools = new(toolConfig)
	for _, t := range tools {
		spec, err := specOf(t, with)
		if err != nil {
			return err
		}
		b.Tools.Tools = append(b.Tools.Tools, tool{Spec: spec})
	}
	if req.Cache != "" && !with.NoCache && req.System == "" { // else the mark behind the instructions covers them
		b.Tools.Tools = append(b.Tools.Tools, tool{CachePoint: pointFor(req.Cache)})
	}
	if force != "" && !with.FreeTools {
		b.Tools.Choice = map[string]any{"tool": map[string]string{"name": force}}
	}
	return nil
}

// specOf returns a tool as the vendor has it.
func specOf(t llm.Tool, with manners.Manners) (*toolSpec, error) {
	schema, strict, err := wire.ToolFields(t, dialectFor(with))
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}

	schema["type"] = "object" // and nothing else may be there
	spec := &toolSpec{Name: t.Name, Description: t.Description}
	spec.InputSchema.JSON = schema

	if strict && !with.NoStrict {
		spec.Strict = &strict
	}

	return spec, nil
}

// failures are the ends of an answer that are none.
var failures = []string{"malformed_model_output", "malformed_tool_use"}

// isFailure reports whether an answer ended by a fault of the model.
func isFailure(stop string) bool { return slices.Contains(failures, stop) }
