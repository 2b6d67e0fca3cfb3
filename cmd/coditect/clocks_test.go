package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// clockVariable is the environment variable of a program whose wall clock jumps: the seed
// of its jumps.
const clockVariable = "CODITECT_TEST_CLOCK"

// jumps is what is added to package time: three times in two seconds the wall clock jumps,
// up to ten minutes to either side, as one that somebody sets. What measures durations goes
// on as it does then.
const jumps = `
var jumpSeed = func() (seed uint64) {
	text, _ := syscall.Getenv("` + clockVariable + `")
	for _, c := range []byte(text) {
		seed = 31*seed + uint64(c)
	}
	return seed + uint64(syscall.Getpid())<<32
}()

func jump(mono int64) int64 {
	h := jumpSeed + uint64(mono/666_000_000)*0x9e3779b97f4a7c15
	h ^= h >> 31
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	return int64(h%1200) - 600
}
`

// buildJumping builds the program with another package time.
func buildJumping(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(runtime.GOROOT(), "src", "time", "time.go") //nolint:staticcheck // it is that of the compiler which the test runs
	code, err := os.ReadFile(source)
	if err != nil {
		t.Skipf("the sources of Go are not there: %v", err)
	}
	const now, imports = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "import (\n"
	if strings.Count(string(code), now) != 1 {
		t.Skipf("%s is not as this test knows it", source)
	}
	text := strings.Replace(string(code), now, now+"\tsec += jump(mono)\n", 1)
	text = strings.Replace(text, imports, imports+"\t\"syscall\"\n", 1) + jumps
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{changed: text, overlay: string(list)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "coditect")
	args := append(append([]string{"build", "-overlay", overlay}, buildFlags()...), "-o", program, ".")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// The wall clocks of the server, of the workers and of the client jump, each by itself.
// The result is what it is otherwise, no worker is given up for it, and no call is made
// twice.
func TestSoakClocks(t *testing.T) {
	if os.Getenv("CODITECT_CLOCKS") == "" {
		t.Skip("it compiles all packages anew, with another package time: make damage")
	}
	jumping := newCorpus(t, buildJumping(t), 12, append(costly(), "--var", "script.latency=lognormal:60ms,1")...)
	normal := *jumping
	normal.program = build(t)
	want := reference(t, &normal, 0)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newService(t, jumping, "worker a", "worker b")
			s.store = append(s.store, fmt.Sprintf("%s=%d", clockVariable, seed))
			for _, name := range []string{"server", "worker a", "worker b"} {
				s.start(name)
			}
			p := s.client(jumping.run("--output", "out", "--request-id", "clocks")...)
			<-p.ended
			if p.outcome.code != 0 {
				t.Fatalf("ended with %d\n%s%s\nservers:\n%s", p.outcome.code, p.outcome.stdout, p.outcome.stderr, s.serverLogs())
			}
			s.stop()
			s.verifyFleet(want)
		})
	}
}
