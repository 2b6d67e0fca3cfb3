package policy

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/worker/tool"
)

// MaxPath is the most bytes of a path.
const MaxPath = 4 << 10

// CheckPath returns a path below the root of a tool in its one form: with slashes, relative,
// and without . and .. in it; "." is the root. It refuses what names a place outside of the
// root, or a hidden file, whose name begins with a dot: credentials and histories are kept
// in such files. The error is a *tool.Refused. Where links lead, os.Root checks when the
// path is opened.
func CheckPath(text string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", &tool.Refused{What: "the path " + shown(text), Why: why}
	}

	switch {
	case len(text) > MaxPath:
		return refuse(fmt.Sprintf("it has %d bytes, and at most %d are accepted", len(text), MaxPath))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return refuse("it has control characters, or is not UTF-8")
	case strings.HasPrefix(text, "/"):
		return refuse("paths are relative to the root of the tool")
	case strings.Contains(text, `\`):
		return refuse("folders in paths end in /, not in \\")
	}

	// Each part is looked at: a hidden folder hides what is below it.
	for part := range strings.SplitSeq(text, "/") {
		switch {
		case part == "..":
			return refuse(".. never leads out of a folder here")
		case strings.HasPrefix(part, ".") && part != ".":
			return refuse("hidden files are not read")
		}
	}

	return path.Clean(text), nil
}
