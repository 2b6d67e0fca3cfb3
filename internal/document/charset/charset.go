// Package charset decodes bytes of any charset to UTF-8, with a map back to the bytes. It
// is what the formats of texts have in common.
package charset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/text/offset"
)

// BOM is the byte order mark of UTF-8.
const BOM = "\xef\xbb\xbf"

// Other byte order marks.
const (
	utf16BE    = "\xfe\xff"
	utf16LE    = "\xff\xfe"
	utf32LEEnd = "\x00\x00" // behind that of UTF-16
)

// Read decodes all that r holds. See Decode.
func Read(r io.Reader, declared string) (text string, back *offset.Map, charset string, err error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", nil, "", fmt.Errorf("document: %w", err)
	}

	return Decode(data, declared)
}

// Decode returns data as UTF-8, the map back to data, and the charset of data.
// A byte order mark takes precedence over the declared charset. Without either, data is
// UTF-8, or in the charset that it looks like; see Guess. The error is a
// document.RefusedError if data is not text.
func Decode(data []byte, declared string) (text string, back *offset.Map, charset string, err error) {
	switch {
	case bytes.HasPrefix(data, []byte(utf16LE+utf32LEEnd)):
		return "", nil, "", document.Refuse("in UTF-32, which is not read")
	case bytes.HasPrefix(data, []byte(utf16LE)):
		text, back, err = decodeUTF16(data, len(utf16LE), binary.LittleEndian)
		charset = "utf-16le"
	case bytes.HasPrefix(data, []byte(utf16BE)):
		text, back, err = decodeUTF16(data, len(utf16BE), binary.BigEndian)
		charset = "utf-16be"
	case bytes.HasPrefix(data, []byte(BOM)), declared == "":
		text, back, err = decodeUTF8(data)
		charset = "utf-8"
		if err != nil && foreignType(data) == "" {
			if guess := Guess(data); guess != "" {
				return decodeGuessed(data, guess)
			}
		}
	default:
		text, back, charset, err = decodeDeclared(data, declared)
	}

	if err != nil {
		return "", nil, "", err
	}
	return checked(text, back, charset)
}

// decodeGuessed decodes data, which is not UTF-8, from the charset that it looks like. A refusal says
// that nobody named the charset, and how one does.
func decodeGuessed(data []byte, guess string) (text string, back *offset.Map, charset string, err error) {
	if text, back, charset, err = decodeDeclared(data, guess); err == nil {
		text, back, charset, err = checked(text, back, charset)
	}
	return text, back, charset, RefusedGuess(err, guess)
}

// RefusedGuess returns the error of a text in a charset that was guessed, with what the user can do about
// it if the text is refused.
func RefusedGuess(err error, guess string) error {
	refused, ok := errors.AsType[*document.RefusedError](err)
	if !ok {
		return err
	}
	return document.Refuse("%s; %s was only guessed, and --encoding names the charset of plain text", refused.Reason, guess)
}

// checked returns a text that was decoded, unless it is not readable: some charsets have a character for
// each byte.
func checked(text string, back *offset.Map, charset string) (string, *offset.Map, string, error) {
	if reason := Unreadable(text); reason != "" {
		return "", nil, "", document.Refuse("%s", reason)
	}
	return text, back, charset, nil
}

// decodeUTF8 validates data and removes a byte order mark.
func decodeUTF8(data []byte) (string, *offset.Map, error) {
	if !utf8.Valid(data) {
		return "", nil, notUTF8(data, FirstInvalid(data))
	}

	text := bytes.TrimPrefix(data, []byte(BOM))
	if len(text) == len(data) {
		return string(data), nil, nil
	}

	var b offset.Builder
	b.Copy(len(data)-len(text), len(text))
	return string(text), b.Map(), nil
}

// FirstInvalid returns the offset of the first byte that is not UTF-8; the length of data if
// all of it is.
func FirstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// decodeUTF16 decodes data from offset from, behind its byte order mark.
func decodeUTF16(data []byte, from int, order binary.ByteOrder) (string, *offset.Map, error) {
	var out strings.Builder
	var back offset.Builder
	out.Grow(len(data))

	for pos := from; pos < len(data); {
		if pos+1 == len(data) {
			return "", nil, document.Refuse("not UTF-16: an odd byte at offset %d", pos)
		}

		r, size := rune(order.Uint16(data[pos:])), 2
		// A character beyond the first plane has two units.
		if utf16.IsSurrogate(r) {
			if pos+4 > len(data) {
				return "", nil, document.Refuse("not UTF-16: half a character at offset %d", pos)
			}
			r, size = utf16.DecodeRune(r, rune(order.Uint16(data[pos+2:]))), 4
			if r == utf8.RuneError {
				return "", nil, document.Refuse("not UTF-16: half a character at offset %d", pos)
			}
		}

		back.Step(utf8.RuneLen(r), pos, size)
		out.WriteRune(r)
		pos += size
	}

	return out.String(), back.Map(), nil
}

// decodeDeclared decodes data from a charset, given by one of its names on the web.
func decodeDeclared(data []byte, declared string) (text string, back *offset.Map, charset string, err error) {
	enc, err := htmlindex.Get(strings.TrimSpace(declared))
	if err != nil {
		return "", nil, "", document.Refuse("in the charset %q, which is not known", declared)
	}

	charset, err = htmlindex.Name(enc)
	if err != nil {
		return "", nil, "", document.Refuse("in the charset %q, which has no name", declared)
	}

	// The decoders of UTF need no help to say which bytes a character came from.
	switch charset {
	case "utf-8":
		text, back, err = decodeUTF8(data)
	case "utf-16le":
		text, back, err = decodeUTF16(data, 0, binary.LittleEndian)
	case "utf-16be":
		text, back, err = decodeUTF16(data, 0, binary.BigEndian)
	default:
		text, back, err = decodeLegacy(data, enc, charset)
	}

	return text, back, charset, err
}

// longestCharacter is more than the bytes of one character in any charset,
// including an escape before it.
const longestCharacter = 16

// decodeLegacy decodes data character by character, because only then the decoder
// tells which bytes each character came from.
func decodeLegacy(data []byte, enc encoding.Encoding, charset string) (string, *offset.Map, error) {
	var out strings.Builder
	var back offset.Builder
	out.Grow(len(data))

	d := enc.NewDecoder().Transformer

	var buf [longestCharacter]byte
	for pos := 0; pos < len(data); {
		n, size := decodeCharacter(d, buf[:], data[pos:])
		// Bytes that are no character of the charset are of another one.
		if size == 0 || bytes.ContainsRune(buf[:n], utf8.RuneError) {
			return "", nil, document.Refuse("not %s: byte 0x%02x at offset %d", charset, data[pos], pos)
		}

		back.Step(n, pos, size)
		out.Write(buf[:n])
		pos += size
	}

	return out.String(), back.Map(), nil
}

// decodeCharacter decodes the shortest beginning of src that is a character. It
// returns the bytes written to dst and read from src, or 0 read if there is none.
func decodeCharacter(d transform.Transformer, dst, src []byte) (written, read int) {
	for n := 1; n <= min(len(src), longestCharacter); n++ {
		written, read, err := d.Transform(dst, src[:n], n == len(src))
		if read > 0 || !errors.Is(err, transform.ErrShortSrc) {
			return written, read
		}
	}
	return 0, 0
}

// Unreadable returns the reason why text is not readable, or "" if it is. It
// is not if more than one character in a hundred is a control character other than
// those that lay out text.
func Unreadable(text string) string {
	controls, nuls := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == 0:
			controls, nuls = controls+1, nuls+1
		case c < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\x1b", rune(c)), c == 0x7f:
			controls++
		}
	}

	if controls*100 <= utf8.RuneCountInString(text) {
		return ""
	}
	return fmt.Sprintf("not text: %d NUL and %d other control characters in %d bytes", nuls, controls-nuls, len(text))
}

// notUTF8 refuses data that is not UTF-8, and names the format that it resembles.
func notUTF8(data []byte, at int) error {
	if like := foreignType(data); like != "" {
		return document.Refuse("not text: looks like %s", like)
	}
	return document.Refuse("not UTF-8: byte 0x%02x at offset %d, and no other charset is declared; --encoding names that of plain text", data[at], at)
}

// foreignType returns the media type that data looks like, if that is not one of texts.
func foreignType(data []byte) string {
	like, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if strings.HasPrefix(like, "text/") || like == "application/octet-stream" {
		return ""
	}
	return like
}
