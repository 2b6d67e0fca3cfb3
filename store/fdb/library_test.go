//go:build fdb && linux

package fdb_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// olderLibrary stands for a client library of release 7.1: it knows no API
// version above 710.
const olderLibrary = `
int fdb_select_api_version_impl(int runtime, int header) { return 2203; }
int fdb_get_max_api_version(void) { return 710; }
`

// again runs TestOpenForOthers of this program, with an environment.
func again(t *testing.T, env ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fdb.cluster")
	if err := os.WriteFile(file, []byte("a:b@127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOpenForOthers$", "-test.v")
	cmd.Env = append(append(os.Environ(), openVariable+"="+file), env...)
	out, _ := cmd.CombinedOutput() // what it says matters
	return string(out)
}

func TestOlderLibrary(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	folder := t.TempDir()
	source, library := filepath.Join(folder, "older.c"), filepath.Join(folder, "older.so")
	if err := os.WriteFile(source, []byte(olderLibrary), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := again(t, "LD_PRELOAD="+library)
	for _, want := range []string{"libfdb_c", "API version 730", "release 7.3", "710"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// The library is found before anything of this program runs, so it cannot speak
// itself: what the system's loader says where there is none stands in the
// documentation, for those who look for it.
func TestWithoutTheLibrary(t *testing.T) {
	const library, missing = "libfdb_c.so\x00", "libfdb_?.so\x00"
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, []byte(library)) {
		t.Fatal("this program does not ask for the library by its name")
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, bytes.ReplaceAll(program, []byte(library), []byte(missing)), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(file, "-test.run", "^$").CombinedOutput()
	if err == nil {
		t.Fatalf("it runs without the library:\n%s", out)
	}
	_, says, found := strings.Cut(strings.ReplaceAll(string(out), missing[:len(missing)-1], library[:len(library)-1]), file+": ")
	if !found || !strings.Contains(says, "libfdb_c.so") {
		t.Fatalf("the loader does not name the library:\n%s", out)
	}
	manual, err := os.ReadFile("../../docs/foundationdb.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manual), strings.TrimSpace(says)) {
		t.Errorf("docs/foundationdb.md does not explain %q", says)
	}
}
