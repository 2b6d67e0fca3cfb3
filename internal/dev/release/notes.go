package main

import (
	"fmt"
	"regexp"
	"strings"
)

// unreleased is the heading of the changes that no version has yet.
const unreleased = "Unreleased"

var (
	heading = regexp.MustCompile(`(?m)^## (.+)$`)
	version = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)
)

// Notes are what a change log says of its newest version.
type Notes struct {
	Version string // without a v, such as 0.1.0
	Text    string // Markdown, with a line end behind it
}

// NewestNotes returns the notes of the newest version of a change log. Changes that stand under
// Unreleased are an error: they would be in the release, and in no notes.
func NewestNotes(changelog string) (Notes, error) {
	places := heading.FindAllStringSubmatchIndex(changelog, -1)
	for i, at := range places {
		end := len(changelog)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		name, text := changelog[at[2]:at[3]], strings.TrimSpace(changelog[at[1]:end])

		switch {
		case name == unreleased && text == "":
			continue
		case name == unreleased:
			return Notes{}, fmt.Errorf("CHANGELOG.md: changes stand under %s; move them under a heading with the version that is released, such as ## 0.1.0", unreleased)
		case !version.MatchString(name):
			return Notes{}, fmt.Errorf("CHANGELOG.md: the heading %q is neither %s nor a version, such as 0.1.0", name, unreleased)
		case text == "":
			return Notes{}, fmt.Errorf("CHANGELOG.md: nothing stands under %s", name)
		}
		return Notes{Version: name, Text: text + "\n"}, nil
	}
	return Notes{}, fmt.Errorf("CHANGELOG.md: no heading names a version, such as ## 0.1.0")
}
