package render

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Sizes of a picture, in pixels.
const (
	boxWidth  = 168
	boxHeight = 76
	gapX      = 18
	gapY      = 56
	margin    = 24
	svgCells  = 22 // of a name that fit a box

	bandSide  = 14 // of a stage's band, beside its widest level
	bandHead  = 24 // above its first level, for its name
	bandFoot  = 8  // below its last level
	bandCells = 26 // of a stage's name
)

// SVG returns the sketch as a picture: levels stacked, the map on top, and behind the
// levels of each stage a band with the stage's name. It refers to nothing outside
// itself, and the whole name of a unit or stage shows when it is pointed at.
func (s *Sketch) SVG() string {
	all, first := s.allBoxes()
	p := picture{all: all, first: first, bands: s.stageBands()}
	p.placeBoxes()
	return p.drawSketch(s)
}

// A picture is boxes with their places.
type picture struct {
	all           []box
	first         []int
	bands         []band
	x, y          []int // of each box, its upper left corner
	width, height int
	out           strings.Builder
}

func (p *picture) placeBoxes() {
	widest := 1
	for l := range len(p.first) - 1 {
		widest = max(widest, p.first[l+1]-p.first[l])
	}

	p.width = 2*margin + rowWidth(widest)
	p.x, p.y = make([]int, len(p.all)), make([]int, len(p.all))
	p.height = margin
	if len(p.bands) > 0 {
		// The name of the first band takes more room than the margin leaves above it.
		p.height += bandHead - (margin - bandSide)
	}

	for l := range len(p.first) - 1 {
		left := (p.width - rowWidth(p.first[l+1]-p.first[l])) / 2
		for i := p.first[l]; i < p.first[l+1]; i++ {
			p.x[i], p.y[i] = left+(i-p.first[l])*(boxWidth+gapX), p.height
		}
		p.height += boxHeight + gapY
	}

	p.height += margin - gapY
}

// A band is consecutive levels [first, end) of one stage.
type band struct {
	stage      string
	first, end int // indexes of levels
}

// stageBands returns a band for each stage that has levels. Units that parse documents
// are in none.
func (s *Sketch) stageBands() (bands []band) {
	for i, r := range s.rows {
		last := len(bands) - 1
		switch {
		case r.stage == "":
		case last >= 0 && bands[last].stage == r.stage && bands[last].end == i:
			bands[last].end++
		default:
			bands = append(bands, band{r.stage, i, i + 1})
		}
	}
	return bands
}

// drawBand draws a band over the whole width.
func (p *picture) drawBand(b band) {
	top := p.y[p.first[b.first]] - bandHead
	bottom := p.y[p.first[b.end-1]] + boxHeight + bandFoot
	left := margin - bandSide
	name := visibleText(b.stage)
	fmt.Fprintf(&p.out, "<g><title>stage %s</title>\n", xmlText(name))
	fmt.Fprintf(&p.out, `<rect x="%d" y="%d" width="%d" height="%d" rx="9" fill="#f5f7f8" stroke="#cfd8dc"/>`+"\n",
		left, top, p.width-2*left, bottom-top)
	fmt.Fprintf(&p.out, `<text x="%d" y="%d" font-weight="bold" fill="#78909c">%s</text>`+"\n", left+10, top+16, xmlText(clipCells(name, bandCells)))
	p.out.WriteString("</g>\n")
}

func rowWidth(n int) int { return n*(boxWidth+gapX) - gapX }

func (p *picture) drawSketch(s *Sketch) string {
	fmt.Fprintf(&p.out, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="11">`+"\n",
		p.width, max(p.height, 2*margin), p.width, max(p.height, 2*margin))
	fmt.Fprintf(&p.out, "<title>%s tree of %s</title>\n", s.treeName(), countOf(int64(s.Estimate.Tasks), "unit"))
	fmt.Fprintf(&p.out, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")

	for _, b := range p.bands {
		p.drawBand(b)
	}

	// Edges are drawn first, so that boxes lie over them.
	for i := range p.all {
		for _, e := range p.all[i].from {
			p.drawEdge(e, i)
		}
	}
	for i := range p.all {
		p.drawBox(i)
	}

	p.out.WriteString("</svg>\n")
	return p.out.String()
}

// drawEdge draws a curve from the foot of one box to the head of another.
func (p *picture) drawEdge(e edge, to int) {
	x1, y1 := p.x[e.box]+boxWidth/2, p.y[e.box]+boxHeight
	x2, y2 := p.x[to]+boxWidth/2, p.y[to]
	middle := (y1 + y2) / 2
	fmt.Fprintf(&p.out, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="#90a4ae"%s/>`+"\n",
		x1, y1, x1, middle, x2, middle, x2, y2, p.all[to].dashPattern())
	if e.count > 1 {
		fmt.Fprintf(&p.out, `<text x="%d" y="%d" fill="#546e7a">%d</text>`+"\n", (x1+x2)/2+5, middle+4, e.count)
	}
}

func (b *box) dashPattern() string { return ifNot(!b.expected, ` stroke-dasharray="5 4"`) }

func (p *picture) drawBox(i int) {
	b, x, y := &p.all[i], p.x[i], p.y[i]
	fmt.Fprintf(&p.out, "<g><title>%s</title>\n", xmlText(visibleText(b.name)))
	fmt.Fprintf(&p.out, `<rect x="%d" y="%d" width="%d" height="%d" rx="7" fill="%s" stroke="%s" stroke-width="1.5"%s/>`+"\n",
		x, y, boxWidth, boxHeight, b.fillColour(), b.strokeColour(), b.dashPattern())
	p.drawLine(x, y+17, "bold", "#37474f", Badge(b.kind, b.level))
	p.drawLine(x, y+35, "normal", "#111111", clipCells(visibleText(b.name), svgCells))
	for j, s := range b.detailLines() {
		p.drawLine(x, y+52+15*j, "normal", "#455a64", clipCells(s, svgCells+6))
	}
	p.out.WriteString("</g>\n")
}

func (p *picture) drawLine(x, y int, weight, colour, s string) {
	fmt.Fprintf(&p.out, `<text x="%d" y="%d" text-anchor="middle" font-weight="%s" fill="%s">%s</text>`+"\n",
		x+boxWidth/2, y, weight, colour, xmlText(s))
}

// xmlText escapes for the text of XML, and replaces what XML cannot hold.
func xmlText(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}
