package storetest

import (
	"fmt"

	"github.com/coditect/mapreduce/store"
)

// A reading depends on what is under the key or range of one letter, "m".
type reading struct {
	name string
	read func(a *actor)
}

func readings() []reading {
	return []reading{
		{"get", func(a *actor) { a.get("m") }},
		{"get all", func(a *actor) {
			_, err := a.GetAll(a.env.ctx, [][]byte{a.env.key("b"), a.env.key("m")})
			a.env.must("get all", err)
		}},
		{"get range", func(a *actor) { a.scan(a.env.span("l", "n"), store.RangeOptions{}) }},
		{"get range of one", func(a *actor) { a.scan(store.Single(a.env.key("m")), store.RangeOptions{}) }},
		{"get range backwards", func(a *actor) { a.scan(a.env.span("l", "n"), store.RangeOptions{Reverse: true}) }},
		{"add read conflict", func(a *actor) { a.pin().AddReadConflict(store.Single(a.env.key("m"))) }},
	}
}

// snapshotReadings depend on nothing.
func snapshotReadings() []reading {
	return []reading{
		{"snapshot get", func(a *actor) { a.snapshot("m") }},
		{"snapshot get all", func(a *actor) {
			_, err := a.Snapshot().GetAll(a.env.ctx, [][]byte{a.env.key("b"), a.env.key("m")})
			a.env.must("get all", err)
		}},
		{"snapshot get range", func(a *actor) { a.env.scan(a.Snapshot(), a.env.span("l", "n"), store.RangeOptions{}) }},
		{"read version", func(a *actor) { a.pin() }},
	}
}

// A writing changes what is under "m".
type writing struct {
	name  string
	write func(a *actor)
}

func writings() []writing {
	return []writing{
		{"set", func(a *actor) { a.set("m", number(2)) }},
		{"clear", func(a *actor) { a.clear("m") }},
		{"clear range", func(a *actor) { a.clearRange("c", "z") }},
		{"add", func(a *actor) { a.add("m", 1) }},
		{"add write conflict", func(a *actor) { a.AddWriteConflict(store.Single(a.env.key("m"))) }},
	}
}

// missWritings change what is beside "m" and beside [l, n).
func missWritings() []writing {
	return []writing{
		{"set", func(a *actor) { a.set("n", number(2)) }},
		{"clear", func(a *actor) { a.clear("k") }},
		{"clear range", func(a *actor) { a.clearRange("c", "l"); a.clearRange("n", "z") }},
		{"add", func(a *actor) { a.add("n", 1) }},
		{"add write conflict", func(a *actor) { a.AddWriteConflict(a.env.span("n", "z")) }},
	}
}

// conflictTable crosses every way to read with every way to write, over a key
// that is stored and over one that is not.
func conflictTable() []Check {
	var checks []Check
	for _, r := range readings() {
		checks = append(checks,
			Check{Name: r.name + " conflicts with what is written in it", check: func(e *env) {
				e.cross(r, writings(), func(what string, err error) { e.wantErr(what, err, store.ErrConflict) })
			}},
			Check{Name: r.name + " conflicts with nothing beside it", exact: true, check: func(e *env) {
				e.cross(r, missWritings(), e.must)
			}})
	}
	for _, r := range snapshotReadings() {
		checks = append(checks, Check{Name: r.name + " conflicts with nothing", exact: true, check: func(e *env) {
			e.cross(r, writings(), e.must)
		}})
	}
	return checks
}

// cross races r with each of writings and judges what comes of it.
func (e *env) cross(r reading, writings []writing, judge func(what string, err error)) {
	for _, w := range writings {
		for _, stored := range []bool{true, false} {
			what := fmt.Sprintf("%s against %s, stored %v", r.name, w.name, stored)
			judge(what, e.race(r, w, stored))
		}
	}
}

// race reads in one transaction, writes in another that commits first, and
// returns what the commit of the reading one comes to.
func (e *env) race(r reading, w writing, stored bool) error {
	setup := e.begin()
	setup.ClearRange(e.all())
	setup.set("b", number(1))
	if stored {
		setup.set("m", number(1))
	}
	setup.commit()
	reader, writer := e.begin(), e.begin()
	r.read(reader)
	reader.set("~", "seen")
	w.write(writer)
	writer.commit()
	return reader.Commit(e.ctx)
}
