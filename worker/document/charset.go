package document

import (
	"bytes"
	"encoding/binary"
	"errors"
	"mime"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/coditect/mapreduce/worker/offset"
)

// Byte order marks.
const (
	utf8BOM    = "\xef\xbb\xbf"
	utf16BE    = "\xfe\xff"
	utf16LE    = "\xff\xfe"
	utf32LEEnd = "\x00\x00" // behind that of UTF-16
)

// declaredCharset returns the charset that the media type declares, or otherwise
// the web page itself. It is empty if neither does.
func declaredCharset(kind Kind, data []byte, mediaType string) string {
	if _, params, err := mime.ParseMediaType(mediaType); err == nil && params["charset"] != "" {
		return params["charset"]
	}
	if kind == HTML {
		return metaCharset(data)
	}
	return ""
}

// metaCharset returns the charset that a page's meta elements declare. It ignores
// UTF-16: a declaration that is readable as ASCII cannot be in UTF-16.
func metaCharset(data []byte) string {
	z := html.NewTokenizer(bytes.NewReader(data[:min(len(data), sniffBytes)]))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Data != "meta" {
				continue
			}
			if c := metaElement(t.Attr); c != "" && !strings.HasPrefix(strings.ToLower(c), "utf-16") {
				return c
			}
		}
	}
}

// metaElement returns the charset that one meta element declares.
func metaElement(attrs []html.Attribute) string {
	values := map[string]string{}
	for _, a := range attrs {
		values[a.Key] = a.Val
	}
	if c := strings.TrimSpace(values["charset"]); c != "" {
		return c
	}
	if !strings.EqualFold(values["http-equiv"], "content-type") {
		return ""
	}
	_, params, err := mime.ParseMediaType(values["content"])
	if err != nil {
		return ""
	}
	return params["charset"]
}

// decodeText returns data as UTF-8, the map back to data, and the charset of data.
// A byte order mark takes precedence over the declared charset. Without either,
// data must be UTF-8.
func decodeText(data []byte, declared string) (text string, back *offset.Map, charset string, err error) {
	switch {
	case bytes.HasPrefix(data, []byte(utf16LE+utf32LEEnd)):
		return "", nil, "", newRefusal("in UTF-32, which is not read")
	case bytes.HasPrefix(data, []byte(utf16LE)):
		text, back, err = decodeUTF16(data, len(utf16LE), binary.LittleEndian)
		charset = "utf-16le"
	case bytes.HasPrefix(data, []byte(utf16BE)):
		text, back, err = decodeUTF16(data, len(utf16BE), binary.BigEndian)
		charset = "utf-16be"
	case bytes.HasPrefix(data, []byte(utf8BOM)), declared == "":
		text, back, err = decodeUTF8(data)
		charset = "utf-8"
	default:
		text, back, charset, err = decodeDeclared(data, declared)
	}
	if err != nil {
		return "", nil, "", err
	}
	if reason := unreadableText(text); reason != "" {
		return "", nil, "", newRefusal("%s", reason)
	}
	return text, back, charset, nil
}

// decodeUTF8 validates data and removes a byte order mark.
func decodeUTF8(data []byte) (string, *offset.Map, error) {
	if !utf8.Valid(data) {
		return "", nil, notUTF8(data, firstInvalid(data))
	}
	text := bytes.TrimPrefix(data, []byte(utf8BOM))
	if len(text) == len(data) {
		return string(data), nil, nil
	}
	var b offset.Builder
	b.Copy(len(data)-len(text), len(text))
	return string(text), b.Map(), nil
}

// firstInvalid returns the offset of the first byte that is not UTF-8.
func firstInvalid(data []byte) int {
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
			return "", nil, newRefusal("not UTF-16: an odd byte at offset %d", pos)
		}
		r, size := rune(order.Uint16(data[pos:])), 2
		if utf16.IsSurrogate(r) {
			if pos+4 > len(data) {
				return "", nil, newRefusal("not UTF-16: half a character at offset %d", pos)
			}
			r, size = utf16.DecodeRune(r, rune(order.Uint16(data[pos+2:]))), 4
			if r == utf8.RuneError {
				return "", nil, newRefusal("not UTF-16: half a character at offset %d", pos)
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
		return "", nil, "", newRefusal("in the charset %q, which is not known", declared)
	}
	charset, err = htmlindex.Name(enc)
	if err != nil {
		return "", nil, "", newRefusal("in the charset %q, which has no name", declared)
	}
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
		if size == 0 || bytes.ContainsRune(buf[:n], utf8.RuneError) {
			return "", nil, newRefusal("not %s: byte 0x%02x at offset %d", charset, data[pos], pos)
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
