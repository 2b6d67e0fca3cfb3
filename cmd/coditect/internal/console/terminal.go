package console

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A TerminalWriter passes text on and escapes its control characters, U+0080 to U+009F too, and
// the marks that change the direction of text, by which one text could look like another.
// The escapes are those of JSON, such as \u001b, so that JSON keeps its meaning. Line
// feeds and tabs stay. Bytes that are not UTF-8 become U+FFFD. A TerminalWriter is safe for
// concurrent use.
type TerminalWriter struct {
	mu   sync.Mutex
	out  io.Writer
	rest []byte // the beginning of a character whose end was not written yet
}

// NewTerminalWriter returns a TerminalWriter that passes text on to out.
func NewTerminalWriter(out io.Writer) *TerminalWriter { return &TerminalWriter{out: out} }

// Write implements io.Writer. It keeps an incomplete character at the end of p for
// the next Write.
func (w *TerminalWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	text := p
	if len(w.rest) > 0 {
		text = append(w.rest, p...)
	}

	whole := len(text) - incompleteBytes(text)
	w.rest = bytes.Clone(text[whole:])
	if _, err := w.out.Write(EscapeControls(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// incompleteBytes returns how many bytes at the end of text may begin a character.
func incompleteBytes(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// EscapeControls returns text as a TerminalWriter passes it on. The result may be text itself.
func EscapeControls(text []byte) []byte {
	if isPlain(text) {
		return text
	}

	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if isHarmless(r) {
			out = utf8.AppendRune(out, r) // U+FFFD for what is not UTF-8
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}

	return out
}

func isHarmless(r rune) bool {
	return r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && r != lineSeparator && r != paragraphSeparator
}

// Characters that some terminals take for the end of a line.
const (
	lineSeparator      = '\u2028'
	paragraphSeparator = '\u2029'
)

// isPlain reports whether text has nothing to escape.
func isPlain(text []byte) bool {
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}

		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || !isHarmless(r) {
			return false
		}
		i += size
	}
	return true
}
