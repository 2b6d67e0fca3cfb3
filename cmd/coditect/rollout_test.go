package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/store/storetest/driver"
)

// The fleet of TestRollingFleet: two of four workers run at a time, and the job may have as
// many units under way as one of them has slots, so that the other can drain.
const (
	rolloutSlots   = 50
	rolloutAtOnce  = 50
	rolloutLatency = "lognormal:600ms,0.8"
	// rolloutWait bounds the whole of it.
	rolloutWait = 20 * time.Minute
)

// All orchestrators and all workers of a fleet are replaced while a job of thousands of model
// units runs, with the settings and, where images are named, under the constraints of pods:
// no root, nothing to write to but a volume, no capabilities, seccomp, a limit of memory, and
// SIGKILL after the grace period. No call is made twice and none is lost.
func TestRollingFleet(t *testing.T) {
	units, err := strconv.Atoi(os.Getenv("CODITECT_ROLLING_FLEET"))
	if err != nil || units < 100 {
		t.Skip("CODITECT_ROLLING_FLEET does not say with how many units; make rolling-fleet UNITS=10000 does")
	}
	c := newCorpus(t, build(t), 0, "--var", "script.latency="+rolloutLatency, "--var", "script.calls=1", "--parallelism", fmt.Sprint(rolloutAtOnce))
	c.tree = nil
	var lines bytes.Buffer
	for n := range units {
		fmt.Fprintf(&lines, "{\"id\": \"d%05d\", \"text\": \"Package: pkg-%d\\nVersion: %d.0\\n\"}\n", n, n, n)
	}
	c.write(t, "lines.jsonl", lines.String())
	c.input = []string{"--input", c.dir + "/lines.jsonl", "--schema", c.dir + "/schema.yaml"}
	servers, workers := []string{"server"}, []string{"worker a", "worker b", "worker c", "worker d"}
	if _, shared := driver.Cluster(t); shared {
		servers = []string{"server a", "server b"}
	}
	r := newRollout(t, c, servers, workers)
	for _, name := range append(servers, workers[:2]...) {
		r.start(name)
	}
	r.served() // once they answer
	r.want(0, c.run("--detach", "--request-id", "rollout", "--server", r.address)...)
	job := r.served().JobID
	busy := r.watchCalls(units)
	r.past(units / 10)
	for i, name := range servers {
		r.restart(name)
		r.past(units * (2 + i) / 10)
	}
	r.start(workers[2])
	r.halt(workers[0])
	r.past(units * 5 / 10)
	r.start(workers[3])
	r.halt(workers[1])
	if begun, _ := r.calls.count(); begun >= units {
		t.Error("the job had ended before all were replaced: the test shows little")
	}
	r.completes(job)
	share, seconds := busy()
	r.stopAll()
	r.healthy()
	r.checkCalls(units, share, seconds, len(servers))
}

// A rollout is a fleet whose calls are counted as they are made.
type rollout struct {
	*service
	calls *callCounter
	image map[string]string // of containers, by the command that they run; none without
}

func newRollout(t *testing.T, c *corpus, servers, workers []string) *rollout {
	t.Helper()
	r := &rollout{service: newFleet(t, c, servers, workers), image: make(map[string]string)}
	r.calls = &callCounter{path: r.path("ledger")}
	for name, args := range r.args {
		if args[0] == "serve" {
			r.args[name] = args[:len(args)-6] // the settings of time are those of users
		} else {
			r.args[name] = append(args, "--slots", fmt.Sprint(rolloutSlots))
		}
	}
	for i, v := range r.store {
		if strings.HasPrefix(v, "CODITECT_LEASE=") || strings.HasPrefix(v, "CODITECT_HEARTBEAT=") || strings.HasPrefix(v, "CODITECT_GRACE=") {
			r.store[i] = "CODITECT_NOTHING="
		}
	}
	serve, work, _ := strings.Cut(os.Getenv("CODITECT_ROLLING_IMAGES"), ",")
	if serve != "" {
		r.image["serve"], r.image["worker"] = serve, work
		if err := os.Chmod(r.dir, 0o777); err != nil { // the user of the containers writes the ledger here
			t.Fatal(err)
		}
	}
	return r
}

// start runs one of the processes, in a container if there is an image for it.
func (r *rollout) start(name string) {
	r.t.Helper()
	args := r.args[name]
	image := r.image[args[0]]
	if image == "" {
		r.service.start(name)
		return
	}
	memory := map[string]string{"serve": "1536m", "worker": "2g"}[args[0]]
	docker := []string{
		"run", "--rm", "--network", "host", "--user", "65532:65532", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--memory", memory, "--memory-swap", memory, "--volume", r.dir + ":" + r.dir, "--workdir", r.dir,
	}
	for _, v := range append([]string{"CODITECT_LEDGER=" + r.path("ledger"), "XDG_DATA_HOME=" + r.path("data"), "HOME=" + r.dir, "GOGC=400"}, r.store...) {
		docker = append(docker, "--env", v)
		if file, found := strings.CutPrefix(v, "FDB_CLUSTER_FILE="); found {
			docker = append(docker, "--volume", file+":"+file+":ro")
		}
	}
	cmd := exec.Command("docker", append(append(docker, image), args...)...)
	log, err := os.OpenFile(r.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.running[name] = cmd
}

// restart replaces a process.
func (r *rollout) restart(name string) {
	r.t.Helper()
	r.halt(name)
	r.start(name)
}

// A callCounter counts the calls of a ledger, and reads each line of it once.
type callCounter struct {
	path string

	mu           sync.Mutex // guards all below
	read         int64
	begun, ended int
}

// count returns how many calls were begun, and how many have ended.
func (c *callCounter) count() (begun, ended int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := os.Open(c.path)
	if err != nil {
		return 0, 0 // there was none yet
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == c.read {
		return c.begun, c.ended
	}
	text := make([]byte, info.Size()-c.read)
	if _, err := f.ReadAt(text, c.read); err != nil {
		return c.begun, c.ended
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // a line may be half written
	ended = bytes.Count(text, []byte(`"end":true`))
	c.ended += ended
	c.begun += bytes.Count(text, []byte{'\n'}) - ended
	c.read += int64(len(text))
	return c.begun, c.ended
}

// past waits until so many calls were begun.
func (r *rollout) past(n int) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("%d calls were begun", n), func() bool {
		begun, _ := r.calls.count()
		return begun >= n
	})
}

// completes waits until the job is complete.
func (r *rollout) completes(job string) {
	r.t.Helper()
	r.eventually("the job is complete", func() bool {
		o := r.try(nil, "status", "--job-id", job, "-o", "json", "--server", r.address)
		var state listed
		if o.code == 0 && json.Unmarshal([]byte(o.stdout), &state) == nil && (state.Status == "failed" || state.Failed > 0) {
			r.t.Fatalf("the job has failed:\n%s", o.stdout)
		}
		return state.Status == "complete"
	})
}

func (r *rollout) eventually(what string, seen func() bool) {
	r.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(rolloutWait); time.Now().Before(deadline); <-tick.C {
		if seen() {
			return
		}
	}
	r.t.Fatalf("it never came to be that %s\nservers:\n%s", what, r.serverLogs())
}

// watchCalls looks how many calls are under way, from the first on until so many were begun,
// which are those of documents. The function that it returns ends that, and returns which
// part of what the job may have under way was, and for how long.
func (r *rollout) watchCalls(units int) func() (share, seconds float64) {
	stop, ended := make(chan struct{}), make(chan struct{})
	busy, span := 0.0, 0.0
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		last, running := time.Time{}, 0
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				begun, done := r.calls.count()
				if !last.IsZero() {
					took := now.Sub(last).Seconds()
					busy += took * float64(min(running, rolloutAtOnce))
					span += took
				}
				if begun >= units {
					return
				}
				if begun > 0 {
					last, running = now, begun-done
				}
			}
		}
	}()
	return func() (share, seconds float64) {
		close(stop)
		<-ended
		return busy / (rolloutAtOnce * span), span
	}
}

// checkCalls holds the ledger against what is wanted: one call for each unit, begun once and
// ended.
func (r *rollout) checkCalls(units int, share, seconds float64, servers int) {
	r.t.Helper()
	begun, open := make(map[string]int), 0
	documents := 0
	for _, e := range r.ledger() {
		key := fmt.Sprintf("%s %d", e.Unit, e.Call)
		if e.End {
			open--
			continue
		}
		open++
		if begun[key]++; begun[key] == 1 && !reduces(string(e.Unit)) {
			documents++
		}
	}
	twice := 0
	for _, n := range begun {
		if n > 1 {
			twice++
		}
	}
	kind := "processes"
	if len(r.image) > 0 {
		kind = "containers"
	}
	r.t.Logf("%d units; %d servers and 2 workers replaced, as %s: %d calls of documents (wanted %d), %d of reduces, %d made twice (wanted 0), %d without an end (wanted 0); %.1f %% of %d calls at once busy, for %.1f s",
		units, servers, kind, documents, units, len(begun)-documents, twice, open, 100*share, rolloutAtOnce, seconds)
	if documents != units || twice != 0 || open != 0 {
		r.t.Error("calls were lost or repeated")
	}
}
