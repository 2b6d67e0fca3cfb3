package wire_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// A told is an event in a form that is easy to compare.
type told struct{ Name, Data string }

func readEvents(r io.Reader) ([]told, error) {
	var all []told
	for e, err := range wire.Events(r) {
		if err != nil {
			return all, err
		}
		all = append(all, told{e.Name, string(e.Data)})
	}
	return all, nil
}

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []told
	}{
		{"one", "data: a\n\n", []told{{"", "a"}}},
		{"named", "event: ping\ndata: {}\n\n", []told{{"ping", "{}"}}},
		{"names do not last", "event: ping\ndata: 1\n\ndata: 2\n\n", []told{{"ping", "1"}, {"", "2"}}},
		{"lines are joined", "data: a\ndata: b\n\n", []told{{"", "a\nb"}}},
		{"one blank is no part", "data:a\n\ndata:  b\n\n", []told{{"", "a"}, {"", " b"}}},
		{"comments", ": hello\n\n:\ndata: a\n: more\n\n", []told{{"", "a"}}},
		{"other fields", "id: 7\nretry: 10\nfoo\ndata: a\n\n", []told{{"", "a"}}},
		{"no data", "event: ping\n\ndata: a\n\ndata:\n\n", []told{{"", "a"}}},
		{"colons in data", "data: {\"a\": \"b:c\"}\n\n", []told{{"", `{"a": "b:c"}`}}},
		{"carriage returns and line feeds", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []told{{"x", "a"}, {"", "b"}}},
		{"carriage returns", "data: a\rdata: b\r\rdata: c\r\r", []told{{"", "a\nb"}, {"", "c"}}},
		{"the mark of UTF-8", "\ufeffdata: a\n\n", []told{{"", "a"}}},
		{"broken off", "data: a\n\ndata: b\n", []told{{"", "a"}}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once":      strings.NewReader(tt.stream),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.stream)),
			} {
				got, err := readEvents(r)
				if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
					t.Errorf("%s: %v, events differ (-want +got):\n%s", name, err, diff)
				}
			}
		})
	}
}

// Events that are written are read, however the bytes come and lines end; where the stream breaks
// off, what is read are the first of them and the reason.
func TestEventsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z{}":, ]{1,20}`)
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end of lines")
		var stream bytes.Buffer
		var want []told
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			e := told{rapid.StringMatching(`[a-z_]{0,8}`).Draw(t, "name"), text.Draw(t, "data")}
			want = append(want, e)
			stream.WriteString(rapid.SampledFrom([]string{"", ": comment" + end, ":" + end + end}).Draw(t, "comment"))
			if e.Name != "" {
				stream.WriteString("event: " + e.Name + end)
			}
			stream.WriteString("data: " + e.Data + end + end)
		}

		broken := errors.New("the connection broke")
		at := rapid.IntRange(0, stream.Len()).Draw(t, "breaks off at")
		r := io.MultiReader(iotest.HalfReader(bytes.NewReader(stream.Bytes()[:at])), iotest.ErrReader(broken))
		got, err := readEvents(r)
		if !errors.Is(err, broken) || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("broken off at %d of %d: %v, %v; want the first of %v", at, stream.Len(), got, err, want)
		}
		if at == stream.Len() && len(got) < len(want) && end != "\r" { // whether a line feed follows is not known
			t.Fatalf("%d of %d events were read", len(got), len(want))
		}
	})
}

func TestLines(t *testing.T) {
	broken := errors.New("the connection broke")
	r := io.MultiReader(strings.NewReader("{\"a\":1}\r\n\n  {}\n{\"b"), iotest.ErrReader(broken))
	var got []string
	var last error
	for e, err := range wire.Lines(r) {
		if last = err; err == nil {
			got = append(got, string(e.Data))
		}
	}
	if diff := cmp.Diff([]string{`{"a":1}`, `{}`}, got); diff != "" || !errors.Is(last, broken) {
		t.Errorf("ended by %v, lines differ (-want +got):\n%s", last, diff)
	}
}
