package files_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

func newFolder(t *testing.T) vfs.FS {
	t.Helper()
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	return fsys
}

func write(t *testing.T, fsys vfs.FS, name, text string) {
	t.Helper()
	f, err := fsys.Create("data/"+name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = io.WriteString(f, text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The file lists each log from when it is reported until before it is removed or reused.
func TestRegister(t *testing.T) {
	fsys := newFolder(t)
	empty, err := files.ReadFormat(fsys, "data")
	must(t, err)
	if empty.State != files.StateNone || empty.IsComplete() {
		t.Errorf("a folder without the file reads %+v", empty)
	}
	r := files.NewRegister(fsys, "data", empty)
	must(t, r.Reset(files.StateCreating))
	must(t, r.SetState(files.StateOpen, 7))
	for _, log := range []uint64{12, 4, 12, 8} {
		must(t, r.AddLog(log))
	}
	logged := files.LoggedFS{FS: fsys, Register: r}
	for _, name := range []string{"000004.log", "000008.log", "000012.log"} {
		write(t, fsys, name, "commits")
	}
	must(t, logged.Remove("data/000004.log"))
	f, err := logged.ReuseForWrite("data/000008.log", "data/000014.log", vfs.WriteCategoryUnspecified)
	must(t, err)
	must(t, f.Close())
	got, err := files.ReadFormat(fsys, "data")
	must(t, err)
	if d := cmp.Diff(files.Format{State: files.StateOpen, Version: 7, Logs: []uint64{12}}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	must(t, files.CheckLogs(fsys, "data", got.Logs))
	must(t, fsys.Remove("data/000012.log"))
	if err := files.CheckLogs(fsys, "data", got.Logs); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "data/000012.log is missing") {
		t.Errorf("a log that was taken away: %v", err)
	}
}

func TestFormatsThatAreRefused(t *testing.T) {
	for text, want := range map[string]error{
		"coditect store format 3 open 1\n":         store.ErrNewer,
		"coditect store format 1 open 1\n":         store.ErrOlder,
		"coditect store format 2 open 1":           store.ErrCorrupt,
		"coditect store format 2 ajar 1\n":         store.ErrCorrupt,
		"coditect store format 2 open 1 x\n":       store.ErrCorrupt,
		"coditect store format 2 open\n":           store.ErrCorrupt,
		"":                                         store.ErrCorrupt,
		"another format 2 open 1\n":                store.ErrCorrupt,
		"coditect store format 0 closed 1 2 3 4\n": store.ErrCorrupt,
	} {
		fsys := newFolder(t)
		write(t, fsys, files.FormatFile, text)
		if f, err := files.ReadFormat(fsys, "data"); !errors.Is(err, want) {
			t.Errorf("%q reads %+v, %v, want %v", text, f, err, want)
		}
	}
}

// A mark holds the newest version, and of the two newest manifests what was synced of them.
func TestMark(t *testing.T) {
	fsys := newFolder(t)
	m, err := files.OpenMark(fsys, "data", 5, 0)
	must(t, err)
	marked := files.MarkedFS{FS: fsys, Mark: m, Unmarked: func(err error) { t.Error(err) }}
	for i, name := range []string{"MANIFEST-000001", "MANIFEST-000006", "MANIFEST-000009"} {
		f, err := marked.Create("data/"+name, vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = f.Write(make([]byte, 100+i))
		must(t, err)
		must(t, f.Sync())
		_, err = f.Write(make([]byte, 1000)) // which is not synced
		must(t, errors.Join(err, f.Close()))
	}
	must(t, m.SetVersion(7))
	must(t, m.SetVersion(6)) // the other slot
	must(t, m.Close())
	got, err := files.ReadMark(fsys, "data")
	must(t, err)
	if got.Version != 7 {
		t.Errorf("version %d, want 7", got.Version)
	}
	for manifest, want := range map[uint64]uint64{1: 0, 6: 101, 9: 102} {
		if n := got.LengthOf(manifest); n != want {
			t.Errorf("%d bytes of manifest %d are marked, want %d", n, manifest, want)
		}
	}
}

func TestOwns(t *testing.T) {
	for name, want := range map[string]bool{
		files.FormatFile: true, files.FormatFile + ".new": true, files.MarkFile: true,
		"000004.log": false, "LOCK": false, "": false,
	} {
		if got := files.Owns(name); got != want {
			t.Errorf("Owns(%q) = %v", name, got)
		}
	}
}
