package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

// The table has medians of laps, kills of those laps alone that had any, and says of what was not
// measured why.
func TestTable(t *testing.T) {
	at := func(ms int) lap.Quantile {
		return lap.Quantile{P50: time.Duration(ms) * time.Millisecond, P99: time.Duration(10*ms) * time.Millisecond}
	}
	info := lap.Info{Name: "One", Settings: "as it comes", Killed: "it waits"}
	p := &plan{systems: []*measured{
		{program: "x/one", results: []*lap.Result{
			{Info: info, Version: "v1.2.3", PerSecond: 300, Told: at(3), Asked: at(5), Elsewhere: at(1000), Kills: 8},
			{Info: info, Version: "v1.2.3", PerSecond: 100, Told: at(1), Asked: at(6)},
			{Info: info, Version: "v1.2.3", PerSecond: 200, Told: at(2), Asked: at(4)},
		}},
		{program: "x/other", failed: errors.New("its program was not built")},
	}}

	var out strings.Builder
	if err := p.printTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| One v1.2.3 | 200 (100 to 300) | 2 / 20 ms | 5 / 50 ms | 1 / 10 s (8 kills) |",
		"| other | not measured: its program was not built | | | |",
		"| Hatchet | not measured: ",
		"- One: as it comes. After a kill: it waits.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not have\n%s\nbut is\n%s", want, out.String())
		}
	}
}
