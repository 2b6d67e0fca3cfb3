// Command tally reads what `go test -json` prints, and prints for each test how
// often it passed and how long it took. It ends with 1 if anything failed.
//
// It must not import anything of the project: it counts the tests of any module.
package main

import (
	"fmt"
	"os"
)

func main() {
	tally, err := Read(os.Stdin, os.Stderr)
	tally.Write(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	if err != nil || tally.Failed() {
		os.Exit(1)
	}
}
