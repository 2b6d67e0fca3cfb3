package rtf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

// control reads what follows a backslash.
func (r *reader) control() {
	if r.pos >= len(r.data) {
		return
	}

	c := r.data[r.pos]
	if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
		word, number, given := r.readWord()
		if word != "u" { // both halves of a pair follow each other
			r.half = 0
		}
		r.command(word, number, given)
		return
	}

	r.pos++
	switch c {
	case '\'':
		if r.pos+2 <= len(r.data) {
			if n, err := strconv.ParseUint(string(r.data[r.pos:r.pos+2]), 16, 8); err == nil {
				r.codedByte(byte(n))
			}
		}
		r.pos = min(r.pos+2, len(r.data))
	case '*':
		r.readIgnorable()
	case '\\', '{', '}':
		r.writeCharacter(rune(c))
	case '~':
		r.writeCharacter(' ')
	case '_':
		r.writeCharacter('-')
	case '\r', '\n':
		r.endParagraph()
	}
}

// maxWord is more than the letters of any control word.
const maxWord = 40

// readWord reads a control word and its number.
func (r *reader) readWord() (word string, number int, given bool) {
	start := r.pos
	for r.pos < len(r.data) && isLetter(r.data[r.pos]) && r.pos-start < maxWord {
		r.pos++
	}
	word = string(r.data[start:r.pos])

	start = r.pos
	if r.pos < len(r.data) && r.data[r.pos] == '-' {
		r.pos++
	}
	for r.pos < len(r.data) && '0' <= r.data[r.pos] && r.data[r.pos] <= '9' && r.pos-start < 11 {
		r.pos++
	}
	if n, err := strconv.Atoi(string(r.data[start:r.pos])); err == nil {
		number, given = n, true
	}

	// A space behind the word belongs to it.
	if r.pos < len(r.data) && r.data[r.pos] == ' ' {
		r.pos++
	}
	return word, number, given
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// readIgnorable reads the word of a group that readers may ignore. It is ignored, unless it
// has text.
func (r *reader) readIgnorable() {
	if r.pos+1 >= len(r.data) || r.data[r.pos] != '\\' || !isLetter(r.data[r.pos+1]) {
		return
	}

	at := r.pos
	r.pos++
	word, _, _ := r.readWord()

	switch word {
	case "footnote", "annotation", "atnauthor", "shpinst", "ud", "do", "shppict", "pnseclvl":
		r.pos = at // it is read as any other
	default:
		r.skipGroup()
	}
}

// skipGroup makes nothing of the group text.
func (r *reader) skipGroup() { r.state.destination = skipped }

// command obeys a control word. Most say how text looks.
func (r *reader) command(word string, n int, given bool) {
	if word == "bin" {
		r.flush()
		r.pos = min(r.pos+max(0, n), len(r.data))
		return
	}
	if r.state.destination == skipped && word != "ud" {
		return
	}

	switch word {
	case "u":
		r.unicode(n)
		return
	case "uc":
		r.state.skip = max(0, n)
		return
	}

	r.flush()
	if r.fallback > 0 {
		r.fallback-- // a word is one character of those that stand for another
	}

	if r.readStructure(word) || r.group(word) || r.writeSpecial(word) || r.defineRow(word, n, !given || n != 0) {
		return
	}
	r.readProperty(word, n, given)
}

// readProperty obeys what is said of a paragraph, of characters or of a font.
func (r *reader) readProperty(word string, n int, given bool) {
	on := !given || n != 0

	switch word {
	case "ansicpg":
		if e := codePage(n); e != nil {
			r.ansi = e
		}
	case "mac":
		r.ansi = charmap.Macintosh
	case "pc", "pca":
		r.ansi = charmap.CodePage437
	case "f":
		r.state.font = n
	case "fcharset":
		if e := charsetOf(n); e != nil && r.state.destination == fontTable {
			r.fonts[r.state.font] = e
		}
	case "v":
		r.state.hidden = on
	case "deleted":
		r.state.deleted = on
	case "super":
		r.state.at = positionIf(on, richtext.Raised)
	case "sub":
		r.state.at = positionIf(on, richtext.Lowered)
	case "nosupersub":
		r.state.at = richtext.OnLine
	case "plain":
		r.state.hidden, r.state.deleted, r.state.at = false, false, richtext.OnLine
	case "pard":
		r.state.inTable, r.state.style, r.state.outline, r.state.level = false, 0, -1, 0
	case "intbl":
		r.state.inTable = on
	case "s":
		r.state.style = n
	case "ilvl":
		r.state.level = min(max(n, 0), 9)
	case "outlinelevel":
		level := (n + 1) % 10 // the tenth is text
		if n < 0 {
			level = 0
		}
		if r.state.destination == styleSheet {
			r.outlines[r.state.style] = level
		} else {
			r.state.outline = level
		}
	}
}

// positionIf returns where characters stand if what places them is on.
func positionIf(on bool, at richtext.Position) richtext.Position {
	if on {
		return at
	}
	return richtext.OnLine
}

// readStructure obeys words that end paragraphs, cells and rows.
func (r *reader) readStructure(word string) bool {
	switch word {
	case "par", "sect", "page":
		if word != "page" {
			r.endParagraph()
		}
	case "line", "lbr":
		r.write('\n')
	case "tab":
		r.write('\t')
	case "cell":
		r.endCell()
	case "nestcell":
		r.write('\n')
	case "row":
		r.endRow()
	case "nestrow":
		r.write('\n')
	default:
		return false
	}
	return true
}

// writeSpecial writes characters that have a name.
func (r *reader) writeSpecial(word string) bool {
	var c rune
	switch word {
	case "emdash":
		c = '—'
	case "endash":
		c = '–'
	case "bullet":
		c = '•'
	case "lquote":
		c = '‘'
	case "rquote":
		c = '’'
	case "ldblquote":
		c = '“'
	case "rdblquote":
		c = '”'
	case "emspace", "enspace", "qmspace":
		c = ' '
	default:
		return false
	}

	r.write(c)
	return true
}

// group obeys words that say what the text of a group is.
func (r *reader) group(word string) bool {
	switch word {
	case "fonttbl":
		r.state.destination = fontTable
	case "stylesheet":
		r.state.destination = styleSheet
	case "colortbl", "info", "pict", "objdata", "listtable", "listoverridetable", "revtbl", "rsidtbl", "filetbl", "fldinst", "sp",
		"shprslt", "nonshppict", "upr", "themedata", "datafield", "nonesttables", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn",
		"tc", "xe", "bkmkstart", "bkmkend", "template", "pnseclvl", "private", "macpict", "rxe":
		r.skipGroup()
	case "ud":
		r.state.destination = body
	case "header", "headerl", "headerr", "headerf":
		r.beginFrame(func(text string) { r.headers = append(r.headers, text) })
	case "footer", "footerl", "footerr", "footerf":
		r.beginFrame(func(text string) { r.footers = append(r.footers, text) })
	case "footnote":
		r.beginFrame(r.endNote)
	case "annotation":
		r.beginFrame(r.endComment)
	case "atnauthor":
		r.beginFrame(func(text string) { r.author = text })
	case "listtext", "pntext":
		r.beginFrame(r.endMark)
	case "shptxt", "dptxbxtext":
		r.beginFrame(func(text string) {
			if text != "" {
				r.boxed = append(r.boxed, text)
			}
		})
	default:
		return false
	}
	return true
}

// endNote keeps a footnote, and writes its number.
func (r *reader) endNote(text string) {
	kind := "footnote"
	n := len(r.notes) + 1
	r.notes = append(r.notes, richNote{fmt.Sprintf("[^%d]:", n), text, fmt.Sprintf("%s %d", kind, n)})
	r.outWriter().Insert(fmt.Sprintf("[^%d]", n))
}

func (r *reader) endComment(text string) {
	mark := "Comment" + strings.TrimSuffix(" by "+r.author, " by ") + ":"
	r.author = ""
	r.comments = append(r.comments, richNote{mark, text, fmt.Sprintf("comment %d", len(r.comments)+1)})
}

// endMark keeps the mark of an item.
func (r *reader) endMark(text string) {
	r.mark = text
	if text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c > ' ' && c < 0x7f && c != '-' && c != '*' && c != 'o' }) {
		r.mark = richtext.BulletMark
	}
}

// unicode writes a character of UTF-16.
func (r *reader) unicode(n int) {
	r.flush()

	if r.fallback > 0 { // it stands for one itself
		r.fallback--
		return
	}

	c := rune(uint16(n))
	switch {
	case utf16.IsSurrogate(c) && c < 0xdc00:
		r.half = c
	case utf16.IsSurrogate(c):
		if c = utf16.DecodeRune(r.half, c); r.half != 0 && c != '\uFFFD' {
			r.write(c)
		}
		r.half = 0
	case c >= ' ' && c != 0xfffe && c != 0xffff:
		if 0xf000 <= c && c < 0xf100 { // of a symbol font
			c -= 0xf000
		}
		if c >= ' ' {
			r.write(c)
		}
	}

	r.fallback = r.state.skip
}

// codePage returns the charset of a code page of Windows; nil if it is not known.
func codePage(n int) encoding.Encoding {
	return map[int]encoding.Encoding{
		437: charmap.CodePage437, 850: charmap.CodePage850, 852: charmap.CodePage852, 866: charmap.CodePage866, 874: charmap.Windows874,
		932: japanese.ShiftJIS, 936: simplifiedchinese.GBK, 949: korean.EUCKR, 950: traditionalchinese.Big5,
		1250: charmap.Windows1250, 1251: charmap.Windows1251, 1252: charmap.Windows1252, 1253: charmap.Windows1253,
		1254: charmap.Windows1254, 1255: charmap.Windows1255, 1256: charmap.Windows1256, 1257: charmap.Windows1257,
		1258: charmap.Windows1258, 10000: charmap.Macintosh,
	}[n]
}

// charsetOf returns the charset of the number that a font has; nil if it is that of the
// document.
func charsetOf(n int) encoding.Encoding {
	page := map[int]int{
		77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
		186: 1257, 204: 1251, 222: 874, 238: 1250,
	}[n]
	return codePage(page)
}
