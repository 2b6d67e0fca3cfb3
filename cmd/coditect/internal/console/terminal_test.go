package console_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
)

func TestWriter(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain\ttext\nGröße 中 😀", "plain\ttext\nGröße 中 😀"},
		{"\x1b[31m red \x7f\r", `\u001b[31m red \u007f\u000d`},
		{"\u0080 \u009b31m \u009f \u00a0", `\u0080 \u009b31m \u009f ` + "\u00a0"},
		{"\x9b31m \xff", "\ufffd31m \ufffd"},
		{"gpj.\u202eexe \u2066x\u2069 \u200f\u061c\u2028", `gpj.\u202eexe \u2066x\u2069 \u200f\u061c\u2028`},
	} {
		for name, read := range map[string]io.Reader{
			"whole":        bytes.NewReader([]byte(test.text)),
			"byte by byte": iotest.OneByteReader(bytes.NewReader([]byte(test.text))),
		} {
			var out bytes.Buffer
			if n, err := io.Copy(struct{ io.Writer }{console.NewTerminalWriter(&out)}, struct{ io.Reader }{read}); err != nil || int(n) != len(test.text) {
				t.Errorf("%q %s: %d bytes, error %v", test.text, name, n, err)
			}
			if got := out.String(); got != test.want {
				t.Errorf("%q %s gives %q, want %q", test.text, name, got, test.want)
			}
		}
	}
}

// Escaped JSON has the same meaning.
func TestEscapeKeepsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal(console.EscapeControls(data), &got); err != nil || got != text {
			t.Errorf("%q becomes %q, error %v", text, got, err)
		}
	})
}
