// Package naming says how things of a pipeline may be called. It must import nothing of the project.
package naming

import (
	"regexp"
	"strings"
	"unicode"
)

// Rule says, behind "must be", what IsName asks for.
const Rule = "1 to 64 letters, digits, dots, dashes and underscores"

// name is how pipelines, agents and variables are named.
var name = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// IsName reports whether a text can be the name of a pipeline, an agent or a variable.
func IsName(text string) bool { return name.MatchString(text) }

// MaxWord bounds the name of a model or a tool, in bytes.
const MaxWord = 200

// IsWord reports whether a text can be the name of a model or a tool.
func IsWord(text string) bool {
	return text != "" && len(text) <= MaxWord && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
}
