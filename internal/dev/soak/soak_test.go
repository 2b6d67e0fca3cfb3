package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// A soak of seconds submits, reads, kills and checks, and prints its table.
func TestSoakOfSeconds(t *testing.T) {
	testenv.Lengthy(t)

	program := os.Getenv("CODITECT_PROGRAM")
	if program == "" {
		t.Skip("CODITECT_PROGRAM names no program that is built with the tag scripted")
	}
	var out strings.Builder
	err := soak(t.Context(), config{
		program: program, data: filepath.Join(t.TempDir(), "data"), time: 20 * time.Second, every: time.Second,
		jobs: 200 * time.Millisecond, kill: 5 * time.Second, report: time.Minute, keep: 5, seed: 1,
	}, &out)
	// So short a time has only what fills caches, so growth is nothing to fail for.
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			if !strings.Contains(line, " grows by ") {
				t.Errorf("%s\n%s", line, &out)
			}
		}
	}
	for _, want := range []string{"keys of kind units", "server: memory", "worker that is killed: goroutines", " 0 went wrong; "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q\n%s", want, &out)
		}
	}
}
