package program

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/coditect/mapreduce/internal/document"
)

// OlderKind is the name of the format of documents of older programs, which are read only if a
// converter converts them.
const OlderKind document.Kind = "older"

// older are the documents of older programs, by the bytes with which they begin.
var older = [...]struct {
	begin string
	document.Conversion
}{
	{"\x09\x00\x04\x00", document.Conversion{What: "an Excel sheet of before 1990", From: ".xls", To: ".xlsx"}},
	{"\x09\x02\x06\x00", document.Conversion{What: "an Excel sheet of before 1993", From: ".xls", To: ".xlsx"}},
	{"\x09\x04\x06\x00", document.Conversion{What: "an Excel sheet of before 1994", From: ".xls", To: ".xlsx"}},
	{"\xffWPC", document.Conversion{What: "a WordPerfect document", From: ".wpd", To: ".docx"}},
	{"\xdb\xa5\x2d\x00", document.Conversion{What: "a Word document of before 1993", From: ".doc", To: ".docx"}},
	{"\x31\xbe\x00\x00", document.Conversion{What: "a document of Microsoft Write", From: ".wri", To: ".docx"}},
	{"\x32\xbe\x00\x00", document.Conversion{What: "a document of Microsoft Write", From: ".wri", To: ".docx"}},
	{"\x00\x00\x02\x00\x06\x04\x06\x00", document.Conversion{What: "a Lotus 1-2-3 sheet", From: ".wk1", To: ".xlsx"}},
	{"\x00\x00\x1a\x00\x00\x10\x04\x00", document.Conversion{What: "a Lotus 1-2-3 sheet", From: ".wk3", To: ".xlsx"}},
	{"\x00\x00\x1a\x00\x02\x10\x04\x00", document.Conversion{What: "a Lotus 1-2-3 sheet", From: ".wk4", To: ".xlsx"}},
	{"\x00\x00\x02\x00\x20\x51\x06\x00", document.Conversion{What: "a Quattro Pro sheet", From: ".wq1", To: ".xlsx"}},
}

// OlderFormat returns the format of documents of older programs. Its parser refuses them, and says how
// they are converted.
func OlderFormat() document.Format {
	return document.Format{
		Kind:       OlderKind,
		Extensions: []string{".wpd", ".wri", ".wk1", ".wk3", ".wk4", ".wq1"},
		MediaTypes: []string{"application/vnd.wordperfect", "application/vnd.lotus-1-2-3", "application/x-quattro-pro", "application/x-mswrite"},
		Sniff: func(begin []byte) document.Match {
			if _, ok := olderOf(begin); ok {
				return document.Certain
			}
			return document.Excluded
		},
		Parse: func(_ context.Context, in document.Input) (*document.Document, error) {
			begin, err := io.ReadAll(io.LimitReader(in.Content, document.SniffBytes))
			if err != nil {
				return nil, fmt.Errorf("document: %w", err)
			}
			if c, ok := olderOf(begin); ok {
				return nil, document.RefuseUnread(c)
			}
			return nil, document.Refuse("of no format that is known")
		},
	}
}

// olderOf returns how a document with a beginning is converted, and whether it is an older one.
func olderOf(begin []byte) (document.Conversion, bool) {
	for _, o := range older {
		if bytes.HasPrefix(begin, []byte(o.begin)) {
			return o.Conversion, true
		}
	}
	return document.Conversion{}, false
}
