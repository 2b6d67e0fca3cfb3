package pdf

import (
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/pdf/arrange"
)

// Bounds of what is drawn on a page.
const (
	maxObjects  = 100_000 // that are looked at
	maxRulings  = 20_000  // that are kept
	maxSegments = 100_000 // of paths that are looked at
	maxForms    = 8       // parts of a page within each other
	thin        = 2.5     // points; what is filled and not wider is a line
	slant       = 0.5     // points by which the ends of a line may be higher or lower
)

// Kinds of objects of a page (FPDF_PAGEOBJ_…), and of segments of a path (FPDF_SEGMENT_…).
const (
	textObject  = 1
	pathObject  = 2
	imageObject = 3
	formObject  = 5
	moveTo      = 2
	lineTo      = 0
)

// A matrix has the point (x, y) at (a·x + c·y + e, b·x + d·y + f), as in PDF.
type matrix struct{ a, b, c, d, e, f float64 }

func (m matrix) at(x, y float64) (float64, float64) {
	return m.a*x + m.c*y + m.e, m.b*x + m.d*y + m.f
}

// times returns the matrix that does what m does, and then what n does.
func (m matrix) times(n matrix) matrix {
	a, b := n.a*m.a+n.c*m.b, n.b*m.a+n.d*m.b
	c, d := n.a*m.c+n.c*m.d, n.b*m.c+n.d*m.d
	e, f := n.at(m.e, m.f)
	return matrix{a, b, c, d, e, f}
}

// A ruler finds the lines of a page, and gives a width to text of which none is known.
type ruler struct {
	page     *page
	pdfium   *instance
	lines    arrange.Rulings
	objects  int // that may still be looked at
	segments int
}

// maxImages bounds the pictures within a page that are looked at.
const maxImages = 256

// readRulings returns the lines of a page, and notes its pictures. It must be called before its text is read: see widen.
func (p *page) readRulings() arrange.Rulings {
	p.images = nil
	r := ruler{page: p, pdfium: p.pdfium, objects: maxObjects, segments: maxSegments}
	toPage := matrix{p.a, p.d, p.b, p.e, p.c, p.f}
	r.read(asInteger(p.pdfium.call("FPDFPage_CountObjects", p.handle)), "FPDFPage_GetObject", p.handle, toPage, 0)
	r.lines.Cut = r.lines.Cut || r.objects == 0 || r.segments == 0
	return r.lines
}

// read looks at some objects, which a function returns of a page or of a part of it.
func (r *ruler) read(count int, get string, of uint64, to matrix, depth int) {
	for i := range count {
		if r.objects == 0 || r.pdfium.gone != nil {
			return
		}

		// The bound is for all objects of the page, those of its forms included.
		r.objects--
		object := r.pdfium.call(get, of, integer(i))

		switch asInteger(r.pdfium.call("FPDFPageObj_GetType", object)) {
		case textObject:
			if depth == 0 {
				r.widenText(object)
			}
		case pathObject:
			r.addPath(object, to)
		case imageObject:
			switch b, ok := r.boundsOf(object, to); {
			case ok && min(b.Right-b.Left, b.Bottom-b.Top) <= thin:
				r.addBox(b)
			case ok && len(r.page.images) < maxImages:
				r.page.images = append(r.page.images, b)
			}
		case formObject:
			if m, ok := r.matrix(object); ok && depth < maxForms {
				r.read(asInteger(r.pdfium.call("FPDFFormObj_CountObjects", object)), "FPDFFormObj_GetObject", object, m.times(to), depth+1)
			}
		}
	}
}

// noWidth is in points; PDFium leaves out text that is not wider.
const noWidth = 0.01

// widenText gives a width to text of which none is known, as of one glyph in a font that is not
// at hand: PDFium would leave it out. It is as if its outline were drawn, which has a width.
func (r *ruler) widenText(object uint64) {
	const outlined = 1 // FPDF_TEXTRENDERMODE_STROKE

	call, at := r.pdfium.call, r.pdfium.place
	if call("FPDFPageObj_GetBounds", object, at(0), at(1), at(2), at(3)) == 0 || r.pdfium.float32At(2)-r.pdfium.float32At(0) >= noWidth {
		return
	}

	if font := call("FPDFTextObj_GetFont", object); font == 0 || call("FPDFFont_GetIsEmbedded", font) != 0 {
		return
	}

	call("FPDFTextObj_SetTextRenderMode", object, outlined)
	call("FPDFPageObj_SetStrokeWidth", object, real32(1))
	call("FPDFPageObj_Transform", object, real64(1), 0, 0, real64(1), 0, 0) // has it measured again
}

// matrix returns the matrix of an object.
func (r *ruler) matrix(object uint64) (m matrix, ok bool) {
	if r.pdfium.call("FPDFPageObj_GetMatrix", object, r.pdfium.place(0)) == 0 {
		return m, false
	}
	n := r.pdfium.filledNumber // six numbers of 4 bytes
	m = matrix{n(0), n(1), n(2), n(3), n(4), n(5)}
	return m, areFinite(m.a, m.b, m.c, m.d, m.e, m.f)
}

// boundsOf returns what an object covers of the page.
func (r *ruler) boundsOf(object uint64, to matrix) (b mapreduce.Box, ok bool) {
	at := r.pdfium.place
	if r.pdfium.call("FPDFPageObj_GetBounds", object, at(0), at(1), at(2), at(3)) == 0 {
		return b, false
	}
	x1, y1 := to.at(r.pdfium.float32At(0), r.pdfium.float32At(1))
	x2, y2 := to.at(r.pdfium.float32At(2), r.pdfium.float32At(3))
	return mapreduce.Box{Left: min(x1, x2), Top: min(y1, y2), Right: max(x1, x2), Bottom: max(y1, y2)}, areFinite(x1, y1, x2, y2)
}

// addPath adds the lines of a path: of one that is drawn, its level and upright segments; of
// one that is filled, rectangles that are so thin that they are lines, and the sides of those
// that give cells a colour.
func (r *ruler) addPath(path uint64, to matrix) {
	b, ok := r.boundsOf(path, to)
	if !ok || max(b.Right-b.Left, b.Bottom-b.Top) < arrange.Shortest {
		return
	}

	if r.pdfium.call("FPDFPath_GetDrawMode", path, r.pdfium.place(0), r.pdfium.place(1)) == 0 {
		return
	}

	filled, drawn := r.pdfium.int32At(0) != 0, r.pdfium.int32At(1) != 0
	switch {
	case !filled && !drawn: // it clips
		return
	case min(b.Right-b.Left, b.Bottom-b.Top) <= thin:
		r.addBox(b)
		return
	case !drawn && r.isWhite(path): // it hides what is below it
		return
	}

	if m, ok := r.matrix(path); ok {
		r.addSegments(path, m.times(to), drawn)
	}
}

// isWhite reports whether a path is filled with white, or with what shows through.
func (r *ruler) isWhite(path uint64) bool {
	at := r.pdfium.place
	if r.pdfium.call("FPDFPageObj_GetFillColor", path, at(0), at(1), at(2), at(3)) == 0 {
		return false // a pattern
	}
	const nearly = 250
	channel := r.pdfium.int32At
	return channel(3) < 8 || channel(0) >= nearly && channel(1) >= nearly && channel(2) >= nearly
}

// addSegments adds what the segments of a path show.
func (r *ruler) addSegments(path uint64, to matrix, drawn bool) {
	var points []point // of a part of the path that is one stroke of the pen
	flush := func() {
		r.addStroke(points, drawn)
		points = points[:0]
	}

	for i := range min(asInteger(r.pdfium.call("FPDFPath_CountSegments", path)), r.segments) {
		r.segments--
		segment := r.pdfium.call("FPDFPath_GetPathSegment", path, integer(i))
		kind := asInteger(r.pdfium.call("FPDFPathSegment_GetType", segment))

		if kind == moveTo {
			flush()
		}

		if r.pdfium.call("FPDFPathSegment_GetPoint", segment, r.pdfium.place(0), r.pdfium.place(1)) == 0 {
			continue
		}

		x, y := to.at(r.pdfium.float32At(0), r.pdfium.float32At(1))
		points = append(points, point{x, y, kind != lineTo && kind != moveTo})

		if r.pdfium.call("FPDFPathSegment_GetClose", segment) != 0 {
			points = append(points, point{points[0].x, points[0].y, false})
		}
	}

	flush()
}

// A point is one to which a pen is moved.
type point struct {
	x, y   float64
	curved bool // not straight from the point before
}

// addStroke adds what one stroke of the pen shows.
func (r *ruler) addStroke(points []point, drawn bool) {
	// What is only filled shows a line or a cell if it is a rectangle.
	if !drawn {
		if b, ok := rectangle(points); ok {
			r.addBox(b)
		}
		return
	}

	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		switch {
		case b.curved:
		case math.Abs(a.y-b.y) <= slant:
			r.add(&r.lines.Level, (a.y+b.y)/2, a.x, b.x)
		case math.Abs(a.x-b.x) <= slant:
			r.add(&r.lines.Upright, (a.x+b.x)/2, a.y, b.y)
		}
	}
}

// rectangle returns the rectangle that points go around.
func rectangle(points []point) (b mapreduce.Box, ok bool) {
	if len(points) < 4 || len(points) > 6 {
		return b, false
	}

	b = mapreduce.Box{Left: points[0].x, Top: points[0].y, Right: points[0].x, Bottom: points[0].y}
	for i, p := range points {
		// Each side must be level or upright.
		if p.curved || i > 0 && math.Abs(p.x-points[i-1].x) > slant && math.Abs(p.y-points[i-1].y) > slant {
			return b, false
		}

		b.Left, b.Top, b.Right, b.Bottom = min(b.Left, p.x), min(b.Top, p.y), max(b.Right, p.x), max(b.Bottom, p.y)
	}

	return b, true
}

// addBox adds what is filled: a thin rectangle is a line, another has four sides.
func (r *ruler) addBox(b mapreduce.Box) {
	switch {
	case b.Bottom-b.Top <= thin && b.Bottom-b.Top <= b.Right-b.Left:
		r.add(&r.lines.Level, (b.Top+b.Bottom)/2, b.Left, b.Right)
	case b.Right-b.Left <= thin:
		r.add(&r.lines.Upright, (b.Left+b.Right)/2, b.Top, b.Bottom)
	default:
		r.add(&r.lines.LevelSides, b.Top, b.Left, b.Right)
		r.add(&r.lines.LevelSides, b.Bottom, b.Left, b.Right)
		r.add(&r.lines.UprightSides, b.Left, b.Top, b.Bottom)
		r.add(&r.lines.UprightSides, b.Right, b.Top, b.Bottom)
	}
}

// add adds a line, as far as it is on the page.
func (r *ruler) add(to *[]arrange.Ruling, at, from, end float64) {
	across, along := r.page.height, r.page.width
	if to == &r.lines.Upright || to == &r.lines.UprightSides {
		across, along = along, across
	}

	from, end = max(min(from, end), 0), min(max(from, end), along)

	// The condition is turned round, so that a place that is no number is left out, too.
	if !(at >= -thin && at <= across+thin && end > from) {
		return
	}

	if len(*to) == maxRulings {
		r.lines.Cut = true
		return
	}

	*to = append(*to, arrange.Ruling{At: at, From: from, To: end})
}
