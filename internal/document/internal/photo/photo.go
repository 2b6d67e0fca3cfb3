// Package photo makes pictures of texts for tests: it prints lines on paper, and takes photographs of
// the paper by simulation, which are turned, blurred, shadowed and packed as JPEG. It says where
// each word is. The same arguments make the same picture.
package photo

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// A Word is a word on paper.
type Word struct {
	Text string
	Ink  image.Rectangle // around what is printed
	Mark image.Rectangle // the same across; from the top to the bottom of what is printed on its line
	Line int
}

// A Paper is what lines are printed on.
type Paper struct {
	Picture *image.Gray
	Words   []Word
}

// Print prints lines, with letters of a size in pixels, all of one width if mono is set.
func Print(lines []string, size float64, mono bool) (*Paper, error) {
	of := goregular.TTF
	if mono {
		of = gomono.TTF
	}

	parsed, err := opentype.Parse(of)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, err
	}
	return printed(face, lines, size), nil
}

// printed prints lines with a face.
func printed(face font.Face, lines []string, size float64) *Paper {
	step, margin, width := int(1.5*size), int(2*size), 0
	for _, line := range lines {
		width = max(width, font.MeasureString(face, line).Ceil())
	}

	p := &Paper{Picture: image.NewGray(image.Rect(0, 0, width+2*margin, step*len(lines)+2*margin))}
	draw.Draw(p.Picture, p.Picture.Rect, image.White, image.Point{}, draw.Src)
	d := font.Drawer{Dst: p.Picture, Src: image.Black, Face: face}
	for i, line := range lines {
		d.Dot = fixed.P(margin, margin+step*i+int(size))
		for text := range strings.SplitAfterSeq(line, " ") {
			ink, _ := d.BoundString(strings.TrimSpace(text))
			if word := strings.TrimSpace(text); word != "" {
				box := image.Rect(ink.Min.X.Floor(), ink.Min.Y.Floor(), ink.Max.X.Ceil(), ink.Max.Y.Ceil())
				p.Words = append(p.Words, Word{Text: word, Ink: box, Mark: box, Line: i})
			}
			d.DrawString(text)
		}
	}
	p.mark()
	return p
}

// mark makes the marks of the words of a line equally high.
func (p *Paper) mark() {
	lines := make(map[int]image.Rectangle)
	for _, w := range p.Words {
		lines[w.Line] = lines[w.Line].Union(w.Ink)
	}
	for i := range p.Words {
		w := &p.Words[i]
		w.Mark.Min.Y, w.Mark.Max.Y = lines[w.Line].Min.Y, lines[w.Line].Max.Y
	}
}

// A Shot is how a photograph of a paper is taken.
type Shot struct {
	Degrees float64 // by which the paper is turned clockwise
	Blur    float64 // standard deviation in pixels
	Shadow  float64 // how much of the light the darkest corner lacks, in [0, 1]
	Noise   float64 // standard deviation in shades of 255
	Quality int     // of the JPEG, in [1, 100]
}

// Take returns a photograph of a paper as a JPEG, and where its words are on that.
func (p *Paper) Take(s Shot, seed uint64) ([]byte, []Word, error) {
	picture, words := p.turn(s.Degrees)
	if s.Blur > 0 {
		picture = blurPicture(picture, s.Blur)
	}
	darkenCorner(picture, s, rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // a test draws the same each time

	var b bytes.Buffer
	err := jpeg.Encode(&b, picture, &jpeg.Options{Quality: s.Quality})
	return b.Bytes(), words, err
}

// turn turns the paper about its middle, on a table that is a little darker than it.
func (p *Paper) turn(degrees float64) (*image.Gray, []Word) {
	if degrees == 0 {
		out := image.NewGray(p.Picture.Rect)
		copy(out.Pix, p.Picture.Pix)
		return out, p.Words
	}

	sin, cos := math.Sincos(degrees * math.Pi / 180)
	width, height := float64(p.Picture.Rect.Dx()), float64(p.Picture.Rect.Dy())
	outWidth, outHeight := math.Ceil(width*math.Abs(cos)+height*math.Abs(sin)), math.Ceil(width*math.Abs(sin)+height*math.Abs(cos))
	out := image.NewGray(image.Rect(0, 0, int(outWidth), int(outHeight)))
	for y := range int(outHeight) {
		for x := range int(outWidth) {
			dx, dy := float64(x)+0.5-outWidth/2, float64(y)+0.5-outHeight/2
			out.SetGray(x, y, color.Gray{Y: sample(p.Picture, cos*dx+sin*dy+width/2-0.5, -sin*dx+cos*dy+height/2-0.5)})
		}
	}

	turned := func(r image.Rectangle) image.Rectangle {
		box := [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
		for _, corner := range [4]image.Point{r.Min, {r.Max.X, r.Min.Y}, r.Max, {r.Min.X, r.Max.Y}} {
			dx, dy := float64(corner.X)-width/2, float64(corner.Y)-height/2
			x, y := cos*dx-sin*dy+outWidth/2, sin*dx+cos*dy+outHeight/2
			box = [4]float64{min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)}
		}
		return image.Rect(int(box[0]), int(box[1]), int(math.Ceil(box[2])), int(math.Ceil(box[3])))
	}
	words := make([]Word, len(p.Words))
	for i, w := range p.Words {
		words[i] = Word{w.Text, turned(w.Ink), turned(w.Mark), w.Line}
	}
	return out, words
}

// table is the shade of what the paper lies on.
const table = 215

// sample returns the shade at a place between pixels.
func sample(m *image.Gray, x, y float64) uint8 {
	left, top := math.Floor(x), math.Floor(y)
	at := func(x, y int) float64 {
		if !image.Pt(x, y).In(m.Rect) {
			return table
		}
		return float64(m.Pix[y*m.Stride+x])
	}
	i, j, fx, fy := int(left), int(top), x-left, y-top
	return uint8((at(i, j)*(1-fx)+at(i+1, j)*fx)*(1-fy) + (at(i, j+1)*(1-fx)+at(i+1, j+1)*fx)*fy)
}

// blurPicture blurs a picture by a bell of a deviation, one direction after the other.
func blurPicture(m *image.Gray, deviation float64) *image.Gray {
	reach := int(math.Ceil(3 * deviation))
	weights, sum := make([]float64, 2*reach+1), 0.0
	for i := range weights {
		d := float64(i-reach) / deviation
		weights[i] = math.Exp(-d * d / 2)
		sum += weights[i]
	}

	pass := func(from *image.Gray, dx, dy int) *image.Gray {
		out := image.NewGray(from.Rect)
		width, height := from.Rect.Dx(), from.Rect.Dy()
		for y := range height {
			for x := range width {
				v := 0.0
				for i, w := range weights {
					v += w * float64(from.Pix[min(max(y+dy*(i-reach), 0), height-1)*from.Stride+min(max(x+dx*(i-reach), 0), width-1)])
				}
				out.Pix[y*out.Stride+x] = uint8(v/sum + 0.5)
			}
		}
		return out
	}
	return pass(pass(m, 1, 0), 0, 1)
}

// darkenCorner darkens a picture towards one corner, with an edge as that of a hand, and adds noise.
func darkenCorner(m *image.Gray, s Shot, random *rand.Rand) {
	width, height := float64(m.Rect.Dx()), float64(m.Rect.Dy())
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			far := (float64(x)/width + float64(y)/height) / 2
			lacks := s.Shadow * far
			if far > 0.6 {
				lacks = s.Shadow
			}
			v := float64(m.Pix[y*m.Stride+x])*(1-lacks) + s.Noise*random.NormFloat64()
			m.Pix[y*m.Stride+x] = uint8(min(max(v, 0), 255))
		}
	}
}
