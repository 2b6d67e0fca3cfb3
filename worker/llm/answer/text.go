package answer

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// openQuote returns the mark that a text begins with here, and the one that closes it.
func (p *parser) openQuote() (mark, closing string, ok bool) {
	for _, pair := range [][2]string{
		{`"""`, `"""`}, {`'''`, `'''`}, {`"`, `"`}, {`'`, `'`}, {"`", "`"}, {"“", "”"}, {"”", "”"}, {"‘", "’"}, {"«", "»"}, {"„", "“"},
	} {
		if !strings.HasPrefix(p.text[p.at:], pair[0]) {
			continue
		}
		if len(pair[0]) == 3 && (pair[0][0] == '"' || pair[0][0] == '\'') {
			if !strings.Contains(p.text[p.at+3:], pair[1]) {
				continue // an empty text, and a mark
			}
		}
		return pair[0], pair[1], true
	}
	return "", "", false
}

// parseText reads a text behind its opening mark. The mark closes it where something follows
// that can follow a text; elsewhere it is a part of the text.
func (p *parser) parseText(mark, closing string, inObject, isKey bool) (any, error) {
	if mark != `"` {
		p.note(Quotes)
	}

	var b strings.Builder
	inner := false
	for !p.atEnd() {
		if p.steps--; p.steps < 0 {
			return nil, errTooMuch
		}
		if strings.HasPrefix(p.text[p.at:], closing) {
			if len(mark) == 3 || p.closesText(closing, inner, inObject, isKey) {
				p.at += len(closing)
				p.unfinished = p.unfinished || inner && p.atEnd() // it may be that of a text behind this one
				return strings.ToValidUTF8(b.String(), "\ufffd"), nil
			}
			// A colon follows: the mark ends a key, and one before it is missing.
			if strings.HasPrefix(p.textFrom(p.at+len(closing)), ":") {
				return nil, p.fault("a text ends nowhere, or begins nowhere,")
			}

			p.note(InnerQuote)
			inner = true
			b.WriteString(closing)
			p.at += len(closing)
			continue
		}

		if p.next() == '\\' {
			p.readEscape(&b)
			continue
		}

		if c := p.next(); c < ' ' {
			p.note(LineBreak)
		}
		b.WriteByte(p.next())
		p.at++
	}

	p.unfinished = true
	return nothing{}, nil
}

// closesText reports whether the mark that comes next closes a text, by what stands behind it.
func (p *parser) closesText(closing string, inner, inObject, isKey bool) bool {
	i := p.at + len(closing)
	rest := p.textFrom(i)
	switch {
	case isKey:
		return strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "=") || rest == ""
	case rest == "", rest[0] == ']', rest[0] == '}':
		return true
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"), rest[0] == '#':
		return true
	case rest[0] == ',':
		return beginsElement(strings.TrimLeftFunc(rest[1:], unicode.IsSpace), inObject)
	}

	if !inner && rest[0] != ':' && p.at == p.lastMark(closing) {
		return true // none is left that could
	}
	// A comma may be missing, before the next line.
	return strings.Contains(p.text[i:len(p.text)-len(rest)], "\n") && rest[0] != ':' && beginsElement(rest, inObject)
}

// lastMark returns where a mark stands for the last time.
func (p *parser) lastMark(mark string) int {
	if p.lastOf != mark {
		p.lastOf, p.last = mark, strings.LastIndex(p.text, mark)
	}
	return p.last
}

// textFrom returns the text from i on, without white space before it.
func (p *parser) textFrom(i int) string { return strings.TrimLeftFunc(p.text[i:], unicode.IsSpace) }

// maxKey bounds a key that is looked for, in bytes.
const maxKey = 256

// beginsElement reports whether a text can be what follows a comma: a key in an object, any
// value in a list, or the end of either.
func beginsElement(rest string, inObject bool) bool {
	if rest == "" || rest[0] == '}' || rest[0] == ']' || rest[0] == ',' || rest[0] == '/' || rest[0] == '#' || strings.HasPrefix(rest, "...") {
		return true
	}

	if strings.HasPrefix(rest, "```") {
		return false // the end of a code block
	}

	quoted := strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'") || strings.HasPrefix(rest, "“") || strings.HasPrefix(rest, "`")
	if !inObject {
		return quoted || rest[0] == '{' || rest[0] == '[' || rest[0] == '-' || rest[0] >= '0' && rest[0] <= '9' ||
			strings.HasPrefix(rest, "true") || strings.HasPrefix(rest, "false") || strings.HasPrefix(rest, "null")
	}

	rest = rest[:min(len(rest), maxKey)]
	// A key in marks has its colon in the same line, unless the text is cut off within it.
	if quoted {
		line, _, _ := strings.Cut(rest[1:], "\n")
		word := strings.TrimRight(line, "\"'”`")
		cut := len(line) == len(rest)-1 && len(rest) < maxKey && !strings.ContainsAny(word, "\"'“`")
		return strings.ContainsAny(line, ":=") || cut
	}

	end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return end > 0 && strings.HasPrefix(strings.TrimLeft(rest[end:], " "), ":")
}

// readEscape reads an escape. One that JSON does not know is the character itself, as in \_,
// which is how Markdown writes it, or both, as in C:\docs.
func (p *parser) readEscape(b *strings.Builder) {
	p.at++
	if p.atEnd() {
		return // it is cut off
	}

	c := p.next()
	p.at++

	switch c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'u':
		p.readUnicode(b)
	case '\n':
		p.note(Escape)
	default:
		p.note(Escape)
		// A letter behind a backslash is likely a path: both are kept.
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
}

// readUnicode reads the digits of an escape, of two if they are halves of one character.
func (p *parser) readUnicode(b *strings.Builder) {
	first, ok := p.hexDigits()
	if !ok {
		p.note(Escape)
		b.WriteString(`\u`)
		return
	}

	if !utf16.IsSurrogate(first) {
		b.WriteRune(first)
		return
	}

	// The first half of a pair means nothing without the second.
	if strings.HasPrefix(p.text[p.at:], `\u`) {
		back := p.at
		p.at += 2
		if second, ok := p.hexDigits(); ok && utf16.DecodeRune(first, second) != utf8.RuneError {
			b.WriteRune(utf16.DecodeRune(first, second))
			return
		}
		p.at = back
	}

	b.WriteRune(utf8.RuneError)
}

func (p *parser) hexDigits() (rune, bool) {
	if len(p.text)-p.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+4], 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 4
	return rune(n), true
}
