package records_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// What a unit has asked, and what became of it, is cleared whole, however long both are and whether that is known; and
// so is its journal.
func TestAskedIsClearedWhole(t *testing.T) {
	rec, db := records.New(keys.New("test"), "node", time.Now), store.NewDB(driver.Open(t), store.Config{})
	count := func() (n int) {
		err := db.View(t.Context(), func(tx store.Tx) error {
			pairs, _, err := tx.GetRange(t.Context(), store.Range{End: []byte{0xff}}, store.RangeOptions{})
			n = len(pairs)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	update := func(fn func(tx store.Tx)) {
		if err := db.Update(t.Context(), func(tx store.Tx) error { fn(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}

	const chunk = store.ChunkSize
	for _, c := range []struct{ asked, reply int }{{1, 0}, {1, 1}, {chunk, chunk + 1}, {4 * chunk, 4*chunk + 1}, {9 * chunk, 1}} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprint(c.asked, "/", c.reply, "/", known), func(t *testing.T) {
				update(func(tx store.Tx) {
					rec.Units.SetAsked(tx, "job", "unit", bytes.Repeat([]byte("a"), c.asked))
					rec.Units.SetReply(tx, "job", "unit", bytes.Repeat([]byte("r"), c.reply))
				})
				if want, n := int(records.ChunksOf(int64(c.asked))+records.ChunksOf(int64(c.reply))), count(); n != want {
					t.Fatalf("%d keys are stored, want %d", n, want)
				}

				var line *storagev1.Line
				if known {
					line = &storagev1.Line{Asked: int64(c.asked), Length: int64(c.reply)}
				}
				update(func(tx store.Tx) { rec.Units.ClearAsked(tx, "job", "unit", line) })
				if n := count(); n != 0 {
					t.Errorf("%d keys are left", n)
				}
			})
		}
	}

	for _, entries := range []int64{1, 4, 5} {
		for _, size := range []int{1, chunk + 1} {
			u := &storagev1.Unit{UnitId: "unit", Journal: &storagev1.Journal{Entries: entries, Bytes: entries * int64(size)}}
			update(func(tx store.Tx) {
				for n := range entries {
					for i := range records.ChunksOf(int64(size)) {
						tx.Set(keys.New("test").Outputs("job").JournalChunk("unit", n, i), []byte("x"))
					}
				}
			})
			update(func(tx store.Tx) { rec.Units.ClearJournal(tx, "job", u) })
			if n := count(); n != 0 || u.Journal != nil {
				t.Errorf("%d keys are left of a journal of %d entries of %d bytes", n, entries, size)
			}
		}
	}
}
