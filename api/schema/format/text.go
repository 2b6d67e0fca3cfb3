// Package format reads values as people write them (numbers, addresses, yes and no)
// and gives them the one form in which they are compared and stored. Package calendar
// does so for dates, times of day and durations. Everything in it is pure. It must import
// nothing of the project but how words are read, which is below it.
package format

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text normalises a string: NFKC, one space for any white space, none at the
// ends, no control or soft-hyphen characters. Raised and lowered digits stay as
// they are, and fractions such as ½: NFKC makes 106 of 10⁶.
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	s = strings.Map(func(c rune) rune {
		if c == '\u00ad' || c == '\u200b' || c == '\ufeff' || unicode.IsControl(c) && !unicode.IsSpace(c) {
			return -1
		}
		return c
	}, s)
	return strings.Join(strings.Fields(foldForms(s)), " ")
}

// foldForms returns the NFKC form of the text around what stands apart from numbers.
func foldForms(s string) string {
	if !strings.ContainsFunc(s, standsApart) {
		return norm.NFKC.String(s)
	}

	var b strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, standsApart)
		if end < 0 {
			end = len(s)
		}

		b.WriteString(norm.NFKC.String(s[:end]))
		// What stands apart is kept as it is written.
		_, size := utf8.DecodeRuneInString(s[end:])
		b.WriteString(s[end : end+size])
		s = s[end+size:]
	}

	return b.String()
}

// isPlain reports whether s is ASCII text that Text would leave as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			return false
		}
	}
	return true
}

// Fold returns s with case folded after Text: strings that fold alike are taken
// for the same value. So are m² and m2, but 10⁶ is 10^6 and not 106.
func Fold(s string) string {
	return strings.ToLower(norm.NFKC.String(partDigits(Text(s))))
}

// partDigits writes a sign, or a space in front of fractions, between a digit and what NFKC
// would make part of its number.
func partDigits(s string) string {
	if !strings.ContainsFunc(s, standsApart) {
		return s
	}

	var b strings.Builder
	digit := false
	for _, c := range s {
		switch {
		case !digit || !standsApart(c):
		case IsRaised(c):
			b.WriteByte('^')
		case IsLowered(c):
			b.WriteByte('_')
		default:
			b.WriteByte(' ')
		}

		if c == '⁻' || c == '₋' {
			c = '-'
		}

		b.WriteRune(c)
		digit = unicode.IsDigit(c)
	}

	return b.String()
}

// standsApart reports whether c is a number, or a sign of one, that continues none in front
// of it.
func standsApart(c rune) bool { return unicode.Is(unicode.No, c) || IsRaised(c) || IsLowered(c) }

var (
	emailForm  = regexp.MustCompile(`[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

// ParseEmail returns the first email address in s, its domain in lower case; ok is
// false if there is none.
func ParseEmail(s string) (string, bool) {
	found := emailForm.FindString(s)
	if found == "" {
		return "", false
	}
	at := strings.LastIndexByte(found, '@')
	return found[:at] + strings.ToLower(found[at:]), true
}

// ParseURI returns s as an absolute URI with scheme and host in lower case.
// "www.example.org" is understood.
func ParseURI(s string) (string, bool) {
	s = strings.Trim(strings.TrimSpace(s), "<>\"")
	if strings.HasPrefix(strings.ToLower(s), "www.") {
		s = "http://" + s
	}

	if !schemeForm.MatchString(s) || strings.ContainsFunc(s, unicode.IsSpace) {
		return "", false
	}

	u, err := url.Parse(s)
	if err != nil || u.Opaque == "" && u.Host == "" && u.Path == "" {
		return "", false
	}

	scheme := len(u.Scheme)
	s = u.Scheme + s[scheme:]
	// Only scheme and host are the same in either case; the path is not.
	if host := strings.Index(s, u.Host); u.Host != "" && host >= 0 {
		s = s[:host] + strings.ToLower(u.Host) + s[host+len(u.Host):]
	}

	return s, true
}
