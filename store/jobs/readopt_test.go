package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A worker that was given up and comes back may hold more than one record of
// what it holds can name.
func TestManyUnitsAreTakenBack(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	docs := texts(250)
	for i := range docs {
		docs[i].id = fmt.Sprintf("%s/%05d", strings.Repeat("d", 500), i)
	}
	id := w.submit(j, spec(), docs)
	s := w.session(j)
	var holding []mapreduce.Held
	for len(holding) < len(docs) {
		for _, u := range w.claim(j, id, s, 50) {
			holding = append(holding, mapreduce.Held{Job: id, Unit: mapreduce.UnitID(u.UnitId), Attempt: int(u.Attempt)})
		}
	}
	for {
		loss, err := j.Expire(w.ctx, s.id, j.Node(), s.epoch, nil)
		w.must(err)
		if loss.Done {
			break
		}
	}
	s, b := w.bind(j, s.id, holding...)
	if len(b.Kept) != len(docs) || len(b.Drop) != 0 {
		t.Fatalf("%d units were taken back and %d not, want all %d", len(b.Kept), len(b.Drop), len(docs))
	}
	// What is recorded of them is all there: lost again, they all go back.
	back := 0
	for {
		loss, err := j.Expire(w.ctx, s.id, j.Node(), s.epoch, nil)
		w.must(err)
		back += loss.Units
		if loss.Done {
			break
		}
	}
	if back != len(docs) {
		t.Errorf("%d units went back, want %d", back, len(docs))
	}
}
