package storetest

import (
	"math"

	"github.com/coditect/mapreduce/store"
)

func addChecks() []Check {
	return []Check{
		{Name: "add sums", check: addSums},
		{Name: "add wraps around", check: addWraps},
		{Name: "adds do not conflict", check: addsTogether, exact: true},
		{Name: "add after add, set and clear of others", check: addAfterOthers},
		{Name: "reading an own add conflicts", check: addThenRead},
		{Name: "reading an own add by snapshot does not conflict", check: addThenSnapshot, exact: true},
	}
}

func addSums(e *env) {
	e.put("stored", encodeNumber(40))

	a := e.begin()
	a.add("stored", 2)
	a.add("missing", 5)
	a.add("missing", -5) // zero is not missing
	a.add("negative", -1)
	a.commit()
	e.wantContents("missing", encodeNumber(0), "negative", encodeNumber(-1), "stored", encodeNumber(42))

	b := e.begin()
	b.add("stored", -43)
	b.commit()
	e.wantContents("missing", encodeNumber(0), "negative", encodeNumber(-1), "stored", encodeNumber(-1))
}

func addWraps(e *env) {
	e.put("n", encodeNumber(math.MaxInt64))
	a := e.begin()
	a.add("n", 1)
	a.wantGet("n", encodeNumber(math.MinInt64))
	a.commit()
	e.wantContents("n", encodeNumber(math.MinInt64))
}

func addsTogether(e *env) {
	adders := []*actor{e.begin(), e.begin(), e.begin()}
	for i, a := range adders {
		a.wantMissing("other") // a read version, so that there is something to conflict with
		a.add("n", int64(i+1))
		a.add("n", 10)
	}
	for _, a := range adders {
		a.commit()
	}
	e.wantContents("n", encodeNumber(36))
}

// addAfterOthers commits an add over what changed since it was asked for.
func addAfterOthers(e *env) {
	e.put("added", encodeNumber(1), "cleared", encodeNumber(1), "set", encodeNumber(1))

	a := e.begin()
	a.add("added", 5)
	a.add("cleared", 5)
	a.add("set", 5)

	b := e.begin()
	b.add("added", 100)
	b.clear("cleared")
	b.set("set", encodeNumber(1000))
	b.commit()

	a.commit()
	e.wantContents("added", encodeNumber(106), "cleared", encodeNumber(5), "set", encodeNumber(1005))
}

func addThenRead(e *env) {
	e.put("n", encodeNumber(1))

	for _, read := range []func(a *actor){
		func(a *actor) { a.wantGet("n", encodeNumber(2)) },
		func(a *actor) { a.wantRange(e.allKeys(), store.RangeOptions{}, false, "n", encodeNumber(2)) },
	} {
		a := e.begin()
		a.add("n", 1)
		read(a)
		e.put("n", encodeNumber(1))
		a.wantConflict()
	}

	e.wantContents("n", encodeNumber(1))
}

func addThenSnapshot(e *env) {
	e.put("n", encodeNumber(1))
	a := e.begin()
	a.add("n", 1)
	e.wantGet(a.Snapshot(), "n", encodeNumber(2))
	e.put("n", encodeNumber(10))
	a.commit()
	e.wantContents("n", encodeNumber(11))
}
