package records

import (
	"bytes"

	"github.com/coditect/mapreduce/api/mapreduce"
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

// ClearAsked clears the request of a unit, and what became of it.
func (rec *UnitRecords) ClearAsked(tx store.Tx, id mapreduce.JobID, unit mapreduce.UnitID) {
	of := rec.keys.Batches(id)
	tx.Clear(of.Asked(unit))
	tx.ClearRange(of.AskedChunks(unit))
	tx.ClearRange(of.ReplyChunks(unit))
	tx.Clear(of.Batchable(unit))
}
