// Package offset maps the bytes of a derived text to the bytes of the text it was
// derived from: the text of a web page to its source, a normalised text to the
// original. So a position in a derived text can be cited in the original.
//
// It is pure and imports nothing of the project.
package offset

import "slices"

// A Map maps offsets of a derived text to those of its source. A derived text is a
// sequence of steps. A step is the smallest piece of output that comes from one
// piece of the source, such as one character. The nil Map is the identity.
type Map struct {
	runs    []run
	derived int // bytes of the derived text
}

// A run is a sequence of steps of equal sizes that follow each other on both
// sides. It lasts until the next run begins.
type run struct {
	out, in         int   // offset of the first step: derived, source
	outStep, inStep int32 // bytes of a step: derived, source
}

// Len returns the length in bytes of the derived text.
func (m *Map) Len() int { return m.derived }

// Source returns the smallest range of the source from which the bytes
// [start, end) of the derived text came. An empty range maps to an empty one.
// The range must lie within the derived text.
func (m *Map) Source(start, end int) (from, to int) {
	if m == nil {
		return start, end
	}

	if start >= end {
		from = m.sourceAt(start)
		return from, from
	}

	r, k := m.stepAt(start)
	from = r.in + k*int(r.inStep)
	r, k = m.stepAt(end - 1)
	return from, r.in + (k+1)*int(r.inStep)
}

// Splits reports whether a cut at offset p of the derived text would go through
// a step, so that no offset of the source corresponds to it.
func (m *Map) Splits(p int) bool {
	if m == nil || p <= 0 || p >= m.derived {
		return false
	}
	r, _ := m.stepAt(p)
	return (p-r.out)%int(r.outStep) != 0
}

// Derived returns the offset of the derived text at which the first step begins
// that came from offset p of the source or from behind it. It presumes that
// steps stand in the order of the source.
func (m *Map) Derived(p int) int {
	if m == nil {
		return p
	}

	i, found := slices.BinarySearchFunc(m.runs, p, func(r run, p int) int { return r.in - p })
	if found || i == 0 {
		return m.runStart(i)
	}

	// A run of inserted text takes nothing of the source.
	r := m.runs[i-1]
	if r.inStep == 0 {
		return m.runStart(i)
	}

	steps := (p - r.in + int(r.inStep) - 1) / int(r.inStep)
	return min(r.out+steps*int(r.outStep), m.runStart(i))
}

// runStart returns the derived offset at which run i begins, or behind the last
// run the length.
func (m *Map) runStart(i int) int {
	if i == len(m.runs) {
		return m.derived
	}
	return m.runs[i].out
}

// sourceAt returns the offset of the source where the step at p begins, or behind
// the last step, where that ends.
func (m *Map) sourceAt(p int) int {
	if len(m.runs) == 0 {
		return 0
	}

	if p >= m.derived {
		r, k := m.stepAt(m.derived - 1)
		return r.in + (k+1)*int(r.inStep)
	}

	r, k := m.stepAt(p)
	return r.in + k*int(r.inStep)
}

// stepAt returns the run that holds offset p, and the number of p's step in it.
func (m *Map) stepAt(p int) (run, int) {
	i, found := slices.BinarySearchFunc(m.runs, p, func(r run, p int) int { return r.out - p })
	if !found {
		i--
	}
	r := m.runs[i]
	return r, (p - r.out) / int(r.outStep)
}

// Then composes two maps: m maps a text to its source, next maps a further text to
// that text, and the result maps the further text to the source. Either may be nil.
func (m *Map) Then(next *Map) *Map {
	switch {
	case m == nil:
		return next
	case next == nil:
		return m
	}

	// Each step of the further text is mapped by itself, as its run may cross several of
	// this map.
	var b Builder
	for i, r := range next.runs {
		for out := r.out; out < next.runStart(i+1); out += int(r.outStep) {
			from, to := next.Source(out, out+int(r.outStep))
			from, to = m.Source(from, to)
			b.Step(int(r.outStep), from, to-from)
		}
	}

	return b.Map()
}

// A Builder builds a Map from the front of the derived text to its end. Parts of
// the source that are never mentioned were dropped. The zero Builder is ready.
type Builder struct {
	m Map
}

// Len returns the length in bytes of the derived text so far.
func (b *Builder) Len() int { return b.m.derived }

// Step appends one step: out bytes that came from the in bytes of the source at
// offset pos. in is 0 for inserted text. Step does nothing if out is 0.
func (b *Builder) Step(out, pos, in int) {
	if out == 0 {
		return
	}
	b.extendRuns(out, pos, in)
	b.m.derived += out
}

// Copy appends n bytes that are the same as those of the source at pos.
func (b *Builder) Copy(pos, n int) {
	if n == 0 {
		return
	}
	b.extendRuns(1, pos, 1)
	b.m.derived += n
}

// extendRuns begins a new run unless a step of these sizes continues the last.
func (b *Builder) extendRuns(out, pos, in int) {
	if n := len(b.m.runs); n > 0 {
		r := b.m.runs[n-1]
		steps := (b.m.derived - r.out) / int(r.outStep)
		if int(r.outStep) == out && int(r.inStep) == in && pos == r.in+steps*in {
			return
		}
	}
	b.m.runs = append(b.m.runs, run{out: b.m.derived, in: pos, outStep: int32(out), inStep: int32(in)})
}

// Map returns the finished Map. The Builder must not be used after it.
func (b *Builder) Map() *Map { return &b.m }
