package compound

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// Summary is the stream that holds what a file says of itself.
const Summary = "SummaryInformation"

// Numbers and types of properties, by [MS-OLEPS].
const (
	propertyCodePage = 1
	propertyTitle    = 2
	typeBytes        = 0x1e // a text in the code page of the set
	typeUnicode      = 0x1f
	maxProperties    = 1000
)

// Title returns the title among the properties in a Summary; "" if there is none.
func Title(summary []byte) string {
	set, ok := cut(summary, number(summary, 44))
	if !ok {
		return ""
	}

	page, title, kind := 1252, []byte(nil), 0
	// The code page may stand behind the title, so that is decoded at the end.
	for i := range min(number(set, 4), maxProperties) {
		value, ok := cut(set, number(set, 12+8*i))
		if !ok {
			continue
		}
		switch number(set, 8+8*i) {
		case propertyCodePage:
			page = number(value, 4) & 0xffff
		case propertyTitle:
			kind = number(value, 0)
			rest, _ := cut(value, 8)
			size := number(value, 4)
			if kind == typeUnicode {
				size = min(size, len(rest)) * 2
			}
			title = rest[:min(size, len(rest))]
		}
	}

	return strings.TrimSpace(strings.TrimRight(decode(title, kind, page), "\x00"))
}

// decode returns the text of a property.
func decode(data []byte, kind, page int) string {
	const utf8Page, utf16Page = 65001, 1200
	switch {
	case kind == typeUnicode || kind == typeBytes && page == utf16Page:
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(data[2*i:])
		}
		return string(utf16.Decode(units))
	case kind != typeBytes:
		return ""
	case page == utf8Page:
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	return DecodePage(data, page)
}

// DecodePage returns text of a code page of Windows or of old Macs; that of Western Europe if it is not
// known.
func DecodePage(data []byte, page int) string {
	if upper, ok := macPages[page]; ok {
		return decodeUpper(data, upper)
	}

	enc := encodingOf(page)
	if enc == nil {
		enc = charmap.Windows1252
	}

	text, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	return string(text)
}

// isKnownPage reports whether the characters of a code page are known.
func isKnownPage(page int) bool {
	return macPages[page] != nil || encodingOf(page) != nil
}

// dosPages are those that have no name on the web.
var dosPages = map[int]encoding.Encoding{
	437: charmap.CodePage437, 850: charmap.CodePage850, 852: charmap.CodePage852, 855: charmap.CodePage855, 858: charmap.CodePage858,
	860: charmap.CodePage860, 862: charmap.CodePage862, 863: charmap.CodePage863, 865: charmap.CodePage865,
}

// encodingOf returns the encoding of a code page; nil if the library has none.
func encodingOf(page int) encoding.Encoding {
	if enc, ok := dosPages[page]; ok {
		return enc
	}

	if enc, err := htmlindex.Get(pageName(page)); err == nil {
		return enc
	}
	return nil
}

// pageName returns the name on the web of a code page; "" if it has none.
func pageName(page int) string {
	switch {
	case 1250 <= page && page <= 1258:
		return fmt.Sprintf("windows-%d", page)
	case 28591 <= page && page <= 28606:
		return fmt.Sprintf("iso-8859-%d", page-28590)
	}

	return map[int]string{
		866: "ibm866", 874: "windows-874", 932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5",
		10000: "macintosh", 10001: "shift_jis", 10002: "big5", 10003: "euc-kr", 10007: "x-mac-cyrillic", 10008: "gbk", 10017: "x-mac-cyrillic",
		32768: "macintosh", 32769: "windows-1252", // as the oldest workbooks say it
		20866: "koi8-r", 20932: "euc-jp", 20936: "gbk", 21866: "koi8-u", 38598: "iso-8859-8-i", 50220: "iso-2022-jp", 50221: "iso-2022-jp",
		50222: "iso-2022-jp", 51932: "euc-jp", 51936: "gbk", 51949: "euc-kr", 54936: "gb18030", 65001: "utf-8",
	}[page]
}

// number returns four bytes at a position; 0 behind the end, and of what is no number of bytes.
func number(data []byte, at int) int {
	if at < 0 || at+4 > len(data) {
		return 0
	}
	if n := binary.LittleEndian.Uint32(data[at:]); n < 1<<31 {
		return int(n)
	}
	return 0
}

// cut returns data from a position on, if there is any.
func cut(data []byte, at int) ([]byte, bool) {
	if at <= 0 || at >= len(data) {
		return nil, false
	}
	return data[at:], true
}
