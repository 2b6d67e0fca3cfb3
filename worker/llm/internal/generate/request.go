package generate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// The messages to the server.
type (
	body struct {
		System     *content   `json:"systemInstruction,omitempty"`
		Contents   []content  `json:"contents"`
		Tools      []toolset  `json:"tools,omitempty"`
		ToolConfig *toolRules `json:"toolConfig,omitempty"`
		Generation generation `json:"generationConfig"`
		Tier       string     `json:"serviceTier,omitempty"`
	}
	content struct {
		Role  string            `json:"role,omitempty"`
		Parts []json.RawMessage `json:"parts"`
	}
	generation struct {
		MaxOutputTokens int64           `json:"maxOutputTokens"`
		MimeType        string          `json:"responseMimeType,omitempty"`
		Schema          json.RawMessage `json:"responseJsonSchema,omitempty"`
		Temperature     *float64        `json:"temperature,omitempty"`
		TopP            *float64        `json:"topP,omitempty"`
		Seed            *int64          `json:"seed,omitempty"`
		Stop            []string        `json:"stopSequences,omitempty"`
		Thinking        *thinking       `json:"thinkingConfig,omitempty"`
	}
	thinking struct {
		Budget *int64 `json:"thinkingBudget,omitempty"`
		Level  string `json:"thinkingLevel,omitempty"`
	}
	toolset struct {
		Functions []function `json:"functionDeclarations"`
	}
	function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
	}
	toolRules struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames,omitempty"`
		} `json:"functionCallingConfig"`
	}
	part struct {
		Text      *string         `json:"text,omitempty"`
		Inline    *inlineData     `json:"inlineData,omitempty"`
		Call      *functionCall   `json:"functionCall,omitempty"`
		Response  *functionResult `json:"functionResponse,omitempty"`
		Thought   bool            `json:"thought,omitempty"`
		Signature string          `json:"thoughtSignature,omitempty"`
	}
	inlineData struct {
		MediaType string `json:"mimeType"`
		Data      []byte `json:"data"`
	}
	functionCall struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args,omitempty"`
	}
	functionResult struct {
		ID       string            `json:"id,omitempty"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	}
)

// kept is what of an answer is handed back as it is: the signature of what the model thought,
// with the part that it stands on, or a whole part that only the vendor knows.
type kept struct {
	Signature string          `json:"thoughtSignature,omitempty"`
	On        string          `json:"on,omitempty"` // "text" or "call": the next part; "" if it stands alone
	Part      json.RawMessage `json:"part,omitempty"`
}

// skipSignature is what the vendor takes for the signature of calls that another model made. It
// is the Base64 of skip_thought_signature_validator.
const skipSignature = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

// unnamed begins the ids of calls that the server gave none. They are not sent back.
const unnamed = "unnamed_"

// newBody puts a request into the vendor's words, without what the server refuses.
func newBody(req *llm.Request, with manners.Manners) (*body, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	b := &body{Generation: generation{MaxOutputTokens: wire.AnswerBound(req, with)}}
	b.Generation.addParameters(req, with)
	b.Tier = wire.ParametersOf(req, with).Tier

	messages := req.Messages
	system := req.System + wire.TellForm(req, with)
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else if system != "" {
		b.System = &content{Parts: []json.RawMessage{encodePart(part{Text: &system})}}
	}

	for _, m := range messages {
		c := content{Role: "user", Parts: contentParts(m, with.Unsigned)}
		if m.Role == llm.Assistant {
			c.Role = "model"
		}
		if len(c.Parts) > 0 {
			b.Contents = append(b.Contents, c)
		}
	}
	return b, b.addForm(req, with)
}

// addParameters adds the parameters of the answer. The interface has no verbosity.
func (g *generation) addParameters(req *llm.Request, with manners.Manners) {
	set := wire.ParametersOf(req, with)
	g.Temperature, g.TopP, g.Seed, g.Stop = set.Temperature, set.TopP, set.Seed, set.Stop
	switch {
	case set.Effort == parameters.NoEffort && set.Thinking == nil:
		g.Thinking = &thinking{Budget: new(int64(0))} // there is no such level
	case set.Effort != "" || set.Thinking != nil:
		g.Thinking = &thinking{Budget: set.Thinking, Level: set.Effort}
	}
}

// addForm adds tools and the answer's schema.
func (b *body) addForm(req *llm.Request, with manners.Manners) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case byTool(req, with):
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.ByObject:
		b.Generation.MimeType = "application/json"
	case with.Form == manners.BySchema:
		schema, err := req.Schema.In(dialectFor(with))
		if err != nil {
			return err
		}
		b.Generation.MimeType, b.Generation.Schema = "application/json", schema
	}

	if len(tools) == 0 {
		return nil
	}

	functions, err := declareTools(tools, dialectFor(with))
	if err != nil {
		return err
	}

	b.Tools = []toolset{{functions}}
	b.ToolConfig = callRules(req, force, with)
	return nil
}

// declareTools returns tools as functions. Tools of others often take what no dialect can
// express: their input is then only checked by us.
func declareTools(tools []llm.Tool, d llm.Dialect) ([]function, error) {
	out := make([]function, len(tools))
	for i, t := range tools {
		schema, err := t.Schema.In(d)
		if err != nil {
			schema, err = t.Schema.In(llm.Dialect{Name: "any", All: true})
		}
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		out[i] = function{t.Name, t.Description, schema}
	}

	return out, nil
}

// callRules says which tools may or must be called; nil leaves it to the model.
func callRules(req *llm.Request, force string, with manners.Manners) *toolRules {
	var rules toolRules
	switch {
	case with.FreeTools:
		return nil
	case force != "":
		rules.Calling.Mode, rules.Calling.Allowed = "ANY", []string{force}
	case req.NoCalls:
		rules.Calling.Mode = "NONE"
	default:
		return nil
	}
	return &rules
}

// contentParts returns the parts of a message as the vendor has them. A signature goes to the
// part that it came on; the server refuses it elsewhere.
func contentParts(m llm.Message, unsigned bool) []json.RawMessage {
	var out []json.RawMessage
	var signature kept
	signed := false

	for _, p := range m.Parts {
		switch {
		case p.Opaque != nil:
			var k kept
			if json.Unmarshal(p.Opaque, &k) != nil {
				continue // another vendor's
			}

			switch {
			case k.Part != nil:
				out = append(out, k.Part)
			case k.Signature != "" && k.On == "":
				out = append(out, encodePart(part{Text: new(""), Signature: k.Signature}))
			default:
				signature = k
			}
		case p.Picture != nil:
			out = append(out, encodePart(part{Inline: &inlineData{p.Picture.MediaType, p.Picture.Data}}))
		case p.Call != nil:
			sent := part{Call: &functionCall{ID: sentID(p.Call.ID), Name: p.Call.Name, Args: p.Call.Input}}
			// Without a signature for its call the vendor refuses a turn of a model that
			// thinks.
			if signature.On == "call" {
				sent.Signature = signature.Signature
			} else if unsigned && !signed {
				sent.Signature = skipSignature // of the first call of a turn alone
			}

			signed, signature = true, kept{}
			out = append(out, encodePart(sent))
		case p.Result != nil:
			name := "output"
			if p.Result.Error {
				name = "error"
			}
			out = append(out, encodePart(part{Response: &functionResult{
				ID: sentID(p.Result.ID), Name: p.Result.Name, Response: map[string]string{name: p.Result.Text},
			}}))
		case p.Text != "":
			sent := part{Text: &p.Text}
			if signature.On == "text" {
				sent.Signature = signature.Signature
			}
			signature = kept{}
			out = append(out, encodePart(sent))
		}
	}

	return out
}

// sentID returns the id of a call as the server gave it; "" if it gave none.
func sentID(id string) string {
	if strings.HasPrefix(id, unnamed) {
		return ""
	}
	return id
}

// encodePart returns a part as JSON.
func encodePart(p part) json.RawMessage {
	raw, err := json.Marshal(p)
	if err != nil { // the input of a call is no JSON, which no provider hands on
		return json.RawMessage("{}")
	}
	return raw
}
