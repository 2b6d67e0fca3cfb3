package vendors_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/worker/llm"
)

// requests are every kind of request that we can send.
func requests(t *testing.T) map[string]*llm.Request {
	t.Helper()
	lookUp := llm.Tool{Name: "look_up", Description: "Looks up a shop.", Schema: schema(t, `{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}`)}
	loose := llm.Tool{Name: "filter", Schema: schema(t, `{"type":"object","properties":{"filter":{"type":"object","additionalProperties":{"type":"string"}}}}`)}
	call := llm.Part{Call: &llm.ToolCall{ID: "toolu_1", Name: "look_up", Input: json.RawMessage(`{"name":"Gardenia"}`)}}
	result := func(failed bool) llm.Part {
		return llm.Part{Result: &llm.ToolResult{ID: "toolu_1", Name: "look_up", Text: "a bakery", Error: failed}}
	}
	said := func(m ...llm.Message) func(*llm.Request) {
		return func(r *llm.Request) { r.Messages = append(r.Messages, m...) }
	}
	all := map[string]func(*llm.Request){
		"prose":              func(*llm.Request) {},
		"no instructions":    func(r *llm.Request) { r.System = "" },
		"answer by a schema": func(r *llm.Request) { r.Schema = schema(t, receipt) },
		"tools":              func(r *llm.Request) { r.Tools = []llm.Tool{lookUp, loose} },
		"tools and a schema": func(r *llm.Request) { r.Tools, r.Schema = []llm.Tool{lookUp, loose}, schema(t, receipt) },
		"forced tool":        func(r *llm.Request) { r.Tools, r.Force = []llm.Tool{lookUp}, "look_up" },
		"kept warm":          func(r *llm.Request) { r.Cache = llm.FiveMinutes },
		"kept warm for long": func(r *llm.Request) { r.Cache, r.Messages[0].Parts[0].Cache = llm.OneHour, llm.OneHour },
		"tools kept warm":    func(r *llm.Request) { r.System, r.Cache, r.Tools = "", llm.FiveMinutes, []llm.Tool{lookUp} },
		"answer mended": func(r *llm.Request) {
			r.Schema = schema(t, receipt)
			said(llm.Say(llm.Assistant, `{"company": 1}`), llm.Say(llm.User, "company: want a string"))(r)
		},
		"result of a tool": func(r *llm.Request) {
			r.Tools = []llm.Tool{lookUp}
			said(llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "Let me see."}, call}}, llm.Message{Role: llm.User, Parts: []llm.Part{result(false)}})(r)
		},
		"tools that may not be called": func(r *llm.Request) {
			r.Tools, r.Schema, r.NoCalls = []llm.Tool{lookUp}, schema(t, receipt), true
			said(llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}}, llm.Message{Role: llm.User, Parts: []llm.Part{result(false)}})(r)
		},
		"error of a tool": func(r *llm.Request) {
			r.Tools = []llm.Tool{lookUp}
			said(llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}}, llm.Message{Role: llm.User, Parts: []llm.Part{result(true)}})(r)
		},
	}
	out := make(map[string]*llm.Request)
	for name, change := range all {
		out[name] = ask(nil)
		change(out[name])
	}
	return out
}

// paused is a turn that Anthropic broke off, to be continued: what was not our
// own goes back as it came.
func paused() *llm.Request {
	r := ask(nil)
	r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Parts: []llm.Part{
		{Opaque: json.RawMessage(`{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`)},
		{Text: "I look."},
		{Opaque: json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"gardenia"}}`)},
		{Opaque: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"e","title":"t","url":"https://example.com","page_age":null}]}`)},
	}})
	return r
}

// described starts a server that refuses what a vendor's description does not
// have, and what lacks something that it demands.
func described(t *testing.T, vendor string) *url.URL {
	t.Helper()
	bin := filepath.Join(peers(t), "node_modules", ".bin", "steady")
	dir := os.Getenv("CODITECT_OPENAPI")
	raw, err := os.ReadFile(filepath.Join(dir, vendor+".yaml"))
	if err != nil {
		lacking(t, "no description of "+vendor+" in CODITECT_OPENAPI: "+err.Error())
	}
	var doc map[string]any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if vendor == "ollama" {
		nameTools(t, doc)
	}
	closeAll(doc)
	strict, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), vendor+".json")
	if err := os.WriteFile(file, strict, 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	run(t, "Ready to accept requests", bin, "--port", port, "--reject-on-sdk-error", "--no-color", file)
	return &url.URL{Scheme: "http", Host: "127.0.0.1:" + port}
}

// nameTools adds to Ollama's description the field by which a result says of
// which tool it is: its manual and its server have it.
func nameTools(t *testing.T, doc map[string]any) {
	t.Helper()
	var at any = doc
	for _, key := range []string{"components", "schemas", "ChatMessage", "properties"} {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	properties, ok := at.(map[string]any)
	if !ok || properties["tool_name"] != nil {
		t.Fatal("the description of a message is another than it was: is tool_name in it now?")
	}
	properties["tool_name"] = map[string]any{"type": "string"}
}

// A closer makes the schemas of a description refuse fields that they do not
// name, as some vendors' do already. Where schemas are joined, they become one.
type closer map[string]any // by name

const schemaPath = "#/components/schemas/"

// closeAll closes the schemas of a description.
func closeAll(doc map[string]any) {
	components, _ := doc["components"].(map[string]any)
	all, _ := components["schemas"].(map[string]any)
	for _, s := range all {
		closer(all).close(s)
	}
}

// close closes a schema and those within it.
func (c closer) close(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if _, ok := m["allOf"]; ok {
		properties, required := make(map[string]any), []any{}
		if !c.join(m, properties, &required) {
			return
		}
		delete(m, "allOf")
		m["type"], m["properties"], m["required"] = "object", properties, required
	}
	properties, _ := m["properties"].(map[string]any)
	if _, said := m["additionalProperties"]; !said && properties != nil {
		m["additionalProperties"] = false
	}
	for _, p := range properties {
		c.close(p)
	}
	c.close(m["items"])
	for _, key := range []string{"oneOf", "anyOf"} {
		some, _ := m[key].([]any)
		for _, s := range some {
			c.close(s)
		}
	}
}

// join adds the fields of a schema and of those that it joins, and reports
// whether that is all it says.
func (c closer) join(m, properties map[string]any, required *[]any) bool {
	if ref, ok := m["$ref"].(string); ok {
		m, _ = c[strings.TrimPrefix(ref, schemaPath)].(map[string]any)
	}
	own, _ := m["properties"].(map[string]any)
	maps.Copy(properties, own)
	must, _ := m["required"].([]any)
	*required = append(*required, must...)
	parts, _ := m["allOf"].([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		if !c.join(part, properties, required) {
			return false
		}
	}
	return own != nil || parts != nil
}

func TestPeersEveryRequestIsAsDescribed(t *testing.T) {
	for _, vendor := range vendorNames {
		t.Run(vendor, func(t *testing.T) {
			to := described(t, vendor)
			all, sent := requests(t), 0
			if vendor == "anthropic" {
				all["paused turn"] = paused()
			}
			for _, mode := range modes(vendor) {
				w := &witness{to: to, trim: mode.trim}
				p := through(t, vendor, w, mode.base, func(c *llm.Config) { c.ToolMode = mode.tool })
				for _, name := range slices.Sorted(maps.Keys(all)) {
					_, _ = p.Complete(t.Context(), all[name]) // this server does not stream: it is asked for its opinion only
					if counter, ok := p.(llm.Counter); ok {
						_, _ = counter.Count(t.Context(), all[name]) // the same
					}
					tries, bad := w.take()
					sent += tries
					if tries == 0 {
						t.Errorf("%s, %s: no request was sent", mode.name, name)
					}
					for _, why := range bad {
						t.Errorf("%s, %s: %s", mode.name, name, why)
					}
				}
			}
			t.Logf("%d requests were held against the description of %s", sent, vendor)
		})
	}
}

// A mode is one of the ways in which a vendor's requests look.
type mode struct {
	name, base, trim string
	tool             bool
}

func modes(vendor string) []mode {
	all := []mode{{name: "constrained", base: "http://vendor.test"}, {name: "by tool", base: "http://vendor.test", tool: true}}
	if vendor == "openai" {
		all = append(all, mode{name: "the vendor's own", trim: "/v1"})
	}
	return all
}

// The servers that judge our requests do refuse.
func TestPeersRefuseWhatIsNotDescribed(t *testing.T) {
	for vendor, path := range map[string]string{"anthropic": "/v1/messages", "openai": "/chat/completions", "ollama": "/api/chat"} {
		t.Run(vendor, func(t *testing.T) {
			w := &witness{to: described(t, vendor)}
			for name, c := range map[string]struct {
				body string
				bad  int
			}{
				"good":                {`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, 0},
				"extra field":         {`{"model":"m","max_tokens":5,"extra":1,"messages":[{"role":"user","content":"x"}]}`, 1},
				"extra field, deeper": {`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x","extra":1}]}`, 1},
				"missing field":       {`{"model":"m","max_tokens":5}`, 1},
			} {
				if vendor == "ollama" {
					c.body = strings.Replace(c.body, `"max_tokens":5`, `"stream":true`, 1)
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.to.JoinPath(path).String(), strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				res, err := w.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if err := res.Body.Close(); err != nil {
					t.Fatal(err)
				}
				if _, bad := w.take(); len(bad) != c.bad {
					t.Errorf("%s: refused %d times, want %d: %v", name, len(bad), c.bad, bad)
				}
			}
		})
	}
}
