package vendors_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// A caught request is one that no network has seen.
type caught struct {
	url, body string
	header    http.Header
	answer    string // its type and body
}

// RoundTrip implements http.RoundTripper.
func (c *caught) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.url, c.body, c.header = r.URL.String(), string(raw), r.Header
	media, body, _ := strings.Cut(c.answer, " ")
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Answers of each format that came whole.
const (
	chatAnswer     = `application/json {"model":"m-9","choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`
	messagesAnswer = `application/json {"type":"message","role":"assistant","model":"m-9","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`
	generateAnswer = `application/json {"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4},"modelVersion":"m-9"}`
	converseAnswer = `application/json {"output":{"message":{"content":[{"text":"ok"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":1}}`
	ollamaAnswer   = `application/x-ndjson {"model":"m-9","message":{"content":"ok"},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":1}` + "\n"
)

// rows are where each vendor is asked with a key alone and its settings, and how it is told who asks.
var rows = map[string]struct {
	settings map[string]string
	url      string
	header   string // and its value
	answer   string
}{
	"anthropic": {nil, "https://api.anthropic.com/v1/messages", "Authorization: Bearer " + testKey, messagesAnswer},
	"openai":    {nil, "https://api.openai.com/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"gemini":    {nil, "https://generativelanguage.googleapis.com/v1beta/models/m%2F1:streamGenerateContent?alt=sse", "X-Goog-Api-Key: " + testKey, generateAnswer},
	"azure": {
		map[string]string{"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/openai/v1/"},
		"https://acme.openai.azure.com/openai/v1/chat/completions", "Api-Key: " + testKey, chatAnswer,
	},
	"bedrock": {
		map[string]string{"AWS_REGION": "eu-central-1"},
		"https://bedrock-runtime.eu-central-1.amazonaws.com/model/m%2F1/converse-stream", "Authorization: Bearer " + testKey, converseAnswer,
	},
	"vertex": {
		map[string]string{"GOOGLE_CLOUD_PROJECT": "acme-1", "GOOGLE_CLOUD_LOCATION": "europe-west4"},
		"https://europe-west4-aiplatform.googleapis.com/v1/projects/acme-1/locations/europe-west4/publishers/google/models/m%2F1:streamGenerateContent?alt=sse", "Authorization: Bearer " + testKey, generateAnswer,
	},
	"vertex-claude": {
		map[string]string{"GOOGLE_CLOUD_PROJECT": "acme-1"},
		"https://aiplatform.googleapis.com/v1/projects/acme-1/locations/global/publishers/anthropic/models/m%2F1:streamRawPredict", "Authorization: Bearer " + testKey, messagesAnswer,
	},
	"ollama":     {nil, "http://127.0.0.1:11434/api/chat", "Authorization: Bearer " + testKey, ollamaAnswer},
	"mistral":    {nil, "https://api.mistral.ai/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"deepseek":   {nil, "https://api.deepseek.com/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"groq":       {nil, "https://api.groq.com/openai/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"openrouter": {nil, "https://openrouter.ai/api/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"together":   {nil, "https://api.together.xyz/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"fireworks":  {nil, "https://api.fireworks.ai/inference/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"cerebras":   {nil, "https://api.cerebras.ai/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"xai":        {nil, "https://api.x.ai/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"vllm":       {nil, "http://127.0.0.1:8000/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"llamacpp":   {nil, "http://127.0.0.1:8080/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
	"lmstudio":   {nil, "http://127.0.0.1:1234/v1/chat/completions", "Authorization: Bearer " + testKey, chatAnswer},
}

// settingsOf returns how an environment is read that has nothing but settings.
func settingsOf(all map[string]string) func(string) string {
	return func(name string) string { return all[name] }
}

// Each row of the table reaches its vendor by its name and its key.
func TestEachRowReachesItsVendor(t *testing.T) {
	for _, v := range vendors.All() {
		t.Run(v.Name, func(t *testing.T) {
			want, ok := rows[v.Name]
			if !ok {
				t.Fatal("the test has no such row")
			}
			c := &caught{answer: want.answer}
			p, err := v.New(llm.Config{Key: llm.NewKey(testKey), Getenv: settingsOf(want.settings), Transport: c})
			if err != nil {
				t.Fatal(err)
			}
			req := ask(nil)
			if strings.Contains(want.url, "m%2F1") {
				req.Model = "m/1"
			}
			if v.Name == "gemini" { // where a slash says which kind a model is of
				req.Model, want.url = "tunedModels/m-1", strings.Replace(want.url, "models/m%2F1", "tunedModels/m-1", 1)
			}
			res, err := p.Complete(t.Context(), req)
			if err != nil || res.Text() != "ok" || res.Usage.In() != 3 || res.Usage.Output != 1 {
				t.Fatalf("got %+v, %v", res, err)
			}
			name, value, _ := strings.Cut(want.header, ": ")
			if c.url != want.url || c.header.Get(name) != value {
				t.Errorf("asked %s with %v, want %s with %s", c.url, c.header, want.url, want.header)
			}
		})
	}
}

// What a vendor needs besides a key is missed before anything is asked, and the error says what to
// set. A check of a job that runs elsewhere misses nothing.
func TestWhatAVendorNeedsIsMissed(t *testing.T) {
	key := llm.NewKey(testKey)
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"type":"api_key"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		vendor   string
		key      llm.Key
		settings map[string]string
		want     string
	}{
		{"bedrock", key, nil, "AWS_REGION"},
		{"bedrock", key, map[string]string{"AWS_REGION": "Frankfurt"}, `"Frankfurt", which is no region`},
		{"bedrock", llm.Key{}, map[string]string{"AWS_REGION": "us-east-1"}, "AWS_ACCESS_KEY_ID"},
		{"bedrock", llm.Key{}, map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKIA"}, "AWS_SECRET_ACCESS_KEY is not"},
		{"bedrock", llm.Key{}, map[string]string{"AWS_REGION": "us-east-1", "AWS_PROFILE": "nobody", "HOME": t.TempDir()}, `profile "nobody"`},
		{"bedrock", llm.Key{}, map[string]string{"AWS_REGION": "us-east-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.org/x"}, "neither an https address"},
		{"azure", key, nil, "AZURE_OPENAI_ENDPOINT"},
		{"azure", llm.Key{}, map[string]string{"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com"}, "AZURE_OPENAI_API_KEY"},
		{"azure", key, map[string]string{"AZURE_OPENAI_ENDPOINT": "acme"}, "base URL"},
		{"azure", key, map[string]string{"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com", "OPENAI_API_VERSION": "today"}, "OPENAI_API_VERSION"},
		{"vertex", key, nil, "GOOGLE_CLOUD_PROJECT"},
		{"vertex", llm.Key{}, map[string]string{"GOOGLE_CLOUD_PROJECT": "p"}, "GOOGLE_APPLICATION_CREDENTIALS"},
		{"vertex", llm.Key{}, map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_APPLICATION_CREDENTIALS": broken}, "no credentials of Google"},
		{"vertex-claude", key, map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "Iowa"}, "GOOGLE_CLOUD_LOCATION"},
		{"groq", llm.Key{}, nil, "GROQ_API_KEY"},
	} {
		_, err := vendors.New(c.vendor, llm.Config{Key: c.key, Getenv: settingsOf(c.settings)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: %v, want an error about %s", c.vendor, c.settings, err, c.want)
		}
	}
	for vendor, foreign := range map[string]string{"anthropic": "gsk_0123456789", "openai": "sk-ant-api03-0123456789", "groq": "AIzaSy0123456789", "gemini": "sk-proj-0123456789"} {
		_, err := vendors.New(vendor, llm.Config{Key: llm.NewKey(foreign)})
		if err == nil || !strings.Contains(err.Error(), "is not sent to "+vendor) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s with the key %s: %v", vendor, foreign, err)
		}
		if _, err := vendors.New(vendor, llm.Config{Key: llm.NewKey(foreign), BaseURL: "http://gateway.test/v1"}); err != nil {
			t.Errorf("%s at a gateway: %v", vendor, err)
		}
	}
	for _, name := range []string{"vllm", "llamacpp", "lmstudio", "ollama"} {
		if _, err := vendors.New(name, llm.Config{Getenv: settingsOf(nil)}); err != nil {
			t.Errorf("%s needs no key: %v", name, err)
		}
	}
}

// A dated version of Azure's interface names the deployment in its path.
func TestDeploymentsOfAzure(t *testing.T) {
	c := &caught{answer: chatAnswer}
	settings := settingsOf(map[string]string{"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/", "OPENAI_API_VERSION": "2024-10-21", "AZURE_OPENAI_AD_TOKEN": "token-of-entra"})
	p, err := vendors.New("azure", llm.Config{Getenv: settings, Transport: c})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Complete(t.Context(), ask(nil)); err != nil {
		t.Fatal(err)
	}
	const want = "https://acme.openai.azure.com/openai/deployments/m-1/chat/completions?api-version=2024-10-21"
	if c.url != want || c.header.Get("Authorization") != "Bearer token-of-entra" || !strings.Contains(c.body, `"max_completion_tokens":500`) {
		t.Errorf("asked %s with %v and %s, want %s", c.url, c.header, c.body, want)
	}
}

// Entra gives a token for the secret of an application, or for the token of a workload; it is asked
// once, and the secret is sent to nobody else.
func TestTokensOfEntra(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-the-cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ variable, value, want string }{
		"secret":   {"AZURE_CLIENT_SECRET", "s3cret", "client_secret=s3cret"},
		"workload": {"AZURE_FEDERATED_TOKEN_FILE", file, "client_assertion=of-the-cluster"},
	} {
		asked := 0
		entra := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			body, _ := io.ReadAll(r.Body) // compared below
			if r.URL.Path != "/tenant-1/oauth2/v2.0/token" || !strings.Contains(string(body), c.want) || !strings.Contains(string(body), "scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default") {
				t.Errorf("%s: Entra is asked %s with %s", name, r.URL, body)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"given","token_type":"Bearer","expires_in":3599}`) // the client is ours
		}))
		azure := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer given" || r.Header.Get("Api-Key") != "" {
				t.Errorf("%s: Azure is asked with %v", name, r.Header)
			}
			_, body, _ := strings.Cut(chatAnswer, " ")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body) // the same
		}))
		p, err := vendors.New("azure", llm.Config{BaseURL: azure.URL, Getenv: settingsOf(map[string]string{
			"AZURE_TENANT_ID": "tenant-1", "AZURE_CLIENT_ID": "app", "AZURE_AUTHORITY_HOST": entra.URL, c.variable: c.value,
		})})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := p.Complete(t.Context(), ask(nil)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if asked != 1 {
			t.Errorf("%s: Entra is asked %d times", name, asked)
		}
		entra.Close()
		azure.Close()
	}
}

// A service account of Google signs for a token, which stands for it.
func TestTokensOfGoogle(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	google := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || strings.Count(r.FormValue("assertion"), ".") != 2 {
			t.Errorf("Google is asked with %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"given","token_type":"Bearer","expires_in":3599}`) // the client is ours
	}))
	defer google.Close()
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "acme-2", "client_email": "a@acme-2.iam.gserviceaccount.com", "token_uri": google.URL,
		"private_key_id": "1", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, account, 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []string
	vertex := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // looked at below
		asked = append(asked, r.Header.Get("Authorization")+" "+r.URL.Path)
		answer := generateAnswer
		if bytes.Contains(body, []byte("anthropic_version")) {
			answer = messagesAnswer
			if !bytes.Contains(body, []byte(`"stream":true`)) || bytes.Contains(body, []byte(`"model"`)) {
				t.Errorf("Claude is asked with %s", body)
			}
		}
		_, text, _ := strings.Cut(answer, " ")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text) // the same
	}))
	defer vertex.Close()
	for name, want := range map[string]string{
		"vertex":        "Bearer given /projects/acme-2/locations/global/publishers/google/models/m-1:streamGenerateContent",
		"vertex-claude": "Bearer given /projects/acme-2/locations/global/publishers/anthropic/models/m-1:streamRawPredict",
	} {
		p, err := vendors.New(name, llm.Config{BaseURL: vertex.URL, Getenv: settingsOf(map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Complete(t.Context(), ask(nil)); err != nil || asked[len(asked)-1] != want {
			t.Errorf("%s: %v, asked %q, want %q", name, err, asked, want)
		}
	}
}

// Bedrock is asked with a signature of the account of this process, wherever its keys are.
func TestSignaturesForBedrock(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	const profiles = "[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key = s\n\n[work]\n# renewed by a tool\naws_access_key_id=AKWORK\naws_secret_access_key=s2\naws_session_token=tok\n"
	if err := os.WriteFile(filepath.Join(home, ".aws", "credentials"), []byte(profiles), 0o600); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "of-the-pod" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, `{"AccessKeyId":"AKPOD","SecretAccessKey":"s3","Token":"tok3","Expiration":"2099-01-01T00:00:00Z"}`) // the client is ours
	}))
	defer host.Close()
	for name, c := range map[string]struct {
		settings  map[string]string
		id, token string
	}{
		"variables": {map[string]string{"AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "s"}, "AKENV", ""},
		"a file":    {map[string]string{"HOME": home}, "AKDEFAULT", ""},
		"a profile": {map[string]string{"HOME": home, "AWS_PROFILE": "work"}, "AKWORK", "tok"},
		"a pod":     {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": host.URL + "/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "of-the-pod"}, "AKPOD", "tok3"},
	} {
		c.settings["AWS_DEFAULT_REGION"] = "us-west-2"
		seen := make(chan http.Header, 1)
		bedrock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Header
			_, body, _ := strings.Cut(converseAnswer, " ")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body) // the same
		}))
		p, err := vendors.New("bedrock", llm.Config{BaseURL: bedrock.URL, Getenv: settingsOf(c.settings)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Complete(t.Context(), ask(nil)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := <-seen
		if !strings.HasPrefix(got.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+c.id+"/") || !strings.Contains(got.Get("Authorization"), "/us-west-2/bedrock/aws4_request") || got.Get("X-Amz-Security-Token") != c.token {
			t.Errorf("%s: asked with %v", name, got)
		}
		bedrock.Close()
	}
}
