package storetest

import "github.com/coditect/mapreduce/store"

func conflictChecks() []Check {
	return []Check{
		{Name: "blind writes never conflict", check: blindWrites, exact: true},
		{Name: "no lost update", check: lostUpdate},
		{Name: "no write skew", check: writeSkew},
		{Name: "no write skew over ranges", check: rangeSkew},
		{Name: "no phantom", check: phantomInRange},
		{Name: "no phantom before the last key of a limited read", check: phantomWithin},
		{Name: "a limited read ends at its last key", check: phantomBeyond, exact: true},
		{Name: "a read that was not cut short covers its range", check: notCutShort},
		{Name: "a change there and back is a change", check: thereAndBack},
		{Name: "reading what is missing is reading", check: missingConflicts},
		{Name: "reading own writes adds no conflict", check: ownReads, exact: true},
		{Name: "reading before writing adds a conflict", check: readThenWrite},
		{Name: "transactions that only read succeed", check: onlyReads},
		{Name: "write conflicts are validated", check: onlyWriteConflicts},
		{Name: "what others read is no conflict", check: readersDoNotConflict, exact: true},
		{Name: "commits before the first read are no conflict", check: earlierCommits, exact: true},
		{Name: "a failed commit conflicts with nothing", check: failedCommit, exact: true},
		{Name: "conflicts are found among many commits", check: manyCommits},
	}
}

func blindWrites(e *env) {
	e.put("a", "0", "b", "0", "c", "0", "n", encodeNumber(0))
	writers := []*actor{e.begin(), e.begin(), e.begin()}

	for i, w := range writers {
		w.set("a", string(rune('1'+i)))
		w.clear("b")
		w.clearRange("c", "d")
		w.add("n", 1)
		w.AddWriteConflict(e.prefixedRange("x", "z"))
	}

	for _, w := range writers {
		w.commit()
	}

	e.wantContents("a", "3", "n", encodeNumber(3))
}

func lostUpdate(e *env) {
	e.put("n", "0")
	a, b := e.begin(), e.begin()
	a.wantGet("n", "0")
	b.wantGet("n", "0")
	a.set("n", "a")
	b.set("n", "b")
	b.commit()
	a.wantConflict()
	e.wantContents("n", "b")
}

// writeSkew has each of two transactions clear a key because the other's key is set.
func writeSkew(e *env) {
	e.put("a", "stays", "b", "stays")
	a, b := e.begin(), e.begin()
	a.wantGet("b", "stays")
	b.wantGet("a", "stays")
	a.clear("a")
	b.clear("b")
	a.commit()
	b.wantConflict()
	e.wantContents("b", "stays")
}

func rangeSkew(e *env) {
	a, b := e.begin(), e.begin()
	a.wantRange(e.prefixedRange("a", "b"), store.RangeOptions{}, false)
	b.wantRange(e.prefixedRange("b", "c"), store.RangeOptions{}, false)
	a.set("b1", "a")
	b.set("a1", "b")
	a.commit()
	b.wantConflict()
	e.wantContents("b1", "a")
}

func phantomInRange(e *env) {
	e.put("b", "1", "d", "1")
	for _, o := range []store.RangeOptions{{}, {Reverse: true}, {Limit: 100}, {Bytes: 1 << 20, Reverse: true}} {
		for _, key := range []string{"a", "a\xff", "c", "e", "z"} {
			a := e.begin()
			a.wantRange(e.prefixedRange("a", "z\x00"), o, false, pairsIn(o, "b", "1", "d", "1")...)
			a.set("~", "seen")

			e.put(key, "phantom")
			a.wantConflict()

			// The phantom goes before the next round.
			w := e.begin()
			w.clear(key)
			w.commit()
		}
	}

	e.wantContents("b", "1", "d", "1")
}

// pairsIn returns pairs in the direction of o.
func pairsIn(o store.RangeOptions, pairs ...string) []string {
	if o.Reverse {
		return reversePairs(pairs)
	}
	return pairs
}

// A cut is a bounded read of [b, y), which holds c, g, m and t.
type cut struct {
	options        store.RangeOptions
	within, beyond []string // keys inside and outside of the part that it has read
}

func (e *env) cutReads() []cut {
	two := len(e.prefixedKey("c")) + 2 // one byte more than one pair
	return []cut{
		{store.RangeOptions{Limit: 1}, []string{"b", "b1", "c"}, []string{"c\x00", "d", "x", "a", "y"}},
		{store.RangeOptions{Limit: 2}, []string{"b", "d", "g"}, []string{"g\x00", "h", "m", "a", "y"}},
		{store.RangeOptions{Limit: 2, Reverse: true}, []string{"m", "m\x00", "n", "t", "x"}, []string{"l", "g", "b", "y"}},
		{store.RangeOptions{Bytes: two}, []string{"b", "d", "g"}, []string{"g\x00", "h", "m", "y"}},
		{store.RangeOptions{Bytes: two, Reverse: true}, []string{"m", "n", "x"}, []string{"l", "b", "y"}},
	}
}

// cutShort reads with c, writes key in another transaction, and returns the error
// of the first one's commit.
func (e *env) cutShort(c cut, key string) error {
	a := e.begin()
	_, more := a.scan(e.prefixedRange("b", "y"), c.options)
	if !more {
		e.fail("range %+v: got no more, want some", c.options)
	}
	a.set("~", "seen")

	w := e.begin()
	w.set(key, "x")
	w.commit()

	err := a.Commit(e.ctx)

	// Put back what the next round expects.
	w = e.begin()
	w.ClearRange(e.allKeys())
	for _, k := range []string{"c", "g", "m", "t"} {
		w.set(k, "x")
	}
	w.commit()
	return err
}

func (e *env) putCut() { e.put("c", "x", "g", "x", "m", "x", "t", "x") }

func phantomWithin(e *env) {
	e.putCut()
	for _, c := range e.cutReads() {
		for _, key := range c.within {
			e.wantErr("write of "+key, e.cutShort(c, key), store.ErrConflict)
		}
	}
}

func phantomBeyond(e *env) {
	e.putCut()
	for _, c := range e.cutReads() {
		for _, key := range c.beyond {
			e.must("write of "+key, e.cutShort(c, key))
		}
	}
}

// notCutShort reads with bounds that the whole range fits.
func notCutShort(e *env) {
	for _, o := range []store.RangeOptions{{Limit: 3}, {Bytes: 1 << 20}, {Limit: 3, Reverse: true}} {
		for _, key := range []string{"b", "y"} {
			e.put("g", "x", "m", "x")

			a := e.begin()
			a.wantRange(e.prefixedRange("b", "z"), o, false, pairsIn(o, "g", "x", "m", "x")...)
			a.set("~", "seen")
			e.put(key, "phantom")
			a.wantConflict()

			w := e.begin()
			w.clear(key)
			w.commit()
		}
	}
}

func thereAndBack(e *env) {
	e.put("a", "1")
	a := e.begin()
	a.wantGet("a", "1")
	a.set("b", "1")
	e.put("a", "2")
	e.put("a", "1")
	a.wantConflict()
}

func missingConflicts(e *env) {
	a, b := e.begin(), e.begin()
	a.wantMissing("a")
	b.wantMissing("a")
	a.set("a", "a")
	b.set("a", "b")
	a.commit()
	b.wantConflict()
	e.wantContents("a", "a")
}

func ownReads(e *env) {
	e.put("a", "1", "b", "1", "c", "1", "z", "1")
	a := e.begin()
	a.wantGet("z", "1") // fixes the version

	a.set("a", "own")
	a.clear("b")
	a.clearRange("c", "d")
	a.set("n", encodeNumber(1))
	a.add("n", 1)

	a.wantGet("a", "own")
	a.wantMissing("b")
	a.wantMissing("c")
	a.wantGet("n", encodeNumber(2))
	a.wantRange(e.prefixedRange("c", "d"), store.RangeOptions{}, false)
	a.wantRange(store.Single(e.prefixedKey("a")), store.RangeOptions{}, false, "a", "own")

	e.put("a", "other", "b", "other", "c", "other", "cc", "other", "n", encodeNumber(7))
	a.commit()
	e.wantContents("a", "own", "n", encodeNumber(2), "z", "1")
}

func readThenWrite(e *env) {
	e.put("a", "1")
	a := e.begin()
	a.wantGet("a", "1")
	a.set("a", "own")
	a.wantGet("a", "own")
	e.put("a", "other")
	a.wantConflict()
	e.wantContents("a", "other")
}

func onlyReads(e *env) {
	e.put("a", "1")
	a := e.begin()
	a.wantGet("a", "1")
	a.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "1")
	a.AddReadConflict(e.allKeys())
	e.put("a", "2")
	a.wantGet("a", "1")
	a.commit()
	e.begin().commit() // nor does one that did nothing
}

func onlyWriteConflicts(e *env) {
	e.put("a", "1")
	a, b := e.begin().pinVersion(), e.begin()
	a.AddReadConflict(store.Single(e.prefixedKey("x")))
	a.AddWriteConflict(store.Single(e.prefixedKey("y")))

	b.wantMissing("y")
	b.set("b", "b")
	e.put("x", "1")
	a.wantConflict()

	c := e.begin().pinVersion()
	c.AddWriteConflict(store.Single(e.prefixedKey("y")))
	c.commit()

	b.wantConflict()
	e.wantContents("a", "1", "x", "1")
}

func readersDoNotConflict(e *env) {
	e.put("a", "1")
	a, b := e.begin(), e.begin()

	a.wantGet("a", "1")
	b.wantGet("a", "1")
	b.AddReadConflict(e.allKeys())
	a.set("b", "1")
	b.commit()

	c := e.begin()
	c.wantGet("a", "1")
	c.set("c", "1")

	a.commit()
	c.commit()
	e.wantContents("a", "1", "b", "1", "c", "1")
}

// earlierCommits reads after a commit that happened between begin and the read.
func earlierCommits(e *env) {
	e.put("a", "1")
	a := e.begin()
	e.put("a", "2")
	a.wantGet("a", "2")
	a.set("b", "1")
	a.commit()
	e.wantContents("a", "2", "b", "1")
}

func failedCommit(e *env) {
	e.put("a", "1")
	a, b := e.begin(), e.begin()
	a.wantGet("a", "1")
	a.set("b", "never")
	b.wantMissing("b")
	b.set("c", "1")
	e.put("a", "2")
	a.wantConflict()
	b.commit()
	e.wantContents("a", "2", "c", "1")
}

// manyCommits commits the conflicting write among many others.
func manyCommits(e *env) {
	first, middle, last := e.begin(), e.begin(), e.begin()
	for key, a := range map[string]*actor{"first": first, "middle": middle, "last": last} {
		a.wantRange(store.Prefixed(e.prefixedKey(key)), store.RangeOptions{}, false)
		a.set("seen", "1")
	}

	e.put("first/phantom", "1")
	for i := range 20 {
		e.put(string(rune('a'+i%10)), "1")
	}
	e.put("middle/phantom", "1")
	for i := range 20 {
		e.put(string(rune('n'+i%10)), "1")
	}
	e.put("last/phantom", "1")

	first.wantConflict()
	middle.wantConflict()
	last.wantConflict()
}
