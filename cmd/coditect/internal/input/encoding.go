package input

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/internal/document/charset"
)

// canonicalEncoding returns the name of an encoding that one of its names on the web
// means.
func canonicalEncoding(name string) (string, error) {
	enc, err := htmlindex.Get(strings.TrimSpace(name))
	if err != nil {
		return "", err
	}
	return htmlindex.Name(enc)
}

// checkEncoding refuses an encoding that is not known.
func (c Config) checkEncoding() error {
	if c.Encoding == "" {
		return nil
	}
	if _, err := canonicalEncoding(c.Encoding); err != nil {
		return errs.Field("encoding", "no encoding is named %q; some are utf-8, windows-1252, iso-8859-2, utf-16le, shift_jis, gb18030 and euc-kr", c.Encoding)
	}
	return nil
}

// decodeLines returns a reader of the UTF-8 of a file that holds one document a line.
func (c Config) decodeLines(in io.Reader) (io.Reader, error) {
	if c.Encoding == "" {
		return in, nil
	}
	enc, err := htmlindex.Get(strings.TrimSpace(c.Encoding))
	if err != nil {
		return nil, err
	}
	return transform.NewReader(in, enc.NewDecoder()), nil
}

// encodingOf returns the encoding in which to read a plain document: the one that the
// user names, else a guess for bytes that are not UTF-8; "" for UTF-8, and for UTF-16
// with a byte order mark.
func (r *reader) encodingOf(name string, data []byte) (encoding string, guessed bool) {
	if r.config.Encoding != "" {
		return r.config.Encoding, false
	}
	if utf8.Valid(data) && !hasNULs(data) || hasMark(data) {
		return "", false
	}
	encoding = charset.Guess(data)
	return encoding, encoding != ""
}

// hasNULs reports whether data begins with bytes of which many are 0, as UTF-16 does
// without a byte order mark.
func hasNULs(data []byte) bool {
	data = data[:min(len(data), 1024)]
	return strings.Count(string(data), "\x00")*10 > len(data)
}

// hasMark reports whether data begins with a byte order mark.
func hasMark(data []byte) bool {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if strings.HasPrefix(string(data[:min(len(data), 3)]), mark) {
			return true
		}
	}
	return false
}

// noteGuess tells the user of the first document that was read in a guessed encoding.
func (r *reader) noteGuess(name, encoding string) {
	if r.guessed[encoding] || r.config.Note == nil {
		return
	}
	if r.guessed == nil {
		r.guessed = make(map[string]bool)
	}
	r.guessed[encoding] = true
	r.config.Note(fmt.Sprintf("%s is not UTF-8, and was read as %s, as other documents may be; --encoding names another encoding", name, encoding))
}
