package main_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/text/encoding/charmap"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

var update = flag.Bool("update", false, "write the files that scripts compare with anew")

// TestMain makes the test binary the program when a script calls it. The exit
// code is left in the file that EXIT_FILE names, as scripts do not see those of
// processes in the background.
//
// The tests that run in parallel wait most of the time: for other processes.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	testscript.Main(suite{m}, map[string]func(){
		"coditect": func() {
			code := main.MainCode()
			if file := os.Getenv("EXIT_FILE"); file != "" {
				if err := os.WriteFile(file, []byte(strconv.Itoa(code)), 0o600); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
			os.Exit(code)
		},
		"documentation": serveDocumentation,
	})
}

// A suite removes what its tests have built.
type suite struct{ *testing.M }

// Run implements testscript.TestingM.
func (s suite) Run() (code int) {
	code = s.M.Run()
	if err := os.RemoveAll(builtIn()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// withRaces are the scripts that run with the race detector: those of agents, of a process that is
// interrupted, of many units at once, and of a server with workers. TestScriptsSecured has TLS.
var withRaces = []string{"agents", "interrupt", "parallel", "serve"}

// slowOnFDB are the scripts that are left out where there is no time for them.
var slowOnFDB = []string{"large", "plan", "usage"}

func TestScripts(t *testing.T) {
	p := scriptParams(t)
	p.Dir = ""
	for _, name := range scripts(t) {
		if testenv.VariantRuns(slices.Contains(withRaces, name)) && (!slices.Contains(slowOnFDB, name) || testenv.HasTime()) {
			p.Files = append(p.Files, scriptFile(name))
		}
	}
	testscript.Run(t, p)
}

// scripts returns the names of the scripts in testdata.
func scripts(t *testing.T) (names []string) {
	t.Helper()

	files, err := filepath.Glob(scriptFile("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".txtar"))
	}
	return names
}

func scriptFile(name string) string { return filepath.Join("testdata", name+".txtar") }

// scriptParams returns what the scripts in testdata run with.
func scriptParams(t *testing.T) testscript.Params {
	return testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			if cache, err := os.UserCacheDir(); err == nil {
				e.Setenv("XDG_CACHE_HOME", cache) // where PDFium is compiled already
			}
			// A program that looks for races dawdles a second before it ends.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			store, clear := onCluster(t)
			e.Defer(clear)
			e.Vars = append(e.Vars, store...)
			return nil
		},
		Condition: func(name string) (bool, error) {
			_, found := driver.Cluster(t)
			switch name {
			case "fdb":
				return driver.FDB, nil
			case "cluster":
				return found, nil
			case "secured":
				return false, nil
			}
			return false, fmt.Errorf("there is no condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     code,
			"until":    until,
			"awaitjob": awaitJob,
			"many":     many,
			"letters":  letters,
			"latin":    latin,
			"pack":     pack,
			"overlap":  overlap,
			"scrub":    scrub,
			"ranonce":  ranOnce,
			"address": func(ts *testscript.TestScript, _ bool, args []string) {
				if len(args) != 1 {
					ts.Fatalf("usage: address name")
				}
				ts.Setenv(args[0], freeAddress(t))
			},

			// as server and as client say what the commands that follow are, to servers that
			// ask for that.
			"as": func(*testscript.TestScript, bool, []string) {},

			"sametasks": sameTasks,
			"doctor": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(ts.Exec("coditect", "mapreduce", "doctor"))
			},
		},
	}
}

// latin writes a file in ISO 8859-1: latin FILE TEXT, with \n for the end of a line.
func latin(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: latin file text")
	}
	text, err := charmap.ISO8859_1.NewEncoder().String(strings.ReplaceAll(args[1], `\n`, "\n"))
	ts.Check(err)
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o700))
	ts.Check(os.WriteFile(file, []byte(text), 0o600))
}

// pack writes a zip file of the files in a folder: pack FILE FOLDER. Formats are told by
// their entry mimetype, which is the first and not packed.
func pack(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: pack file folder")
	}
	folder := os.DirFS(ts.MkAbs(args[1]))
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, method uint16) {
		text, err := fs.ReadFile(folder, name)
		ts.Check(err)
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		ts.Check(err)
		_, err = w.Write(bytes.TrimSuffix(text, []byte("\n")))
		ts.Check(err)
	}
	if _, err := fs.Stat(folder, "mimetype"); err == nil {
		add("mimetype", zip.Store)
	}
	ts.Check(fs.WalkDir(folder, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && name != "mimetype" {
			add(name, zip.Deflate)
		}
		return err
	}))
	ts.Check(z.Close())
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o700))
	ts.Check(os.WriteFile(file, b.Bytes(), 0o600))
}

// patience bounds what a script waits for.
const patience = 3 * time.Minute

// code runs a program that has to end with an exit code: code N PROGRAM ARG…
func code(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code N program [arg...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// until runs a program until what it prints matches: until PATTERN PROGRAM ARG…
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until pattern program [arg...]")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	untilMatch(ts, pattern, args[1:])
}

func untilMatch(ts *testscript.TestScript, pattern *regexp.Regexp, command []string) []string {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-pause.C {
		_ = ts.Exec(command[0], command[1:]...) // what it prints decides
		if found := pattern.FindStringSubmatch(ts.ReadFile("stdout")); found != nil {
			return found
		}
	}
	ts.Fatalf("never printed %q; the last was\n%s%s", pattern, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	return nil
}

// awaitJob waits until a list shows a job that matches, and sets a variable to
// its id: awaitjob NAME PATTERN [FLAG…]. The pattern begins behind the id.
func awaitJob(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: awaitjob name pattern [flag...]")
	}
	pattern, err := regexp.Compile(`(?m)^(mr_\d{8}_\w{6}) +` + args[1])
	ts.Check(err)
	found := untilMatch(ts, pattern, append([]string{"coditect", "mapreduce", "list"}, args[2:]...))
	ts.Setenv(args[0], found[1])
}

// many makes documents: many DIR N
func many(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: many dir n")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	for i := range n {
		text := fmt.Sprintf("Shop %d\nTOTAL: %d.50\nDATE: 2024-01-%02d\n", i, i, i%28+1)
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), []byte(text), 0o600))
	}
}

// letters makes documents of some kilobytes, four of each sender, of which no two
// say the same: letters DIR N KILOBYTES
func letters(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: letters dir n kilobytes")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	size, err := strconv.Atoi(args[2])
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	for i := range n {
		body := strings.Repeat(fmt.Sprintf("word%04d ", i), size<<10/9)
		text := fmt.Sprintf("FROM: Sender %d\nBODY %s.\n", i%(n/4), body)
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.txt", i)), []byte(text), 0o600))
	}
}

// What differs from run to run, and what stands for it.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`mr_\d{8}_[0-9a-z]{6}`), "JOB"},
	{regexp.MustCompile(`node_[0-9a-z]{26}`), "NODE"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`\b[0-9a-f]{20,24}\b`), "STAMP"},
	{regexp.MustCompile(`\btime: about [^ ,]+`), "time: about 0s"},
	{regexp.MustCompile(`("(?:documents_per_minute|agent_utilization|seconds|busy_seconds|elapsed_ms|duration_ms)": ?)[-0-9.e]+`), "${1}0"},
}

// scrub replaces what differs from run to run in files: scrub FILE…
func scrub(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := ts.ReadFile(name)
		for _, c := range changing {
			text = c.pattern.ReplaceAllString(text, c.with)
		}
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// ranOnce fails if a ledger shows a call that was made again although it had
// ended: ranonce FILE CALLS
func ranOnce(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: ranonce file calls")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	entries, err := scripted.ReadLedger(ts.MkAbs(args[0]))
	ts.Check(err)
	ended := make(map[string]bool)
	for _, e := range entries {
		call := fmt.Sprintf("%s %s %d", e.Job, e.Unit, e.Call)
		if ended[call] {
			ts.Fatalf("call %s was made again, in attempt %d", call, e.Attempt)
		}
		ended[call] = e.End
	}
	done := 0
	for _, end := range ended {
		if end {
			done++
		}
	}
	if done != want {
		ts.Fatalf("%d calls have ended, want %d", done, want)
	}
}

// sameTasks fails if two DAGs in JSON have other tasks, or other wiring:
// sametasks FILE FILE
func sameTasks(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sametasks file file")
	}
	type task struct {
		ID, NodeType string
		Level        *int `json:"mapReduceLevel"`
		DependsOn    []string
	}
	var dags [2]struct{ Tasks []task }
	for i, name := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &dags[i]))
	}
	if len(dags[0].Tasks) == 0 {
		ts.Fatalf("%s has no tasks", args[0])
	}
	if diff := cmp.Diff(dags[0].Tasks, dags[1].Tasks); diff != "" {
		ts.Fatalf("tasks of %s (-) and %s (+):\n%s", args[0], args[1], diff)
	}
}

// TestHelp looks at every command: it says in a line what it does, and in an
// example how it is used.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"mapreduce"},
		{"mapreduce", "run"},
		{"mapreduce", "plan"},
		{"mapreduce", "resume"},
		{"mapreduce", "status"},
		{"mapreduce", "watch"},
		{"mapreduce", "list"},
		{"mapreduce", "units"},
		{"mapreduce", "audit"},
		{"mapreduce", "result"},
		{"mapreduce", "pause"},
		{"mapreduce", "cancel"},
		{"mapreduce", "delete"},
		{"mapreduce", "doctor"},
		{"mapreduce", "eval"},
		{"serve"},
		{"worker"},
		{"version"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var out bytes.Buffer
			if code := main.Run(t.Context(), append(args, "--help"), &out); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			for _, want := range []string{"Usage:", "Examples:", "  coditect "} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("help lacks %q:\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "scripted") {
				t.Errorf("help speaks of what is for tests:\n%s", &out)
			}
		})
	}
}

// overlap fails if more tasks of a trace.json ran at once than a number: overlap FILE N
func overlap(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: overlap file n")
	}
	limit, err := strconv.Atoi(args[1])
	ts.Check(err)
	var of struct {
		Tasks []struct{ Started, Ended time.Time }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &of))
	for _, t := range of.Tasks {
		n := 0
		for _, other := range of.Tasks { // those that ran when t began
			if !other.Started.After(t.Started) && other.Ended.After(t.Started) {
				n++
			}
		}
		if n > limit {
			ts.Fatalf("%d tasks ran at once, want at most %d", n, limit)
		}
	}
	if len(of.Tasks) < limit {
		ts.Fatalf("%d tasks are too few to tell", len(of.Tasks))
	}
}
