package pebble_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// killedStore returns what a process that is killed leaves, with several logs
// that hold what is in no table yet: tables cannot be written.
func killedStore(t *testing.T, keys int) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewCrashableMem()
	var blocked atomic.Bool
	held := make(chan struct{})
	fs := hookFS{FS: disk, beforeSync: func(name string) error {
		if blocked.Load() && strings.HasSuffix(name, ".sst") {
			<-held
		}
		return nil
	}}
	s, err := pebble.Open("data", pebble.Config{FS: fs, MemTableSize: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	blocked.Store(true)
	for i := range keys {
		set(t, s, fmt.Sprint(i), strings.Repeat("v", 1000))
	}
	left := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	close(held)
	mustClose(t, s)
	return left
}

// A log that was taken away after a process was killed is missed, whichever it
// is, and nothing is touched.
func TestMissingLogOfAKilledStore(t *testing.T) {
	left := killedStore(t, 80)
	before := readFolder(t, left, "data")
	listed := strings.Fields(before["CODITECT_STORE"])[6:]
	if len(listed) < 3 {
		t.Fatalf("only %d logs are listed: %q", len(listed), before["CODITECT_STORE"])
	}
	for _, number := range listed {
		name := fmt.Sprintf("data/%06s.log", number)
		t.Run(name, func(t *testing.T) {
			if err := left.Rename(name, "aside"); err != nil {
				t.Fatal(err)
			}
			without := readFolder(t, left, "data")
			s, err := pebble.Open("data", pebble.Config{FS: left})
			if err == nil {
				mustClose(t, s)
			}
			if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), name+" is missing") {
				t.Errorf("Open = %v, want %v that names %s", err, store.ErrCorrupt, name)
			}
			if d := cmp.Diff(without, readFolder(t, left, "data")); d != "" {
				t.Errorf("files changed (-before +after):\n%s", d)
			}
			if err := left.Rename("aside", name); err != nil {
				t.Fatal(err)
			}
		})
	}
	s := open(t, pebble.Config{FS: left})
	if got := len(contents(t, s)); got != 80 {
		t.Errorf("with all logs there are %d keys, want 80", got)
	}
}

// Logs that are flushed go, and are struck off the list before.
func TestListOfLogsStaysShort(t *testing.T) {
	fs := vfs.NewMem()
	for range 3 {
		s, err := pebble.Open("data", pebble.Config{FS: fs, MemTableSize: 32 << 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 400 {
			set(t, s, fmt.Sprint(i), strings.Repeat("v", 1000))
		}
		mustClose(t, s)
		files := readFolder(t, fs, "data")
		for _, number := range strings.Fields(files["CODITECT_STORE"])[6:] {
			name := fmt.Sprintf("%06s.log", number)
			if _, there := files[name]; !there {
				t.Errorf("%s is listed and not there", name)
			}
		}
		if n := len(strings.Fields(files["CODITECT_STORE"])); n < 7 || n > 20 {
			t.Errorf("the file reads %q, want some logs, and no old ones", files["CODITECT_STORE"])
		}
	}
}

// A store of before logs were listed opens, and lists its logs from then on.
func TestStoreWithoutListedLogs(t *testing.T) {
	fs := stored(t)
	writeFile(t, fs, "data/CODITECT_STORE", "coditect store format 2 closed 100\n")
	s := open(t, pebble.Config{FS: fs})
	if got := len(contents(t, s)); got != 100 {
		t.Errorf("%d keys, want 100", got)
	}
	if text := readFolder(t, fs, "data")["CODITECT_STORE"]; len(strings.Fields(text)) != 7 {
		t.Errorf("the file reads %q, want one log", text)
	}
}
