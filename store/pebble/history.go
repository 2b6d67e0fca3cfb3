package pebble

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/store"
)

// history remembers the keys that recent commits wrote, to find conflicts with
// transactions that read older values. Only the committer uses it.
//
// It has two generations. Commits enter the recent one. When that has lasted
// store.MaxTxAge, or has used half of the memory allowed, it becomes the old one,
// and the previous old one is dropped. Keys are compared by hash. A collision only
// makes a transaction run again.
type history struct {
	recent, old generation
	limit       int // bytes in both
}

// A generation holds commits with versions above after, or at it: see
// rotateGenerations.
type generation struct {
	after   uint64
	began   time.Time
	newest  map[uint64]uint64 // hash of a key to the version that wrote it last
	commits []commitRecord    // in order
	ranged  []commitRecord    // those of commits that wrote ranges
	size    int               // bytes
}

type commitRecord struct {
	version uint64
	wrote   *footprint
}

// mapEntrySize is the memory of a key in newest, in bytes, with a map's slack.
const mapEntrySize = 32

func newHistory(version uint64, now time.Time, limit int) *history {
	fresh := func() generation {
		return generation{after: version, began: now, newest: make(map[uint64]uint64)}
	}
	return &history{recent: fresh(), old: fresh(), limit: limit}
}

// oldestVersion returns the oldest read version that can be checked for conflicts.
func (h *history) oldestVersion() uint64 { return h.old.after }

func (h *history) memorySize() int { return h.recent.size + h.old.size }

// add records the writes of the commit of version.
func (h *history) add(version uint64, now time.Time, wrote *footprint) {
	if now.Sub(h.recent.began) >= store.MaxTxAge || h.recent.size >= h.limit/2 {
		h.rotateGenerations(now)
	}

	g := &h.recent
	for _, hash := range wrote.keys.hashes {
		g.newest[hash] = version
	}

	record := commitRecord{version, wrote}
	g.commits = append(g.commits, record)
	if len(wrote.ranges) > 0 {
		g.ranged = append(g.ranged, record)
	}

	g.size += wrote.memorySize() + mapEntrySize*wrote.keys.len()
}

// rotateGenerations makes the recent generation the old one. It may happen between
// members of one group, which share a version. Then after is that version, and both
// generations hold commits of it. A transaction that reads at that version needs
// none of them, and one that reads below it checks both generations.
func (h *history) rotateGenerations(now time.Time) {
	last := h.recent.after
	if n := len(h.recent.commits); n > 0 {
		last = h.recent.commits[n-1].version
	}

	// The memory of the generation that is dropped is used again.
	reused := h.old
	h.old = h.recent
	clear(reused.newest)
	clear(reused.commits)
	clear(reused.ranged)

	h.recent = generation{
		after: last, began: now, newest: reused.newest,
		commits: reused.commits[:0], ranged: reused.ranged[:0],
	}
}

// hasConflict reports whether anything in read was written after version, which
// is not below oldestVersion.
func (h *history) hasConflict(version uint64, read *footprint) bool {
	if h.recent.hasConflict(version, read) {
		return true
	}
	return version < h.recent.after && h.old.hasConflict(version, read)
}

func (g *generation) hasConflict(version uint64, read *footprint) bool {
	for _, hash := range read.keys.hashes {
		if g.newest[hash] > version {
			return true
		}
	}

	for _, c := range recordsAfter(g.ranged, version) {
		for i := range read.keys.len() {
			if c.wrote.coversKey(read.keys.keyAt(i)) {
				return true
			}
		}
	}

	// Ranges that were read are compared with the writes of every later commit.
	if len(read.ranges) == 0 {
		return false
	}
	for _, c := range recordsAfter(g.commits, version) {
		if slices.ContainsFunc(read.ranges, c.wrote.touchesRange) {
			return true
		}
	}

	return false
}

// recordsAfter returns the records above version.
func recordsAfter(records []commitRecord, version uint64) []commitRecord {
	i := len(records)
	for i > 0 && records[i-1].version > version {
		i--
	}
	return records[i:]
}
