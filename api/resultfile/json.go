package resultfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Encode returns v as JSON on one line. It does not escape < > &.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// indentJSON returns JSON indented over lines that begin with prefix.
func indentJSON(data []byte, prefix string) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, data, prefix, "  "); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// A Scratch keeps what is written to it until the end of a stream tells where it belongs.
type Scratch interface {
	io.Writer
	// MoveTo writes all that was written to the scratch to out. The scratch is of no use then.
	MoveTo(out io.Writer) error
}

// A List writes the elements of a JSON list or object to a scratch, each on a line of its
// own.
type List struct {
	Out Scratch // nil for a list that is left out

	n    int   // elements so far
	size int64 // bytes so far
}

// Add writes an element; name is empty in lists.
func (l *List) Add(name string, data []byte) error {
	if l.Out == nil {
		l.n++
		return nil
	}

	if name != "" {
		key, err := Encode(name)
		if err != nil {
			return err
		}
		data = append(append(key, ':'), data...)
	}

	return l.addWritten(spaceColons(data))
}

// addWritten writes an element that has a space behind each colon, and its name in an object.
func (l *List) addWritten(data []byte) error {
	l.n++
	before := "\n"
	if l.n > 1 {
		before = ",\n"
	}

	if _, err := io.WriteString(l.Out, before); err != nil {
		return err
	}
	n, err := l.Out.Write(data)
	l.size += int64(n) + 1
	return err
}

// AddValue writes v as an element.
func (l *List) AddValue(name string, v any) error {
	if l.Out == nil {
		return l.Add(name, nil)
	}
	data, err := Encode(v)
	if err != nil {
		return err
	}
	return l.Add(name, data)
}

// spaceColons returns JSON on one line with a space behind the names of members, so that
// it can be searched like JSON over several lines.
func spaceColons(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/16)
	inText, escaped := false, false
	for _, c := range data {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case c == ':' && !inText:
			out = append(out, ' ')
		}
	}
	return out
}

// OrEmpty returns data, or empty if there is no data.
func OrEmpty(data []byte, empty string) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage(empty)
	}
	return data
}

// WriteObject writes an object. Each function writes one member.
func WriteObject(out io.Writer, members []func() error) error {
	for i, m := range members {
		before := "{\n"
		if i > 0 {
			before = ",\n"
		}
		if _, err := io.WriteString(out, before); err != nil {
			return err
		}

		if err := m(); err != nil {
			return err
		}
	}

	_, err := io.WriteString(out, "\n}\n")
	return err
}

// maxIndented is the size, in bytes, up to which a section is indented for people. The
// elements of a larger one stand on a line each: indented, they would be twice as large.
const maxIndented = 1 << 20

// WriteSection writes a member whose elements are in a scratch: open and end are the brackets around them.
func WriteSection(out io.Writer, name, open string, l *List, end string) error {
	if _, err := fmt.Fprintf(out, "  %q: %s", name, open); err != nil {
		return err
	}

	if l.size <= maxIndented && l.n > 0 {
		return writeIndented(out, open, l, end)
	}
	if err := l.Out.MoveTo(out); err != nil {
		return err
	}

	if l.n > 0 && end != "" {
		end = "\n  " + end
	}
	_, err := io.WriteString(out, end)
	return err
}

// writeIndented writes the rest of a small section.
func writeIndented(out io.Writer, open string, l *List, end string) error {
	var data bytes.Buffer
	if err := l.Out.MoveTo(&data); err != nil {
		return err
	}
	text, err := indentJSON(slices.Concat([]byte(open), data.Bytes(), []byte(end)), "  ")
	if err == nil {
		_, err = out.Write(bytes.TrimPrefix(text, []byte(open)))
	}
	return err
}

// WriteMember writes a member of the outermost object.
func WriteMember(out io.Writer, name string, v any) error {
	data, err := Encode(v)
	if err == nil {
		data, err = indentJSON(data, "  ")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprintf(out, "  %q: %s", name, data)
	return err
}
