package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Tally holds the outcomes of all tests.
type Tally struct {
	tests    map[testKey]*Test
	failures []string // of packages, without a test that failed: they did not build, or panicked
	printed  map[testKey]*strings.Builder
}

// A Test is one test, and not one of those within it.
type Test struct {
	Package, Name           string
	Passed, Failed, Skipped int
	Elapsed                 time.Duration // of all times that it ran
	Output                  string        // of the first time that it failed, with that of tests within it
}

type testKey struct{ pkg, name string }

// An event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// Read adds up all events until the end. Lines that are no events are printed as
// they are: the go command says there what it could not build.
func Read(in io.Reader, rest io.Writer) (*Tally, error) {
	t := &Tally{tests: make(map[testKey]*Test), printed: make(map[testKey]*strings.Builder)}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		// The last line may have no end.
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(rest, "%s", line)
			} else {
				t.add(e, rest)
			}
		}

		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return t, err
		}
	}
}

func (t *Tally) add(e event, rest io.Writer) {
	if e.Test == "" {
		t.addPackage(e, rest)
		return
	}

	name, _, within := strings.Cut(e.Test, "/")
	key := testKey{e.Package, name}
	// Output of tests within a test is kept with it.
	if e.Action == "output" {
		if t.printed[key] == nil {
			t.printed[key] = new(strings.Builder)
		}
		t.printed[key].WriteString(e.Output)
	}

	if within {
		return
	}

	test := t.tests[key]
	if test == nil {
		test = &Test{Package: e.Package, Name: name}
		t.tests[key] = test
	}

	switch e.Action {
	case "pass":
		test.Passed++
	case "fail":
		if test.Failed++; test.Failed == 1 && t.printed[key] != nil {
			test.Output = t.printed[key].String()
		}
	case "skip":
		test.Skipped++
	default:
		return
	}

	test.Elapsed += time.Duration(e.Elapsed * float64(time.Second))
	delete(t.printed, key)
}

// addPackage notes a package that failed, whose own output says why.
func (t *Tally) addPackage(e event, rest io.Writer) {
	switch e.Action {
	case "build-output", "output":
		if !strings.HasPrefix(e.Output, "PASS") && !strings.HasPrefix(e.Output, "ok ") {
			fmt.Fprint(rest, e.Output)
		}
	case "fail":
		for key, test := range t.tests {
			if key.pkg == e.Package && test.Failed > 0 {
				return
			}
		}
		t.failures = append(t.failures, e.Package)
	}
}

// Tests returns all tests, those that failed most and then the slowest first.
func (t *Tally) Tests() []*Test {
	return slices.SortedFunc(maps.Values(t.tests), func(a, b *Test) int {
		return cmp.Or(
			cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Elapsed, a.Elapsed),
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name),
		)
	})
}

// Failed reports whether any test failed, or any package without one.
func (t *Tally) Failed() bool {
	if len(t.failures) > 0 {
		return true
	}
	for _, test := range t.tests {
		if test.Failed > 0 {
			return true
		}
	}
	return false
}

// Write prints a line for each test, with how often it passed of how often it ran
// and how long it took each time, then what failed tests printed, and sums.
func (t *Tally) Write(out io.Writer) {
	tests := t.Tests()
	ran, passed, total := 0, 0, time.Duration(0)

	for _, test := range tests {
		n := test.Passed + test.Failed
		ran, passed, total = ran+n, passed+test.Passed, total+test.Elapsed
		if n > 0 {
			fmt.Fprintf(out, "%5d of %5d  %8.2f s  %s %s\n", test.Passed, n, test.Elapsed.Seconds()/float64(n), test.Package, test.Name)
		}
	}

	for _, test := range tests {
		if test.Failed > 0 {
			fmt.Fprintf(out, "\n%s %s:\n%s", test.Package, test.Name, test.Output)
		}
	}

	for _, pkg := range t.failures {
		fmt.Fprintf(out, "\n%s failed, and none of its tests\n", pkg)
	}

	fmt.Fprintf(out, "\n%d of %d passed, %d tests, %.0f s\n", passed, ran, len(tests), total.Seconds())
}
