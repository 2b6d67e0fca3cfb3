// Package offset relates the bytes of a derived text to the bytes of the text
// it was derived from: the text of a web page to its source, a normalised text
// to the original. Positions of a derived text can so be cited in the original.
//
// It is pure and imports nothing of the project.
package offset

import "slices"

// A Map relates offsets of a derived text to those of its source. Derived
// texts are made of steps: the smallest pieces of output that a piece of the
// source gave rise to, such as one character. The nil Map is the identity.
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
		from = m.point(start)
		return from, from
	}
	r, k := m.step(start)
	from = r.in + k*int(r.inStep)
	r, k = m.step(end - 1)
	return from, r.in + (k+1)*int(r.inStep)
}

// Splits reports whether a cut at offset p of the derived text would go through
// a step, so that no offset of the source corresponds to it.
func (m *Map) Splits(p int) bool {
	if m == nil || p <= 0 || p >= m.derived {
		return false
	}
	r, _ := m.step(p)
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
		return m.begin(i)
	}
	r := m.runs[i-1]
	if r.inStep == 0 {
		return m.begin(i)
	}
	steps := (p - r.in + int(r.inStep) - 1) / int(r.inStep)
	return min(r.out+steps*int(r.outStep), m.begin(i))
}

// begin returns the derived offset at which run i begins, or the last ends.
func (m *Map) begin(i int) int {
	if i == len(m.runs) {
		return m.derived
	}
	return m.runs[i].out
}

// point returns the offset of the source where the step at p begins, or where
// the last one ends.
func (m *Map) point(p int) int {
	if len(m.runs) == 0 {
		return 0
	}
	if p >= m.derived {
		r, k := m.step(m.derived - 1)
		return r.in + (k+1)*int(r.inStep)
	}
	r, k := m.step(p)
	return r.in + k*int(r.inStep)
}

// step returns the run that holds offset p, and the number of p's step in it.
func (m *Map) step(p int) (run, int) {
	i, found := slices.BinarySearchFunc(m.runs, p, func(r run, p int) int { return r.out - p })
	if !found {
		i--
	}
	r := m.runs[i]
	return r, (p - r.out) / int(r.outStep)
}

// Then returns the map of a text that was derived, as next says, from the text
// that m is the map of. Either may be nil.
func (m *Map) Then(next *Map) *Map {
	switch {
	case m == nil:
		return next
	case next == nil:
		return m
	}
	var b Builder
	for i, r := range next.runs {
		for out := r.out; out < next.begin(i+1); out += int(r.outStep) {
			from, to := next.Source(out, out+int(r.outStep))
			from, to = m.Source(from, to)
			b.Step(int(r.outStep), from, to-from)
		}
	}
	return b.Map()
}

// A Builder makes a Map from the front of the derived text to its end. What of
// the source is never mentioned was dropped. The zero Builder is ready.
type Builder struct {
	m Map
}

// Len returns the length in bytes of the derived text so far.
func (b *Builder) Len() int { return b.m.derived }

// Step appends out bytes that came, as one, from the in bytes of the source at
// offset pos; in is 0 for what was inserted there. It does nothing if out is 0.
func (b *Builder) Step(out, pos, in int) {
	if out == 0 {
		return
	}
	b.extend(out, pos, in)
	b.m.derived += out
}

// Copy appends n bytes that are the same as those of the source at pos.
func (b *Builder) Copy(pos, n int) {
	if n == 0 {
		return
	}
	b.extend(1, pos, 1)
	b.m.derived += n
}

// extend begins a new run unless a step of these sizes continues the last.
func (b *Builder) extend(out, pos, in int) {
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
