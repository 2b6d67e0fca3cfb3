package result_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// TestReadText reads the documents that citations count in: whole, through the wire, by
// any unit that read a chunk of them, and by no other unit.
func TestReadText(t *testing.T) {
	docs, order := contracts()
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("rules", checked.New(&scripted.Quoter{Agent: enginetest.ByRules()}), worker.Config{Slots: 2}, n)
	id, got := n.Run(quoted(t, map[string]string{"script.quote.buyer.a.txt_chunk_0": "The buyer is Ankerhaus GmbH & Co"}), enginetest.Texts(docs, order...))
	read := func(unit mapreduce.UnitID, document mapreduce.DocumentID) (string, error) {
		var text strings.Builder
		err := n.ReadText(t.Context(), id, unit, document, func(part []byte) error {
			text.Write(part)
			return nil
		})
		return text.String(), err
	}
	for _, unit := range []mapreduce.UnitID{"a.txt_chunk_0", "a.txt_chunk_2"} {
		if text, err := read(unit, "a.txt"); err != nil || text != docs["a.txt"] {
			t.Errorf("%s read %.40q and error %v", unit, text, err)
		}
	}
	if len(got.Citations) == 0 {
		t.Fatal("nothing is cited")
	}
	for ref, cite := range got.Citations {
		text, err := read(cite.Unit, cite.Document)
		if err != nil || text[cite.ByteStart:cite.ByteEnd] != cite.Quote {
			t.Errorf("%s is not in %.40q, error %v", ref, text, err)
		}
	}
	for _, other := range [][2]string{{"a.txt_chunk_0", "b.txt"}, {"final", "a.txt"}, {"nobody", "a.txt"}, {"", ""}} {
		if text, err := read(mapreduce.UnitID(other[0]), mapreduce.DocumentID(other[1])); errs.KindOf(err) != errs.NotFound {
			t.Errorf("unit %q of document %q: %.40q and error %v", other[0], other[1], text, err)
		}
	}
}
