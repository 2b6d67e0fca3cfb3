package pebble_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
)

// damages returns the files that a check of s finds.
func damages(t *testing.T, s *pebble.Store) (files int, found []store.Damage) {
	t.Helper()
	files, err := s.Verify(t.Context(), func(d store.Damage) error {
		found = append(found, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, found
}

// flip changes a byte of a file, at a place from its begin or, negative, its end.
func flip(t *testing.T, fs vfs.FS, name string, at int) {
	t.Helper()
	b := []byte(readFolder(t, fs, "data")[name])
	b[(at+len(b))%len(b)] ^= 0x55
	writeFile(t, fs, "data/"+name, string(b))
}

func TestVerifyAHealthyStore(t *testing.T) {
	fs := stored(t)
	for _, readOnly := range []bool{true, false} {
		s, err := pebble.Open("data", pebble.Config{FS: fs, ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		if files, found := damages(t, s); files == 0 || len(found) > 0 {
			t.Errorf("%d files, damaged %+v", files, found)
		}
		mustClose(t, s)
		if _, err := s.Verify(t.Context(), nil); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Verify = %v, want %v", err, store.ErrClosed)
		}
	}
}

// Wherever a table is damaged, a check names it and its keys; so much as can be
// read is, and nothing is written.
func TestVerifyADamagedTable(t *testing.T) {
	for _, at := range []int{0, 300, -900, -200} {
		t.Run(fmt.Sprint("at ", at), func(t *testing.T) {
			fs := stored(t)
			name := nameWith(t, readFolder(t, fs, "data"), ".sst")
			flip(t, fs, name, at)
			before := readFolder(t, fs, "data")
			s, err := pebble.Open("data", pebble.Config{FS: fs, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			_, found := damages(t, s)
			if len(found) != 1 || found[0].File != "data/"+name || found[0].Err == nil {
				t.Fatalf("damaged: %+v, want data/%s", found, name)
			}
			if k := found[0].Keys; len(k.Begin) == 0 || string(k.Begin) >= string(k.End) {
				t.Errorf("keys %q to %q", k.Begin, k.End)
			}
			mustClose(t, s)
			if d := cmp.Diff(before, readFolder(t, fs, "data")); d != "" {
				t.Errorf("files changed (-before +after):\n%s", d)
			}
		})
	}
}

// Tables that are missing or cut short keep a store from being opened, but not
// from being looked at.
func TestLookAtAStoreThatLacksATable(t *testing.T) {
	tests := map[string]func(t *testing.T, fs *vfs.MemFS, name string){
		"missing": func(t *testing.T, fs *vfs.MemFS, name string) {
			if err := fs.Remove("data/" + name); err != nil {
				t.Fatal(err)
			}
		},
		"cut short": func(t *testing.T, fs *vfs.MemFS, name string) {
			text := readFolder(t, fs, "data")[name]
			writeFile(t, fs, "data/"+name, text[:len(text)/2])
		},
		"empty": func(t *testing.T, fs *vfs.MemFS, name string) { writeFile(t, fs, "data/"+name, "") },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			fs := stored(t)
			table := nameWith(t, readFolder(t, fs, "data"), ".sst")
			change(t, fs, table)
			if _, err := pebble.Open("data", pebble.Config{FS: fs}); !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("Open = %v, want %v", err, store.ErrCorrupt)
			}
			s := open(t, pebble.Config{FS: fs, ReadOnly: true})
			_, found := damages(t, s)
			number := strings.TrimSuffix(table, ".sst")
			if len(found) != 1 || !strings.Contains(found[0].File+found[0].Err.Error(), number) {
				t.Errorf("damaged: %+v, want one that names %s", found, table)
			}
		})
	}
}

// A store that is opened to be read stays as it is, and says so to who writes.
func TestReadOnly(t *testing.T) {
	left := killedStore(t, 80)
	before := readFolder(t, left, "data")
	s, err := pebble.Open("data", pebble.Config{FS: left, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(contents(t, s)); got != 80 {
		t.Errorf("%d keys, want 80", got)
	}
	tx := begin(t, s)
	tx.Set([]byte("k"), nil)
	if err := tx.Commit(t.Context()); err == nil || store.Retryable(err) {
		t.Errorf("Commit = %v, want a refusal", err)
	}
	if _, err := pebble.Open("data", pebble.Config{FS: left, ReadOnly: true}); !errors.Is(err, store.ErrInUse) {
		t.Errorf("Open = %v, want %v", err, store.ErrInUse)
	}
	mustClose(t, s)
	if d := cmp.Diff(before, readFolder(t, left, "data")); d != "" {
		t.Errorf("files changed (-before +after):\n%s", d)
	}
	again := open(t, pebble.Config{FS: left})
	set(t, again, "k", "v")
}

func TestReadOnlyOfNothing(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, pebble.Config{FS: fs, ReadOnly: true})
	if got := contents(t, s); len(got) != 0 {
		t.Errorf("a new store holds %v", got)
	}
}

// A store whose format file is gone is damaged, and is not taken for a new one.
func TestAStoreWithoutItsFormatFileIsDamaged(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		fs := stored(t)
		if err := fs.Remove("data/CODITECT_STORE"); err != nil {
			t.Fatal(err)
		}
		before := readFolder(t, fs, "data")
		s, err := pebble.Open("data", pebble.Config{FS: fs, ReadOnly: readOnly})
		if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "CODITECT_STORE is missing") {
			t.Errorf("Open = %v, %v, want %v", s, err, store.ErrCorrupt)
		}
		if d := cmp.Diff(before, readFolder(t, fs, "data")); d != "" {
			t.Errorf("files changed (-before +after):\n%s", d)
		}
	}
}
