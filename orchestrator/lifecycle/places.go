package lifecycle

import (
	"cmp"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// places remembers where records stand in stored results, as far as these were read here: about every placeEvery
// bytes one of them. So a record is found without a walk through all that stands before it.
//
//   - Nothing depends on what is remembered but how much is read.
//   - A result whose records do not come in the order of their ids, as none does, is always read from its beginning.
//
// The zero value is ready for use, and safe for concurrent use.
type places struct {
	mu  sync.Mutex
	all []*placed // the one that was used last first, at most maxPlaced
}

const (
	placeEvery = 256 << 10
	maxPlaced  = 32 // results
)

// A storedResult names a result: what a resume stores in its place is another one.
type storedResult struct {
	job     mapreduce.JobID
	attempt int64
	sum     string
}

// placesOf returns which result a unit has made.
func placesOf(id mapreduce.JobID, u *records.Unit) storedResult {
	p := u.Published()
	return storedResult{id, p.Attempt, string(p.SHA256)}
}

// placed is what is remembered of a result.
type placed struct {
	of        storedResult
	some      []place // in the order of the result
	unordered bool
}

// A place is where a record begins.
type place struct {
	record recordNumber
	at     int64
}

// A recordNumber is the id of a record.
type recordNumber struct{ unit, record int64 }

func (n recordNumber) compare(m recordNumber) int {
	return cmp.Or(cmp.Compare(n.unit, m.unit), cmp.Compare(n.record, m.record))
}

func numberOf(id mapreduce.RecordID) (n recordNumber, ok bool) {
	unit, record, ok := id.Parse()
	return recordNumber{unit, record}, ok
}

// before returns where to begin to read a result so as to meet a record: 0 if nothing better is known.
func (p *places) before(of storedResult, record mapreduce.RecordID) int64 {
	n, ok := numberOf(record)
	if !ok {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	one := p.find(of)
	if one.unordered {
		return 0
	}
	i, found := slices.BinarySearchFunc(one.some, n, func(x place, n recordNumber) int { return x.record.compare(n) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return one.some[i].at
}

// noting returns a sink for parts of a result that notes where records begin before it passes them on to another. The
// parts come in the order of the result, without a gap.
func (p *places) noting(of storedResult, to func(*mapreduce.ResultPart) error) func(*mapreduce.ResultPart, int64) error {
	last := recordNumber{-1, -1}
	next := int64(0) // no record before is worth a note
	return func(part *mapreduce.ResultPart, at int64) error {
		n, ok := recordNumber{}, false
		if part.Record != nil {
			n, ok = numberOf(part.RecordID)
		}

		if ordered := n.compare(last) > 0; ok && (at >= next || !ordered) {
			next = p.note(of, place{n, at}, ordered)
		}
		if ok {
			last = n
		}
		return to(part)
	}
}

// note notes a place, unless another one is near, and returns from where on another is worth a note.
func (p *places) note(of storedResult, at place, ordered bool) (next int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	one := p.find(of)
	one.unordered = one.unordered || !ordered
	if len(one.some) == 0 || at.at >= one.some[len(one.some)-1].at+placeEvery {
		one.some = append(one.some, at)
	}
	return one.some[len(one.some)-1].at + placeEvery
}

// find returns what is remembered of a result. The caller holds p.mu.
func (p *places) find(of storedResult) *placed {
	i := slices.IndexFunc(p.all, func(x *placed) bool { return x.of == of })
	one := &placed{of: of}
	if i >= 0 {
		one = p.all[i]
		p.all = slices.Delete(p.all, i, i+1)
	}
	p.all = slices.Insert(p.all, 0, one)
	p.all = p.all[:min(len(p.all), maxPlaced)]
	return one
}
