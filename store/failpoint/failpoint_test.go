package failpoint_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/store/failpoint"
)

func TestPointsAreDistinct(t *testing.T) {
	seen := make(map[failpoint.Point]bool)
	for _, p := range failpoint.Points() {
		if seen[p] {
			t.Errorf("point %s is listed twice", p)
		}
		seen[p] = true
	}
	if want := 2 * len(failpoint.Steps()); len(seen) != want {
		t.Errorf("%d points, want two for each of %d steps", len(seen), want/2)
	}
}

func TestAround(t *testing.T) {
	var got []string
	work := func() { got = append(got, "work") }
	failpoint.Hook(nil).Around(failpoint.Turn, work)
	failpoint.Hook(func(p failpoint.Point) { got = append(got, string(p)) }).Around(failpoint.Turn, work)
	if diff := cmp.Diff([]string{"work", "turn.before", "work", "turn.after"}, got); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{"turn", "turn.during", "turn.after:0", "turn.after:-1", "turn.after:", "turn.after:x"} {
		if _, err := failpoint.Parse(s); err == nil {
			t.Errorf("Parse(%q) succeeded", s)
		}
	}
	if hook, err := failpoint.Parse(""); hook != nil || err != nil {
		t.Errorf("Parse of nothing = %t, %v; want neither hook nor error", hook != nil, err)
	}
}

// The test runs itself as the process that dies.
func TestDies(t *testing.T) {
	if s := os.Getenv(failpoint.Variable); s != "" {
		hook, err := failpoint.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			hook(failpoint.Publish.After())
			hook(failpoint.Turn.After())
			fmt.Println("passed")
		}
		return
	}
	for s, want := range map[string]int{"turn.after": 0, "turn.after:1": 0, "turn.after:4": 3} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestDies$")
		cmd.Env = append(os.Environ(), failpoint.Variable+"="+s)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("%s: process ended with %v, want it killed", s, err)
		}
		if got := strings.Count(string(out), "passed\n"); got != want {
			t.Errorf("%s: died after %d passes, want %d", s, got, want)
		}
		if !slices.Contains(strings.Fields(string(exit.Stderr)), "turn.after") {
			t.Errorf("%s: standard error is %q, want it to name the point", s, exit.Stderr)
		}
	}
}
