package pebble_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

func TestOpenAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "data")
	var want map[string]string
	for round := range 3 {
		s, err := pebble.Open(folder, pebble.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, contents(t, s)); round > 0 && d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		set(t, s, fmt.Sprint(round), "v")
		want = contents(t, s)
		if got := s.Metrics(); got.DiskBytes == 0 || got.Version != uint64(round+1) {
			t.Errorf("metrics %+v in round %d", got, round)
		}
		mustClose(t, s)
	}
	if len(want) != 3 {
		t.Errorf("got %v, want three keys", want)
	}
}

func TestInUse(t *testing.T) {
	folder := t.TempDir()
	s, err := pebble.Open(folder, pebble.Config{})
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other name")
	if err := os.Symlink(folder, other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{folder, folder + "/.", other} {
		if again, err := pebble.Open(name, pebble.Config{}); !errors.Is(err, store.ErrInUse) {
			t.Errorf("Open(%q) = %v, %v, want %v", name, again, err, store.ErrInUse)
		}
	}
	if got := openInChild(t, folder); !strings.Contains(got, store.ErrInUse.Error()) {
		t.Errorf("another process opens it with %q, want %v", got, store.ErrInUse)
	}
	set(t, s, "k", "v")
	mustClose(t, s)
	if got := openInChild(t, folder); got != "opened" {
		t.Errorf("after Close, another process opens it with %q", got)
	}
}

// childFolder names the folder that a child of the test works on.
const childFolder = "CODITECT_TEST_CHILD_FOLDER"

// runChild runs a test of this program in another process, on folder.
func runChild(t *testing.T, test, folder string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childFolder+"="+folder)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// folderOfChild skips a test that is not run by runChild.
func folderOfChild(t *testing.T) string {
	t.Helper()
	folder := os.Getenv(childFolder)
	if folder == "" {
		t.Skip("runs only as the child of another test")
	}
	return folder
}

func openInChild(t *testing.T, folder string) string {
	t.Helper()
	out, err := runChild(t, "TestChildOpens", folder)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, rest, _ := strings.Cut(out, "child: ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func TestChildOpens(t *testing.T) {
	s, err := pebble.Open(folderOfChild(t), pebble.Config{})
	if err != nil {
		fmt.Println("child:", err)
		return
	}
	mustClose(t, s)
	fmt.Println("child: opened")
}

// When the log cannot be synced, nobody knows what the disk holds: the process
// ends and says why, nothing is acknowledged, and what was stays.
func TestFailedSyncIsFatal(t *testing.T) {
	folder := t.TempDir()
	out, err := runChild(t, "TestChildFailsToSync", folder)
	if err == nil || !strings.Contains(out, "panic: store/pebble: ") || !strings.Contains(out, "disk on fire") {
		t.Errorf("the child ended with %v and said\n%s\nwant a panic of the store", err, out)
	}
	if strings.Contains(out, "child: acknowledged") {
		t.Error("a commit that was not synced was acknowledged")
	}
	s, err := pebble.Open(folder, pebble.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := begin(t, s).Get(t.Context(), []byte("before")); v == nil {
		t.Errorf("what was acknowledged before is lost: %v", err)
	}
	mustClose(t, s)
}

func TestChildFailsToSync(t *testing.T) {
	var burns atomic.Bool
	fs := hookFS{FS: vfs.Default, beforeSync: func(name string) error {
		if burns.Load() && strings.HasSuffix(name, ".log") {
			return errors.New("disk on fire")
		}
		return nil
	}}
	s, err := pebble.Open(folderOfChild(t), pebble.Config{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	set(t, s, "before", "")
	burns.Store(true)
	set(t, s, "after", "")
	fmt.Println("child: acknowledged")
}

func TestInUseInMemory(t *testing.T) {
	fs := vfs.NewMem()
	open(t, pebble.Config{FS: fs})
	if _, err := pebble.Open("data", pebble.Config{FS: fs}); !errors.Is(err, store.ErrInUse) {
		t.Errorf("Open = %v, want %v", err, store.ErrInUse)
	}
}

// stored returns a closed store with something in tables and in the log.
func stored(t *testing.T) *vfs.MemFS {
	fs := vfs.NewMem()
	s, err := pebble.Open("data", pebble.Config{FS: fs, MemTableSize: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		set(t, s, fmt.Sprint(i), strings.Repeat("v", 1000))
	}
	mustClose(t, s)
	return fs
}

// What cannot be opened is left as it is, so that it can be looked into, or
// opened by the program that it belongs to.
func TestRefusedStoresAreLeftAlone(t *testing.T) {
	const file = "data/CODITECT_STORE"
	remove := func(part string) func(t *testing.T, fs *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) {
			if err := fs.Remove("data/" + nameWith(t, readFolder(t, fs, "data"), part)); err != nil {
				t.Fatal(err)
			}
		}
	}
	damage := func(part string, at int) func(t *testing.T, fs *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) {
			files := readFolder(t, fs, "data")
			name := nameWith(t, files, part)
			b := []byte(files[name])
			for i := range 8 {
				b[(at+len(b))%len(b)+i] ^= 0x55
			}
			writeFile(t, fs, "data/"+name, string(b))
		}
	}
	cut := func(part string) func(t *testing.T, fs *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) {
			files := readFolder(t, fs, "data")
			name := nameWith(t, files, part)
			writeFile(t, fs, "data/"+name, files[name][:len(files[name])/2])
		}
	}
	text := func(s string) func(t *testing.T, fs *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) { writeFile(t, fs, file, s) }
	}
	tests := []struct {
		name    string
		change  func(t *testing.T, fs *vfs.MemFS)
		want    error
		message string
	}{
		{"newer format", text("coditect store format 3 closed 5\n"), store.ErrNewer, "format 3"},
		{"older format", text("coditect store format 1 closed 5\n"), store.ErrOlder, "read its jobs with the version that wrote them"},
		{"newer format with more to it", text("coditect store format 17 sharded by 5\nand so on"), store.ErrNewer, "format 17"},
		{"empty format file", text(""), store.ErrCorrupt, file},
		{"format file of something else", text("hello\n"), store.ErrCorrupt, file},
		{"format file cut short", text("coditect store format 2 clo"), store.ErrCorrupt, file},
		{"no format file", remove("CODITECT_STORE"), store.ErrCorrupt, "CODITECT_STORE"},
		{"no marker of the manifest", remove("marker.manifest"), store.ErrCorrupt, "MANIFEST"},
		{"no manifest", remove("MANIFEST"), store.ErrCorrupt, "MANIFEST"},
		{"damaged manifest", damage("MANIFEST", 40), store.ErrCorrupt, "MANIFEST"},
		{"damaged log", damage(".log", 40), store.ErrCorrupt, ".log"},
		{"log cut short", cut(".log"), store.ErrCorrupt, ".log"},
		{"no log", remove(".log"), store.ErrCorrupt, ".log is missing"},
		{"format file with nonsense for a log", text("coditect store format 2 closed 100 x\n"), store.ErrCorrupt, file},
		{"missing table", remove(".sst"), store.ErrCorrupt, "sstable"},
		{"table cut short", cut(".sst"), store.ErrCorrupt, ".sst"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := stored(t)
			tt.change(t, fs)
			before := readFolder(t, fs, "data")
			s, err := pebble.Open("data", pebble.Config{FS: fs})
			if err == nil {
				mustClose(t, s)
			}
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("Open = %v, want %v about %q", err, tt.want, tt.message)
			}
			if d := cmp.Diff(before, readFolder(t, fs, "data")); d != "" {
				t.Errorf("files changed (-before +after):\n%s", d)
			}
			if _, err := pebble.Open("data", pebble.Config{FS: fs}); errors.Is(err, store.ErrInUse) {
				t.Error("the lock is still held")
			}
		})
	}
}

// The last record of a manifest may be half written if the machine failed, and
// only then. Damage further up is no such thing.
func TestEndOfTheManifest(t *testing.T) {
	tests := []struct {
		name   string
		state  string
		damage func(manifest []byte) []byte
		want   error
	}{
		{"closed, whole", "closed", func(m []byte) []byte { return m }, nil},
		{"closed, half a record", "closed", func(m []byte) []byte { return append(m, m[:20]...) }, store.ErrCorrupt},
		{"failed, half a record", "open", func(m []byte) []byte { return append(m, m[:20]...) }, nil},
		{"failed, damaged record at the end", "open", func(m []byte) []byte { return append(m, 1, 2, 3, 4, 2, 0, 1, 5, 6) }, nil},
		{"failed, damaged record before another", "open", func(m []byte) []byte {
			first := m[:7+int(m[4])+int(m[5])<<8]
			return append(append(m, 1, 2, 3, 4, 2, 0, 1, 5, 6), first...)
		}, store.ErrCorrupt},
		{"failed, first record damaged", "open", func(m []byte) []byte { m[10] ^= 1; return m }, store.ErrCorrupt},
		{"failed, nothing left", "open", func([]byte) []byte { return nil }, store.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := stored(t)
			files := readFolder(t, fs, "data")
			name := nameWith(t, files, "MANIFEST")
			writeFile(t, fs, "data/"+name, string(tt.damage([]byte(files[name]))))
			writeFile(t, fs, "data/CODITECT_STORE", "coditect store format 2 "+tt.state+" 100\n")
			s, err := pebble.Open("data", pebble.Config{FS: fs})
			if !errors.Is(err, tt.want) {
				t.Fatalf("Open = %v, want %v", err, tt.want)
			}
			if err == nil {
				if got := len(contents(t, s)); got != 100 {
					t.Errorf("%d keys, want 100", got)
				}
				mustClose(t, s)
			}
		})
	}
}

// Damage within a table is met by the read that needs it, not before.
func TestReadOfADamagedTable(t *testing.T) {
	fs := stored(t)
	files := readFolder(t, fs, "data")
	for name, text := range files {
		if strings.HasSuffix(name, ".sst") {
			writeFile(t, fs, "data/"+name, strings.Repeat("x", 200)+text[200:])
		}
	}
	s := open(t, pebble.Config{FS: fs})
	_, _, err := begin(t, s).GetRange(t.Context(), store.Range{End: []byte("\xff")}, store.RangeOptions{})
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "backup") {
		t.Errorf("GetRange = %v, want %v with advice", err, store.ErrCorrupt)
	}
}

// A table that is cut short while the store is open is damaged, and not merely unreadable at
// the moment.
func TestReadOfATableThatWasCutShort(t *testing.T) {
	folder := t.TempDir()
	s, err := pebble.Open(folder, pebble.Config{MemTableSize: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		set(t, s, fmt.Sprint(i), strings.Repeat("v", 1000))
	}
	mustClose(t, s)
	// A store for reading compacts nothing, so that the tables are still there below.
	if s, err = pebble.Open(folder, pebble.Config{CacheSize: 1, ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	tables, err := filepath.Glob(filepath.Join(folder, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("there are no tables: %v", err)
	}
	if _, err := begin(t, s).Get(t.Context(), []byte("0")); err != nil { // which opens the tables
		t.Fatal(err)
	}
	for _, name := range tables {
		if err := os.Truncate(name, 100); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = begin(t, s).GetRange(t.Context(), store.Range{End: []byte("\xff")}, store.RangeOptions{})
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("GetRange = %v, want %v", err, store.ErrCorrupt)
	}
}

// A machine that fails while a store is made leaves half of one, without
// commits. Files of others in the folder are none of its business.
func TestUnfinishedStoreIsMadeAnew(t *testing.T) {
	fs := stored(t)
	writeFile(t, fs, "data/CODITECT_STORE", "coditect store format 2 creating 0\n")
	writeFile(t, fs, "data/notes.txt", "mine")
	writeFile(t, fs, "data/server.log", "mine")
	if err := fs.Remove("data/" + nameWith(t, readFolder(t, fs, "data"), "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	s := open(t, pebble.Config{FS: fs})
	if d := cmp.Diff(map[string]string{}, contents(t, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, name := range []string{"notes.txt", "server.log"} {
		if got := readFolder(t, fs, "data")[name]; got != "mine" {
			t.Errorf("another's file %s reads %q", name, got)
		}
	}
}

// A store is made only in a folder that holds nothing of others.
func TestFolderOfOthers(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		want  error
	}{
		{"empty", nil, nil},
		{"a disk of its own", []string{"lost+found/x"}, nil},
		{"left before it was made", []string{"LOCK", "CODITECT_STORE.new"}, nil},
		{"what belongs beside it", []string{"socket"}, nil},
		{"a document", []string{"thesis.txt"}, store.ErrForeign},
		{"a hidden file", []string{".profile"}, store.ErrForeign},
		{"a folder", []string{"docs/thesis.txt"}, store.ErrForeign},
		{"logs of another program", []string{"LOCK", "server.log"}, store.ErrForeign},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			for _, name := range tt.files {
				path := filepath.Join(folder, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			s, err := pebble.Open(folder, pebble.Config{Beside: []string{"socket"}})
			if !errors.Is(err, tt.want) {
				t.Fatalf("Open = %v, want %v", err, tt.want)
			}
			if err == nil {
				mustClose(t, s)
				return
			}
			if !strings.Contains(err.Error(), filepath.Base(tt.files[len(tt.files)-1])) && !strings.Contains(err.Error(), "docs") {
				t.Errorf("error %q names no file", err)
			}
			after, err := os.ReadDir(folder)
			if err != nil || len(after) != len(before) {
				t.Errorf("%d files became %d, %v", len(before), len(after), err)
			}
		})
	}
}

func TestForeignDatabase(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebbledb.Open("data", &pebbledb.Options{FS: fs, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pebble.Open("data", pebble.Config{FS: fs}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Open = %v, want %v", err, store.ErrCorrupt)
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) { panic("fatal") }

func TestOpenWithoutPermission(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pebble.Open(filepath.Join(path, "data"), pebble.Config{}); err == nil || errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrInUse) {
		t.Errorf("Open below a file = %v, want an error of the operating system", err)
	}
}
