package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
	"github.com/coditect/mapreduce/internal/document/program"
)

// Bounds of OCR.
const (
	ocrDPI    = 300         // pixels an inch of the picture
	ocrPixels = 5000        // wide and high, at most
	ocrTime   = time.Minute // for a page
	ocrBytes  = 16 << 20    // of what the program writes
)

// recognise has the program for OCR read the picture of a page. The program gets a PNG on
// its standard input. On its standard output it writes a table of tab separated values
// as tesseract does (with the columns level, left, top, width, height, conf and text), or
// plain text, of which no boxes are known but that of the page.
func (d *reading) recognise(p *page) ([]arrange.Word, error) {
	picture, scale, err := d.picture(p)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(d.ctx, ocrTime)
	defer cancel()

	command := d.reader.config.OCR
	out, said, err := program.Run{Command: command, Stdin: bytes.NewReader(picture), Most: ocrBytes}.Output(ctx)
	if err != nil {
		if d.ctx.Err() != nil {
			return nil, context.Cause(d.ctx)
		}
		return nil, document.Refuse("a PDF file whose page %d is a picture, and the program for OCR (%s) did not read it: %v %.200s",
			p.number, command[0], errors.Join(err, ctx.Err()), strings.TrimSpace(said))
	}

	return d.recognised(p, out, scale), nil
}

// picture returns a page as a PNG, and how many pixels a point has.
func (d *reading) picture(p *page) ([]byte, float64, error) {
	dpi := ocrDPI
	// A very large page is drawn with fewer points to the inch, so that the picture stays
	// small.
	if most := max(p.width, p.height) / 72 * ocrDPI; most > ocrPixels {
		dpi = max(1, int(ocrDPI*ocrPixels/most))
	}

	scale := float64(dpi) / 72
	drawn, err := p.draw(int(math.Ceil(p.width*scale)), int(math.Ceil(p.height*scale)), 0)
	if err != nil {
		return nil, 0, err
	}

	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, drawn); err != nil {
		return nil, 0, fmt.Errorf("pdf: picture of page %d: %w", p.number, err)
	}

	return b.Bytes(), scale, nil
}

// recognised returns the words that the program wrote.
func (d *reading) recognised(p *page, out string, scale float64) []arrange.Word {
	lines := strings.Split(strings.ToValidUTF8(out, ""), "\n")
	column := make(map[string]int)
	for i, name := range strings.Split(strings.TrimRight(lines[0], "\r"), "\t") {
		column[name] = i
	}

	// Without the columns of a table it is plain text.
	for _, name := range []string{"level", "left", "top", "width", "height", "conf", "text", "line_num", "par_num", "block_num"} {
		if _, ok := column[name]; !ok {
			return d.plainLines(p, lines)
		}
	}

	var words []arrange.Word

	line, before := 0, ""
	for _, l := range lines[1:] {
		cells := strings.Split(strings.TrimRight(l, "\r"), "\t")
		if len(cells) < len(column) {
			continue
		}

		number := func(name string) float64 {
			n, err := strconv.ParseFloat(cells[column[name]], 64)
			if err != nil {
				return -1
			}
			return n
		}

		text, conf := clean([]rune(strings.TrimSpace(cells[column["text"]]))), number("conf")
		if text == "" || conf < 0 {
			continue
		}

		at := cells[column["block_num"]] + "." + cells[column["par_num"]] + "." + cells[column["line_num"]]
		// A line is known by its numbers, which begin anew in each paragraph and block.
		if at != before {
			line, before = line+1, at
		}

		left, top := number("left")/scale, number("top")/scale
		words = append(words, arrange.Word{Text: text, Line: line, Box: mapreduce.Box{
			Page: p.number, Left: arrange.Within(left), Top: arrange.Within(top), Right: arrange.Within(left + number("width")/scale), Bottom: arrange.Within(top + number("height")/scale),
		}})
		d.sure.add(min(conf/100, 1))
	}

	return words
}

// plainLines returns the words of lines, each of which is as high as its part of the page.
func (d *reading) plainLines(p *page, lines []string) []arrange.Word {
	var words []arrange.Word
	height := p.height / float64(len(lines))
	for i, l := range lines {
		for text := range strings.FieldsSeq(l) {
			if text = clean([]rune(text)); text != "" {
				words = append(words, arrange.Word{Text: text, Line: i, Box: mapreduce.Box{
					Page: p.number, Top: arrange.Within(float64(i) * height), Right: arrange.Within(p.width), Bottom: arrange.Within(float64(i+1) * height),
				}})
			}
		}
	}

	return words
}
