package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/mcp"
)

// peer returns the program of a server that others wrote, or skips the test.
func peer(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("CODITECT_MCP_PEERS")
	if dir == "" {
		t.Skip("CODITECT_MCP_PEERS names no folder with servers of others; make test-mcp installs them")
	}
	return filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
}

// A peerCall is a call of a tool of a server that others wrote.
type peerCall struct {
	input string
	want  string // in its texts, or in its error if that begins with "error: "
}

// callAll calls all tools of a kit, each of which has to be in calls, in the order of order
// and then of the kit.
func callAll(t *testing.T, k *mcp.Kit, calls map[string]peerCall, order ...string) {
	t.Helper()
	s := unit(t, k)
	byMember := make(map[string]tool.Spec)
	var members []string
	for _, spec := range k.Tools() {
		byMember[spec.Member] = spec
		if members = append(members, spec.Member); calls[spec.Member] == (peerCall{}) {
			t.Errorf("the server has a tool %s, which is not called", spec.Member)
		}
	}
	if len(members) != len(calls) {
		t.Errorf("the server has the tools %q, want %d", members, len(calls))
	}
	slices.SortStableFunc(members, func(a, b string) int {
		at := func(m string) int {
			if i := slices.Index(order, m); i >= 0 {
				return i
			}
			return len(order)
		}
		return at(a) - at(b)
	})
	for _, m := range members {
		c := calls[m]
		got := ""
		r, err := s.Call(t.Context(), byMember[m].Name, json.RawMessage(c.input))
		if err != nil {
			got = "error: " + err.Error()
		} else {
			for _, e := range r.Evidence {
				got += e.Text + "\n"
			}
			got += r.Text
		}
		if !strings.Contains(got, strings.TrimPrefix(c.want, "error: ")) || (err != nil) != strings.HasPrefix(c.want, "error: ") {
			t.Errorf("%s%s: got %.600q, want %q", m, c.input, got, c.want)
		}
	}
	t.Logf("%s: %d tools listed and called", k.Name(), len(members))
}

// everything are calls of all tools of server-everything.
var everything = map[string]peerCall{
	"echo":                           {`{"message":"tea"}`, "tea"},
	"get-annotated-message":          {`{"messageType":"error","includeImage":true}`, "a picture of"},
	"get-env":                        {`{}`, "API_KEY"},
	"get-resource-links":             {`{"count":2}`, "a link to a resource: demo://"},
	"get-resource-reference":         {`{"resourceType":"Text","resourceId":1}`, "Resource 1"},
	"get-structured-content":         {`{"location":"Chicago"}`, "humidity"},
	"get-sum":                        {`{"a":2,"b":40}`, "42"},
	"get-tiny-image":                 {`{}`, "a picture of"},
	"gzip-file-as-resource":          {`{"name":"a.gz","data":"data:text/plain;base64,dGVh","outputType":"resource"}`, "that is no text"},
	"toggle-simulated-logging":       {`{}`, "logging"},
	"toggle-subscriber-updates":      {`{}`, "update"},
	"trigger-long-running-operation": {`{"duration":0.2,"steps":2}`, "completed"},
	"simulate-research-query":        {`{"topic":"tea"}`, "error: "}, // needs tasks, which are not spoken
}

func TestPeersEverything(t *testing.T) {
	program := peer(t, "server-everything")
	t.Run("stdio", func(t *testing.T) {
		file := fmt.Sprintf(`{"mcpServers":{"all":{"command":"node","args":[%q,"stdio"],"env":{"API_KEY":"${KEY}"},"trusted":true}}}`, program)
		k := open(t, parsed(t, file, map[string]string{"KEY": "swordfish-17"}), config())
		callAll(t, k, everything)
		if got := call(t, unit(t, k), "all_get-env", `{}`)[0]; strings.Contains(got, "swordfish-17") || !strings.Contains(got, "***") {
			t.Errorf("a secret is in %s", got)
		}
	})
	t.Run("streamable HTTP", func(t *testing.T) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_, port, _ := strings.Cut(address, ":")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		server := exec.CommandContext(context.Background(), "node", program, "streamableHttp")
		server.Env = append(os.Environ(), "PORT="+port, "API_KEY=x")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = server.Process.Kill()
			_ = server.Wait()
		})
		var dialer net.Dialer
		for begun := time.Now(); ; { // it does not say when it listens
			c, err := dialer.DialContext(t.Context(), "tcp", address)
			if err == nil {
				_ = c.Close()
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatal(err)
			}
			<-time.After(20 * time.Millisecond)
		}
		callAll(t, open(t, mcp.Server{Name: "all", URL: "http://" + address + "/mcp"}, config()), everything)
	})
}

func TestPeersFilesystem(t *testing.T) {
	program, dir := peer(t, "server-filesystem"), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("a.txt"), []byte("first line\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(format string, names ...any) string {
		for i, n := range names {
			names[i] = path(n.(string))
		}
		return fmt.Sprintf(format, names...)
	}
	k := open(t, mcp.Server{Name: "fs", Command: "node", Args: []string{program, dir}, Trusted: true}, config())
	callAll(t, k, map[string]peerCall{
		"write_file":                {in(`{"path":%q,"content":"tea"}`, "b.txt"), "Successfully wrote"},
		"create_directory":          {in(`{"path":%q}`, "sub"), "Successfully created"},
		"edit_file":                 {in(`{"path":%q,"edits":[{"oldText":"tea","newText":"milk"}]}`, "b.txt"), "+milk"},
		"move_file":                 {in(`{"source":%q,"destination":%q}`, "b.txt", "sub/b.txt"), "Successfully moved"},
		"read_file":                 {in(`{"path":%q}`, "a.txt"), "second line"},
		"read_text_file":            {in(`{"path":%q,"head":1}`, "a.txt"), "first line"},
		"read_media_file":           {in(`{"path":%q}`, "a.txt"), "["},
		"read_multiple_files":       {in(`{"paths":[%q,%q]}`, "a.txt", "sub/b.txt"), "milk"},
		"list_directory":            {in(`{"path":%q}`, ""), "[FILE] a.txt"},
		"list_directory_with_sizes": {in(`{"path":%q}`, ""), "a.txt"},
		"directory_tree":            {in(`{"path":%q}`, ""), "sub"},
		"search_files":              {in(`{"path":%q,"pattern":"**/b.txt"}`, ""), "sub/b.txt"},
		"get_file_info":             {in(`{"path":%q}`, "a.txt"), "size"},
		"list_allowed_directories":  {`{}`, dir},
	}, "write_file", "create_directory", "edit_file", "move_file")
	for _, spec := range k.Tools() {
		if reads := !slices.Contains([]string{"write_file", "create_directory", "edit_file", "move_file"}, spec.Member); reads && !spec.Idempotent {
			t.Errorf("%s is taken for one that does something", spec.Member)
		}
	}
	refused(t, unit(t, k), "fs_read_text_file", `{"path":"/etc/passwd"}`, "Access denied")
}
