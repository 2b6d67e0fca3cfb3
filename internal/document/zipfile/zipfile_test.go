package zipfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// refusal returns the reason of an error, or the error.
func refusal(err error) string {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return refused.Reason
	}
	return fmt.Sprint("no refusal: ", err)
}

func TestRead(t *testing.T) {
	data := zipmake.Zip(t, zipmake.File{Name: "a/b", Content: "one"}, zipmake.File{Name: "../c", Content: "two"}, zipmake.File{Name: "a/b", Content: "three"})
	for name, content := range map[string]io.Reader{"file": bytes.NewReader(data), "stream": io.MultiReader(bytes.NewReader(data))} {
		z, err := zipfile.New(t.Context(), content, document.Limits{}, zipfile.Flags{})
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff([]string{"a/b", "../c", "a/b"}, z.Names()); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		if got, err := z.ReadAll("a/b", 3); string(got) != "one" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := z.ReadAll("../c", 2); refusal(err) != "too large: ../c has more than 2 bytes" {
			t.Error(err)
		}
		if _, err := z.Open("d"); refusal(err) != "damaged: it lacks d" {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a/b"}, z.Match("a/*")); diff != "" {
			t.Errorf("matches (-want +got):\n%s", diff)
		}
	}
}

// TestNames: names that programs write with backslashes, or in another case, are found, and the name
// that is asked for goes before such.
func TestNames(t *testing.T) {
	data := zipmake.Zip(t, zipmake.File{Name: `xl\sharedstrings.xml`, Content: "one"}, zipmake.File{Name: "A/B", Content: "two"}, zipmake.File{Name: "a/b", Content: "three"})
	z, err := zipfile.New(t.Context(), bytes.NewReader(data), document.Limits{}, zipfile.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"xl/sharedStrings.xml": "one", "A/B": "two", "a/b": "three", "a/B": "two"} {
		if got, err := z.ReadAll(name, 9); string(got) != want || err != nil || !z.Has(name) {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	if diff := cmp.Diff([]string{"xl/sharedstrings.xml"}, z.Match("xl/shared*.xml")); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	if got := zipfile.SniffFolder(data, "xl/"); got != document.Certain {
		t.Errorf("a folder is %v, want %v", got, document.Certain)
	}
}

// TestMatchOnce: a part that is there twice, under names that are taken for one, is matched once.
func TestMatchOnce(t *testing.T) {
	data := zipmake.Zip(t, zipmake.File{Name: `word\header1.xml`, Content: "one"}, zipmake.File{Name: "word/header1.xml", Content: "two"},
		zipmake.File{Name: "word/header2.xml", Content: "three"}, zipmake.File{Name: `word\Header2.xml`, Content: "four"}, zipmake.File{Name: `word\header3.xml`, Content: "five"})
	z, err := zipfile.New(t.Context(), bytes.NewReader(data), document.Limits{}, zipfile.Flags{})
	if err != nil {
		t.Fatal(err)
	}

	read := map[string]string{}
	names := z.Match("word/header*.xml")
	for _, name := range names {
		content, err := z.ReadAll(name, 9)
		if err != nil {
			t.Fatal(err)
		}
		read[name] = string(content)
	}

	want := map[string]string{"word/header1.xml": "two", "word/header2.xml": "three", "word/header3.xml": "five"}
	if diff := cmp.Diff(want, read); diff != "" || len(names) != len(want) {
		t.Errorf("the names %q, and (-want +got):\n%s", names, diff)
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	encrypted := zipmake.Zip(t, zipmake.File{Name: "e", Content: "x"})
	directory := bytes.Index(encrypted, []byte("PK\x01\x02"))
	encrypted[directory+8] |= 1
	damaged := zipmake.Zip(t, zipmake.File{Name: "e", Content: "xyz", Stored: true})
	damaged[30+len("e")] ^= 1
	for _, test := range []struct {
		name   string
		data   []byte
		limits document.Limits
		want   string
	}{
		{"bytes", make([]byte, 100), document.Limits{Bytes: 99}, "too large: more than 99 bytes"},
		{"entries", zipmake.Zip(t, zipmake.File{Name: "e"}, zipmake.File{Name: "f"}), document.Limits{Entries: 1}, "a zip file of more than 1 entries"},
		{"directory", bytes.Repeat([]byte("PK\x01\x02"), 100), document.Limits{Entries: 1}, "a zip file of more than 1 entries"},
		{"none", []byte("PK\x03\x04 no zip"), document.Limits{}, "a damaged zip file: zip: not a valid zip file"},
		{"ratio", zipmake.Zip(t, zipmake.File{Name: "e", Content: long}), document.Limits{Ratio: 10}, "e expands to more than 10 times its size"},
		{"unpacked", zipmake.Zip(t, zipmake.File{Name: "e", Content: long}), document.Limits{Unpacked: 1 << 20, Ratio: 1e6}, "expands to more than 1048576 bytes"},
		{"encrypted", encrypted, document.Limits{}, "encrypted: e needs a password; of encrypted files only PDF files are read"},
		{"checksum", damaged, document.Limits{}, "damaged: e: zip: checksum error"},
	} {
		for _, content := range []io.Reader{bytes.NewReader(test.data), io.MultiReader(bytes.NewReader(test.data))} {
			t.Run(test.name, func(t *testing.T) {
				z, err := zipfile.New(t.Context(), content, test.limits, zipfile.Flags{})
				if err == nil {
					_, err = z.ReadAll("e", 1<<30)
				}
				if got := refusal(err); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		}
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	z, err := zipfile.New(ctx, bytes.NewReader(zipmake.Zip(t, zipmake.File{Name: "e", Content: "x"})), document.Limits{}, zipfile.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	ended := errors.New("ended")
	cancel(ended)
	if _, err := z.ReadAll("e", 10); !errors.Is(err, ended) {
		t.Errorf("got %v, want the cause of the context", err)
	}
}

func TestSniff(t *testing.T) {
	word := zipmake.Zip(t, zipmake.File{Name: "[Content_Types].xml", Content: strings.Repeat("x", 500)}, zipmake.File{Name: "word/document.xml", Content: "x"})
	book := zipmake.Zip(t, zipmake.File{Name: "mimetype", Content: "application/epub+zip\n", Stored: true}, zipmake.File{Name: "word/x"})
	other := zipmake.Zip(t, zipmake.File{Name: "x"})
	for _, test := range []struct {
		name string
		got  document.Match
		want document.Match
	}{
		{"Word", zipfile.SniffFolder(word, "word/"), document.Certain},
		{"Word as a book", zipfile.SniffMimetype(word, "application/epub+zip"), document.Possible},
		{"Word as Excel", zipfile.SniffFolder(word, "xl/"), document.Possible},
		{"a book", zipfile.SniffMimetype(book, "x/y", "application/epub+zip"), document.Certain},
		{"a book as another", zipfile.SniffMimetype(book, "x/y"), document.Excluded},
		{"a book as Word", zipfile.SniffFolder(book, "word/"), document.Excluded},
		{"another", zipfile.SniffFolder(other, "word/"), document.Possible},
		{"no zip", zipfile.SniffFolder([]byte("word/"), "word/"), document.Excluded},
		{"no zip, by type", zipfile.SniffMimetype([]byte("mimetype"), "mimetype"), document.Excluded},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, test.got, test.want)
		}
	}
	for n := range word { // cut off anywhere
		zipfile.BeginsOf(word[:n])
	}
}

func FuzzNew(f *testing.F) {
	f.Add(zipmake.Zip(f, zipmake.File{Name: "mimetype", Content: "x", Stored: true}, zipmake.File{Name: "b", Content: strings.Repeat("x", 1000)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		zipfile.BeginsOf(data)
		z, err := zipfile.New(t.Context(), bytes.NewReader(data), document.Limits{Unpacked: 10 << 20}, zipfile.Flags{})
		if err != nil {
			if !errors.As(err, new(*document.RefusedError)) {
				t.Errorf("got %v, which does not refuse the file", err)
			}
			return
		}
		for _, name := range z.Names() {
			if got, err := z.ReadAll(name, 20<<20); err != nil && !errors.As(err, new(*document.RefusedError)) || len(got) > 10<<20 {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		}
	})
}
