package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/ooxml"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/program"
)

// sheet is how a document is converted here.
var sheet = document.Conversion{What: "a WordPerfect document", From: ".wpd", To: ".docx"}

// scriptProgram returns the path of a shell script that stands for LibreOffice. Its variables out and in
// are the file that it should make and the one that it is given; profile is that of its user.
func scriptProgram(t *testing.T, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	path := filepath.Join(t.TempDir(), "soffice")
	const begin = `#!/bin/sh
profile=${1#-env:UserInstallation=file://}
while [ $# -gt 3 ]; do shift; done
out=$2/document.docx in=$3
mkdir -p "$2"
`
	if err := os.WriteFile(path, []byte(begin+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// reasonOf returns why a document is refused; it fails the test for any other error.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	refused, ok := errors.AsType[*document.RefusedError](err)
	if !ok {
		t.Fatalf("got the error %v, not a refusal", err)
	}
	return refused.Reason
}

// TestConverts has a program convert a document, and shows what the program is given and sees.
func TestConverts(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	dir := t.TempDir()
	path := scriptProgram(t, `{ cat "$in"; env | grep -c secret; grep -c MacroSecurityLevel "$profile/user/registrymodifications.xcu"; echo "$HOME" | grep -c coditect-convert; } > "$out"`)
	made, err := program.NewLibreOffice(program.Config{Program: path, Dir: dir}).Convert(t.Context(), sheet, []byte("whole\n"), document.Limits{})
	if want := "whole\n0\n1\n1\n"; string(made) != want || err != nil {
		t.Errorf("got %q, %v, want %q", made, err, want)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestBounds refuses what takes or makes too much, and says why.
func TestBounds(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"no file", "echo 'source file could not be loaded' >&2", "did not convert (it may be damaged, or have a password): source file could not be loaded"},
		{"fails", "echo broken >&2; exit 7", "exit status 7 broken"},
		{"a part", `echo half > "$out"; exit 1`, "made a part only: exit status 1"},
		{"too slow", "sleep 600", "did not convert within 1s"},
		{"too large", `head -c 9000 /dev/zero > "$out"`, "more than 8192 bytes (--document-bytes)"},
		{"endless", `cat /dev/zero > "$out"`, "LibreOffice"},
		{"all memory", `x=0123456789abcdef; while :; do x=$x$x; done; echo "$x" > "$out"`, "did not convert"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			l := program.NewLibreOffice(program.Config{Program: scriptProgram(t, test.script), Time: time.Second, Memory: 256 << 20, Dir: dir})
			_, err := l.Convert(t.Context(), sheet, []byte("x"), document.Limits{Bytes: 8192})
			if why := reasonOf(t, err); !strings.Contains(why, test.want) || !strings.HasPrefix(why, "a WordPerfect document") {
				t.Errorf("got %q, want %q", why, test.want)
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestCancelled ends the program, and what that has started, with the job.
func TestCancelled(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", told).CombinedOutput(); err != nil {
		t.Skipf("mkfifo: %v %s", err, out)
	}
	// The grandchild holds the pipe open for as long as it lives.
	path := scriptProgram(t, fmt.Sprintf("(echo begun; exec sleep 600) > %q & wait\n", told))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the job was cancelled")
	done := make(chan error, 1)
	go func() {
		_, err := program.NewLibreOffice(program.Config{Program: path}).Convert(ctx, sheet, nil, document.Limits{})
		done <- err
	}()

	pipe, err := os.Open(told)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close() //nolint:errcheck // it was only read
	if _, err := pipe.Read(make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	if _, err := pipe.Read(make([]byte, 1)); err == nil { // its end, once the last that writes to it is gone
		t.Error("what the program started still writes")
	}
}

// TestNotInstalled says what to do where there is no LibreOffice.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := program.NewLibreOffice(program.Config{}).Convert(t.Context(), sheet, nil, document.Limits{})
	if runtime.GOOS == "linux" {
		if why := reasonOf(t, err); !strings.Contains(why, "install it, or save the file as .docx") {
			t.Errorf("got %q", why)
		}
	}
}

// wordPerfect begins a WordPerfect document.
const wordPerfect = "\xffWPC\x10\x00\x00\x00 of which nobody reads more"

// registry returns formats, of which some are read only if they are converted.
func registry(t *testing.T) *document.Registry {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), plain.CSVFormat(), ooxml.DocxFormat(ooxml.Pictures{}), program.OlderFormat())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRefusedUnlessConverted names the format of a document that is not read, and the flag.
func TestRefusedUnlessConverted(t *testing.T) {
	_, err := registry(t).Parse(t.Context(), document.Input{Name: "a.wpd", Content: strings.NewReader(wordPerfect)})
	want := "a WordPerfect document, which is not read; save it as .docx, or have LibreOffice convert it (--convert auto)"
	if why := reasonOf(t, err); why != want {
		t.Errorf("got %q, want %q", why, want)
	}
}

// TestNotes says in the notes of a converted document what it was, and of one that is then refused,
// too.
func TestNotes(t *testing.T) {
	word := zipmake.Zip(t,
		zipmake.File{Name: "[Content_Types].xml", Content: `<Types/>`},
		zipmake.File{Name: "word/document.xml", Content: `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Total: 12.50</w:t></w:r></w:p></w:body></w:document>`},
	)
	r := registry(t).Converting(converter(word))
	d, err := r.Parse(t.Context(), document.Input{Name: "a.wpd", Content: strings.NewReader(wordPerfect)})
	if err != nil {
		t.Fatal(err)
	}
	want := "a WordPerfect document, converted to .docx by a test before it was read"
	if d.Kind != ooxml.DocxKind || !strings.Contains(d.Text, "Total: 12.50") || len(d.Notes) != 1 || d.Notes[0] != want {
		t.Errorf("got %s %q with the notes %q", d.Kind, d.Text, d.Notes)
	}

	_, err = registry(t).Converting(converter("nothing")).Parse(t.Context(), document.Input{Content: strings.NewReader(wordPerfect)})
	if why := reasonOf(t, err); !strings.HasPrefix(why, "a WordPerfect document, which a test converted to .docx: ") {
		t.Errorf("got %q", why)
	}
}

// A converter makes the same of each document.
type converter []byte

func (converter) Name() string { return "a test" }

func (c converter) Convert(context.Context, document.Conversion, []byte, document.Limits) ([]byte, error) {
	return bytes.Clone(c), nil
}

// TestLibreOffice converts a document by the program itself, where it is installed.
func TestLibreOffice(t *testing.T) {
	path, err := exec.LookPath("soffice")
	if err != nil {
		t.Skip("LibreOffice is not installed")
	}
	// A sheet of Excel 2: a label, which is its own length and letters, and a number.
	data := []byte("\x09\x00\x04\x00\x02\x00\x10\x00" +
		"\x04\x00\x0d\x00\x00\x00\x00\x00\x00\x00\x00\x05Total" +
		"\x03\x00\x0f\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x29\x40" +
		"\x0a\x00\x00\x00")
	made, err := program.NewLibreOffice(program.Config{Program: path}).Convert(t.Context(), document.Conversion{What: "a sheet", From: ".xls", To: ".csv"}, data, document.Limits{})
	if err != nil || !strings.HasPrefix(string(made), "Total,12.5") {
		t.Errorf("got %q, %v", made, err)
	}
}
