// Package markdown is the format of Markdown files, which are kept as they are.
package markdown

import (
	"context"
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/document/text"
)

// Kind is the name of the format.
const Kind document.Kind = "markdown"

// Format returns the format.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Plain: true, Parse: parse,
		Extensions: []string{".md", ".markdown", ".mdown", ".mkd"},
		MediaTypes: []string{"text/markdown", "text/x-markdown"},
	}
}

// parse implements the Parse of document.Format.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	d, err := text.Parse(ctx, in)
	if err == nil {
		d.Title = titleOf(d.Text)
	}
	return d, err
}

// maxHead bounds the beginning of a text in which its title is looked for, in bytes.
const maxHead = 16 << 10

// titleLine finds the title in the metadata at the beginning of a text.
var titleLine = regexp.MustCompile(`(?m)^title:[ \t]*(.+)$`)

// titleOf returns the title in the metadata of a text, or else its first heading, if that is of
// the first level and stands before all other text.
func titleOf(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), maxHead)], "\r\n", "\n")
	if head, ok := strings.CutPrefix(text, "---\n"); ok {
		if head, rest, ok := strings.Cut(head, "\n---\n"); ok {
			if m := titleLine.FindStringSubmatch(head); m != nil {
				return strings.Trim(strings.TrimSpace(m[1]), `"'`)
			}
			text = rest
		}
	}

	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \n\t"), "\n")
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

// link finds links and pictures.
var link = regexp.MustCompile(`!?\[([^\]\[]*)\]\([^)]*\)`)

// plainText returns a heading without its marks of emphasis, code and links.
func plainText(heading string) string {
	heading = link.ReplaceAllString(heading, "$1")
	return strings.NewReplacer("**", "", "__", "", "`", "").Replace(heading)
}
