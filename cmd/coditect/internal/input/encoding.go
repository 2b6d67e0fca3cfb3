package input

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/coditect/mapreduce/api/errs"
)

// guessedBytes is how much of a document its encoding is guessed from.
const guessedBytes = 256 << 10

// How sure the guess of an encoding has to be, in [0,1]. The letters of Western Europe
// are few among ASCII, so a guess at them is never sure.
const (
	sureGuess    = 0.8
	westernGuess = 0.7
	turkishGuess = 0.6
)

// western is the encoding of Western European texts. It has all characters of
// ISO 8859-1, and more where that has controls.
const western = "windows-1252"

// guessEncoding returns the encoding that data, which is not UTF-8, is probably in, by
// its name on the web; "" if none is likely enough.
func guessEncoding(data []byte) string {
	data = data[:min(len(data), guessedBytes)]
	guess := chardet.Detect(data)
	name := strings.ToLower(guess.Encoding)
	switch {
	case (name == western || name == "iso-8859-1") && guess.Confidence >= westernGuess:
		return western
	case name == "windows-1254" && guess.Confidence >= turkishGuess && !hasTurkishLetters(data):
		return western // without them the two are the same
	case guess.Confidence < sureGuess:
		return ""
	case name == "gb2312":
		return "gb18030" // which includes it
	}
	if known, err := canonicalEncoding(name); err == nil && known != "utf-8" {
		return known
	}
	return ""
}

// hasTurkishLetters reports whether a byte stands for another letter in windows-1254
// than in windows-1252.
func hasTurkishLetters(data []byte) bool {
	for _, b := range data {
		switch b {
		case 0xd0, 0xdd, 0xde, 0xf0, 0xfd, 0xfe:
			return true
		}
	}
	return false
}

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
	encoding = guessEncoding(data)
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
