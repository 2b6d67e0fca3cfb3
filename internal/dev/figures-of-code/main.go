// Command figures-of-code prints what can be counted of how readable the code of
// a folder is, beside four projects that are read with ease. It decides nothing.
//
// What is counted is how long functions and files are, what is documented, how names are made,
// and where code gathers. It reads hand-written code: no test, nothing that is generated,
// nothing that is vendored. It must not import anything of the project: it measures any folder
// alike.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	dir := flag.String("dir", ".", "folder to measure")
	largest := flag.Int("largest", 10, "how many packages, and how many types, to list")
	flag.Parse()

	code, err := Folder(*dir)
	if err == nil {
		err = write(os.Stdout, code, *largest)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures-of-code:", err)
		os.Exit(1)
	}
}

func write(out io.Writer, code Code, largest int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	columns := append([]Column{ColumnOf("here", code)}, Models()...)

	for _, row := range Rows(columns) {
		for _, cell := range row {
			fmt.Fprintf(table, "%s\t", cell)
		}
		fmt.Fprintln(table)
	}

	fmt.Fprintf(table, "\nlargest packages\tlines\n")
	for _, p := range code.Packages[:min(largest, len(code.Packages))] {
		fmt.Fprintf(table, "%s\t%d\n", p.Path, p.Lines)
	}

	fmt.Fprintf(table, "\nlargest types\tmethods\tlines of them\n")
	for _, t := range code.Types[:min(largest, len(code.Types))] {
		fmt.Fprintf(table, "%s.%s\t%d\t%d\n", t.Package, t.Name, t.Methods, t.Lines)
	}

	return table.Flush()
}
