package ground

// A Unit is the chunk that quotes are said to come from, and its document. It
// searches for quotes in the chunk, then in the document, and never elsewhere. The
// spans it returns have offsets of the document.
type Unit struct {
	Chunk    *Text
	Points   int   // offset of the chunk in the document, in code points
	Bytes    int   // the same in bytes
	Document *Text // nil if only the chunk is at hand
}

var _ Aligner = Unit{}

// Find implements Aligner. Near is an offset of the chunk.
func (u Unit) Find(quote string, near int) (Span, bool) {
	in, _ := u.Chunk.Find(quote, near)
	var out Span
	if u.Document != nil && !in.Verified() {
		out, _ = u.Document.findFrom(quote, u.Bytes)
	}
	s := u.preferVerified(in, out)
	return s, s.Found()
}

// FindAll implements Aligner.
func (u Unit) FindAll(quotes []string) []Span {
	spans := u.Chunk.FindAll(quotes)

	var at []int // indexes of the quotes that the chunk does not have
	var left []string
	for i, s := range spans {
		if !s.Verified() {
			at, left = append(at, i), append(left, quotes[i])
		}
	}

	out := make([]Span, len(spans))
	if u.Document != nil && len(left) > 0 {
		for k, s := range u.Document.FindAll(left) {
			out[at[k]] = s
		}
	}

	for i, s := range spans {
		spans[i] = u.preferVerified(s, out[i])
	}
	return spans
}

// Source returns the text in which u found s, the chunk or the document, and the
// bytes of s in it.
func (u Unit) Source(s Span) (text string, start, end int) {
	if s.Outside {
		return u.Document.text, s.ByteStart, s.ByteEnd
	}
	return u.Chunk.text, s.ByteStart - u.Bytes, s.ByteEnd - u.Bytes
}

// preferVerified returns the span found in the chunk or, if only that in the
// document is verified, the latter.
func (u Unit) preferVerified(in, out Span) Span {
	switch {
	case out.Found() && (out.Verified() && !in.Verified() || !in.Found()):
		out.Outside = out.ByteStart < u.Bytes || out.ByteEnd > u.Bytes+len(u.Chunk.text)
		return out
	case in.Found():
		return in.Shift(u.Points, u.Bytes)
	}
	return Span{}
}
