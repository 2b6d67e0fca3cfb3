package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// The tests of this file damage the files of a store: whatever happens to them, a command
// ends with the right result or says that it has none. `make damage` tries often.

// damages are what happens to one file of a store. Each returns the file as it is then;
// nil if it is gone.
var damages = []struct {
	name string
	do   func(r *rand.Rand, content []byte) []byte
}{
	{"cut", func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }},
	{"zeroed", func(r *rand.Rand, b []byte) []byte {
		from, to := stretch(r, len(b))
		clear(b[from:to])
		return b
	}},
	{"flipped", func(r *rand.Rand, b []byte) []byte {
		for range 1 + r.IntN(8) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return b
	}},
	{"garbage", func(r *rand.Rand, b []byte) []byte {
		from, to := stretch(r, len(b))
		for i := from; i < to; i++ {
			b[i] = byte(r.Uint32())
		}
		return b
	}},
	{"deleted", func(*rand.Rand, []byte) []byte { return nil }},
}

// block is what most disks write at a time, in bytes.
const block = 4096

// stretch draws a part of a file, of at most a block.
func stretch(r *rand.Rand, size int) (from, to int) {
	from = r.IntN(size)
	return from, min(size, from+1+r.IntN(block))
}

// moments are when a store is damaged.
var moments = []struct {
	name string
	run  func(d *damaged)
}{
	{"at rest", func(d *damaged) { d.damage(d.store()) }},
	{"in mid-run", func(d *damaged) { d.during(func() { d.damage(d.store()) }, false) }},
	{"a copy in mid-run", func(d *damaged) { d.during(d.copyAway, true) }},
}

// A damaged is a house with the job complete, the job interrupted, and a store that is
// damaged.
type damaged struct {
	*house
	random *rand.Rand
	kind   int
	shelf  *shelf
	copied string // the folder that takes the place of the store; "" if none does
	what   string // was done to it
}

// A shelf is what all trials begin with: a store with two jobs, of which one is complete
// and the other was interrupted, and what their results have to be.
type shelf struct {
	corpus                *corpus
	data                  string // a folder; nobody may change it
	complete, interrupted string // jobs
	want                  map[string]map[string]string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	program := build(t)
	rules := newCorpus(t, program, 60, "--provider", "rules")
	scripted := newCorpus(t, program, 12, "--var", "script.latency=lognormal:20ms,1")
	s := &shelf{corpus: scripted}
	h := newHouse(t, rules)
	h.store = nil
	h.want(0, rules.run("--output", "out")...)
	job, _ := h.job()
	s.complete = job.JobID
	if o := h.try([]string{failpoint.Variable + "=turn.before:8"}, scripted.run("--output", "out")...); !o.killed {
		t.Fatalf("it was not killed in its eighth turn, but ended with %d\n%s", o.code, o.stderr)
	}
	for _, j := range h.jobs() {
		if j.JobID != s.complete {
			s.interrupted = j.JobID
		}
	}
	s.data = h.path("data")
	if err := os.Remove(filepath.Join(s.data, "coditect", "coditect.sock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err) // the process that was killed left it, and no copy can have one
	}
	s.want = map[string]map[string]string{s.complete: reference(t, rules, 0), s.interrupted: reference(t, scripted, 0)}
	return s
}

// Whatever happens to a file of the store, and whenever, no command shows a wrong result
// as if it were right, none dies of it, and no job is gone without a word.
func TestSoakDamage(t *testing.T) {
	testenv.Lengthy(t)

	t.Parallel()
	if _, shared := driver.Cluster(t); shared {
		t.Skip("a cluster keeps its own files")
	}
	s := newShelf(t)
	for _, of := range []struct {
		name, files string
		kept        int64 // tenths of the file
		said        string
	}{
		// The end of the log, more than its half at times, is of commits that the process was
		// killed in: nobody misses these.
		{"the newest log of a killed process", "*.log", 1, "were acknowledged"},
		{"the manifest of a killed process", "MANIFEST-*", 9, "bytes were synced"},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			d := s.newDamaged(t, 0)
			d.cutNewest(of.files, of.kept)
			if doctor := d.try(nil, "doctor"); doctor.code != 1 || !strings.Contains(doctor.stdout, of.said) {
				t.Errorf("%s: doctor ends with %d\n%s%s", d.what, doctor.code, doctor.stdout, doctor.stderr)
			}
			d.check()
		})
	}
	for seed := range trials(t) {
		moment := moments[seed%len(moments)]
		t.Run(fmt.Sprintf("%d %s", seed, moment.name), func(t *testing.T) {
			t.Parallel()
			d := s.newDamaged(t, seed)
			moment.run(d)
			if d.copied != "" {
				if err := os.RemoveAll(d.store()); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(d.copied, d.store()); err != nil {
					t.Fatal(err)
				}
			}
			d.check()
		})
	}
}

// newDamaged returns a copy of the shelf for one trial.
func (s *shelf) newDamaged(t *testing.T, seed int) *damaged {
	t.Helper()
	d := &damaged{house: newHouse(t, s.corpus), random: rand.New(rand.NewPCG(uint64(seed), 3)), kind: seed % len(damages), shelf: s}
	d.house.store = nil
	if err := os.CopyFS(d.path("data"), os.DirFS(s.data)); err != nil {
		t.Fatal(err)
	}
	return d
}

// cutNewest keeps so many tenths of the newest of the files whose names match a pattern: of what
// the process that was killed wrote last.
func (d *damaged) cutNewest(pattern string, kept int64) {
	d.t.Helper()
	names, err := filepath.Glob(filepath.Join(d.store(), pattern))
	if err != nil || len(names) == 0 {
		d.t.Fatalf("there is no %s: %v", pattern, err)
	}
	newest := slices.Max(names)
	info, err := os.Stat(newest)
	if err != nil {
		d.t.Fatal(err)
	}
	size := info.Size() * kept / 10
	if err := os.Truncate(newest, size); err != nil {
		d.t.Fatal(err)
	}
	d.what = fmt.Sprintf("of the %d bytes of %s the last %d were cut off", info.Size(), filepath.Base(newest), info.Size()-size)
}

// store returns the folder of the store.
func (d *damaged) store() string { return filepath.Join(d.path("data"), "coditect") }

// files lists the files of a store.
func (d *damaged) files(dir string) (names []string) {
	d.t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it is gone meanwhile, or no file
		}
		names = append(names, path)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return names
}

// damage damages one file of a store, in place.
func (d *damaged) damage(dir string) {
	d.t.Helper()
	names := d.files(dir)
	for len(names) > 0 {
		i := d.random.IntN(len(names))
		name := names[i]
		names = slices.Delete(names, i, i+1)
		content, err := os.ReadFile(name)
		if err != nil || len(content) == 0 {
			continue // it is gone meanwhile, or its name is all that it holds
		}
		k := damages[d.kind]
		size := len(content)
		content = k.do(d.random, content)
		if content == nil {
			err = os.Remove(name)
		} else {
			err = overwrite(name, content)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process that works on the store has removed it since it was read
		}
		if err != nil {
			d.t.Fatal(err)
		}
		d.what = fmt.Sprintf("%s of %d bytes was %s", filepath.Base(name), size, k.name)
		return
	}
	d.t.Fatal("the store has no files")
}

// overwrite changes a file in place, as whoever has it open sees it.
func overwrite(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// during does something while a process goes on with the interrupted job, and kills it
// then, or waits for its end.
func (d *damaged) during(do func(), kill bool) {
	d.t.Helper()
	var said bytes.Buffer
	cmd := d.command(nil, "mapreduce", "resume", "--job-id", d.shelf.interrupted, "--output", "out")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	<-time.After(time.Duration(50+d.random.IntN(600)) * time.Millisecond)
	do()
	if kill {
		_ = cmd.Process.Kill() // it may have ended
	}
	slow := time.AfterFunc(slowest, func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // it may have ended meanwhile
	})
	defer slow.Stop()
	_ = cmd.Wait() // however it ends
	o := outcome{code: cmd.ProcessState.ExitCode(), stderr: said.String()}
	if !kill {
		d.judge("the process that ran meanwhile", o, d.shelf.interrupted)
	}
}

// copyAway copies the store file by file, as they are when their turn comes. Every other
// copy ends before the last file.
func (d *damaged) copyAway() {
	d.t.Helper()
	d.copied = d.path("copy")
	if err := os.Mkdir(d.copied, 0o700); err != nil {
		d.t.Fatal(err)
	}
	names := d.files(d.store())
	d.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if d.kind%2 == 0 {
		names = names[:len(names)-1]
	}
	d.what = fmt.Sprintf("%d files were copied", len(names))
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			continue // it is gone meanwhile
		}
		if err := os.WriteFile(filepath.Join(d.copied, filepath.Base(name)), content, 0o600); err != nil {
			d.t.Fatal(err)
		}
		<-time.After(time.Duration(d.random.IntN(5)) * time.Millisecond)
	}
}

// check goes on with the store as a user would.
func (d *damaged) check() {
	t := d.t
	t.Helper()
	doctor := d.try(nil, "doctor")
	d.judge("doctor", doctor, "")
	list := d.try(nil, "list", "-o", "json")
	d.judge("list", list, "")
	if list.code == 0 && doctor.code == 0 {
		for _, job := range []string{d.shelf.complete, d.shelf.interrupted} {
			if !strings.Contains(list.stdout, job) {
				t.Errorf("%s: job %s is gone, and doctor says nothing of it:\n%s", d.what, job, doctor.stdout)
			}
		}
	}
	result := d.try(nil, "result", "--job-id", d.shelf.complete, "--output", "out")
	d.judge("result", result, d.shelf.complete)
	next := "resume"
	if d.isComplete(list, d.shelf.interrupted) { // by the process that ran meanwhile
		next = "result"
	}
	resume := d.try(nil, next, "--job-id", d.shelf.interrupted, "--output", "out")
	d.judge(next, resume, d.shelf.interrupted)
	t.Logf("%s: doctor ends with %d, list with %d, result with %d, %s with %d", d.what, doctor.code, list.code, result.code, next, resume.code)
	if doctor.code == 0 && (result.code != 0 || resume.code != 0) {
		t.Errorf("%s: doctor finds nothing, but result ends with %d and resume with %d\n%s%s", d.what, result.code, resume.code, result.stderr, resume.stderr)
	}
}

// isComplete reports whether a list shows a job as complete.
func (d *damaged) isComplete(list outcome, job string) bool {
	d.t.Helper()
	if list.code != 0 {
		return false
	}
	var page struct{ Jobs []listed }
	d.decode(list.stdout, &page)
	return slices.ContainsFunc(page.Jobs, func(j listed) bool { return j.JobID == job && j.Status == "complete" })
}

// judge checks how a command ended, and the result that it wrote of a job, if any.
func (d *damaged) judge(name string, o outcome, job string) {
	t := d.t
	t.Helper()
	for _, sign := range []string{"panic:", "goroutine ", "fatal error:", "SIGQUIT"} {
		if strings.Contains(o.stderr, sign) {
			t.Fatalf("%s: %s ended with %d and dumped its stacks:\n%.6000s", d.what, name, o.code, o.stderr)
		}
	}
	switch {
	case o.code < 0:
		t.Fatalf("%s: %s was ended by a signal\n%s", d.what, name, o.stderr)
	case o.code != 0 && strings.TrimSpace(o.stdout+o.stderr) == "":
		t.Errorf("%s: %s ended with %d without a word", d.what, name, o.code)
	case o.code == 0 && job != "":
		if diff := cmp.Diff(d.shelf.want[job], d.results()); diff != "" {
			t.Errorf("%s: %s ended with 0, and its results are not those of an undamaged store (-want +got):\n%.3000s", d.what, name, diff)
		}
	}
	if err := os.RemoveAll(d.path("out")); err != nil {
		t.Fatal(err)
	}
}
