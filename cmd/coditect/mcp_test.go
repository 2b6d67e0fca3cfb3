package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// An agent is the official client of MCP, connected to the program.
type agent struct {
	*sdk.ClientSession
	t *testing.T
}

// newAgent connects an agent.
func newAgent(t *testing.T, transport sdk.Transport, options *sdk.ClientOptions) *agent {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return &agent{ClientSession: session, t: t}
}

// served starts coditect mcp on standard input and output.
func served(t *testing.T, dir string, flags ...string) *agent {
	cmd := exec.CommandContext(context.Background(), program(t), append([]string{"mcp", "--data-dir", dir}, flags...)...)
	cmd.Stderr = os.Stderr
	// However slow the machine is, the program is not told to terminate: its exit code would say so.
	return newAgent(t, &sdk.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
}

// call calls a tool and returns its answer, or the text of its error.
func (a *agent) call(name string, arguments map[string]any) (answer map[string]any, failed string) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		return nil, text
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		a.t.Fatalf("%s: %v in %s", name, err, text)
	}
	return answer, ""
}

// must calls a tool, which must succeed.
func (a *agent) must(name string, arguments map[string]any) map[string]any {
	a.t.Helper()
	answer, failed := a.call(name, arguments)
	if failed != "" {
		a.t.Fatalf("%s: %s", name, failed)
	}
	return answer
}

// letters to agents are documents with a seller and a total.
func lettersToAgents(n int) (docs []map[string]any) {
	for i := range n {
		docs = append(docs, map[string]any{"id": fmt.Sprintf("%d.txt", i), "text": fmt.Sprintf("Seller: Shop %d of the town\nTotal: %d.50\n", i, i)})
	}
	return docs
}

const sellerSchema = `
type: object
required: [seller]
properties:
  seller: {type: string, x-coditect: {labels: [Seller]}}
  total: {type: number, x-coditect: {labels: [Total]}}
`

// An agent submits a job, waits for it, reads its result in pages, and searches in it. The
// job stays when the program has ended.
func TestMCPServesJobs(t *testing.T) {
	testenv.Raced(t)

	dir := filepath.Join(t.TempDir(), "data")
	a := served(t, dir)
	tools, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, fmt.Sprint(tool.Name, " ", tool.Annotations.ReadOnlyHint))
	}
	if diff := cmp.Diff([]string{"result true", "search_results true", "status true", "submit false"}, names); diff != "" {
		t.Error(diff)
	}
	job := a.must("submit", map[string]any{"documents": lettersToAgents(30), "schema": sellerSchema, "request_id": "once"})
	id := job["job_id"].(string)
	if again := a.must("submit", map[string]any{"documents": lettersToAgents(30), "schema": sellerSchema, "request_id": "once"}); again["job_id"] != id {
		t.Errorf("the same request is another job: %v", again["job_id"])
	}
	if s := a.must("status", map[string]any{"job_id": id, "wait_seconds": 120}); s["status"] != "complete" {
		t.Fatalf("the job is %v", s)
	}
	page := a.must("result", map[string]any{"job_id": id, "offset": 10, "limit": 5})
	records := page["records"].([]any)
	if len(records) != 5 || page["next_offset"] != 15.0 || page["total_records"] != 30.0 {
		t.Errorf("the page is %v", page)
	}
	first := records[0].(map[string]any)
	quoted := ""
	for _, c := range first["citations"].([]any) {
		quoted += c.(map[string]any)["quote"].(string) + "|"
	}
	if first["record"].(map[string]any)["seller"] != "Shop 10 of the town" || !strings.Contains(quoted, "Shop 10 of the town|") {
		t.Errorf("record 10 is %v", first)
	}
	if last := a.must("result", map[string]any{"job_id": "last", "offset": 25}); last["next_offset"] != nil || len(last["records"].([]any)) != 5 {
		t.Errorf("the last page is %v", last)
	}
	hits := a.must("search_results", map[string]any{"job_id": id, "query": "the shops, 17"})["records"].([]any)
	if best := hits[0].(map[string]any); best["number"] != 17.0 || best["score"] != 1.0 {
		t.Errorf("the best for shop 17 is %v", best)
	}
	if hits := a.must("search_results", map[string]any{"job_id": id, "query": "dragons"}); hits["total_records"] != 0.0 {
		t.Errorf("there are dragons: %v", hits)
	}

	// A job that the program leaves behind goes on when an agent asks for it.
	left := a.must("submit", map[string]any{"documents": lettersToAgents(1000), "schema": sellerSchema})["job_id"]
	_ = a.Close()
	b := served(t, dir)
	if s := b.must("status", map[string]any{"job_id": left, "wait_seconds": 120}); s["status"] != "complete" {
		t.Errorf("the job that was left behind is %v", s)
	}
	if all := b.must("status", nil)["jobs"].([]any); len(all) != 2 || all[1].(map[string]any)["job_id"] != id {
		t.Errorf("afterwards there are %v", all)
	}
}

// What an agent must not do is refused with the argument, and what it gets wrong too.
func TestMCPRefuses(t *testing.T) {
	a := served(t, filepath.Join(t.TempDir(), "data"), "--budget", "1000")
	docs := lettersToAgents(1)
	for _, tt := range []struct {
		name, tool string
		arguments  map[string]any
		want       string
	}{
		{"no documents", "submit", map[string]any{"schema": sellerSchema}, "documents: are missing"},
		{"no schema", "submit", map[string]any{"documents": docs}, "schema: is missing"},
		{"a schema that is none", "submit", map[string]any{"documents": docs, "schema": "type: ["}, "schema: "},
		{"a file as a pipeline", "submit", map[string]any{"documents": docs, "pipeline": "/etc/passwd"}, "pipeline: there is none named"},
		{"a setting of models", "submit", map[string]any{"documents": docs, "schema": sellerSchema, "variables": map[string]any{"base_url": "http://169.254.169.254/"}}, "variables: "},
		{"more than the budget", "submit", map[string]any{"documents": docs, "schema": sellerSchema, "budget": 1001}, "budget: is more than the operator allows, which is 1000"},
		{"another provider", "submit", map[string]any{"documents": docs, "schema": sellerSchema, "provider": "anthropic"}, "provider"},
		{"documents that are too many", "submit", map[string]any{"documents": lettersToAgents(1001), "schema": sellerSchema}, "at most 1000"},
		{"two documents of one name", "submit", map[string]any{"documents": append(lettersToAgents(1), docs...), "schema": sellerSchema}, "0.txt"},
		{"no job", "status", map[string]any{"job_id": "mr_20260101_a1b2c3"}, "mr_20260101_a1b2c3"},
		{"no id", "result", map[string]any{"job_id": "../../etc"}, "is not the id of a job"},
		{"a long wait", "status", map[string]any{"job_id": "last", "wait_seconds": 301}, "must be from 0 to 300"},
		{"an empty query", "search_results", map[string]any{"job_id": "last", "query": " "}, "query: is empty"},
		{"the newest of none", "result", map[string]any{"job_id": "last"}, "there are no jobs"},
	} {
		if got, failed := a.call(tt.tool, tt.arguments); !strings.Contains(failed, tt.want) {
			t.Errorf("%s: got %v, error %q, want %q", tt.name, got, failed, tt.want)
		}
	}
	if all := a.must("status", nil)["jobs"]; all != nil {
		t.Errorf("there are jobs: %v", all)
	}
}

// withHeader adds a header to requests.
type withHeader struct{ name, value string }

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return http.DefaultTransport.RoundTrip(r)
}

// Over HTTP a token is needed where the operator says so, pages of a browser get nothing,
// progress is told, and the program ends when it is asked to.
func TestMCPOverHTTP(t *testing.T) {
	testenv.Raced(t)

	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program(t), "mcp", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--http-token-file", token)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line[strings.Index(line, "http://"):])

	status := func(change func(*http.Request)) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		change(r)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token":        {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another token":   {func(r *http.Request) { r.Header.Set("Authorization", "Bearer 0123456789abcdeg") }, 401},
		"a page":          {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"a name of ours":  {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"another request": {func(r *http.Request) { r.URL.Path = "/" }, 404},
	} {
		if got := status(tt.change); got != tt.want {
			t.Errorf("%s: status %d, want %d", name, got, tt.want)
		}
	}
	heard := make(chan float64, 100)
	a := newAgent(t, &sdk.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: withHeader{"Authorization", "Bearer 0123456789abcdef"}}}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			select {
			case heard <- r.Params.Progress:
			default:
			}
		},
	})
	a.must("submit", map[string]any{"documents": lettersToAgents(3), "schema": sellerSchema})
	params := &sdk.CallToolParams{Name: "status", Arguments: map[string]any{"job_id": "last", "wait_seconds": 120}}
	params.SetProgressToken("p")
	if _, err := a.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard:
	case <-time.After(time.Minute):
		t.Error("no progress was told")
	}
	_ = a.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("the program ended with code %d", code)
	}
}

func TestMCPListensHereAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":7610", "192.168.1.1:80", "[::]:0", "example.com:80", "x"} {
		out, err := exec.CommandContext(t.Context(), program(t), "mcp", "--data-dir", t.TempDir(), "--listen", address).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), "--listen: ") {
			t.Errorf("%s: %v\n%s", address, err, out)
		}
	}
}

// The tools of servers that a file names are offered by their names, and --tool chooses
// among them. The server is the program itself.
func TestToolsOfMCPServers(t *testing.T) {
	testenv.Raced(t)

	dir, self := t.TempDir(), program(t)
	file := filepath.Join(dir, "servers.json")
	servers := fmt.Sprintf(`{"mcpServers":{
		"jobs":{"command":%q,"args":["mcp","--data-dir",%q],"trusted":true},
		"broken":{"command":%q,"args":["mcp","--no-such-flag"]}}}`, self, filepath.Join(dir, "data"), self)
	if err := os.WriteFile(file, []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	list := func(args ...string) ([]byte, error) {
		return exec.CommandContext(t.Context(), self, append([]string{"mapreduce", "tools", "-o", "json", "--mcp", file}, args...)...).CombinedOutput()
	}
	out, err := list("--tool", "mcp:jobs/status", "--tool", "mcp:jobs/submit")
	var kits struct {
		Kits []struct {
			Kit   string
			Tools []struct {
				Name                string
				Idempotent, Offered bool
			}
		}
	}
	if err != nil || json.Unmarshal(out, &kits) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := ""
	for _, k := range kits.Kits {
		for _, tool := range k.Tools {
			if k.Kit == "mcp:jobs" {
				got += fmt.Sprintln(tool.Name, tool.Idempotent, tool.Offered)
			}
		}
	}
	if diff := cmp.Diff("status true true\nsubmit false true\n", got); diff != "" {
		t.Errorf("%s\n%s", diff, out)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a server that does not start": {nil, "mcp:broken: the server does not start: the program ended (exit status 2)"},
		"no such server":               {[]string{"--tool", "mcp:none"}, `gives no kit named "mcp:none"`},
		"no such tool":                 {[]string{"--tool", "mcp:jobs/delete"}, `"delete"`},
	} {
		if out, err := list(tt.args...); err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// The inspector of MCP, which others wrote, lists and calls all tools of the program, on
// standard streams and over HTTP.
func TestPeersInspector(t *testing.T) {
	peers := os.Getenv("CODITECT_MCP_PEERS")
	if peers == "" {
		t.Skip("CODITECT_MCP_PEERS names no folder with the inspector; make test-mcp installs it")
	}
	self, data := program(t), filepath.Join(t.TempDir(), "data")
	documents, err := json.Marshal(lettersToAgents(3))
	if err != nil {
		t.Fatal(err)
	}
	inspect := func(t *testing.T, server []string, words ...string) string {
		t.Helper()
		args := slices.Concat([]string{filepath.Join(peers, "node_modules", ".bin", "mcp-inspector"), "--cli"}, server, words)
		cmd := exec.CommandContext(t.Context(), "node", args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
		return string(out)
	}
	run := func(t *testing.T, server []string) {
		for _, tt := range []struct {
			words []string
			want  string
		}{
			{[]string{"--method", "tools/list"}, `"search_results"`},
			{[]string{"--method", "tools/call", "--tool-name", "submit", "--tool-arg", "documents=" + string(documents), "--tool-arg", "schema=" + sellerSchema, "--tool-arg", "request_id=" + t.Name()}, `"job_id"`},
			{[]string{"--method", "tools/call", "--tool-name", "status", "--tool-arg", "job_id=last", "--tool-arg", "wait_seconds=120"}, "complete"},
			{[]string{"--method", "tools/call", "--tool-name", "result", "--tool-arg", "job_id=last", "--tool-arg", "limit=2"}, "Shop 1 of the town"},
			{[]string{"--method", "tools/call", "--tool-name", "search_results", "--tool-arg", "job_id=last", "--tool-arg", "query=shop 2"}, "Shop 2 of the town"},
		} {
			if out := inspect(t, server, tt.words...); !strings.Contains(out, tt.want) {
				t.Errorf("%q: %s\nwant %q", tt.words, out, tt.want)
			}
		}
	}
	t.Run("stdio", func(t *testing.T) { run(t, []string{self, "mcp", "--data-dir", data}) })
	t.Run("HTTP", func(t *testing.T) {
		cmd := exec.CommandContext(context.Background(), self, "mcp", "--data-dir", data, "--listen", "127.0.0.1:0")
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		line, err := bufio.NewReader(said).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		run(t, []string{strings.TrimSpace(line[strings.Index(line, "http://"):]), "--transport", "http"})
	})
}
