package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"first\n"}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":1}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"second\n"}
{"Action":"fail","Package":"p","Test":"TestA/one","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestA","Output":"third\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":2.5}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":9}
{"Action":"skip","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\tp\n"}
{"Action":"fail","Package":"p","Elapsed":13}
not an event
{"Action":"output","Package":"q","Output":"PASS\n"}
{"Action":"pass","Package":"q","Elapsed":1}
`

func TestRead(t *testing.T) {
	var rest strings.Builder
	tally, err := Read(strings.NewReader(events), &rest)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Test{
		{Package: "p", Name: "TestA", Passed: 1, Failed: 1, Elapsed: 4 * time.Second, Output: "second\nthird\n"},
		{Package: "p", Name: "TestB", Passed: 1, Elapsed: 9 * time.Second},
		{Package: "p", Name: "TestC", Skipped: 1},
	}
	if diff := cmp.Diff(want, tally.Tests()); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if !tally.Failed() {
		t.Error("nothing is said to have failed")
	}
	if got := rest.String(); got != "FAIL\tp\nnot an event\n" {
		t.Errorf("the rest is %q", got)
	}
	var out strings.Builder
	tally.Write(&out)
	const printed = `    1 of     2      2.00 s  p TestA
    1 of     1      9.00 s  p TestB

p TestA:
second
third

2 of 3 passed, 3 tests, 13 s
`
	if diff := cmp.Diff(printed, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// A package that does not build, or panics, fails without any of its tests.
func TestPackagesFailToo(t *testing.T) {
	for events, failed := range map[string]bool{
		`{"Action":"pass","Package":"p"}`: false,
		`{"Action":"fail","Package":"p"}`: true,
		`{"Action":"pass","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}`: true,
	} {
		tally, err := Read(strings.NewReader(events), new(strings.Builder))
		if err != nil {
			t.Fatal(err)
		}
		if tally.Failed() != failed {
			t.Errorf("%s: failed is %t, want %t", events, tally.Failed(), failed)
		}
		var out strings.Builder
		tally.Write(&out)
		if strings.Contains(out.String(), "p failed, and none of its tests") != failed {
			t.Errorf("%s: printed\n%s", events, &out)
		}
	}
}
