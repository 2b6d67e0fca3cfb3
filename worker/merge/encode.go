package merge

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The encoding of accumulators: a version byte, the number of field paths and
// the paths, the number of accumulators and each of them. Numbers are varints;
// texts, values and citations carry their length. Equal accumulators have equal
// encodings.
const encodingVersion = 1

// ErrCorrupt is why Decode fails.
var ErrCorrupt = errors.New("merge: corrupt accumulators")

// How a candidate's key is stored: most keys follow from the value.
const (
	keyGiven = iota
	keyIsValue
	keyIsLower
)

// How a value is stored.
const (
	valueJSON = iota
	valueString
	valueNumber
	valueTrue
	valueFalse
)

// Encode returns accumulators in their stored form.
func Encode(all []Accumulator) []byte {
	e := encoder{paths: map[string]uint64{}}
	var paths []string
	for _, a := range all {
		for _, f := range a.Fields {
			if _, ok := e.paths[f.Path]; !ok {
				e.paths[f.Path] = uint64(len(paths))
				paths = append(paths, f.Path)
			}
		}
	}
	e.b = append(e.b, encodingVersion)
	e.number(uint64(len(paths)))
	for _, path := range paths {
		e.text(path)
	}
	e.number(uint64(len(all)))
	for _, a := range all {
		e.accumulator(a)
	}
	return e.b
}

type encoder struct {
	b     []byte
	paths map[string]uint64
}

func (e *encoder) number(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) order(o Order) {
	e.number(uint64(o.Unit))
	e.number(uint64(o.Record))
	e.number(uint64(o.Item))
}

func (e *encoder) accumulator(a Accumulator) {
	e.text(a.Entity)
	e.number(uint64(len(a.Sources)))
	for _, s := range a.Sources {
		e.text(s.Document)
		e.order(s.First)
	}
	e.number(uint64(len(a.Fields)))
	for _, f := range a.Fields {
		e.number(e.paths[f.Path])
		e.number(uint64(len(f.Candidates)))
		for _, c := range f.Candidates {
			e.candidate(c)
		}
		if f.Missing == nil {
			e.number(0)
			continue
		}
		e.number(1)
		e.order(f.Missing.Order)
		e.text(f.Missing.Reason)
	}
}

func (e *encoder) candidate(c Candidate) {
	text := spelling(c.Value)
	switch c.Value.(type) {
	case string:
		e.number(valueString)
		e.text(text)
	case json.Number:
		text = string(c.Value.(json.Number))
		e.number(valueNumber)
		e.text(text)
	case bool:
		if c.Value == true {
			e.number(valueTrue)
		} else {
			e.number(valueFalse)
		}
	default:
		e.number(valueJSON)
		e.text(text)
	}
	switch c.Key {
	case text:
		e.number(keyIsValue)
	case strings.ToLower(text):
		e.number(keyIsLower)
	default:
		e.number(keyGiven)
		e.text(c.Key)
	}
	e.number(uint64(c.Weight))
	e.number(uint64(c.Best))
	e.number(uint64(c.Count))
	e.order(c.First)
	e.order(c.Last)
	e.number(uint64(len(c.Citations)))
	for _, id := range c.Citations {
		e.text(string(id))
	}
}

// Decode is the inverse of Encode. Its error wraps ErrCorrupt.
func Decode(data []byte) ([]Accumulator, error) {
	d := decoder{b: data}
	if version := d.byte(); d.err == nil && version != encodingVersion {
		return nil, fmt.Errorf("%w: version %d", ErrCorrupt, version)
	}
	paths := make([]string, 0, d.count(1))
	for range cap(paths) {
		paths = append(paths, d.text())
	}
	all := make([]Accumulator, 0, d.count(3))
	for range cap(all) {
		all = append(all, d.accumulator(paths))
	}
	if d.err == nil && len(d.b) > 0 {
		d.fail("more than the accumulators")
	}
	if d.err != nil {
		return nil, d.err
	}
	return all, nil
}

// A decoder reads from b. After a fault everything it returns is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrCorrupt, what)
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("too short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[size:]
	return n
}

// signed reads a number that must fit an int64.
func (d *decoder) signed() int64 {
	n := int64(d.number())
	if n < 0 {
		d.fail("number out of range")
		return 0
	}
	return n
}

// count reads how many items follow, each of at least size bytes: so what is
// allocated for them is bounded by the data.
func (d *decoder) count(size int) int {
	n := d.number()
	if n > uint64(len(d.b)/size) {
		d.fail("bad count")
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count(1)
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) order() Order {
	return Order{Unit: d.signed(), Record: d.signed(), Item: d.signed()}
}

func (d *decoder) accumulator(paths []string) Accumulator {
	a := Accumulator{Entity: d.text()}
	for range d.count(4) {
		a.Sources = append(a.Sources, Source{Document: d.text(), First: d.order()})
	}
	for range d.count(3) {
		a.Fields = append(a.Fields, d.field(paths))
	}
	return a
}

func (d *decoder) field(paths []string) Field {
	var f Field
	if i := d.number(); i < uint64(len(paths)) {
		f.Path = paths[i]
	} else {
		d.fail("unknown field")
	}
	for range d.count(12) {
		f.Candidates = append(f.Candidates, d.candidate())
	}
	if d.number() != 0 {
		f.Missing = &Absence{Order: d.order(), Reason: d.text()}
	}
	return f
}

func (d *decoder) candidate() Candidate {
	var c Candidate
	text := d.value(&c)
	switch d.number() {
	case keyIsValue:
		c.Key = text
	case keyIsLower:
		c.Key = strings.ToLower(text)
	case keyGiven:
		c.Key = d.text()
	default:
		d.fail("unknown kind of key")
	}
	c.Weight, c.Best, c.Count = d.signed(), d.signed(), d.signed()
	if c.Count == 0 {
		d.fail("a value that was never seen")
	}
	c.First, c.Last = d.order(), d.order()
	for range d.count(1) {
		c.Citations = append(c.Citations, Citation(d.text()))
	}
	return c
}

// value reads a candidate's value and returns it as text.
func (d *decoder) value(c *Candidate) string {
	switch d.number() {
	case valueString:
		text := d.text()
		c.Value = text
		return text
	case valueNumber:
		text := d.text()
		c.Value = json.Number(text)
		return text
	case valueTrue:
		c.Value = true
		return "true"
	case valueFalse:
		c.Value = false
		return "false"
	case valueJSON:
		text := d.text()
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&c.Value); err != nil && d.err == nil {
			d.fail("a value is not JSON")
		}
		return text
	default:
		d.fail("unknown kind of value")
		return ""
	}
}
