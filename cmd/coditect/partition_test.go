package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// The tests of this file give each process a network namespace of its own, and lose what goes between
// them: both ways or one, for a moment or for longer than the system waits for anybody.

// A network is hosts with a router between them.
type network struct {
	t      *testing.T
	router string            // its namespace
	hosts  map[string]string // addresses by name
	cuts   []cut             // that are made now
	made   int               // cuts in all
}

// A cut loses whatever one host sends to another.
type cut struct{ from, to string }

var networks atomic.Int64 // that were made

// newNetwork returns a network of hosts. The test skips where it may not make one.
func newNetwork(t *testing.T, names ...string) *network {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("network namespaces need root and the command ip")
	}

	n := &network{t: t, router: fmt.Sprintf("coditect-%d-%d", os.Getpid(), networks.Add(1)), hosts: make(map[string]string)}
	if out, err := exec.Command("ip", "netns", "add", n.router).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %v: %s", err, out)
	}
	t.Cleanup(func() { n.ip("netns", "delete", n.router) })
	// Not every kernel has all that is needed here.
	for _, probe := range [][]string{
		{"-n", n.router, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"},
		{"-n", n.router, "link", "delete", "probe0"},
		{"-n", n.router, "rule", "add", "from", "10.78.0.1", "to", "10.78.0.2", "blackhole"},
		{"-n", n.router, "rule", "delete", "from", "10.78.0.1", "to", "10.78.0.2", "blackhole"},
		{"netns", "exec", n.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
	} {
		if out, err := exec.Command("ip", probe...).CombinedOutput(); err != nil {
			t.Skipf("no networks of this kind here: %v: %s", err, out)
		}
	}

	for i, name := range names {
		space, gateway := n.space(name), fmt.Sprintf("10.77.%d.1", i)
		n.hosts[name] = fmt.Sprintf("10.77.%d.2", i)
		n.ip("netns", "add", space)
		t.Cleanup(func() { n.ip("netns", "delete", space) })

		link := fmt.Sprintf("host%d", i)
		n.ip("-n", n.router, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
		n.ip("-n", n.router, "address", "add", gateway+"/24", "dev", link)
		n.ip("-n", n.router, "link", "set", link, "up")
		n.ip("-n", space, "address", "add", n.hosts[name]+"/24", "dev", "eth0")
		n.ip("-n", space, "link", "set", "lo", "up")
		n.ip("-n", space, "link", "set", "eth0", "up")
		n.ip("-n", space, "route", "add", "default", "via", gateway)
	}
	return n
}

// space returns the namespace of a host.
func (n *network) space(host string) string {
	return n.router + "-" + strings.ReplaceAll(host, " ", "-")
}

// ip runs the command of that name.
func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// rule has the router lose what a cut loses, or no longer. Nobody is told, as of packets that were lost on
// the way.
func (n *network) rule(change string, c cut) {
	n.t.Helper()
	n.ip("-n", n.router, "rule", change, "from", n.hosts[c.from], "to", n.hosts[c.to], "blackhole")
}

// toggle makes a cut, or mends it if it is made. It reports whether it was made.
func (n *network) toggle(c cut) bool {
	n.t.Helper()
	if i := slices.Index(n.cuts, c); i >= 0 {
		n.rule("delete", c)
		n.cuts = slices.Delete(n.cuts, i, i+1)
		return false
	}
	n.rule("add", c)
	n.cuts = append(n.cuts, c)
	n.made++
	return true
}

// heal mends all cuts.
func (n *network) heal() {
	n.t.Helper()
	for len(n.cuts) > 0 {
		n.toggle(n.cuts[0])
	}
}

// networked returns a service whose processes are hosts of a network, with a client that is one as well.
func networked(t *testing.T, c *corpus, workers ...string) (*service, *network) {
	t.Helper()
	n := newNetwork(t, append([]string{"server", "client"}, workers...)...)
	s := newService(t, c, workers...)
	s.place(n)
	return s, n
}

// place gives each process of a service a host of its own: servers listen there, and all others know
// them there.
func (s *service) place(n *network) {
	s.spaces, s.space = make(map[string]string), n.space("client")
	moved := make(map[string]string)
	for name, args := range s.args {
		s.spaces[name] = n.space(name)
		if args[0] == "serve" {
			moved[args[2]] = n.hosts[name] + ":7070"                // behind --listen
			s.args[name] = append(args, "--insecure", "--insecure") // the network is the test's own
		}
	}

	for _, args := range s.args {
		for i, a := range args {
			if to, found := moved[a]; found {
				args[i] = to
			}
		}
	}
	s.address = moved[s.address]
}

// TestSoakPartitions loses what goes between a server, its workers and its client, at random, until the
// job has ended and for no longer than a while. Nothing is lost and nothing is done twice, but the calls
// of workers that were given up.
func TestSoakPartitions(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	c := newCorpus(t, build(t), 12, append(costly(), "--var", "script.latency=lognormal:60ms,1")...)
	want := reference(t, c, 0)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 21))
			workers := []string{"worker a", "worker b"}
			s, n := networked(t, c, workers...)
			for _, name := range append([]string{"server"}, workers...) {
				s.start(name)
			}

			submit := c.run("--output", "out", "--request-id", "partitions")
			p := s.rage(submit, func() { s.disturb(n, random) }, n.heal, random)
			healed, had := time.Now(), len(s.ledger())
			p = s.await(p, submit)
			t.Logf("%d cuts; %d entries of the ledger before the network was whole, and %d within %v from then on", n.made, had, len(s.ledger())-had, time.Since(healed).Round(time.Millisecond))
			s.wantComplete(p.outcome)
			s.stop()
			s.verifyFleet(want)
		})
	}
}

// disturb changes the network between the server and another.
func (s *service) disturb(n *network, random *rand.Rand) {
	s.t.Helper()
	s.sever(n, random, "server", []string{"worker a", "worker b", "client"}[random.IntN(3)])
}

// sever cuts or mends one way between two hosts, or both, or mends all.
func (s *service) sever(n *network, random *rand.Rand, one, other string) {
	s.t.Helper()
	there, back := cut{one, other}, cut{other, one}
	broke := false
	switch random.IntN(4) {
	case 0:
		broke = n.toggle(there)
	case 1:
		broke = n.toggle(back)
	case 2:
		first := n.toggle(there)
		broke = n.toggle(back) || first
	default:
		n.heal()
	}
	// A worker that is not heard is given up, as one that has died is.
	if broke && other != "client" {
		s.kills++
	}
}
