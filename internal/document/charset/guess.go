package charset

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	models "github.com/gogs/chardet"
	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding/htmlindex"
)

// guessedBytes is how much of a text its charset is guessed from.
const guessedBytes = 256 << 10

// How sure a guess has to be. One library knows scripts by the order of their letters, in
// [0,1], the other languages by their triples of letters, in [0,100]. The letters of
// Western Europe are few among ASCII, so a guess at them is never sure.
const (
	sureScript   = 0.85
	sureLanguage = 25
	western      = "windows-1252" // has all of ISO 8859-1, and more where that has controls
)

// Guess returns the charset that data, which is not UTF-8, is probably in, by its name on
// the web; "" if none is likely enough, or if it is UTF-8 that is damaged.
func Guess(data []byte) string {
	data = data[:min(len(data), guessedBytes)]
	if isDamagedUTF8(data) {
		return ""
	}

	// One library is sure of scripts such as Cyrillic, the other of languages.
	if guess := chardet.Detect(data); guess.Confidence >= sureScript && (guess.Language != "" || strings.HasPrefix(guess.Encoding, "UTF-16")) {
		if name := webName(guess.Encoding); name != "" {
			return name
		}
	}

	guesses, err := models.NewTextDetector().DetectAll(data)
	if err != nil || len(guesses) == 0 {
		return ""
	}

	// Guesses that are equally sure come in another order each time. Of these, the most
	// common charset is taken, else the first by name.
	rank := func(r models.Result) int {
		if webName(r.Charset) == western {
			return 0
		}
		return 1
	}
	best := slices.MinFunc(guesses, func(a, b models.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Charset, b.Charset))
	})

	if best.Confidence < sureLanguage {
		return ""
	}

	return webName(best.Charset)
}

// webName returns the name on the web of a charset that is not UTF-8; "" if it has none.
func webName(name string) string {
	if strings.EqualFold(name, "gb2312") {
		return "gb18030" // which includes it
	}

	enc, err := htmlindex.Get(name)
	if err != nil {
		return ""
	}

	known, err := htmlindex.Name(enc)
	if err != nil || known == "utf-8" {
		return ""
	}
	return known
}

// isDamagedUTF8 reports whether more characters of data are UTF-8 of several bytes than
// bytes are not. Texts in other charsets hardly hold such.
func isDamagedUTF8(data []byte) bool {
	whole, broken := 0, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			broken++
		case size > 1:
			whole++
		}
		i += size
	}

	return whole > broken
}
