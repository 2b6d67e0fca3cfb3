package prose

import (
	"regexp"
	"strings"
)

// picture matches a picture of Markdown, a badge among them, also one within a link.
var picture = regexp.MustCompile(`\[?!\[[^\[\]]*\](?:\([^()\s]*(?:\s+"[^"]*")?\)|\[[^\[\]]*\])(?:\]\([^()\s]*\)|\]\[[^\[\]]*\])?`)

// link matches a link of Markdown; its first group is the text.
var link = regexp.MustCompile(`\[([^\[\]]+)\]\([^()\s]*(?:\s+"[^"]*")?\)`)

// comment matches a comment of HTML, which may be cut off; reflink a link of Markdown that names its
// target, with the text as its first group.
var (
	comment = regexp.MustCompile(`<!--(?:.*?-->|.*$)`)
	reflink = regexp.MustCompile(`\[([^\[\]]+)\]\[[^\[\]]*\]`)
)

// role matches a text that reStructuredText marks as a reference: its second group is the text, and its
// third what it refers to.
var role = regexp.MustCompile("(?:(:[a-z:+-]+:)`([^`<>]+?)(\\s*<[^<>`]*>)?`)|`([^`<>]+?)\\s*<[^<>`]*>`_{0,2}")

// emphasis matches words between single marks of emphasis; its second group are the words.
var emphasis = regexp.MustCompile(`(^|[\s("“])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_]([\s.,;:!?)"”]|$)`)

// pairs are marks that stand on both sides of a text, with what is left of them.
var pairs = strings.NewReplacer("**", "", "``", "`")

// Plain returns a text on one line as its readers see it: without comments and pictures, without the
// targets of links, and without marks of emphasis and roles, as Markdown and reStructuredText have them.
// Names in code style keep a mark on either side.
func Plain(text string) string {
	text = strings.Join(strings.Fields(text), " ") // marks may begin on one line and end on another
	text = picture.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
	text = reflink.ReplaceAllString(text, "$1")
	text = role.ReplaceAllString(link.ReplaceAllString(text, "$1"), "$2$4")

	text = strings.Join(strings.Fields(pairs.Replace(text)), " ")
	return emphasis.ReplaceAllString(text, "$1$2$3")
}
