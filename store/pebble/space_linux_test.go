package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// A small disk fills up for real: work stops before Pebble is harmed, reads go
// on, nothing acknowledged is lost, and after space is made work goes on.
func TestFullDisk(t *testing.T) {
	folder := mountSmallDisk(t)
	ballast := folder + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	c := pebble.Config{MinFree: 20 << 20, MemTableSize: 1 << 20}
	s, err := pebble.Open(folder+"/data", c)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := fillUp(t, s, 0)
	if acknowledged == 0 {
		t.Fatal("nothing was committed")
	}
	checkNumbered(t, s, acknowledged)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	acknowledged = fillUp(t, s, acknowledged)
	mustClose(t, s)
	if s, err = pebble.Open(folder+"/data", c); err != nil {
		t.Fatal(err)
	}
	checkNumbered(t, s, acknowledged)
	mustClose(t, s)
}

// mountSmallDisk returns a folder with 64 MiB.
func mountSmallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// fillUp stores numbered values from first on until there is no space, and
// returns the next number.
func fillUp(t *testing.T, s *pebble.Store, first int) int {
	t.Helper()
	for n := first; ; n++ {
		tx := begin(t, s)
		tx.Set(fmt.Appendf(nil, "%06d", n), numbered(n))
		if err := tx.Commit(t.Context()); errors.Is(err, store.ErrNoSpace) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// numbered returns a value that does not compress well.
func numbered(n int) []byte {
	b := make([]byte, 0, 50_000)
	for x := uint64(n) + 1; len(b) < 50_000; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b
}

func checkNumbered(t *testing.T, s *pebble.Store, n int) {
	t.Helper()
	for i := range n {
		v, err := begin(t, s).Get(t.Context(), fmt.Appendf(nil, "%06d", i))
		if err != nil || !bytes.Equal(v, numbered(i)) {
			t.Fatalf("value %d of %d is lost: %d bytes, %v", i, n, len(v), err)
		}
	}
}
