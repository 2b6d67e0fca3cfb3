package lifecycle

import (
	"math/rand/v2"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A part of a result that tests read.
type storedPart struct {
	id mapreduce.RecordID // empty of a part that is no record
	at int64
}

// someResult returns parts of a result in the order of their ids, of up to 100 KiB each, and the ids.
func someResult(chance *rand.Rand, records int) (all []storedPart, ids []mapreduce.RecordID) {
	at, unit, number := int64(0), int64(0), int64(0)
	for range records {
		if number++; chance.IntN(3) > 0 {
			unit, number = unit+1+chance.Int64N(1<<20), chance.Int64N(3)
		}
		id := mapreduce.NewRecordID(unit, number)
		all, ids = append(all, storedPart{id, at}, storedPart{"", at + 10}), append(ids, id)
		at += 20 + chance.Int64N(100<<10)
	}
	return all, ids
}

// read reads a result from where a record is to be met, until that has come. It returns how much was read before.
func read(t *testing.T, p *places, of storedResult, all []storedPart, record mapreduce.RecordID) int64 {
	t.Helper()
	from, begun := p.before(of, record), int64(-1)
	found := false
	sink := p.noting(of, func(part *mapreduce.ResultPart) error {
		found = found || part.RecordID == record && part.Record != nil
		return nil
	})
	for _, one := range all {
		if one.at < from || found {
			continue
		}
		if begun < 0 {
			if begun = one.at; begun != from {
				t.Fatalf("%s is looked for from %d on, where no part begins", record, from)
			}
		}
		part := &mapreduce.ResultPart{RecordID: one.id}
		if one.id != "" {
			part.Record = []byte("{}")
		}
		if err := sink(part, one.at); err != nil {
			t.Fatal(err)
		}
		if found {
			return one.at - from
		}
	}
	t.Fatalf("%s is not met from %d on", record, from)
	return 0
}

// Whatever is looked for in which order, each record is met; what was read once is not walked through again.
func TestPlaces(t *testing.T) {
	const most = placeEvery + 100<<10 + 20 // between two places, and one record more
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		all, ids := someResult(chance, 400)
		of := storedResult{job: "j", attempt: 1, sum: "a"}
		var p places
		for range 50 {
			read(t, &p, of, all, ids[chance.IntN(len(ids))])
		}
		read(t, &p, of, all, ids[len(ids)-1])
		for _, i := range chance.Perm(len(ids)) {
			if n := read(t, &p, of, all, ids[i]); n > most {
				t.Errorf("seed %d: %d bytes are read before %s, want at most %d", seed, n, ids[i], most)
			}
		}
		if at := p.before(storedResult{job: "j", attempt: 2, sum: "b"}, ids[len(ids)-1]); at != 0 {
			t.Errorf("of another result something is known: %d", at)
		}
	}
}

// A result whose records come in another order, and what has no id, is read from its beginning.
func TestPlacesOutOfOrder(t *testing.T) {
	var p places
	of := storedResult{job: "j"}
	all := []storedPart{{"5.0", 0}, {"9.0", placeEvery}, {"7.0", placeEvery + 1}, {"11.0", 2 * placeEvery}}
	for _, id := range []mapreduce.RecordID{"11.0", "7.0", "9.0", "11.0"} {
		read(t, &p, of, all, id)
	}
	if at := p.before(of, "11.0"); at != 0 {
		t.Errorf("it is looked for from %d on", at)
	}
	if at := p.before(of, "none"); at != 0 {
		t.Errorf("what is no record is looked for from %d on", at)
	}

	// The results that were read last are remembered.
	for i := range int64(maxPlaced) {
		other := storedResult{job: "k", attempt: i}
		p.note(other, place{recordNumber{1, 0}, 7}, true)
	}
	if at := p.before(storedResult{job: "k", attempt: 0}, "1.0"); at != 7 {
		t.Errorf("one of %d results is looked for from %d on", maxPlaced, at)
	}
	if p.find(of).unordered {
		t.Error("more results are remembered than fit")
	}
}
