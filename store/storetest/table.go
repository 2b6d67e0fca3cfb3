package storetest

import (
	"fmt"

	"github.com/coditect/mapreduce/store"
)

// A readCase is a read that depends on the key "m".
type readCase struct {
	name string
	read func(a *actor)
}

func conflictingReads() []readCase {
	return []readCase{
		{"get", func(a *actor) { a.get("m") }},
		{"get all", func(a *actor) {
			_, err := a.GetAll(a.env.ctx, [][]byte{a.env.prefixedKey("b"), a.env.prefixedKey("m")})
			a.env.must("get all", err)
		}},
		{"get range", func(a *actor) { a.scan(a.env.prefixedRange("l", "n"), store.RangeOptions{}) }},
		{"get range of one", func(a *actor) { a.scan(store.Single(a.env.prefixedKey("m")), store.RangeOptions{}) }},
		{"get range backwards", func(a *actor) { a.scan(a.env.prefixedRange("l", "n"), store.RangeOptions{Reverse: true}) }},
		{"add read conflict", func(a *actor) { a.pinVersion().AddReadConflict(store.Single(a.env.prefixedKey("m"))) }},
	}
}

// snapshotReads returns reads that cause no conflict.
func snapshotReads() []readCase {
	return []readCase{
		{"snapshot get", func(a *actor) { a.snapshotGet("m") }},
		{"snapshot get all", func(a *actor) {
			_, err := a.Snapshot().GetAll(a.env.ctx, [][]byte{a.env.prefixedKey("b"), a.env.prefixedKey("m")})
			a.env.must("get all", err)
		}},
		{"snapshot get range", func(a *actor) { a.env.scan(a.Snapshot(), a.env.prefixedRange("l", "n"), store.RangeOptions{}) }},
		{"read version", func(a *actor) { a.pinVersion() }},
	}
}

// A writeCase is a way to write.
type writeCase struct {
	name  string
	write func(a *actor)
}

func conflictingWrites() []writeCase {
	return []writeCase{
		{"set", func(a *actor) { a.set("m", encodeNumber(2)) }},
		{"clear", func(a *actor) { a.clear("m") }},
		{"clear range", func(a *actor) { a.clearRange("c", "z") }},
		{"add", func(a *actor) { a.add("m", 1) }},
		{"add write conflict", func(a *actor) { a.AddWriteConflict(store.Single(a.env.prefixedKey("m"))) }},
	}
}

// unrelatedWrites returns writes outside of "m" and [l, n).
func unrelatedWrites() []writeCase {
	return []writeCase{
		{"set", func(a *actor) { a.set("n", encodeNumber(2)) }},
		{"clear", func(a *actor) { a.clear("k") }},
		{"clear range", func(a *actor) { a.clearRange("c", "l"); a.clearRange("n", "z") }},
		{"add", func(a *actor) { a.add("n", 1) }},
		{"add write conflict", func(a *actor) { a.AddWriteConflict(a.env.prefixedRange("n", "z")) }},
	}
}

// conflictTable combines every way to read with every way to write, for a key that
// is stored and for one that is not.
func conflictTable() []Check {
	var checks []Check
	for _, r := range conflictingReads() {
		checks = append(checks,
			Check{Name: r.name + " conflicts with what is written in it", check: func(e *env) {
				e.crossReads(r, conflictingWrites(), func(what string, err error) { e.wantErr(what, err, store.ErrConflict) })
			}},
			Check{Name: r.name + " conflicts with nothing beside it", exact: true, check: func(e *env) {
				e.crossReads(r, unrelatedWrites(), e.must)
			}})
	}

	for _, r := range snapshotReads() {
		checks = append(checks, Check{Name: r.name + " conflicts with nothing", exact: true, check: func(e *env) {
			e.crossReads(r, conflictingWrites(), e.must)
		}})
	}

	return checks
}

// crossReads runs r against each of writes and passes the outcome to judge.
func (e *env) crossReads(r readCase, writes []writeCase, judge func(what string, err error)) {
	for _, w := range writes {
		for _, stored := range []bool{true, false} {
			what := fmt.Sprintf("%s against %s, stored %v", r.name, w.name, stored)
			judge(what, e.raceReadWrite(r, w, stored))
		}
	}
}

// raceReadWrite reads in one transaction and writes in another that commits first.
// It returns the error of the reader's commit.
func (e *env) raceReadWrite(r readCase, w writeCase, stored bool) error {
	setup := e.begin()
	setup.ClearRange(e.allKeys())
	setup.set("b", encodeNumber(1))
	if stored {
		setup.set("m", encodeNumber(1))
	}
	setup.commit()

	reader, writer := e.begin(), e.begin()
	r.read(reader)
	reader.set("~", "seen")
	w.write(writer)
	writer.commit()
	return reader.Commit(e.ctx)
}
