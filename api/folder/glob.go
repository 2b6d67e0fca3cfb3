package folder

import (
	"fmt"
	"path"
	"strings"
)

// A Glob is a pattern of relative paths with forward slashes. In a segment `*`
// stands for any characters, `?` for one, `[a-z]` for one of a set, and a
// backslash takes the next character as it is; the segment `**` stands for any
// number of folders, or at the end for everything below. A pattern without a
// slash is matched against the last segment alone, at any depth.
type Glob struct {
	segments []string
}

// anyDepth is the segment that stands for any number of segments.
const anyDepth = "**"

// ParseGlob returns the Glob of pattern.
func ParseGlob(pattern string) (Glob, error) {
	trimmed := strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/")
	if trimmed == "" {
		return Glob{}, fmt.Errorf("the glob %q is empty", pattern)
	}

	segments := strings.Split(strings.TrimPrefix(trimmed, "/"), "/")
	if !strings.Contains(trimmed, "/") {
		segments = []string{anyDepth, trimmed}
	}

	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil { // there is but one such error
			return Glob{}, fmt.Errorf("the glob %q: %q has a [ that no ] closes, or a \\ at its end; write \\[ for a bracket", pattern, s)
		}
	}
	return Glob{segments: segments}, nil
}

// Match reports whether the pattern matches the whole of name. Its time is at
// most the product of both lengths.
func (g Glob) Match(name string) bool {
	parts := strings.Split(name, "/")
	// at[j] tells whether the segments so far match parts[:j].
	at := make([]bool, len(parts)+1)
	at[0] = true

	for i, s := range g.segments {
		next := make([]bool, len(parts)+1)
		for j := range at {
			switch {
			case s == anyDepth && i == len(g.segments)-1:
				next[j] = j > 0 && (at[j-1] || next[j-1])
			case s == anyDepth:
				next[j] = at[j] || j > 0 && next[j-1]
			case j > 0 && at[j-1]:
				next[j], _ = path.Match(s, parts[j-1]) // the pattern was checked
			}
		}
		at = next
	}

	return at[len(parts)]
}

// parseGlobs returns the Globs of patterns.
func parseGlobs(patterns []string) ([]Glob, error) {
	var globs []Glob
	for _, p := range patterns {
		g, err := ParseGlob(p)
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// matchAny reports whether one of globs matches name.
func matchAny(globs []Glob, name string) bool {
	for _, g := range globs {
		if g.Match(name) {
			return true
		}
	}
	return false
}
