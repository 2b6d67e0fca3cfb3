// Command packages prints docs/packages.md: what each package of the project is for, by its own
// comment, and what it keeps to, by layers.txt. Each stands above what it imports.
package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/coditect/mapreduce/internal/dev/prose"
)

func main() {
	text, err := document(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// layersFile is the list of what may import what.
const layersFile = "internal/dev/prose/layers.txt"

// document returns the document about the repository in a folder.
func document(root fs.FS) (string, error) {
	list, err := fs.ReadFile(root, layersFile)
	if err != nil {
		return "", err
	}
	layers, err := prose.ReadLayers(string(list))
	if err != nil {
		return "", fmt.Errorf("%s: %w", layersFile, err)
	}

	packages, err := Read(root)
	if err != nil {
		return "", err
	}
	return Write(packages, layers.Reason)
}
