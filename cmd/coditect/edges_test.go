package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// smallJob returns a folder with a schema, and the arguments that run a job with it.
func smallJob(t *testing.T) (folder string, args []string) {
	t.Helper()
	folder = t.TempDir()
	schema := writeFile(t, filepath.Join(folder, "schema.yaml"), "type: object\nproperties:\n  a: {type: string, x-coditect: {labels: [A]}}\n")
	return folder, []string{"mapreduce", "run", "--schema", schema, "--output", filepath.Join(folder, "out")}
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A line with too much metadata is skipped, and the result says which and why.
func TestLinesWithTooMuchMetadata(t *testing.T) {
	folder, run := smallJob(t)
	lines := writeFile(t, filepath.Join(folder, "lines.jsonl"), fmt.Sprintf(
		`{"id": "fits", "text": "A: 1", "k": %q}`+"\n"+`{"id": "large", "text": "A: 2", "k": %q}`+"\n",
		strings.Repeat("x", 4095), strings.Repeat("x", 4096)))
	code, out := coditect(t, filepath.Join(folder, "data"), append(run, "--input", lines)...)
	if code != 0 || !strings.Contains(out, "1 of 2 documents mapped") {
		t.Fatalf("code %d: %s", code, out)
	}
	result, err := os.ReadFile(filepath.Join(folder, "out", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "line 2: it has 4097 bytes of metadata, more than the 4096 that are accepted"; !strings.Contains(string(result), want) {
		t.Errorf("the result lacks %q:\n%s", want, result)
	}
}

// Files that are too large, and devices, are refused before they are read whole.
func TestFilesThatAreNotRead(t *testing.T) {
	folder, run := smallJob(t)
	writeFile(t, filepath.Join(folder, "a.txt"), "A: 1\n")
	schema, err := os.ReadFile(filepath.Join(folder, "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	large := writeFile(t, filepath.Join(folder, "large.yaml"), string(schema)+strings.Repeat("# comment\n", 420<<10))
	for _, test := range []struct{ flag, file, want string }{
		{"--schema", "/dev/null", "--schema: /dev/null is a device"},
		{"--pipeline", "/dev/null", "/dev/null is a device"},
		{"--schema", folder, "is a folder"},
		{"--schema", large, "has more than 4194304 bytes"},
		{"--pipeline", large, "has more than 196608 bytes"},
	} {
		t.Run(test.flag+" "+filepath.Base(test.file), func(t *testing.T) {
			code, out := coditect(t, filepath.Join(folder, "data"), append(run, "--input", filepath.Join(folder, "a.txt"), test.flag, test.file)...)
			if code != 2 || !strings.Contains(out, test.want) {
				t.Errorf("code %d, want 2 and %q: %s", code, test.want, out)
			}
		})
	}
}

// SIGTERM ends a command that waits for a pipe to which nobody writes.
func TestInterruptedWaits(t *testing.T) {
	testenv.Raced(t)

	for _, test := range []struct {
		name   string
		schema string // written to the pipe; if empty, the pipe stays open
	}{
		{"for a schema", ""},
		{"for standard input", "type: object\nproperties:\n  a: {type: string, x-coditect: {labels: [A]}}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			pipe := filepath.Join(folder, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skipf("no named pipes here: %v", err)
			}
			stdin, silent, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			var out bytes.Buffer
			cmd := exec.CommandContext(ctx, program(t), "mapreduce", "run", "--input", "-", "--schema", pipe, "--data-dir", filepath.Join(folder, "data"))
			cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &out
			if err := errors.Join(cmd.Start(), stdin.Close()); err != nil {
				t.Fatal(err)
			}
			writer := openWhenRead(t, pipe)
			defer writer.Close()
			if test.schema != "" {
				if _, err := writer.WriteString(test.schema); err != nil {
					t.Fatal(err)
				}
				if err := writer.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code tells
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("code %d, want 130: %s", code, &out)
			}
		})
	}
}

// openWhenRead opens a named pipe for writing once a process reads it.
func openWhenRead(t *testing.T, pipe string) *os.File {
	t.Helper()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-pause.C {
		f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return f
		}
		if !errors.Is(err, syscall.ENXIO) {
			t.Fatal(err)
		}
	}
	t.Fatal("nobody reads the pipe")
	return nil
}

// A folder to which the results cannot be written is refused before anything is stored.
func TestOutputIsCheckedBeforeTheJob(t *testing.T) {
	folder, run := smallJob(t)
	writeFile(t, filepath.Join(folder, "a.txt"), "A: 1\n")
	taken := filepath.Join(folder, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "result.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink(filepath.Join(folder, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{taken, link} {
		data := filepath.Join(folder, "data")
		code, out := coditect(t, data, append(run, "--input", filepath.Join(folder, "a.txt"), "--output", output)...)
		if _, err := os.Stat(data); code != 2 || !strings.Contains(out, "--output: ") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: code %d, and there is a store: %t: %s", output, code, err == nil, out)
		}
	}
}

// No control character reaches the output, as text or as JSON, and JSON keeps its meaning.
func TestControlCharactersAreEscaped(t *testing.T) {
	folder, run := smallJob(t)
	writeFile(t, filepath.Join(folder, "a.txt"), "A: 1\n")
	hostile := filepath.Join(folder, "x\x1b[31m\u009b31m\x7f\r")
	data := filepath.Join(folder, "data")
	input := []string{"--input", filepath.Join(folder, "a.txt")}
	for name, args := range map[string][]string{
		"an error": append(run, "--input", hostile),
		"a note":   slices.Concat(run, input, []string{"--output", hostile}),
		"JSON":     slices.Concat(run, input, []string{"--output", hostile, "-o", "json"}),
	} {
		_, out := coditect(t, data, args...)
		if i := strings.IndexFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%s has a control character: %q", name, out[i:])
		}
		if name != "JSON" {
			continue
		}
		var status struct{ Output string }
		if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{\n")):]), &status); err != nil || status.Output != hostile {
			t.Errorf("the output is %q, want %q: %v", status.Output, hostile, err)
		}
	}
}

// Doctor checks a copy of a store that nobody may write to, with its lock and without.
func TestDoctorOfACopyForReadingOnly(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	base, err := os.MkdirTemp("", "readonly")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(makeWritable(base), os.RemoveAll(base)); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 && !isReachableByAll(t, base) {
		t.Skipf("root may write everywhere, and no other user can reach %s", base)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(base, "coditect")
	data, err := os.ReadFile(self)
	if err := errors.Join(err, os.WriteFile(command, data, 0o755), os.Chmod(base, 0o755)); err != nil {
		t.Fatal(err)
	}
	store := filled(t)
	for _, locked := range []bool{true, false} {
		dir := filepath.Join(base, fmt.Sprintf("locked-%t", locked))
		if err := os.CopyFS(dir, os.DirFS(store)); err != nil {
			t.Fatal(err)
		}
		if !locked {
			if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			err = errors.Join(err, os.Chmod(filepath.Join(dir, e.Name()), 0o444))
		}
		if err := errors.Join(err, os.Chmod(dir, 0o555)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(command, "mapreduce", "doctor", "--data-dir", dir)
		if os.Getuid() == 0 { // who may write everywhere
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		cmd.Dir = base
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "nothing is wrong") {
			t.Errorf("with a lock file: %t: %v: %s", locked, err, out)
		}
	}
}

// isReachableByAll reports whether every user can go through the folders above dir.
func isReachableByAll(t *testing.T, dir string) bool {
	t.Helper()
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if parent == filepath.Dir(parent) {
			return true
		}
	}
}

// makeWritable gives the owner of the folders in dir the right to write.
func makeWritable(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, os.Chmod(filepath.Join(dir, e.Name()), 0o700))
		}
	}
	return err
}

// Only the owner can read a store, whatever the umask is, also one whose files others
// could read.
func TestStoresArePrivate(t *testing.T) {
	dir := filled(t)
	check := func(when string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s, %s has the mode %v", when, d.Name(), info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	check("at first")
	for name := range filesOf(t, dir) {
		if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folder, run := smallJob(t)
	if code, out := coditect(t, dir, append(run, "--input", writeFile(t, filepath.Join(folder, "a.txt"), "A: 1\n"))...); code != 0 {
		t.Fatalf("code %d: %s", code, out)
	}
	check("after the next run")
}

// A data directory that others can read gets a warning, and is refused if asked to.
func TestPublicDataDirectories(t *testing.T) {
	dir := filled(t)
	const warning = "others can read or write the data directory"
	if code, out := coditect(t, dir, "mapreduce", "list", "--strict"); code != 0 || strings.Contains(out, warning) {
		t.Errorf("a private one: code %d: %s", code, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if code, out := coditect(t, dir, "mapreduce", "list"); code != 0 || !strings.Contains(out, warning) {
		t.Errorf("a public one: code %d: %s", code, out)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second) // a server that is not refused would serve
	defer stop()
	for _, args := range [][]string{{"mapreduce", "list", "--strict"}, {"serve", "--listen", "127.0.0.1:0", "--strict"}} {
		var out bytes.Buffer
		if code := main.Run(ctx, append(args, "--data-dir", dir), &out); code != 2 || !strings.Contains(out.String(), "--strict: "+warning) {
			t.Errorf("%v: code %d: %s", args, code, &out)
		}
	}
}

// A server on a loopback address says that it asks nobody who they are.
func TestServeSaysThatItIsOpen(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out := &stopWriter{text: "msg=serving", stop: stop}
	code := main.Run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--workers", "0", "--data-dir", filepath.Join(t.TempDir(), "data")}, out)
	if text := out.log.String(); code != 0 || !strings.Contains(text, "nobody is asked who they are") {
		t.Errorf("code %d: %s", code, text)
	}
}

// A stopWriter calls stop once a text is written to it.
type stopWriter struct {
	mu   sync.Mutex
	log  strings.Builder
	text string
	stop func()
}

func (w *stopWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log.Write(p)
	if strings.Contains(string(p), w.text) {
		w.stop()
	}
	return len(p), nil
}
