// Command tally reads what `go test -json` prints, and prints for each test how
// often it passed and how long it took. It ends with 1 if anything failed.
package main

import (
	"fmt"
	"os"

	"github.com/coditect/mapreduce/internal/dev/tally/count"
)

func main() {
	tally, err := count.Read(os.Stdin, os.Stderr)
	tally.Write(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	if err != nil || tally.Failed() {
		os.Exit(1)
	}
}
