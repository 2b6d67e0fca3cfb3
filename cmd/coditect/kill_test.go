package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// This file holds what the tests have in common that kill processes: a house in
// which commands are run, and what must hold of it afterwards.

// trials returns how often a soak test tries.
func trials(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("CODITECT_SOAK_TRIALS"))
	if err != nil {
		return 20
	}
	return n
}

// A corpus is what jobs of these tests work on. Large outputs come in chunks,
// there are levels of reduction, and some documents have to be parsed.
type corpus struct {
	program string // that works on it
	dir     string
	input   []string // of run: what is read, and what for
	flags   []string // of run
	tree    []string // of run: how outputs are reduced
	tools   []string // of run and of resume
}

// reduced returns the same corpus, whose outputs are reduced otherwise.
func (c *corpus) reduced(flags ...string) *corpus {
	other := *c
	other.tree = flags
	return &other
}

// builtIn is the folder of the program that these tests build.
func builtIn() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("coditect-test-%d", os.Getpid()))
}

// built builds the program once, as it is released: without what debuggers read, which
// takes as long to link as all else.
var built = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(builtIn(), "coditect")
	args := append(append([]string{"build", "-ldflags", "-s -w"}, buildFlags()...), "-o", program, ".")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// build returns the program, as users have it but for the scripted provider: that of the scripts,
// which is this test, may be slowed down by what looks for races.
func build(t *testing.T) (program string) {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func newCorpus(t *testing.T, program string, documents int, flags ...string) *corpus {
	t.Helper()
	dir := t.TempDir()
	c := &corpus{program: program, dir: dir, input: []string{"--input", filepath.Join(dir, "docs"), "--schema", filepath.Join(dir, "schema.yaml")}, flags: []string{
		"--provider", "scripted", "--parallelism", "4", "--circuit-breaker-threshold", "1000", "--max-attempts", "20",
	}, tree: []string{"--reduce-context-limit", "100", "--reduce-batch-size", "3"}}
	c.flags = append(c.flags, flags...)
	const schema = `
title: package
type: array
items:
  type: object
  required: [name]
  properties:
    name: {type: string, x-coditect: {labels: [Package]}}
    version: {type: string, x-coditect: {labels: [Version]}}
    size: {type: number, x-coditect: {labels: [Size]}}
`
	c.write(t, "schema.yaml", schema)
	for d := range documents {
		var b strings.Builder
		for i := range []int{120, 2, 3}[d%3] {
			fmt.Fprintf(&b, "Package: pkg-%d-%d\nVersion: %d.%d\nSize: %d\n\n", d, i, i, d, i*d)
		}
		c.write(t, fmt.Sprintf("docs/%03d.txt", d), b.String())
	}
	for d := range 2 {
		c.write(t, fmt.Sprintf("docs/page%d.html", d), fmt.Sprintf("<p>Package: page-%d</p><p>Version: 1</p>", d))
	}
	return c
}

func (c *corpus) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run returns the arguments of the command that submits the corpus.
func (c *corpus) run(more ...string) []string {
	return slices.Concat([]string{"run"}, c.input, c.flags, c.tree, c.tools, more)
}

// A house is a data directory, a ledger and an output folder.
type house struct {
	t       *testing.T
	program string
	dir     string
	kills   int            // of processes
	resumes int            // of jobs with failed units
	store   []string       // environment that says where jobs are kept
	asked   []asking       // units that waited for an answer when one of them was chosen
	done    map[string]int // units that were seen complete, and how many entries the ledger had then

	patience time.Duration // with a command. At least slowest
	space    string        // the network namespace of commands; that of the test if it is empty
}

func newHouse(t *testing.T, c *corpus) *house {
	t.Helper()
	store, clear := onCluster(t)
	t.Cleanup(clear)
	return &house{t: t, program: c.program, dir: t.TempDir(), store: store, done: make(map[string]int)}
}

func (h *house) path(name string) string { return filepath.Join(h.dir, name) }

// An outcome is how a process ended.
type outcome struct {
	code   int // -1 if it was killed
	killed bool
	stdout string
	stderr string
}

// command returns a process of the program, not started yet. It collects garbage
// seldom, as it has little and lives for a moment: a fifth of its time otherwise.
func (h *house) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(h.program, args...)
	if h.space != "" {
		cmd = exec.Command("ip", append([]string{"netns", "exec", h.space, h.program}, args...)...) // the same process
	}
	cmd.Dir = h.dir
	cmd.Env = append(h.environ(), env...)
	return cmd
}

// environ returns the environment of the commands of this house.
func (h *house) environ() []string {
	return slices.Concat(os.Environ(), []string{
		"XDG_DATA_HOME=" + h.path("data"), "HOME=" + h.dir, "CODITECT_LEDGER=" + h.path("ledger"), "GOGC=400",
	}, h.store)
}

// ask runs a command of mapreduce that looks at the store and changes nothing, while no
// process has it. It does so in this process: to begin one takes longer than to look. Each
// process has a cluster's client of its own, so there it begins one.
func (h *house) ask(args ...string) outcome {
	h.t.Helper()
	if h.store != nil {
		return h.try(nil, args...)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), max(h.patience, slowest))
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := main.RunIn(ctx, h.environ(), append([]string{"mapreduce"}, args...), &stdout, &stderr)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// answer returns what such a command prints, which has to succeed.
func (h *house) answer(args ...string) string {
	h.t.Helper()
	o := h.ask(args...)
	if o.code != 0 {
		h.t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// slowest is how long a command may take before it is told to show what it does.
const slowest = 5 * time.Minute

// try runs a command of mapreduce to its end.
func (h *house) try(env []string, args ...string) outcome {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := h.command(env, append([]string{"mapreduce"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err != nil {
		h.t.Fatal(err)
	}
	slow := time.AfterFunc(max(h.patience, slowest), func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // it may have ended meanwhile
	})
	defer slow.Stop()
	err = cmd.Wait()
	return h.outcome(err, &stdout, &stderr)
}

func (h *house) outcome(err error, stdout, stderr *bytes.Buffer) outcome {
	h.t.Helper()
	o := outcome{stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		status, ok := exit.Sys().(syscall.WaitStatus)
		o.code = exit.ExitCode()
		o.killed = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	default:
		h.t.Fatal(err)
	}
	return o
}

// want runs a command that has to end with a code, and returns what it printed.
func (h *house) want(code int, args ...string) string {
	h.t.Helper()
	o := h.try(nil, args...)
	if o.code != code {
		h.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), o.code, code, o.stdout, o.stderr)
	}
	return o.stdout
}

// dies runs a command that has to be killed at a point.
func (h *house) dies(at string, args ...string) {
	h.t.Helper()
	o := h.try([]string{failpoint.Variable + "=" + at}, args...)
	point, _, _ := strings.Cut(at, ":")
	if !o.killed || !strings.Contains(o.stderr, "failpoint: "+point) {
		h.t.Fatalf("%s: ended with %d and was not killed at %s:\n%s%s", args[0], o.code, at, o.stdout, o.stderr)
	}
	h.kills++
	h.look()
}

// A listed is a job, or a unit, as a list shows it.
type listed struct {
	JobID  string `json:"job_id"`
	UnitID string `json:"unit_id"`
	Status string `json:"status"`
	Failed int    `json:"failed_units"`
}

// jobs returns all jobs there are.
func (h *house) jobs() []listed {
	h.t.Helper()
	var page struct{ Jobs []listed }
	h.decode(h.answer("list", "-o", "json"), &page)
	return page.Jobs
}

func (h *house) decode(text string, to any) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		h.t.Fatalf("%v in\n%s", err, text)
	}
}

// job returns the only job, and whether there is one.
func (h *house) job() (listed, bool) {
	h.t.Helper()
	all := h.jobs()
	if len(all) > 1 {
		h.t.Fatalf("there are %d jobs, want one: %+v", len(all), all)
	}
	if len(all) == 0 {
		return listed{}, false
	}
	return all[0], true
}

// look notes which units are complete, after the process that ran them died.
func (h *house) look() {
	h.t.Helper()
	job, found := h.job()
	if !found {
		return
	}
	entries := len(h.ledger())
	for token := ""; ; {
		var page struct {
			Units []listed
			Next  string `json:"next_page_token"`
		}
		h.decode(h.answer("units", "--job-id", job.JobID, "--status", "complete", "--limit", "1000", "--page-token", token, "-o", "json"), &page)
		for _, u := range page.Units {
			if h.done[u.UnitID] == 0 {
				h.done[u.UnitID] = entries
			}
		}
		if token = page.Next; token == "" {
			return
		}
	}
}

func (h *house) ledger() []scripted.Entry {
	h.t.Helper()
	entries, err := scripted.ReadLedger(h.path("ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return entries
}

// carryOn does what a user does whose command was killed, until there is a
// result, and returns the exit code.
func (h *house) carryOn(c *corpus, more ...string) int {
	h.t.Helper()
	job, found := h.job()
	if !found {
		return h.again(c.run("--output", "out"))
	}
	return h.again(slices.Concat([]string{"resume", "--job-id", job.JobID, "--output", "out"}, c.tools, more))
}

// carryThrough carries on, and has every unit be complete then: that a process was killed
// costs no unit anything, however often it was.
func (h *house) carryThrough(c *corpus) {
	h.t.Helper()
	if code := h.carryOn(c); code != 0 {
		h.t.Fatalf("ended with %d", code)
	}
}

// remade notes that failed units are tried again, and with them what was reduced
// without them.
func (h *house) remade() {
	h.resumes++
	for unit := range h.done {
		if reduces(unit) {
			delete(h.done, unit)
		}
	}
}

func reduces(unit string) bool { return strings.HasPrefix(unit, "reduce_") || unit == "final" }

func (h *house) again(args []string) int {
	h.t.Helper()
	o := h.try(nil, args...)
	if o.code == 2 || o.code < 0 {
		h.t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.stdout, o.stderr)
	}
	return o.code
}

// results returns the files that have to be equal, without what may differ.
func (h *house) results() map[string]string {
	h.t.Helper()
	files := make(map[string]string)
	for _, name := range []string{"result.json", "report.md", "dag.json", "units.jsonl"} {
		b, err := os.ReadFile(filepath.Join(h.path("out"), name))
		if err != nil {
			h.t.Fatal(err)
		}
		files[name] = settled(string(b))
	}
	return files
}

// spent are the fields that an interruption may change: attempts, times, tokens.
var spent = []string{"attempts", "tokens_used", "total_tokens", "elapsed_ms", "tokens_in", "tokens_out", "cost", "duration_ms", "retrieved"}

// settled returns a file without what differs from run to run. It is no regular
// expression, which takes seconds for a large file while races are looked for.
func settled(text string) string {
	if at := strings.Index(text, "mr_20"); at >= 0 {
		text = strings.ReplaceAll(text, text[at:at+len("mr_20261121_abcdef")], "JOB")
	}
	for _, field := range spent {
		var b strings.Builder
		for rest, found := text, true; found; {
			var before string
			before, rest, found = strings.Cut(rest, `"`+field+`":`)
			b.WriteString(before)
			if found {
				fmt.Fprintf(&b, `"%s":0`, field)
				rest = strings.TrimLeft(rest, ` -.0123456789e"TZ:`) // a number, or a time
			}
		}
		text = b.String()
	}
	return text
}

// verify checks that the results are those of a run without interruption, that
// the store is in order, and that what was done was not done again.
func (h *house) verify(want map[string]string) {
	t := h.t
	t.Helper()
	if diff := cmp.Diff(want, h.results()); diff != "" {
		t.Errorf("results differ from those of a run without interruption (-want +got):\n%.4000s", diff)
	}
	h.addsUp()
	h.healthy()
	h.paidOnce()
	h.nobodyLeft()
}

// nobodyLeft checks that no process works in this house any more: those in which units ran
// apart end with the process that has started them, also if that was killed. It looks where
// Linux says what processes there are.
func (h *house) nobodyLeft() {
	h.t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for over := time.After(patience); ; {
		left := h.processes()
		if len(left) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-over:
			h.t.Errorf("processes are left: %v", left)
			return
		}
	}
}

// processes returns the processes that work in this house.
func (h *house) processes() (all []string) {
	h.t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, l := range links {
		if dir, err := os.Readlink(l); err == nil && dir == h.dir {
			all = append(all, filepath.Dir(l))
		}
	}
	return all
}

// healthy checks the store, with the audit chains of its jobs.
func (h *house) healthy() {
	h.t.Helper()
	if o := h.ask("doctor"); o.code != 0 {
		h.t.Errorf("doctor: exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
}

// paidOnce checks the ledger: no unit that was complete when its process died
// ran again, and no call was begun more often than processes died, and one time
// more for each failure by script.
func (h *house) paidOnce() {
	t := h.t
	t.Helper()
	type call struct {
		job, unit string
		call      int
	}
	begun := make(map[call]int)
	for i, e := range h.ledger() {
		if from, done := h.done[string(e.Unit)]; done && i >= from {
			t.Errorf("unit %s was complete after %d entries of the ledger, and entry %d is of its attempt %d", e.Unit, from, i, e.Attempt)
		}
		if !e.End {
			begun[call{string(e.Job), string(e.Unit), e.Call}]++
		}
	}
	for c, n := range begun {
		if n > 1+h.kills+h.resumes {
			t.Errorf("call %+v was begun %d times in %d runs", c, n, 1+h.kills+h.resumes)
		}
	}
}

// reference runs a corpus without interruption and returns its results.
func reference(t *testing.T, c *corpus, code int) map[string]string {
	t.Helper()
	wants := []string{"reduce_L1_0", "reduce_L2_0", "page1.html"}
	if c.tree[0] == "--target-token-budget" {
		wants = []string{"reduce_L1_1", "page1.html"} // there may be no need for more
	}
	return withUnits(t, c, code, wants...)
}

// withUnits is reference for a corpus whose job has to have certain units.
func withUnits(t *testing.T, c *corpus, code int, wants ...string) map[string]string {
	t.Helper()
	h := newHouse(t, c)
	h.store = nil // the embedded one, whichever these tests use
	h.want(code, c.run("--output", "out")...)
	h.healthy()
	files := h.results()
	for _, want := range wants {
		if !strings.Contains(files["units.jsonl"], want) {
			t.Fatalf("the job has no unit %s: it shows too little", want)
		}
	}
	return files
}
