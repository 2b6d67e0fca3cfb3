package zipfile_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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

// list returns the members of a file, and the error that ended them.
func list(f document.Format, content io.Reader) ([]string, error) {
	var all []string
	for m, err := range f.Members(context.Background(), document.Input{Content: content}) {
		if err != nil {
			return all, err
		}
		all = append(all, fmt.Sprintf("%s: %.20s%s", m.Name, m.Content, m.Skip))
	}
	return all, nil
}

// files are what is put into archives, and wanted what comes out.
var files = []zipmake.File{
	{Name: "a.txt", Content: "one"},
	{Name: "b/"},
	{Name: "b/c.txt", Content: "two"},
	{Name: "../../etc/passwd", Content: "x"},
	{Name: "/abs", Content: "x"},
	{Name: `..\win`, Content: "x"},
	{Name: `C:\win`, Content: "x"},
	{Name: ".hidden", Content: "x"},
	{Name: "__MACOSX/a", Content: "x"},
	{Name: "a.txt", Content: "three"},
}

var wanted = []string{
	"a.txt: one", "b/c.txt: two", "etc/passwd: its name leads out of the archive", "abs: its name leads out of the archive",
	"win: its name leads out of the archive", "C:/win: its name leads out of the archive", "a.txt#2: three",
}

func TestZip(t *testing.T) {
	data := zipmake.Zip(t, files...)
	for _, content := range []io.Reader{bytes.NewReader(data), io.MultiReader(bytes.NewReader(data))} {
		got, err := list(zipfile.ZipFormat(), content)
		if diff := cmp.Diff(wanted, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	got, err := list(zipfile.ZipFormat(), bytes.NewReader(zipmake.Zip(t, zipmake.File{Name: "bomb", Content: strings.Repeat("x", 4<<20)}, zipmake.File{Name: "after", Content: "fine"})))
	if diff := cmp.Diff([]string{"bomb: bomb expands to more than 300 times its size (--archive-ratio)", "after: fine"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// tarFile returns a tar file of entries, and links.
func tarFile(t testing.TB, files ...zipmake.File) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	headers := []*tar.Header{{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, {Name: "device", Typeflag: tar.TypeChar}}
	for _, f := range files {
		h := &tar.Header{Name: f.Name, Typeflag: tar.TypeReg, Size: int64(len(f.Content)), Mode: 0o600}
		if strings.HasSuffix(f.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		headers = append(headers, h)
	}
	for i, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if i >= 2 {
			if _, err := io.WriteString(w, files[i-2].Content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packed(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTar(t *testing.T) {
	data := tarFile(t, files...)
	for name, data := range map[string][]byte{"tar": data, "packed": packed(t, data)} {
		got, err := list(zipfile.TarFormat(), bytes.NewReader(data))
		if diff := cmp.Diff(wanted, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"bomb", packed(t, tarFile(t, zipmake.File{Name: "x", Content: strings.Repeat("x", 8<<20)})), "more than 300 times"},
		{"cut off", data[:len(data)-1600], "damaged"},
		{"packed and cut off", packed(t, data)[:60], "damaged"},
		{"no tar", packed(t, []byte("text")), "damaged"},
	} {
		_, err := list(zipfile.TarFormat(), bytes.NewReader(test.data))
		if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
			t.Errorf("%s: got %v, want one that refuses for %q", test.name, err, test.want)
		}
	}
}

func FuzzMembers(f *testing.F) {
	f.Add(zipmake.Zip(f, files...))
	f.Add(tarFile(f, files...))
	f.Add(packed(f, tarFile(f, files...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []document.Format{zipfile.ZipFormat(), zipfile.TarFormat()} {
			if _, err := list(format, bytes.NewReader(data)); err != nil && !errors.As(err, new(*document.RefusedError)) {
				t.Errorf("got %v, which does not refuse the file", err)
			}
		}
	})
}
