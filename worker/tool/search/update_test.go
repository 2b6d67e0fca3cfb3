package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/worker/tool/search"
)

// counting returns formats whose parser counts its calls, and calls before each of them.
func counting(t testing.TB, calls *atomic.Int64, before func(name string)) *document.Registry {
	t.Helper()
	f := plain.TextFormat()
	f.Parse = func(ctx context.Context, in document.Input) (*document.Document, error) {
		calls.Add(1)
		if before != nil {
			before(in.Name)
		}
		return plain.ParseText(ctx, in)
	}
	r, err := document.NewRegistry(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// age gives a file a time long ago, as files that nobody has just written have.
func age(t testing.TB, path string, hours int) {
	t.Helper()
	old := time.Date(2020, 1, 1, hours, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyChangesAreRead: an index is kept, and of a folder only that is read again which was
// added or changed.
func TestOnlyChangesAreRead(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	for i := range 20 {
		path := filepath.Join(dir, fmt.Sprintf("%02d.txt", i))
		write(t, path, fmt.Sprintf("The heron number%d stood in the river.", i))
		age(t, path, 0)
	}
	var parsed atomic.Int64
	c := search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: cache, Formats: counting(t, &parsed, nil)}
	expect := func(what string, n int64, query string, names ...string) {
		t.Helper()
		parsed.Store(0)
		k := openKit(t, c)
		got := find(t, k, query)
		if parsed.Load() != n {
			t.Errorf("%s: %d files were parsed, want %d", what, parsed.Load(), n)
		}
		want(t, got, names...)
	}
	expect("first", 20, "number7", "07.txt")
	expect("again", 0, "number7", "07.txt")
	write(t, filepath.Join(dir, "07.txt"), "The heron number7 has gone: number99.")
	expect("changed", 1, "number99", "07.txt")
	write(t, filepath.Join(dir, "sub", "new.txt"), "A new heron, number100.")
	expect("added, and one that was changed just now", 1, "number100", "sub/new.txt")
	if err := os.Remove(filepath.Join(dir, "03.txt")); err != nil {
		t.Fatal(err)
	}
	expect("deleted", 0, "number3")
	age(t, filepath.Join(dir, "05.txt"), 1)
	expect("touched", 0, "number5", "05.txt")
	// A change of the same size within the resolution of the time.
	path := filepath.Join(dir, "08.txt")
	write(t, path, "The heron number8 stood in the lake!.")
	now := time.Now()
	c.Now = func() time.Time { return now } // it is read at once, however long that takes
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	expect("changed once", 1, "lake", "08.txt")
	write(t, path, "The heron number8 stood in the pond!.")
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	expect("changed twice at one time", 1, "pond", "08.txt")
}

// TestUpdatesEqualAFreshIndex: whatever is done to a folder, the index that is kept ranks and
// scores as one does that is made of the folder as it is.
func TestUpdatesEqualAFreshIndex(t *testing.T) {
	words := strings.Fields("heron river stands stood water the of 2024 über Fluß 北京 東京都 running runs")
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir, cache := t.TempDir(), t.TempDir()
		k := openKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: cache, PassageLength: 60})
		for round := range 4 {
			for range 1 + r.IntN(8) {
				path := filepath.Join(dir, []string{"a.txt", "b.txt", "c.txt", "d/e.txt", "f.jsonl"}[r.IntN(5)])
				var text []string
				for range 1 + r.IntN(60) {
					text = append(text, words[r.IntN(len(words))])
				}
				switch {
				case r.IntN(5) == 0:
					_ = os.Remove(path) // it may not be there
				case strings.HasSuffix(path, ".jsonl"):
					write(t, path, fmt.Sprintf("{\"text\": %q}\n{\"text\": \"same heron\"}\n", strings.Join(text, " ")))
				default:
					write(t, path, strings.Join(text, " "))
				}
			}
			fresh := openKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: t.TempDir(), PassageLength: 60})
			for _, q := range []string{"heron", "the river stands", "running in 京都", "京", "Fluss über 2024"} {
				find(t, k, q)
				find(t, fresh, q)
				got, right := hits(t, k, search.Query{Text: q, TopK: 20}), hits(t, fresh, search.Query{Text: q, TopK: 20})
				for i := range got {
					got[i].Read = time.Time{}
				}
				for i := range right {
					right[i].Read = time.Time{}
				}
				if diff := cmp.Diff(right, got, cmpopts.IgnoreUnexported(search.Hit{})); diff != "" {
					t.Fatalf("seed %d, round %d, %q (-fresh +kept):\n%s", seed, round, q, diff)
				}
			}
		}
	}
}

// TestTwoAtOnce: of several that need the same index one builds it, and all can read it.
func TestTwoAtOnce(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	for i := range 30 {
		path := filepath.Join(dir, fmt.Sprintf("%02d.txt", i))
		write(t, path, fmt.Sprintf("The heron number%d.", i))
		age(t, path, 0)
	}
	var parsed atomic.Int64
	c := search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: cache, Formats: counting(t, &parsed, nil)}
	var kits []*search.Kit
	for range 4 {
		kits = append(kits, openKit(t, c))
	}
	for round := range 3 {
		parsed.Store(0)
		var group sync.WaitGroup
		for _, k := range kits {
			group.Go(func() {
				if err := k.Prepare(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := parsed.Load(); round == 0 && n != 30 || round > 0 && n != 1 {
			t.Errorf("round %d: %d files were parsed", round, n)
		}
		for _, k := range kits {
			if got := hits(t, k, search.Query{Text: "heron", TopK: 20}); len(got) != 20 {
				t.Errorf("round %d: one finds %d", round, len(got))
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("%02d.txt", round))
		write(t, path, fmt.Sprintf("A changed heron number%d.", round))
		age(t, path, round+1)
	}
}

// TestDamagedIndex: an index that is not as it was written is built again, and the operator
// is told.
func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.txt", i)), fmt.Sprintf("The heron number%d.", i))
	}
	for _, tt := range []struct {
		name    string
		pattern string
		damage  func(path string, data []byte) error
	}{
		{"a byte of a part", "*.zap", func(path string, data []byte) error {
			data[len(data)/2] ^= 1
			return replace(path, data)
		}},
		{"a part that is cut", "*.zap", func(path string, data []byte) error { return replace(path, data[:len(data)-1]) }},
		{"a part that is gone", "*.zap", func(path string, _ []byte) error { return os.Remove(path) }},
		{"the root", "root.bolt", func(path string, data []byte) error {
			data[100] ^= 1
			return replace(path, data)
		}},
		{"the manifest", "manifest.json", func(path string, data []byte) error { return replace(path, data[:10]) }},
		{"no manifest", "manifest.json", func(path string, _ []byte) error { return os.Remove(path) }},
		{"the name of what counts", "../current", func(path string, _ []byte) error { return replace(path, []byte("gen-../../x 00")) }},
		{"nothing in it", "../current", func(path string, _ []byte) error { return replace(path, nil) }},
		{"no folder", ".", func(path string, _ []byte) error { return os.RemoveAll(path) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var notes []string
			c := search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: t.TempDir(), Note: func(text string) { notes = append(notes, text) }}
			if err := newKit(t, c).Close(); err != nil {
				t.Fatal(err)
			}
			paths, err := filepath.Glob(filepath.Join(c.Cache, "s-*", "gen-*", tt.pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("%v %v", paths, err)
			}
			data, _ := os.ReadFile(paths[0]) // nothing of a folder
			if err := tt.damage(paths[0], data); err != nil {
				t.Fatal(err)
			}
			want(t, find(t, newKit(t, c), "number3"), "3.txt")
			if len(notes) != 1 || !strings.Contains(notes[0], "damaged (") || !strings.Contains(notes[0], "and is built again") {
				t.Errorf("the operator is told %q", notes)
			}
		})
	}
}

// replace writes a file anew, as one that others link to does not change.
func replace(path string, data []byte) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// TestFolderThatChangesMeanwhile: files that come, go and change while the index is built do
// no harm, and the next look finds what is there.
func TestFolderThatChangesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	for i := range 12 {
		path := filepath.Join(dir, fmt.Sprintf("%02d.txt", i))
		write(t, path, fmt.Sprintf("The heron number%d.", i))
		age(t, path, 0)
	}
	var parsed atomic.Int64
	var once sync.Once
	k := openKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Formats: counting(t, &parsed, func(string) {
		once.Do(func() {
			for i := range 12 { // one of them is being read
				switch path := filepath.Join(dir, fmt.Sprintf("%02d.txt", i)); i % 3 {
				case 0:
					_ = os.Remove(path)
				case 1:
					_ = os.WriteFile(path, []byte("It changed. A longer heron, and more of it."), 0o600)
				}
			}
			_ = os.WriteFile(filepath.Join(dir, "new.txt"), []byte("A new heron."), 0o600)
		})
	})})
	if err := k.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(hits(t, k, search.Query{Text: "heron", TopK: 20})); n < 8 || n > 12 {
		t.Errorf("the first index has %d of the documents", n)
	}
	if n := len(find(t, k, "heron")); n != 9 {
		t.Errorf("the second index has %d documents, want 9", n)
	}
	want(t, find(t, k, "new"), "new.txt")
	if n := len(find(t, k, "changed")); n != 4 {
		t.Errorf("%d changed documents are found, want 4", n)
	}
}

// buildVariable tells a process of this program to build the index of a folder again and
// again until it is killed.
const buildVariable = "SEARCH_TEST_BUILD"

// TestKilledWhileBuilding: a process that is killed in the midst of building leaves the index
// that was there, or none.
func TestKilledWhileBuilding(t *testing.T) {
	if config := os.Getenv(buildVariable); config != "" {
		dir, cache, _ := strings.Cut(config, "\n")
		for n := 0; ; n++ {
			write(t, filepath.Join(dir, ".changing"), fmt.Sprintf("The changing heron, round%d.", n))
			if err := os.Rename(filepath.Join(dir, ".changing"), filepath.Join(dir, "changing.txt")); err != nil { // never half written
				t.Fatal(err)
			}
			c := search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: cache}
			if err := newKit(t, c).Close(); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				fmt.Println("built once")
			}
		}
	}
	dir, cache := t.TempDir(), t.TempDir()
	for i := range 50 {
		write(t, filepath.Join(dir, fmt.Sprintf("%02d.txt", i)), strings.Repeat(fmt.Sprintf("The heron number%d stood in the river. ", i), 20))
	}
	var notes []string
	for kill := range 6 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledWhileBuilding$")
		cmd.Env = append(os.Environ(), buildVariable+"="+dir+"\n"+cache)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kill > 0 { // the first is killed in its first build
			if _, err := out.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		timer := time.NewTimer(time.Duration(10+kill*17) * time.Millisecond)
		<-timer.C
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		k := newKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Cache: cache, Note: func(text string) { notes = append(notes, text) }})
		want(t, find(t, k, "number17"), "17.txt")
		if st := k.Status()[0]; st.Documents < 50 || st.Passages < 50 {
			t.Errorf("kill %d: the index has %+v", kill, st)
		}
		left, err := filepath.Glob(filepath.Join(cache, "s-*", "*"))
		if err != nil || len(left) != 3 {
			t.Errorf("kill %d left %v, error %v; want the index, the lock and the name of what counts", kill, left, err)
		}
	}
	if len(notes) > 0 {
		t.Errorf("the operator is told %q", notes)
	}
}
