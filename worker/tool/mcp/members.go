package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/schema/validator"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/tool"
)

// Bounds of what a server says of its tools.
const (
	maxTools       = 256
	maxPages       = 64      // of the list of tools
	maxDescription = 4 << 10 // bytes
	maxSchema      = 64 << 10
	maxMemberName  = 128 // bytes
)

// A member is one tool of a server.
type member struct {
	name   string // the server's own
	spec   tool.Spec
	input  *validator.Schema
	output *validator.Schema // nil if the server states none
}

// learn asks the server for its tools. A tool that cannot be used is left out, with a line
// in the log; one that the file names must be there.
func (k *Kit) learn(ctx context.Context) error {
	all, err := k.first.list(ctx)
	if err != nil {
		return err
	}

	listed, why := make(map[string]bool), make(map[string]error)
	for _, t := range all {
		if len(k.server.Tools) > 0 && !slices.Contains(k.server.Tools, t.Name) {
			continue
		}
		m, err := k.memberOf(t)
		if err == nil && k.byName[m.spec.Name] != nil {
			err = errors.New("the server lists it twice")
		}
		if err != nil {
			k.config.Logger.Warn("a tool of an MCP server is left out", "server", k.server.Name, "tool", shorten.MarkedBytes(k.withoutSecrets(t.Name), maxMemberName), "reason", k.withoutSecrets(err.Error()))
			why[t.Name] = err
			continue
		}
		k.members, k.byName[m.spec.Name], listed[t.Name] = append(k.members, m), m, true
	}

	for _, name := range k.server.Tools {
		switch {
		case listed[name]:
		case why[name] != nil:
			return fmt.Errorf("its tool %q cannot be used: %s", name, k.withoutSecrets(why[name].Error()))
		default:
			return fmt.Errorf("it has no tool %q, which the file names", name)
		}
	}
	return nil
}

// memberOf checks what a server says of a tool.
func (k *Kit) memberOf(t *sdk.Tool) (*member, error) {
	if t.Name == "" || len(t.Name) > maxMemberName || strings.ContainsFunc(t.Name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return nil, fmt.Errorf("its name is not 1 to %d bytes without spaces", maxMemberName)
	}

	m := &member{name: t.Name}
	doc, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	if m.input, err = compileSchema(doc); err != nil {
		return nil, fmt.Errorf("the schema of its input: %w", err)
	}

	var parts objectSchema
	if err := json.Unmarshal(doc, &parts); err != nil || parts.Type != "object" {
		return nil, errors.New("the schema of its input is not that of an object")
	}

	if t.OutputSchema != nil {
		out, err := json.Marshal(t.OutputSchema)
		if err != nil {
			return nil, err
		}
		if m.output, err = compileSchema(out); err != nil {
			return nil, fmt.Errorf("the schema of its output: %w", err)
		}
	}

	// Hints are believed only of a server that the operator trusts.
	description := cmp.Or(t.Description, t.Title)
	m.spec = tool.Spec{
		Name: modelName(k.server.Name, t.Name), Member: t.Name, Input: doc,
		Description: shorten.MarkedBytes(printableText(k.withoutSecrets(description)), maxDescription),
		Idempotent:  k.server.Trusted && t.Annotations != nil && (t.Annotations.ReadOnlyHint || t.Annotations.IdempotentHint),
		Timeout:     cmp.Or(k.server.Timeout, tool.DefaultTimeout), MaxOutput: cmp.Or(k.server.MaxOutput, tool.DefaultOutput),
		Query: parts.only(queryNames), Address: parts.only(addressNames),
	}
	return m, nil
}

// objectSchema is what is read of the schema of an input.
type objectSchema struct {
	Type       string                     `json:"type"`
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// Names of properties that take a search text, and a URL or a path, best first.
var (
	queryNames   = []string{"query", "q", "search_query", "searchQuery", "search", "question", "keywords"}
	addressNames = []string{"url", "uri", "path", "address", "file"}
)

// only returns the first property of these names that takes a text, if a call needs no
// other property.
func (s *objectSchema) only(names []string) string {
	for _, name := range names {
		var p struct {
			Type string `json:"type"`
		}
		if doc, ok := s.Properties[name]; !ok || json.Unmarshal(doc, &p) != nil || p.Type != "string" {
			continue
		}
		if !slices.ContainsFunc(s.Required, func(r string) bool { return r != name }) {
			return name
		}
	}
	return ""
}

// compileSchema checks a schema.
func compileSchema(doc []byte) (*validator.Schema, error) {
	if len(doc) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; at most %d are accepted", len(doc), maxSchema)
	}
	return validator.Parse(doc) // as where inputs of all tools are checked
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// maxModelName is how long the name of a tool may be for models.
const maxModelName = 64

// modelName returns the name of a tool for models. It keeps what it can of the server's
// name; what it has to change it makes unique by a hash.
func modelName(server, name string) string {
	whole := server + "_" + name
	plain := notInNames.ReplaceAllString(whole, "_")
	if plain == whole && len(whole) <= maxModelName {
		return whole
	}
	return plain[:min(len(plain), maxModelName-9)] + "_" + digest([]byte(whole))[:8]
}

// digest returns the beginning of a hash.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// printableText takes out of a text what cannot be seen, such as characters that turn the
// direction of writing, or that hide words from people and not from models.
func printableText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

// checkArguments checks an input of the tool, and returns it in one form.
func (m *member) checkArguments(input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if len(input) > tool.MaxInput {
		return nil, fmt.Errorf("%s: the input has %d bytes; at most %d are accepted", m.spec.Name, len(input), tool.MaxInput)
	}

	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return nil, fmt.Errorf("%s: the input is no JSON: %w", m.spec.Name, err)
	}
	if err := m.input.Validate(value); err != nil {
		return nil, fmt.Errorf("%s: the input does not fit its schema: %s", m.spec.Name, fault(err))
	}
	return json.Marshal(value) // with sorted keys
}

// fault returns what a value breaks, without the address of the schema.
func fault(err error) string {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) > 1 {
		lines = lines[1:]
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimSpace(line), "- ")
	}
	return shorten.MarkedBytes(strings.Join(lines, "; "), 1<<10)
}
