package plain

import (
	"context"
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
)

// MarkdownKind is the name of the format.
const MarkdownKind document.Kind = "markdown"

// MarkdownFormat returns the format of Markdown files, which are kept as they are.
func MarkdownFormat() document.Format {
	return document.Format{
		Kind: MarkdownKind, Plain: true, Parse: parseMarkdown,
		Extensions: []string{".md", ".markdown", ".mdown", ".mkd"},
		MediaTypes: []string{"text/markdown", "text/x-markdown"},
	}
}

// parseMarkdown implements the Parse of document.Format.
func parseMarkdown(ctx context.Context, in document.Input) (*document.Document, error) {
	d, err := ParseText(ctx, in)
	if err == nil {
		d.Title = titleOf(d.Text)
	}
	return d, err
}

// maxHead bounds the beginning of a text in which its title is looked for, in bytes.
const maxHead = 16 << 10

// titleLine finds the title in the metadata at the beginning of a text; endOfMetadata where they end, with a
// name of what follows in the drafts of the IETF.
var (
	titleLine     = regexp.MustCompile(`(?m)^title:[ \t]*(.+)$`)
	endOfMetadata = regexp.MustCompile(`\n(?:---|\.\.\.)(?:[ \t]+[a-z_]+)?[ \t]*\n`)
)

// titleOf returns the title in the metadata of a text, or else its first heading, if that is of
// the first level and stands before all other text. Pictures, badges and HTML are no text.
func titleOf(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), maxHead)], "\r\n", "\n")
	if head, ok := strings.CutPrefix(text, "---\n"); ok {
		if at := endOfMetadata.FindStringIndex(head); at != nil {
			if m := titleLine.FindStringSubmatch(head[:at[0]]); m != nil {
				return strings.Trim(strings.TrimSpace(m[1]), `"'`)
			}
			text = head[at[1]:]
		}
	}

	first, rest, _ := strings.Cut(withoutPictures(text), "\n")
	if heading, ok := strings.CutPrefix(first, "# "); ok {
		return plainText(strings.TrimRight(strings.TrimSpace(heading), "# "))
	}

	// A heading may have a line below it in place of a mark in front.
	below, _, _ := strings.Cut(rest, "\n")
	if len(below) > 2 && strings.Trim(strings.TrimSpace(below), "=") == "" {
		return plainText(first)
	}
	return ""
}

// withoutPictures returns a text from its first line on that is neither empty, nor a line of pictures and
// badges, nor of a block of HTML, which ends with an empty line.
func withoutPictures(text string) string {
	html := false
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		bare := strings.TrimSpace(line)
		html = bare != "" && (html || strings.HasPrefix(bare, "<"))

		if bare != "" && !html && strings.TrimSpace(picture.ReplaceAllString(bare, "")) != "" {
			return text
		}
		text = rest
	}
	return ""
}

// picture finds pictures, also those that are links.
var picture = regexp.MustCompile(`\[?!\[[^\]\[]*\](?:\([^)]*\)|\[[^\]\[]*\])(?:\]\([^)]*\)|\]\[[^\]\[]*\])?`)

// link finds links, and tag finds tags of HTML.
var (
	link = regexp.MustCompile(`\[([^\]\[]*)\]\([^)]*\)`)
	tag  = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)
)

// plainText returns a heading without its marks of emphasis, code and links, and without pictures and tags.
func plainText(heading string) string {
	heading = link.ReplaceAllString(picture.ReplaceAllString(heading, ""), "$1")
	heading = tag.ReplaceAllString(heading, "")
	return strings.TrimSpace(strings.NewReplacer("**", "", "__", "", "`", "").Replace(heading))
}
