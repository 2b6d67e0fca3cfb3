//go:build fdb

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// ownCluster starts a FoundationDB of one process on a host of a network, and returns its file.
func ownCluster(t *testing.T, n *network, host string) string {
	t.Helper()
	for _, program := range []string{"fdbserver", "fdbcli"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}

	dir := t.TempDir()
	file, address := dir+"/fdb.cluster", n.hosts[host]+":4500"
	if err := os.WriteFile(file, []byte("net:net@"+address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	within := []string{"netns", "exec", n.space(host)}
	server := exec.Command("ip", append(within, "fdbserver", "-p", address, "-C", file, "-d", dir+"/data", "-L", dir)...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // that it was killed is no news
	})
	configure := exec.Command("ip", append(within, "fdbcli", "-C", file, "--timeout", "60", "--exec", "configure new single memory")...)
	if out, err := configure.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// TestSoakPartitionsFromTheStore loses what goes between two servers and their store, and between workers
// and servers, at random.
func TestSoakPartitionsFromTheStore(t *testing.T) {
	testenv.SlowOnFDB(t)

	c := newCorpus(t, build(t), 12, append(costly(), "--var", "script.latency=lognormal:60ms,1")...)
	want := reference(t, c, 0)
	servers, workers := []string{"server a", "server b"}, []string{"worker a", "worker b"}
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 22))
			n := newNetwork(t, "store", "server a", "server b", "worker a", "worker b", "client")
			file := ownCluster(t, n, "store")
			s := newFleet(t, c, servers, workers)
			s.store = []string{"CODITECT_STORE=fdb:" + file, "FDB_CLUSTER_FILE=" + file, "CODITECT_STORE_PREFIX=partitions"}
			s.place(n)
			for name := range s.args {
				s.start(name)
			}

			pairs := [][2]string{{"server a", "store"}, {"server b", "store"}, {"worker a", "server a"}, {"worker b", "server b"}, {"worker a", "server b"}}
			happen := func() {
				pair := pairs[random.IntN(len(pairs))]
				s.sever(n, random, pair[0], pair[1])
			}
			submit := c.run("--output", "out", "--request-id", "partitions")
			p := s.await(s.rage(submit, happen, n.heal, random), submit)
			t.Logf("%d cuts", n.made)
			s.wantComplete(p.outcome)
			s.stop()
			s.verifyFleet(want)
		})
	}
}
