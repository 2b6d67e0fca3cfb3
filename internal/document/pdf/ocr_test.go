//go:build unix

package pdf_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/recognise"
)

// closing returns a reader with a program for OCR that the test closes.
func closing(t *testing.T, program ...string) *pdf.Reader {
	r := pdf.New(pdf.Config{OCR: recognise.NewCommand(program)})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestOCREnvironment has a program write what it sees of the environment.
func TestOCREnvironment(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Setenv("CODITECT_TEST_KEY", "secret")
	t.Setenv("TESSDATA_PREFIX", "/languages")
	got := read(t, closing(t, "env"), makeFile("", sheet{})).Text
	for name, want := range map[string]bool{"CODITECT_TEST_KEY=": false, "TESSDATA_PREFIX=/languages": true, "PATH=": true} {
		if strings.Contains(got, name) != want {
			t.Errorf("it sees %s: %v, want %v", name, !want, want) // without the rest, which may be secret
		}
	}
}

// TestOCRCanceled ends the reading while a program waits for one that it has started. Both
// hold the writing end of a pipe, which ends with the last of them.
func TestOCRCanceled(t *testing.T) {
	testenv.Raced(t)

	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := closing(t, "sh", "-c", `exec 3>"$0"; sleep 30 & echo begun >&3; wait`, pipe)
	ended := make(chan error, 1)
	go func() {
		_, err := parse(ctx, r, makeFile("", sheet{}))
		ended <- err
	}()
	from, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	lines := bufio.NewReader(from)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a reading that was cancelled returned a document")
	}
	if err := from.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(lines); err != nil {
		t.Errorf("what the program started goes on: %v", err)
	}
}
