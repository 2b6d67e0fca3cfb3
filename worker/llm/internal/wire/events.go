package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
)

// An Event is one of a stream of server-sent events.
type Event struct {
	Name string // "" if it has none
	Data []byte // its lines, with a line feed between each two; it is the reader's to keep
}

// maxLine bounds one line of a stream, in bytes.
const maxLine = 32 << 20

// Events returns the server-sent events of a stream, as the HTML standard has them. An event that
// the end of the stream breaks off is none, and neither is one without data. If the stream breaks
// off with an error, that is the last that is returned.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var e Event
		for line, err := range readLines(r, splitLines) {
			if err != nil {
				yield(Event{}, err)
				return
			}

			if len(line) > 0 {
				e.add(line)
				continue
			}

			// A blank line ends an event; one without data is passed over.
			if len(e.Data) > 0 && !yield(e, nil) {
				return
			}
			e = Event{}
		}
	}
}

// add adds a line to the event. Lines that begin with a colon are comments.
func (e *Event) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))

	switch string(field) {
	case "event":
		e.Name = string(value)
	case "data":
		if len(e.Data) > 0 {
			e.Data = append(e.Data, '\n')
		}
		e.Data = append(e.Data, value...)
	}
}

// Lines returns as events the lines of a stream of one JSON document in each, without those that
// are blank. If the stream breaks off with an error, that is the last that is returned.
func Lines(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for line, err := range readLines(r, bufio.ScanLines) {
			line = bytes.Clone(bytes.TrimSpace(line))
			if (err != nil || len(line) > 0) && !yield(Event{Data: line}, err) {
				return
			}
		}
	}
}

// OneByOne returns events that are known.
func OneByOne(events []Event) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// readLines returns what split makes of a stream.
func readLines(r io.Reader, split bufio.SplitFunc) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		lines.Split(split)

		for lines.Scan() && lines.Err() == nil { // with an error, what is left is a piece of a line
			if !yield(lines.Bytes(), nil) {
				return
			}
		}

		if lines.Err() != nil {
			yield(nil, lines.Err())
		}
	}
}

// splitLines is a bufio.SplitFunc. Lines of events end by a line feed, a carriage return, or
// both; the byte order mark before the first is no part of it.
func splitLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexAny(data, "\r\n")
	switch {
	case end < 0 && atEOF && len(data) > 0:
		return len(data), trimMark(data), nil
	case end < 0:
		return 0, nil, nil
	case data[end] == '\n':
		return end + 1, trimMark(data[:end]), nil
	case end+1 == len(data) && !atEOF:
		return 0, nil, nil // whether a line feed follows is not known
	case end+1 < len(data) && data[end+1] == '\n':
		return end + 2, trimMark(data[:end]), nil
	}
	return end + 1, trimMark(data[:end]), nil
}

// trimMark returns a line without the mark of UTF-8 that some streams begin with.
func trimMark(line []byte) []byte { return bytes.TrimPrefix(line, []byte("\ufeff")) }

// Decode decodes JSON into v. A field of another type than v has keeps its zero value, as a
// server's slip in what nobody needs should not cost an answer. The error is then a
// *json.SyntaxError.
func Decode(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}
