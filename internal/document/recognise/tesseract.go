package recognise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/internal/document/program"
)

// A Tesseract is the engine that is Tesseract, where it is installed. It runs once for each page,
// on one processor, in a process with bounds of its memory and of the processor's time.
type Tesseract struct {
	languages string // as Tesseract takes them, such as "eng+deu"; empty for its own default

	once sync.Once
	path string // of the program; "" if there is none
}

var _ Engine = (*Tesseract)(nil)

// NewTesseract returns the engine for texts in languages, such as "eng" or "deu+fra"; none is
// English. The program is looked for when it is first needed.
func NewTesseract(languages string) *Tesseract { return &Tesseract{languages: languages} }

// Name implements Engine.
func (*Tesseract) Name() string { return "Tesseract" }

// Path returns where the program is; "" if there is none.
func (t *Tesseract) Path() string {
	t.once.Do(func() {
		for _, name := range []string{"tesseract", "/opt/homebrew/bin/tesseract", "/usr/local/bin/tesseract", `C:\Program Files\Tesseract-OCR\tesseract.exe`} {
			if path, err := exec.LookPath(name); err == nil {
				t.path = path
				return
			}
		}
	})
	return t.path
}

// Missing implements Engine.
func (t *Tesseract) Missing() string {
	if t.Path() == "" {
		return "there is no Tesseract where documents are read: install it (Debian and Ubuntu: apt install tesseract-ocr, macOS: brew install tesseract), or name another program (--ocr COMMAND)"
	}
	return ""
}

// CheckLanguages returns an error if Tesseract has no data of one of the languages.
func (t *Tesseract) CheckLanguages(ctx context.Context) error {
	if why := t.Missing(); why != "" {
		return errors.New(why)
	}

	out, said, err := program.Run{Command: []string{t.path, "--list-langs"}, Most: pageBytes}.Output(ctx)
	if err != nil {
		return failure(ctx, err, said)
	}
	// The first line is a heading; of old versions on the standard error.
	has := strings.Fields(out[strings.IndexByte(out, '\n')+1:])
	has = slices.DeleteFunc(has, func(name string) bool { return name == "osd" })
	for asked := range strings.SplitSeq(t.languages, "+") {
		if !slices.Contains(has, asked) {
			return fmt.Errorf("Tesseract has no data of the language %q, but of %s: install it (Debian and Ubuntu: apt install tesseract-ocr-%s, macOS: brew install tesseract-lang), or name others, such as eng or deu+fra",
				asked, strings.Join(has, ", "), strings.ReplaceAll(asked, "_", "-"))
		}
	}
	return nil
}

// Words implements Engine.
func (t *Tesseract) Words(ctx context.Context, page Page) (words []Word, err error) {
	words, err = t.words(ctx, page, wholePage)
	if err != nil || len(words) > 0 || page.Picture.Rect.Dx()*page.Picture.Rect.Dy() > mostOfBlock {
		return words, err
	}

	// Tesseract looks for columns and blocks first, and finds none in a picture of a few words. Of a
	// picture without text, such as that of a landscape, it makes up words, of which it is not sure.
	words, err = t.words(ctx, page, oneBlock)
	if err != nil || Sure(words) < leastOfBlock {
		return nil, err
	}
	return words, nil
}

// words returns the words of a page, which Tesseract divides in a mode.
func (t *Tesseract) words(ctx context.Context, page Page, mode string) (words []Word, err error) {
	out, err := t.run(ctx, page, "--psm", mode, "-c", "tessedit_create_tsv=1")
	if err != nil {
		return nil, err
	}
	words = parse(out, size(page.Picture))
	fitInk(page.Picture, words)
	return words, nil
}

// Modes in which Tesseract divides a page (--psm).
const (
	onlyTurn  = "0"
	wholePage = "3"
	oneBlock  = "6"
)

// Bounds of pictures that may be one block of text.
const (
	mostOfBlock  = 300_000 // pixels
	leastOfBlock = 0.5     // how sure its words are together
)

// leastForTurn is how sure Tesseract is at least by how much a page is turned.
const leastForTurn = 2

// turn returns by how many quarters of a circle a page must be turned clockwise to be read; 0 if
// Tesseract does not know.
func (t *Tesseract) turn(ctx context.Context, page Page) (quarters int, err error) {
	out, err := t.run(ctx, page, "--psm", onlyTurn)
	if err != nil { // a page with few letters, or no data for it
		return 0, context.Cause(ctx)
	}

	degrees, sure := 0, 0.0
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch n := number(value); name {
		case "Rotate":
			degrees = int(n)
		case "Orientation confidence":
			sure = n
		}
	}

	if sure < leastForTurn || degrees%90 != 0 {
		return 0, nil
	}
	return degrees / 90 & 3, nil
}

// run has Tesseract read a page, and returns what it writes.
func (t *Tesseract) run(ctx context.Context, page Page, args ...string) (out string, err error) {
	command := append([]string{t.Path(), "-", "-"}, args...)
	if t.languages != "" {
		command = append(command, "-l", t.languages)
	}
	if page.DPI > 0 {
		command = append(command, "--dpi", strconv.Itoa(page.DPI))
	}

	picture := portable(page.Picture)
	err = page.wait(func() error {
		within, cancel := context.WithTimeout(ctx, pageHangs)
		defer cancel()
		var said string
		// As many pages are read at once as there are processors, so each has one.
		out, said, err = program.Run{
			Command: command, Stdin: bytes.NewReader(picture), Env: []string{"OMP_THREAD_LIMIT=1"}, Most: pageBytes,
			Busy: pageBusy, Memory: pageMemory, File: pageFile,
		}.Output(within)
		if err != nil {
			return failure(ctx, errors.Join(err, within.Err()), said)
		}
		return nil
	})
	return out, err
}

// portable returns a picture as a portable graymap, which takes no time to pack and unpack.
func portable(m *image.Gray) []byte {
	width, height := m.Rect.Dx(), m.Rect.Dy()
	data := fmt.Appendf(make([]byte, 0, width*height+32), "P5\n%d %d\n255\n", width, height)
	for y := range height {
		data = append(data, m.Pix[y*m.Stride:][:width]...)
	}
	return data
}
