package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewestNotes(t *testing.T) {
	for _, test := range []struct {
		name, log   string
		want        Notes
		wantRefused string
	}{
		{"one version", "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\nIt is there.\n\n### Results\n\n- One.\n", Notes{Version: "0.1.0", Text: "It is there.\n\n### Results\n\n- One.\n"}, ""},
		{"the newest of two", "## 1.2.0-rc.1\nNew.\n## 1.1.0\nOld.\n", Notes{Version: "1.2.0-rc.1", Text: "New.\n"}, ""},
		{"changes without a version", "## Unreleased\n- One.\n## 0.1.0\nOld.\n", Notes{}, "changes stand under Unreleased"},
		{"no version", "# Changelog\n\n## Unreleased\n", Notes{}, "no heading names a version"},
		{"another heading", "## Next\nNew.\n", Notes{}, `"Next" is neither`},
		{"a leading v", "## v0.1.0\nNew.\n", Notes{}, `"v0.1.0" is neither`},
		{"nothing below", "## 0.1.0\n\n## 0.0.9\nOld.\n", Notes{}, "nothing stands under 0.1.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := NewestNotes(test.log)
			if test.wantRefused != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantRefused) {
					t.Errorf("got the error %v, want one with %q", err, test.wantRefused)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q and the error %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestWriteArchive(t *testing.T) {
	members := []Member{{Name: "coditect", Data: []byte("program"), IsExecutable: true}, {Name: "LICENSE", Data: []byte("text")}}
	// A place on earth and parts of a second make no difference.
	at := time.Date(2026, 11, 29, 1, 2, 3, 456, time.FixedZone("", 3600))
	var first, second bytes.Buffer
	for out, when := range map[*bytes.Buffer]time.Time{&first: at, &second: at.UTC().Truncate(time.Second)} {
		if err := WriteArchive(out, "coditect_0.1.0", when, members); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}

	unpacked, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d %s %s", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.UTC().Format(time.RFC3339), data))
	}
	want := []string{
		"coditect_0.1.0/coditect 755 0:0 2026-11-29T00:02:03Z program",
		"coditect_0.1.0/LICENSE 644 0:0 2026-11-29T00:02:03Z text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestChecksums(t *testing.T) {
	got := Checksums(map[string][]byte{"b": nil, "a": []byte("abc")})
	want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
