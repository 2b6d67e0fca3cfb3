// Package prose checks the style of what people read: the words of words.txt stand in no
// document of the repository, and in no help text.
package prose

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

//go:embed words.txt
var list string

// A word is one that texts do without.
type word struct {
	text, instead string
	pattern       *regexp.Regexp
}

// words reads the list, once.
var words = sync.OnceValues(func() (all []word, err error) {
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		text, instead, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("words.txt: %q has no colon", line)
		}
		pattern := `(?i)(^|[^\pL\pN_./-])` + strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`) + `($|[^\pL\pN_/-])`
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, word{text, instead, re})
	}
	return all, nil
})

// code is what is no prose in Markdown: fenced blocks, code, addresses of links and
// quotations.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|\\]\\([^)]*\\)|https?://\\S+|\"[^\"\n]*\"")

// Check returns a line for each word of the list in a text, as "NAME:LINE: word: instead".
func Check(name, text string) (found []string, err error) {
	all, err := words()
	if err != nil {
		return nil, err
	}

	text = code.ReplaceAllStringFunc(text, func(s string) string {
		return "`" + strings.Repeat("\n", strings.Count(s, "\n")) + "`" // so that lines stay what they are
	})

	for _, w := range all {
		for _, at := range w.pattern.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[0]+1], "\n")
			found = append(found, fmt.Sprintf("%s:%d: %q; write: %s", name, line, w.text, w.instead))
		}
	}
	return found, nil
}
