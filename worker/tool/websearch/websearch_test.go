package websearch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/websearch"
)

const key = "k-3cr3t"

// answers are what the engines send, by their wire forms.
var answers = map[string]string{
	"searxng": `{"query":"floods","number_of_results":0,"results":[
		{"url":"https://gazette.example/flood","title":"Rain & floods","content":"The river rose by two metres","engine":"bing","engines":["bing"],"score":1.0,"category":"general","publishedDate":"2026-03-04T00:00:00"},
		{"url":"https://gazette.example/flood","title":"twice","content":"","engine":"google","publishedDate":null},
		{"url":"javascript:alert(1)","title":"no page","content":""},
		{"url":"https://user:pass@x.example/","title":"no page either","content":""},
		{"url":"https://courier.example/a","title":"Second","content":null}],
		"answers":[],"corrections":[],"infoboxes":[],"suggestions":[],"unresponsive_engines":[["qwant","timeout"]]}`,
	"brave": `{"type":"search","query":{"original":"floods"},"mixed":{},"web":{"type":"search","results":[
		{"title":"Rain &amp; floods","url":"https://gazette.example/flood","description":"The <strong>river</strong> rose by two metres","page_age":"2026-03-04T00:00:00","age":"March 4, 2026","profile":{"name":"Gazette"},"language":"en","family_friendly":true},
		{"title":"Second","url":"https://courier.example/a","description":"","extra_snippets":["and more","of it"]}]}}`,
	"tavily": `{"query":"floods","follow_up_questions":null,"answer":null,"images":[],"results":[
		{"title":"Rain & floods","url":"https://gazette.example/flood","content":"The river rose by two metres","score":0.98,"raw_content":null,"published_date":"2026-03-04T00:00:00"},
		{"title":"Second","url":"https://courier.example/a","content":"","score":0.5}],"response_time":1.2}`,
}

// checkRequest fails unless a request is what its engine takes.
func checkRequest(t *testing.T, engine string, r *http.Request) {
	t.Helper()
	got := map[string]string{"method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery, "accept": r.Header.Get("Accept")}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	want := map[string]map[string]string{
		"searxng": {"method": "GET", "path": "/searx/search", "query": "format=json&q=floods+in+May&time_range=month", "accept": "application/json"},
		"brave":   {"method": "GET", "path": "/searx", "query": "count=3&freshness=pm&q=floods+in+May&text_decorations=false", "accept": "application/json"},
		"tavily":  {"method": "POST", "path": "/searx", "query": "", "accept": "application/json"},
	}[engine]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: request (-want +got):\n%s", engine, diff)
	}
	switch engine {
	case "brave":
		if r.Header.Get("X-Subscription-Token") != key {
			t.Error("brave: no key")
		}
	case "tavily":
		if want := `{"query":"floods in May","max_results":3,"search_depth":"basic","time_range":"month"}`; string(body) != want || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("tavily: body %s, authorization %q", body, r.Header.Get("Authorization"))
		}
	}
}

// open returns a session of a kit whose engine is a server on loopback.
func open(t *testing.T, engine, url string) tool.Session {
	t.Helper()
	kit, err := websearch.New(websearch.Config{Engine: engine, URL: url, Key: key, Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kit.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := kit.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEngines(t *testing.T) {
	for _, e := range websearch.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				checkRequest(t, e.Name, r)
				fmt.Fprint(w, answers[e.Name])
			}))
			defer server.Close()
			s := open(t, e.Name, server.URL+"/searx")
			r, err := s.Call(t.Context(), websearch.Name, json.RawMessage(`{"query":" floods in May ","count":3,"recent":"month"}`))
			if err != nil {
				t.Fatal(err)
			}
			second := map[string]string{"searxng": "Second", "brave": "Second\n… and more … of it", "tavily": "Second"}[e.Name]
			about := map[string]string{"excerpt_by": e.Name, "query": "floods in May"}
			want := []tool.Evidence{
				{
					URI: "https://gazette.example/flood", Title: "Rain & floods", Media: "text/plain", Retrieved: time.Unix(0, 0).UTC(), Text: "Rain & floods\nThe river rose by two metres",
					Metadata: map[string]string{"excerpt_by": e.Name, "query": "floods in May", "published": "2026-03-04T00:00:00"},
				},
				{URI: "https://courier.example/a", Title: "Second", Media: "text/plain", Retrieved: time.Unix(0, 0).UTC(), Text: second, Metadata: about},
			}
			if diff := cmp.Diff(want, r.Evidence); diff != "" {
				t.Errorf("evidence (-want +got):\n%s", diff)
			}
			if !strings.Contains(r.Text, "1. https://gazette.example/flood\n2. https://courier.example/a") {
				t.Errorf("text: %s", r.Text)
			}
		})
	}
}

// TestFailures: what goes wrong is said with the name of the engine, and without the key,
// even if the engine repeats it.
func TestFailures(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed, with the key") }))
	defer elsewhere.Close()
	for _, test := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"a wrong key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"detail":{"error":"Unauthorized: %s is no key"}}`, key)
		}, "401 Unauthorized; the operator"},
		{"a key where the answer is cut", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, strings.Repeat("x", 300-len(key)/2), key, " is no key")
		}, "x…"},
		{"too many", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "try again later"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "cannot be read"},
		{"other JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":"x"}`) }, "cannot be read"},
		{"a list", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[]`) }, "cannot be read"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "307"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "more than 4194304 bytes"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"results":[`)
		}, "broke off"},
	} {
		for _, e := range websearch.Engines() {
			t.Run(test.name+"/"+e.Name, func(t *testing.T) {
				server := httptest.NewServer(test.handle)
				defer server.Close()
				_, err := open(t, e.Name, server.URL).Call(t.Context(), websearch.Name, json.RawMessage(`{"query":"x"}`))
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), e.Name) || strings.Contains(err.Error(), key[:4]) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		}
	}
}

func TestNothingFoundAndNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "wait") {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"results":[]}`)
	}))
	defer server.Close()
	s := open(t, "searxng", server.URL)
	if r, err := s.Call(t.Context(), websearch.Name, json.RawMessage(`{"query":"x"}`)); err != nil || len(r.Evidence) != 0 || !strings.Contains(r.Text, "nothing") {
		t.Errorf("got %v, %v", r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Call(ctx, websearch.Name, json.RawMessage(`{"query":"wait"}`)); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("got %v", err)
	}
	for _, input := range []string{`{}`, `{"query":"  "}`, `{"query":"x","what":1}`, `[]`} {
		if _, err := s.Call(t.Context(), websearch.Name, json.RawMessage(input)); err == nil {
			t.Errorf("the input %s is accepted", input)
		}
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	for _, test := range []struct {
		config websearch.Config
		want   string
	}{
		{websearch.Config{Engine: "altavista"}, "there are searxng, brave, tavily"},
		{websearch.Config{Engine: "searxng"}, "needs the address"},
		{websearch.Config{Engine: "brave"}, "BRAVE_API_KEY"},
		{websearch.Config{Engine: "tavily"}, "TAVILY_API_KEY"},
		{websearch.Config{Engine: "searxng", URL: "ftp://x"}, "http or https"},
		{websearch.Config{Engine: "searxng", URL: "http://a:b@x"}, "without credentials"},
		{websearch.Config{Engine: "searxng", URL: "http://2130706433/"}, "127.0.0.1"},
	} {
		if _, err := websearch.New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.config, err, test.want)
		}
	}
	if _, err := websearch.New(websearch.Config{Engine: "brave", Key: key}); err != nil {
		t.Error(err)
	}
}
