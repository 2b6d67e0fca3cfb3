// Package format reads values as people write them (numbers, dates, times of day,
// addresses, yes and no) and gives them the one form in which they are compared
// and stored. Everything in it is pure. It imports nothing of the project.
package format

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Text normalises a string: NFKC, one space for any white space, none at the
// ends, no control or soft-hyphen characters.
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
	return strings.Join(strings.Fields(norm.NFKC.String(s)), " ")
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
// for the same value.
func Fold(s string) string { return strings.ToLower(Text(s)) }

// ParseBoolean reads yes or no.
func ParseBoolean(text string) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "y", "1", "on":
		return true, true
	case "false", "no", "n", "0", "off":
		return false, true
	default:
		return false, false
	}
}

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
	if host := strings.Index(s, u.Host); u.Host != "" && host >= 0 {
		s = s[:host] + strings.ToLower(u.Host) + s[host+len(u.Host):]
	}
	return s, true
}
