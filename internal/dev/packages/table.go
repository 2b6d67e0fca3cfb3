package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A room is a folder at the top of the repository.
type room struct{ path, is string }

// rooms returns the rooms from top to bottom: none imports one above it.
func rooms() []room {
	return []room{
		{"cmd/coditect", "is the command line, which connects all parts"},
		{"orchestrator", "moves jobs: accepts them, hands out their units, checks what comes back, makes the result"},
		{"worker", "runs units: steps, agents, models, tools"},
		{"internal", "is the ground floor, pure but for the programs that convert documents: what both sides need and neither owns"},
		{"store", "holds transactions, and what is written in them"},
		{"api", "holds the words, and the edges between processes"},
		{"proto", "holds the messages on the wire and in the store, with their generated code"},
	}
}

// roomOf returns the index of the room that a package is in, or -1.
func roomOf(name string) int {
	return slices.IndexFunc(rooms(), func(r room) bool { return name == r.path || strings.HasPrefix(name, r.path+"/") })
}

const head = `# Packages

Written by ` + "`make generate`" + ` from the comments of the packages and from
` + "`internal/dev/prose/layers.txt`" + `, the list of what may import what, which a test holds the code
to. Each package stands above those that it imports. [ARCHITECTURE.md](../ARCHITECTURE.md) says
how they work together. Tests and programs for development (` + "`internal/dev`" + `) are left out.
`

// Write returns the document. reason says, by the path of a package, why it imports no more than
// it may. It is an error if a room imports one above it.
func Write(all []Package, reason func(path string) string) (string, error) {
	if err := checkRooms(all); err != nil {
		return "", err
	}

	var text strings.Builder
	text.WriteString(head)
	for i, r := range rooms() {
		fmt.Fprintf(&text, "\n## %s\n\nThis room %s.\n\n| package | it | and keeps to this |\n|---|---|---|\n", r.path, r.is)
		for _, p := range arranged(all, i) {
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", p.Path, cell(p.Is), cell(reason(p.Path)))
		}
	}
	return text.String(), nil
}

// cell returns a text as it may stand in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// checkRooms returns an error that names each import of a package in a room above.
func checkRooms(all []Package) error {
	var faults []error
	for _, p := range all {
		for _, imported := range p.Imports {
			if roomOf(imported) < roomOf(p.Path) {
				faults = append(faults, fmt.Errorf("%s imports %s, which is in a room above it", p.Path, imported))
			}
		}
	}
	return errors.Join(faults...)
}

// arranged returns the packages of a room, each above those that it imports, and by path where
// that leaves a choice.
func arranged(all []Package, room int) []Package {
	byPath := make(map[string]Package)
	for _, p := range all {
		byPath[p.Path] = p
	}

	// A package is as high as the longest chain of imports below it, within its room.
	heights := make(map[string]int)
	var heightOf func(path string) int
	heightOf = func(path string) int {
		if height, known := heights[path]; known {
			return height
		}
		height := 0
		for _, imported := range byPath[path].Imports {
			if roomOf(imported) == room {
				height = max(height, heightOf(imported)+1)
			}
		}
		heights[path] = height
		return height
	}

	mine := slices.DeleteFunc(slices.Clone(all), func(p Package) bool { return roomOf(p.Path) != room })
	slices.SortFunc(mine, func(a, b Package) int {
		if d := heightOf(b.Path) - heightOf(a.Path); d != 0 {
			return d
		}
		return strings.Compare(a.Path, b.Path)
	})
	return mine
}
