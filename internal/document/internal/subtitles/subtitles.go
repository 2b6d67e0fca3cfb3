// Package subtitles is an example, for tests, of a format of documents: all that it takes
// to add one is a package like this and a line where the process is wired. It reads
// subtitles of films, in blocks of a number, the time at which they show, and their
// lines.
package subtitles

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/text/layout"
	"github.com/coditect/mapreduce/internal/text/offset"
)

// Kind is the name of the format.
const Kind document.Kind = "subtitles"

// Format returns the format.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Sniff: sniff, Parse: parse,
		MediaTypes: []string{"application/x-subrip"},
		Extensions: []string{".srt"},
	}
}

const arrow = " --> "

func sniff(begin []byte) document.Match {
	number, rest, _ := bytes.Cut(document.TrimBegin(begin), []byte("\n"))
	times, _, _ := bytes.Cut(rest, []byte("\n"))

	if string(bytes.TrimSpace(number)) == "1" && bytes.Contains(times, []byte(arrow)) {
		return document.Certain
	}
	return document.Excluded
}

// parse returns the lines that are spoken. A viewer looks for each at its time.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	d := &document.Document{Charset: "utf-8"}
	var text strings.Builder
	var back offset.Builder
	lines := bufio.NewReader(in.Content)

	for pos, time := 0, ""; ctx.Err() == nil; {
		line, err := lines.ReadString('\n')
		spoken := strings.TrimRight(line, "\r\n")

		switch begin, _, isTime := strings.Cut(spoken, arrow); {
		case isTime:
			time = begin
		case spoken == "":
			time = ""
		case time != "":
			d.Layout = append(d.Layout, layout.Part{
				Start: text.Len(), End: text.Len() + len(spoken), Location: &mapreduce.Location{Place: "at " + time},
			})
			text.WriteString(spoken + "\n")
			back.Copy(pos, len(spoken))
			// A line of the file may end with two bytes, and one of the text ends with one.
			back.Step(1, pos+len(spoken), len(line)-len(spoken))
		}

		if pos += len(line); errors.Is(err, io.EOF) {
			d.Text, d.Source = text.String(), back.Map()
			return d, nil
		}

		if err != nil {
			return nil, fmt.Errorf("subtitles: %w", err)
		}
	}
	return nil, fmt.Errorf("subtitles: %w", context.Cause(ctx))
}
