package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// BatchKeys are the keys of a job's requests that go by batch, and of its batches.
type BatchKeys struct {
	space *Space
	job   mapreduce.JobID
}

// Batches returns the keys of a job's batches.
func (s *Space) Batches(j mapreduce.JobID) BatchKeys { return BatchKeys{s, j} }

func (b BatchKeys) key(name string) []byte { return b.space.jobKey(name, b.job) }

// Asked returns the key of the request of a unit.
func (b BatchKeys) Asked(u mapreduce.UnitID) []byte {
	return tuple.AppendString(b.key("asked"), string(u))
}

// AskedChunk returns the key of chunk i of it.
func (b BatchKeys) AskedChunk(u mapreduce.UnitID, i int64) []byte {
	return tuple.AppendInt(b.Asked(u), i)
}

// AskedChunks returns the range of its chunks.
func (b BatchKeys) AskedChunks(u mapreduce.UnitID) store.Range { return childRange(b.Asked(u)) }

// AllAsked returns the range of all requests of the job, each before its chunks.
func (b BatchKeys) AllAsked() store.Range { return childRange(b.key("asked")) }

// NumberedAsked returns the range of the requests of units whose ids are prefix and a number.
func (b BatchKeys) NumberedAsked(prefix string) store.Range {
	return numberedRange(b.key("asked"), prefix)
}

// ReplyChunk returns the key of chunk i of what became of a unit's request.
func (b BatchKeys) ReplyChunk(u mapreduce.UnitID, i int64) []byte {
	return tuple.AppendInt(tuple.AppendString(b.key("reply"), string(u)), i)
}

// ReplyChunks returns the range of its chunks.
func (b BatchKeys) ReplyChunks(u mapreduce.UnitID) store.Range {
	return childRange(tuple.AppendString(b.key("reply"), string(u)))
}

// AllReplies returns the range of the chunks of all of the job's units.
func (b BatchKeys) AllReplies() store.Range { return childRange(b.key("reply")) }

// NumberedReplies returns the range of the chunks of units whose ids are prefix and a number.
func (b BatchKeys) NumberedReplies(prefix string) store.Range {
	return numberedRange(b.key("reply"), prefix)
}

// Batchable returns the key that lists a unit whose request is in no batch yet.
func (b BatchKeys) Batchable(u mapreduce.UnitID) []byte {
	return tuple.AppendString(b.key("batchable"), string(u))
}

// AllBatchable returns the range of these of the job.
func (b BatchKeys) AllBatchable() store.Range { return childRange(b.key("batchable")) }

// Batch returns the key of a batch.
func (b BatchKeys) Batch(n int64) []byte { return tuple.AppendInt(b.key("batch"), n) }

// All returns the range of all batches of the job.
func (b BatchKeys) All() store.Range { return childRange(b.key("batch")) }

// Line returns the key that names the unit whose request is line i of a batch.
func (b BatchKeys) Line(n, i int64) []byte { return tuple.AppendInt(b.lines(n), i) }

func (b BatchKeys) lines(n int64) []byte { return tuple.AppendInt(b.key("batchline"), n) }

// Lines returns the range of the lines of a batch.
func (b BatchKeys) Lines(n int64) store.Range { return childRange(b.lines(n)) }

// AllLines returns the range of the lines of all batches of the job.
func (b BatchKeys) AllLines() store.Range { return childRange(b.key("batchline")) }

// Batching returns the key that lists the job as one with batches, or requests for them.
func (b BatchKeys) Batching() []byte { return b.key("batching") }

// Orphan returns the key of a batch that the job has left behind.
func (b BatchKeys) Orphan(n int64) []byte { return tuple.AppendInt(b.key("orphan"), n) }

// Room returns the key of what a batch of the job takes of the limits of an account.
func (b BatchKeys) Room(account string, n int64) []byte {
	return tuple.AppendInt(tuple.AppendString(b.space.AllBatches().ofAccount("batchroom", account), string(b.job)), n)
}

// AllBatches are the keys of batches that are of no single job: lists of those of all jobs, what
// these take of the limits of accounts, and what is known of models.
type AllBatches struct{ space *Space }

// AllBatches returns the keys of the batches of all jobs.
func (s *Space) AllBatches() AllBatches { return AllBatches{s} }

// Batching returns the range of the Batching keys of all jobs.
func (a AllBatches) Batching() store.Range { return childRange(a.space.nameKey("batching")) }

// Orphans returns the range of the batches that jobs have left behind.
func (a AllBatches) Orphans() store.Range { return childRange(a.space.nameKey("orphan")) }

// Turnarounds returns the key of how long the last batches of a model took, "provider/model".
func (a AllBatches) Turnarounds(model string) []byte {
	return tuple.AppendString(a.space.nameKey("turnaround"), model)
}

// Rooms returns the range of what batches take of the limits of all accounts.
func (a AllBatches) Rooms() store.Range { return childRange(a.space.nameKey("batchroom")) }

// RoomsOf returns the range of what batches take of the limits of an account.
func (a AllBatches) RoomsOf(account string) store.Range {
	return childRange(a.ofAccount("batchroom", account))
}

// RoomAt returns what a key is the room of: batch n of a job, in an account.
func (a AllBatches) RoomAt(key []byte) (account string, j mapreduce.JobID, n int64, err error) {
	_, rest, err := a.space.Last(key)
	if err != nil {
		return "", "", 0, err
	}
	account, j, n = rest.Text(), mapreduce.JobID(rest.Text()), rest.Int()
	return account, j, n, rest.Done()
}

// Rate returns the key of how many batches of an account were begun within the hour.
func (a AllBatches) Rate(account string) []byte { return a.ofAccount("batchrate", account) }

func (a AllBatches) ofAccount(name, account string) []byte {
	return tuple.AppendString(a.space.nameKey(name), account)
}
