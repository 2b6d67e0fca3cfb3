package storetest

import "github.com/coditect/mapreduce/store"

func ownWriteChecks() []Check {
	return []Check{
		{Name: "own writes are read", check: ownPoints},
		{Name: "own writes are read in ranges", check: ownRanges},
		{Name: "own writes count towards a limit", check: ownLimits},
		{Name: "own clears hide what is stored", check: ownClears},
		{Name: "own adds are read", check: ownAdds},
		{Name: "own writes are read by snapshots", check: ownSnapshots},
		{Name: "the last write of a key counts", check: lastWrite},
	}
}

func ownPoints(e *env) {
	e.put("a", "stored", "b", "stored", "c", "stored")
	a := e.begin()
	a.set("a", "own")
	a.clear("b")
	a.set("d", "own")

	a.wantGet("a", "own")
	a.wantMissing("b")
	a.wantGet("c", "stored")
	a.wantGet("d", "own")

	a.set("a", "again")
	a.set("b", "again")
	a.clear("d")

	a.wantGet("a", "again")
	a.wantGet("b", "again")
	a.wantMissing("d")

	a.commit()
	e.wantContents("a", "again", "b", "again", "c", "stored")
}

func ownRanges(e *env) {
	e.put("a", "stored", "c", "stored", "e", "stored", "g", "stored")
	a := e.begin()
	a.set("b", "own")
	a.set("c", "own")
	a.clear("e")
	a.set("f", "own")
	a.set("h", "own")

	a.wantRange(e.allKeys(), store.RangeOptions{}, false,
		"a", "stored", "b", "own", "c", "own", "f", "own", "g", "stored", "h", "own")
	a.wantRange(e.allKeys(), store.RangeOptions{Reverse: true}, false,
		"h", "own", "g", "stored", "f", "own", "c", "own", "b", "own", "a", "stored")
	a.wantRange(e.prefixedRange("b", "f"), store.RangeOptions{}, false, "b", "own", "c", "own")
	a.wantRange(e.prefixedRange("d", "f"), store.RangeOptions{}, false)
}

// ownLimits reads with bounds over many own clears and sets.
func ownLimits(e *env) {
	e.put("a", "stored", "b", "stored", "c", "stored", "d", "stored", "e", "stored")
	a := e.begin()
	a.clear("a")
	a.clear("b")
	a.set("bb", "own")
	a.clear("e")
	a.set("ee", "own")

	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 1}, true, "bb", "own")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 2}, true, "bb", "own", "c", "stored")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 2, Reverse: true}, true, "ee", "own", "d", "stored")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 5}, false,
		"bb", "own", "c", "stored", "d", "stored", "ee", "own")
	a.wantRange(e.allKeys(), store.RangeOptions{Bytes: len(e.prefixedKey("bb")) + len("own") + 1}, true,
		"bb", "own", "c", "stored")
}

func ownClears(e *env) {
	e.put("a", "stored", "b", "stored", "c", "stored", "d", "stored")
	a := e.begin()
	a.set("bb", "own")
	a.clearRange("b", "d")

	a.wantMissing("b")
	a.wantMissing("bb")
	a.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "stored", "d", "stored")
	a.wantRange(e.prefixedRange("b", "d"), store.RangeOptions{Reverse: true}, false)

	a.set("c", "own")
	a.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "stored", "c", "own", "d", "stored")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 2, Reverse: true}, true, "d", "stored", "c", "own")

	a.clearRange("a", "c")
	a.wantRange(e.allKeys(), store.RangeOptions{}, false, "c", "own", "d", "stored")

	a.commit()
	e.wantContents("c", "own", "d", "stored")
}

func ownAdds(e *env) {
	e.put("cleared", encodeNumber(100), "set", encodeNumber(100), "stored", encodeNumber(100))
	a := e.begin()
	a.add("stored", 1)
	a.add("stored", -3)
	a.add("missing", 5)
	a.set("set", encodeNumber(40))
	a.add("set", 2)
	a.clear("cleared")
	a.add("cleared", 7)

	a.wantGet("stored", encodeNumber(98))
	a.wantGet("missing", encodeNumber(5))
	a.wantGet("set", encodeNumber(42))
	a.wantGet("cleared", encodeNumber(7))

	want := []string{"cleared", encodeNumber(7), "missing", encodeNumber(5), "set", encodeNumber(42), "stored", encodeNumber(98)}
	a.wantRange(e.allKeys(), store.RangeOptions{}, false, want...)
	a.wantRange(e.allKeys(), store.RangeOptions{Reverse: true}, false, reversePairs(want)...)

	a.commit()
	e.wantContents(want...)
}

func ownSnapshots(e *env) {
	e.put("a", "stored", "b", "stored", "n", encodeNumber(1))
	a := e.begin()
	before := a.Snapshot()
	a.set("a", "own")
	a.clear("b")
	a.set("c", "own")
	a.add("n", 1)

	for _, r := range []store.Reader{before, a.Snapshot()} {
		e.wantGet(r, "a", "own")
		e.wantMissing(r, "b")
		e.wantRange(r, e.allKeys(), store.RangeOptions{}, false, "a", "own", "c", "own", "n", encodeNumber(2))
	}
}

func lastWrite(e *env) {
	e.put("a", "stored", "b", "stored", "c", "stored")
	a := e.begin()
	a.set("a", "1")
	a.set("a", "2")
	a.clear("b")
	a.set("b", "3")
	a.set("c", "4")
	a.clearRange("c", "d")
	a.add("n", 1)
	a.set("n", encodeNumber(10))
	a.add("n", 1)
	a.add("o", 1)
	a.clear("o")

	a.commit()
	e.wantContents("a", "2", "b", "3", "n", encodeNumber(11))
}
