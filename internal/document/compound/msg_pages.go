package compound

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/coditect/mapreduce/internal/document/charset"
)

// decodePages decodes text of the first code page that is known and has all of its characters. It
// guesses the charset if there is none: UTF-8 if it is that. Some programs write UTF-8 and say the page of
// their machine: such text is taken for what it is, if the page has a byte for each character.
func decodePages(data []byte, pages ...int) (string, error) {
	known := slices.IndexFunc(pages, func(page int) bool { return pageName(page) != "" })
	if known >= 0 && looksLikeUTF8(data, pages[known]) {
		return decodeAsSaid(data)
	}
	return decodeAsSaid(data, pages...)
}

// decodeAsSaid is decodePages for text whose code page is not doubted.
func decodeAsSaid(data []byte, pages ...int) (string, error) {
	for _, page := range pages {
		if name := pageName(page); name != "" {
			if s, _, _, err := charset.Decode(data, name); err == nil {
				return s, nil
			}
		}
	}

	s, _, _, err := charset.Decode(data, "")
	return s, err
}

// manyCharacters is more than the bytes of a code page ever are UTF-8 by chance, in characters.
const manyCharacters = 8

// looksLikeUTF8 reports whether text is UTF-8 though it is said to be in a code page. Only pages with a
// byte for each character are doubted: those of East Asia have two for many, as UTF-8 has.
func looksLikeUTF8(data []byte, page int) bool {
	enc, err := htmlindex.Get(pageName(page))
	if err != nil || !utf8.Valid(data) {
		return false
	}

	said, oneByte := enc.(*charmap.Charmap)
	if !oneByte {
		return false
	}

	// Two bytes of the page may be a character by chance, as in "SPÓŁKA" or "NESCAFÉ®". Those of texts
	// that people write in such a page are hardly ever ones that it has as well.
	likely, doubtful := 0, 0
	for _, r := range string(data) {
		_, inPage := said.EncodeRune(r)
		switch size := utf8.RuneLen(r); {
		case size == 1:
		case size > 2 || inPage:
			likely++
		default:
			doubtful++
		}
	}

	return likely > doubtful || likely+doubtful >= manyCharacters
}
