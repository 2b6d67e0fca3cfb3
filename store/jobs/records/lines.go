package records

import (
	"bytes"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
)

// SetAsked stores the request of a unit that is to go by batch.
func (rec *UnitRecords) SetAsked(tx store.Tx, id mapreduce.JobID, unit mapreduce.UnitID, data []byte) {
	of := rec.keys.Batches(id)
	setChunks(tx, data, func(i int64) []byte { return of.AskedChunk(unit, i) })
}

// SetReply stores what became of the request of a unit.
func (rec *UnitRecords) SetReply(tx store.Tx, id mapreduce.JobID, unit mapreduce.UnitID, data []byte) {
	of := rec.keys.Batches(id)
	setChunks(tx, data, func(i int64) []byte { return of.ReplyChunk(unit, i) })
}

func setChunks(tx store.Tx, data []byte, key func(i int64) []byte) {
	for i := int64(0); i < ChunksOf(int64(len(data))); i++ {
		tx.Set(key(i), bytes.Clone(data[i*store.ChunkSize:min((i+1)*store.ChunkSize, int64(len(data)))]))
	}
}

// ClearAsked clears the request of a unit, and what became of it. The line says how long both are; it may be nil.
func (rec *UnitRecords) ClearAsked(tx store.Tx, id mapreduce.JobID, unit mapreduce.UnitID, line *storagev1.Line) {
	of := rec.keys.Batches(id)
	tx.Clear(of.Asked(unit))
	clearChunks(tx, line.GetAsked(), func(i int64) []byte { return of.AskedChunk(unit, i) }, of.AskedChunks(unit))
	clearChunks(tx, line.GetLength(), func(i int64) []byte { return of.ReplyChunk(unit, i) }, of.ReplyChunks(unit))
	tx.Clear(of.Batchable(unit))
}

// fewChunks is how many chunks are cleared one by one: a range that is cleared costs whoever reads beside it, until the
// store has sorted it out.
const fewChunks = 4

// clearChunks clears what setChunks has set. Of 0 bytes it is not known how many there are.
func clearChunks(tx store.Tx, length int64, key func(i int64) []byte, all store.Range) {
	n := ChunksOf(length)
	if length <= 0 || n > fewChunks {
		tx.ClearRange(all)
		return
	}
	for i := range n {
		tx.Clear(key(i))
	}
}
