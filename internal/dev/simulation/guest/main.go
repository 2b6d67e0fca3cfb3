// Command guest runs one scenario and prints its report. It is compiled to WebAssembly and run by
// internal/dev/simulate, which gives it clocks and randomness. It has no clocks of its own, so
// elsewhere it runs in real time.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/coditect/mapreduce/internal/dev/simulation"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// run runs the scenario that the first argument is, as JSON. With a second one the trace and the log go
// to standard error.
func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("the scenario is missing: internal/dev/simulate gives it")
	}
	var s simulation.Scenario
	if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
		return fmt.Errorf("the scenario: %w", err)
	}

	var o simulation.Options
	if len(os.Args) > 2 {
		o.Trace, o.Log = os.Stderr, os.Stderr
	}
	return json.NewEncoder(os.Stdout).Encode(simulation.Run(&s, o))
}
