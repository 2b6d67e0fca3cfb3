// Package plain is the formats of files that are text, in any charset: plain text, Markdown,
// tables with a row on each line, and files with a document on each line.
package plain

import (
	"context"
	"mime"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
)

// TextKind is the name of the format.
const TextKind document.Kind = "text"

// TextFormat returns the format of documents that are their text. It takes every media type of
// texts that no other format has.
func TextFormat() document.Format {
	return document.Format{
		Kind: TextKind, Plain: true, Parse: parseTitled,
		Extensions: []string{".txt", ".text"},
		MediaTypes: []string{
			"text/plain", "application/json", "application/yaml", "application/x-yaml", "application/toml",
			"text/*", "*/*+json", "*/*+yaml",
		},
	}
}

// parseTitled implements the Parse of document.Format. Files of reStructuredText have a title.
func parseTitled(ctx context.Context, in document.Input) (*document.Document, error) {
	d, err := ParseText(ctx, in)
	if err == nil && isRestructured(in.Name) {
		d.Title = restructuredTitle(d.Text)
	}
	return d, err
}

// ParseText implements the Parse of document.Format, also for other formats whose text is
// kept as it is.
func ParseText(_ context.Context, in document.Input) (*document.Document, error) {
	text, back, name, err := charset.Read(in.Content, DeclaredCharset(in.MediaType))
	if err != nil {
		return nil, err
	}
	return &document.Document{Charset: name, Text: text, Source: back}, nil
}

// DeclaredCharset returns the charset that a media type declares, or "".
func DeclaredCharset(mediaType string) string {
	_, params, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return ""
	}
	return params["charset"]
}
