package folder_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// Folders of writers that were killed are removed, before others are written. Those of
// writers that live stay, as does whatever has another name.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, ".coditect-abcdefghij23")
	lives := filepath.Join(dir, ".coditect-klmnopqrst45")
	others := filepath.Join(dir, ".coditect-notes")
	for _, d := range []string{dead, lives, others} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "result.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writer, err := os.Open(lives)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := syscall.Flock(int(writer.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := folder.Check(filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{lives, others}, left); diff != "" {
		t.Errorf("folders before the next result is written (-want +got):\n%s", diff)
	}
	if removed, err := folder.Sweep(dir); err != nil || len(removed) > 0 {
		t.Errorf("sweeping again removed %v (error %v)", removed, err)
	}
}
