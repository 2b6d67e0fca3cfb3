package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/tool"
)

// maxPieces bounds how many texts one answer has.
const maxPieces = 64

// A reader makes a result of the answer of a server.
type reader struct {
	kit    *Kit
	member *member
	uri    string
	title  string
	result tool.Result
	left   int      // bytes of evidence that still fit
	notes  []string // lines of Result.Text
}

// resultOf makes a result of an answer. Texts are evidence, each with an address that
// names the server, the tool and the input; an address that the server gives is beside
// it, as it is not known whether the text comes from there.
func (k *Kit) resultOf(m *member, arguments json.RawMessage, answer *sdk.CallToolResult) (*tool.Result, error) {
	if answer.NeedsInput() {
		return nil, fmt.Errorf("%s: the server asks for an input of a person, and there is none", m.spec.Name)
	}
	r := &reader{kit: k, member: m, left: tool.MaxEvidence}
	r.uri, r.title = addressOf(k.server.Name, m.name, arguments)
	if answer.IsError {
		return nil, errors.New(m.spec.Name + ": " + r.errorText(answer.Content))
	}

	structured, err := m.checkOutput(answer.StructuredContent)
	if err != nil {
		return nil, err
	}

	texts := 0
	for _, c := range answer.Content {
		if r.add(c) {
			texts++
		}
	}

	// Structured content repeats the texts, so it counts only where there are none.
	if texts == 0 && structured != "" {
		r.addText(structured, "application/json", nil)
	}

	if len(r.notes) == 0 && len(r.result.Evidence) == 0 {
		r.notes = append(r.notes, "The tool returned nothing.")
	}

	r.result.Text = strings.Join(r.notes, "\n")
	return &r.result, nil
}

// addressOf returns an address and a title for what a call brought.
func addressOf(server, name string, arguments json.RawMessage) (uri, title string) {
	uri, title = "mcp:"+server+"/"+url.PathEscape(name), name
	var properties map[string]json.RawMessage
	if json.Unmarshal(arguments, &properties) != nil || len(properties) == 0 {
		return uri, title
	}

	values := make(url.Values)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		var text string
		if json.Unmarshal(properties[key], &text) != nil {
			text = string(properties[key])
		}
		values.Set(key, text)
	}

	if query := values.Encode(); len(query) <= maxQuery {
		return uri + "?" + query, name + " " + string(arguments)
	}
	return uri + "?" + digest(arguments), name + " " + shorten.MarkedBytes(string(arguments), maxQuery)
}

// maxQuery bounds the input in an address, in bytes.
const maxQuery = 1 << 10

// errorText returns the texts of an answer that is an error.
func (r *reader) errorText(content []sdk.Content) string {
	var texts []string
	for _, c := range content {
		if t, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	if len(texts) == 0 {
		return "the server says that the call failed, and not why"
	}
	return shorten.MarkedBytes(printableText(r.kit.withoutSecrets(strings.Join(texts, "\n"))), maxErrorText)
}

// checkOutput refuses an output that does not fit the schema that the server stated. It
// returns the output as JSON, or "" if there is none.
func (m *member) checkOutput(output any) (string, error) {
	if output == nil {
		if m.output != nil {
			return "", fmt.Errorf("%s: the server states a schema of its output, and returned none", m.spec.Name)
		}
		return "", nil
	}

	data, err := json.Marshal(output)
	if err != nil {
		return "", err
	}

	if m.output != nil {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return "", err
		}
		if err := m.output.Validate(value); err != nil {
			return "", fmt.Errorf("%s: what the server returned does not fit the schema that it states: %s", m.spec.Name, fault(err))
		}
	}
	return string(data), nil
}

// add adds a part of an answer. It reports whether the part is a text.
func (r *reader) add(c sdk.Content) bool {
	switch c := c.(type) {
	case *sdk.TextContent:
		r.addText(c.Text, "text/plain", nil)
		return true
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return false
		}
		of := map[string]string{"resource": r.clean(c.Resource.URI)}
		if len(c.Resource.Blob) > 0 {
			r.note("[a resource of %d bytes that is no text: %s %s]", len(c.Resource.Blob), r.clean(c.Resource.URI), r.clean(c.Resource.MIMEType))
			return false
		}
		r.addText(c.Resource.Text, r.clean(c.Resource.MIMEType), of)
		return true
	case *sdk.ResourceLink:
		r.note("[a link to a resource: %s %s]", r.clean(c.URI), r.clean(c.Name))
	case *sdk.ImageContent:
		r.note("[a picture of %d bytes that cannot be shown: %s]", len(c.Data), r.clean(c.MIMEType))
	case *sdk.AudioContent:
		r.note("[a sound of %d bytes that cannot be played: %s]", len(c.Data), r.clean(c.MIMEType))
	default:
		r.note("[a part of an unknown type]")
	}
	return false
}

// clean returns a word of the server on one line.
func (r *reader) clean(text string) string {
	return shorten.MarkedBytes(strings.Join(strings.Fields(printableText(r.kit.withoutSecrets(text))), " "), maxQuery)
}

func (r *reader) note(format string, args ...any) {
	if len(r.notes) < maxPieces {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// addText adds a text as evidence, as far as there is room.
func (r *reader) addText(text, media string, metadata map[string]string) {
	text = r.kit.withoutSecrets(text)
	if text == "" {
		return
	}
	if len(r.result.Evidence) >= maxPieces {
		r.result.Cut += int64(len(text))
		return
	}

	if len(text) > r.left {
		whole := len(text)
		text = strings.ToValidUTF8(text[:r.left], "")
		r.result.Cut += int64(whole - len(text))
	}
	r.left -= len(text)
	if text == "" {
		return
	}

	// Several texts of one answer need addresses of their own.
	uri := r.uri
	if n := len(r.result.Evidence); n > 0 {
		uri = fmt.Sprintf("%s#%d", r.uri, n+1)
	}
	if media == "" {
		media = "text/plain"
	}

	r.result.Evidence = append(r.result.Evidence, tool.Evidence{
		URI: uri, Title: r.title, Media: media, Retrieved: r.kit.config.Now(), Text: text, Metadata: metadata,
	})
}
