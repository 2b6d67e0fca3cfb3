//go:build fdb

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// This file ends processes of FoundationDB itself.

// A triple is a cluster of three processes that keeps everything twice.
type triple struct {
	t       *testing.T
	dir     string
	file    string
	address []string
	running []*exec.Cmd
}

func newTriple(t *testing.T) *triple {
	t.Helper()
	if _, err := exec.LookPath("fdbserver"); err != nil {
		t.Skip("fdbserver is not in PATH")
	}
	c := &triple{t: t, dir: t.TempDir(), running: make([]*exec.Cmd, 3)}
	for range c.running {
		c.address = append(c.address, freeAddress(t))
	}
	c.file = filepath.Join(c.dir, "fdb.cluster")
	if err := os.WriteFile(c.file, []byte("test:test@"+strings.Join(c.address, ",")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	c.start()
	c.cli("configure new double memory")
	return c
}

// start runs the processes that do not run.
func (c *triple) start() {
	c.t.Helper()
	for i, address := range c.address {
		if c.running[i] != nil {
			continue
		}
		folder := filepath.Join(c.dir, fmt.Sprint(i))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			c.t.Fatal(err)
		}
		// Each is a machine of its own, or there would be nowhere to keep a
		// second copy.
		cmd := exec.Command("fdbserver", "-p", address, "-C", c.file, "-d", folder, "-L", folder, "-i", fmt.Sprintf("%032x", i+1))
		if err := cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		c.running[i] = cmd
	}
}

func (c *triple) kill(i int) {
	c.t.Helper()
	cmd := c.running[i]
	c.running[i] = nil
	if err := cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

func (c *triple) stop() {
	for i, cmd := range c.running {
		if cmd != nil {
			c.kill(i)
		}
	}
}

// cli has the cluster do something. Options of the client library that are in the
// environment are not for it: with client_buggify, "configure new" now and then takes a
// commit that was never sent for a database that another has made, and waits for it.
func (c *triple) cli(command string) {
	c.t.Helper()
	cmd := exec.Command("fdbcli", "-C", c.file, "--timeout", "60", "--exec", command)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FDB_NETWORK_OPTION_") })
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// outage is how long the whole cluster is away.
func outage() time.Duration {
	if timed() {
		return 30 * time.Second
	}
	return 6 * time.Second
}

// One process of the cluster is killed and comes back, its roles are elected
// anew, and all of it is away for a while: no unit is lost and no call made
// again, as no worker has died.
func TestSoakOutagesOfTheCluster(t *testing.T) {
	onlyOnCluster(t)
	c := newCorpus(t, build(t), 60, "--var", "script.latency=300ms")
	want := reference(t, c, 0)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 5))
			cluster := newTriple(t)
			t.Setenv("FDB_CLUSTER_FILE", cluster.file)
			s := newFleet(t, c, []string{"server a", "server b"}, []string{"worker a", "worker b"})
			for name := range s.args {
				s.start(name)
			}
			p := s.client(c.run("--output", "out")...)
			s.begun(3)
			hurt := random.IntN(3)
			cluster.kill(hurt)
			s.more(5)
			cluster.start()
			s.more(5)
			cluster.cli("configure commit_proxies=2") // which makes it recover
			s.more(5)
			for i := range 3 {
				cluster.kill(i)
			}
			<-time.After(outage())
			cluster.start()
			cluster.cli("status minimal")
			back := time.Now()
			s.more(5)
			took := time.Since(back).Round(time.Millisecond)
			t.Logf("work went on %v after the cluster was back", took)
			if took > 5*time.Second && timed() {
				t.Errorf("work went on %v after the cluster was back, want 5 s", took)
			}
			<-p.ended
			s.wantComplete(p.outcome)
			s.stop()
			s.verify(want)
		})
	}
}

// more waits until so many more calls were begun.
func (s *service) more(n int) {
	s.t.Helper()
	s.begun(len(s.ledger()) + n)
}
