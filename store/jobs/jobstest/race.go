//go:build race

package jobstest

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // which has the flag
)

// raceChecks is how often a property is tried while races are looked for, unless
// RAPID_CHECKS or -rapid.checks says otherwise. Properties run in one goroutine,
// and up to fifteen times as slowly; `make test` tries them without.
const raceChecks = "5"

func init() {
	if _, found := os.LookupEnv("RAPID_CHECKS"); found {
		return
	}
	if err := flag.Set("rapid.checks", raceChecks); err != nil {
		panic(err)
	}
}
