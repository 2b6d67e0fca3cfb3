// Package markdown is the format of Markdown files, which are kept as they are.
package markdown

import (
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/document/text"
)

// Kind is the name of the format.
const Kind document.Kind = "markdown"

// Format returns the format.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Plain: true, Parse: text.Parse,
		Extensions: []string{".md", ".markdown", ".mdown", ".mkd"},
		MediaTypes: []string{"text/markdown", "text/x-markdown"},
	}
}
