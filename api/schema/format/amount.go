package format

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// magnitudes are words that multiply the number before them, by their power of ten.
var magnitudes = func() map[string]int {
	words := map[string]int{}
	for power, forms := range map[int]string{
		3:  "thousand thousands tausend tsd mille mila duizend тыс",
		4:  "万 萬 만",
		6:  "million millions mio mln mn millionen millón millones milione milioni milhão milhões miljoen miljoner millioner млн 百万 백만",
		8:  "億 亿 억",
		9:  "billion billions bn bln milliard milliards milliarde milliarden mrd mld miliardo miliardi miljard млрд",
		12: "trillion trillions tn 兆 조",
	} {
		for form := range strings.FieldsSeq(forms) {
			words[form] = power
		}
	}
	return words
}()

// letterMagnitudes are letters that multiply an amount of money, as in $1.2M. Behind
// other numbers they are units.
var letterMagnitudes = map[string]int{"k": 3, "m": 6, "b": 9, "t": 12}

// currencyCodes are the currencies by their codes, signs and names, in lower case.
// A sign that several currencies share stands for the most used.
var currencyCodes = func() map[string]string {
	codes := map[string]string{}
	for code, forms := range map[string]string{
		"USD": "$ us$ us dollar dollars", "EUR": "€ euro euros", "GBP": "£ pound pounds sterling", "JPY": "¥ yen 円",
		"CNY": "cn¥ rmb yuan renminbi 元", "KRW": "₩ won 원", "INR": "₹ rs rupee rupees", "CHF": "franken sfr", "AUD": "a$ au$",
		"CAD": "c$ ca$", "HKD": "hk$", "SGD": "s$ sg$", "NZD": "nz$", "TWD": "nt$", "MXN": "mx$", "BRL": "r$ reais",
		"MYR": "rm ringgit", "SEK": "kronor", "DKK": "kroner", "NOK": "", "PLN": "zł złoty złotych", "CZK": "kč", "HUF": "ft forint",
		"RUB": "₽ руб рублей", "UAH": "₴ грн", "TRY": "₺ tl", "ILS": "₪", "THB": "฿ baht", "PHP": "₱ peso pesos", "VND": "₫",
		"IDR": "rp rupiah", "ZAR": "rand", "AED": "dirham dirhams", "SAR": "riyal riyals", "RON": "lei", "BGN": "", "ISK": "", "KZT": "", "NGN": "₦",
	} {
		codes[strings.ToLower(code)] = code
		for form := range strings.FieldsSeq(forms) {
			codes[form] = code
		}
	}
	return codes
}()

// MagnitudeEnd returns the index where a word that multiplies the number before it
// ends, which stands at s[end:] behind at most one space; end if there is none.
// Money says that the number is an amount, so that a letter may do.
func MagnitudeEnd(s string, end int, money bool) int {
	at := end
	if gap := strings.TrimLeft(s[at:], " \u00a0\u202f"); len(s)-at-len(gap) <= len("\u00a0") {
		at = len(s) - len(gap)
	}

	word := scan.Word(s, at, 2*longestWord)
	if _, ok := magnitudes[strings.ToLower(word)]; ok {
		return at + len(word)
	}

	c, width := utf8.DecodeRuneInString(word) // in East Asia the name of the currency follows at once
	if _, ok := magnitudes[string(c)]; ok {
		return at + width
	}

	// A letter alone needs an amount of money right in front of it.
	if _, ok := letterMagnitudes[strings.ToLower(word)]; ok && money && at == end {
		return at + len(word)
	}

	return end
}

// bareMagnitudes are the letters that may multiply a number that is no amount of money,
// and may as well be its unit or a code, by their power of ten.
var bareMagnitudes = map[string]int{"K": 3, "k": 3, "M": 6, "m": 6, "B": 9, "b": 9}

// cutMagnitude removes a word that multiplies the number from s, and returns the powers
// of ten that it may stand for, the most usual first.
func cutMagnitude(s string) (rest string, powers []int) {
	digits := strings.LastIndexFunc(s, unicode.IsDigit) + 1
	if digits == 0 {
		return s, []int{0}
	}

	_, money := ParseCurrency(s[:strings.IndexFunc(s, unicode.IsDigit)])
	end := MagnitudeEnd(s, digits, money)

	if end == digits {
		// A letter alone may multiply or not: both readings are kept.
		word := strings.TrimSuffix(s[digits:], ".")
		if power, ok := bareMagnitudes[word]; ok {
			return s[:digits], []int{0, power}
		}
		return s, []int{0}
	}

	word := strings.ToLower(strings.Trim(s[digits:end], " \u00a0\u202f"))
	power, known := magnitudes[word]
	if !known {
		power = letterMagnitudes[word]
	}

	return s[:digits] + strings.TrimPrefix(s[end:], "."), []int{power}
}

// ParseCurrency returns the ISO 4217 code of the first currency in s, be it a code,
// a sign or a name: USD for "US$ 5" and "5 million dollars".
func ParseCurrency(s string) (string, bool) {
	s = strings.ToLower(s)
	for i := 0; i < len(s); {
		word := scan.Word(s, i, 2*longestWord)
		c, width := utf8.DecodeRuneInString(s[i+len(word):])

		if word == "" && c != '$' && !unicode.Is(unicode.Sc, c) {
			i += width
			continue
		}

		if unicode.Is(unicode.Sc, c) {
			// A sign may have letters in front of it, as in US$; else it counts alone.
			if code, ok := currencyCodes[word+string(c)]; ok {
				return code, true
			}
			word, i = string(c), i+len(word)
		}

		if code, ok := currencyCodes[word]; ok {
			return code, true
		}

		i += max(len(word), 1)
	}
	return "", false
}

// trimCurrency removes the names and signs of a currency from both ends of s.
func trimCurrency(s string) string {
	for {
		i := strings.LastIndexFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsDigit(c) })
		if i < 0 || i+1 >= len(s) {
			break
		}

		_, width := utf8.DecodeRuneInString(s[i:])
		if _, ok := currencyCodes[strings.ToLower(strings.TrimSuffix(s[i+width:], "."))]; !ok {
			break
		}

		s = strings.TrimSpace(s[:i+width])
	}
	return s
}
