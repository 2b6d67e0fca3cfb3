package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// The commands of docs/service.md for HTTP do what the page says, one after another, with
// curl against a server that is started as the page says.
func TestCommandsOfHTTP(t *testing.T) {
	testenv.Raced(t)

	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	page, err := os.ReadFile("../../docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## REST, Connect and gRPC-Web\n")
	if !found {
		t.Fatal("docs/service.md has no section on HTTP")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for _, block := range strings.Split(section, "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		commands = append(commands, block)
	}
	if len(commands) < 2 || !strings.HasPrefix(commands[0], "coditect serve --http 127.0.0.1:7680") {
		t.Fatalf("the commands do not begin with the server: %q", commands)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "invoice.txt"), []byte("Invoice 17\nTOTAL: 12.50\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	said, served := &output{more: make(chan struct{})}, make(chan int, 1)
	go func() {
		served <- main.Run(ctx, []string{"serve", "--listen", "unix", "--http", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data")}, said)
	}()
	defer func() {
		stop()
		if code := <-served; code != 0 {
			t.Errorf("the server ended with %d:\n%s", code, said)
		}
	}()
	address := said.await(t, `msg="HTTP is served" http=(\S+)`)
	script := "set -euo pipefail\n" + strings.ReplaceAll(strings.Join(commands[1:], "\n"), "127.0.0.1:7680", address)
	sh := exec.CommandContext(ctx, "bash", "-c", script)
	var stderr bytes.Buffer
	sh.Dir, sh.Stderr = dir, &stderr
	out, err := sh.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &stderr)
	}
	for _, want := range []string{`"state":"JOB_STATE_COMPLETE"`, `"unitId":"invoice.txt"`, `"code":5`, `"domain":"coditect.mapreduce"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the commands did not print %s:\n%s", want, out)
		}
	}
	result, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil || !json.Valid(result) || !bytes.Contains(result, []byte("12.5")) {
		t.Errorf("result.json: %v\n%s", err, result)
	}
}
