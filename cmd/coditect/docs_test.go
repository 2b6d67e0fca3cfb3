package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestDocsOfTools runs what docs/tools.md shows, and compares the output with what it shows. A
// file that is shown by cat is made before.
func TestDocsOfTools(t *testing.T) {
	text, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	var script, files strings.Builder
	script.WriteString("env XDG_CACHE_HOME=$WORK/cache\n")
	n := 0
	for i, block := range strings.Split(string(text), "```") {
		shown, ok := strings.CutPrefix(block, "console\n")
		if i%2 == 0 || !ok {
			continue
		}
		for _, one := range strings.Split("\n"+shown, "\n$ ")[1:] {
			command, output, _ := strings.Cut(one, "\n")
			output = strings.TrimSuffix(output, "\n") + "\n"
			if name, ok := strings.CutPrefix(command, "cat "); ok {
				fmt.Fprintf(&files, "-- %s --\n%s", name, output)
				continue
			}
			n++
			fmt.Fprintf(&script, "exec %s\ncmp stdout want-%d\n", strings.ReplaceAll(command, `"`, `'`), n)
			fmt.Fprintf(&files, "-- want-%d --\n%s", n, output)
		}
	}
	if n == 0 {
		t.Fatal("docs/tools.md shows no command")
	}
	path := filepath.Join(t.TempDir(), "docs.txtar")
	if err := os.WriteFile(path, []byte(script.String()+files.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{path}, Setup: func(e *testscript.Env) error {
		e.Setenv("HOME", e.WorkDir)
		return nil
	}})
}
