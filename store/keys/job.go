package keys

import (
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// JobKeys are the keys of a job: its records, its units, and what is counted of it.
type JobKeys struct {
	space *Space
	job   mapreduce.JobID
}

// Job returns the keys of a job.
func (s *Space) Job(j mapreduce.JobID) JobKeys { return JobKeys{s, j} }

func (j JobKeys) key(name string) []byte { return j.space.jobKey(name, j.job) }

// Record returns the key of the job's record.
func (j JobKeys) Record() []byte { return j.key("jobs") }

// Ctl returns the key of the job's switch.
func (j JobKeys) Ctl() []byte { return j.key("ctl") }

// Unit returns the key of a unit's record.
func (j JobKeys) Unit(u mapreduce.UnitID) []byte {
	return tuple.AppendString(j.key("units"), string(u))
}

// Units returns the range of the job's units, in order of id.
func (j JobKeys) Units() store.Range { return childRange(j.key("units")) }

// NumberedUnits returns the range of the job's units whose ids are prefix and a
// number. No other unit's id may begin with prefix and a digit.
func (j JobKeys) NumberedUnits(prefix string) store.Range {
	return numberedRange(j.key("units"), prefix)
}

// ParseUnits returns the range of the job's units that parse documents.
func (j JobKeys) ParseUnits() store.Range {
	return store.Prefixed(openText(j.key("units"), string(mapreduce.ParseUnit(""))))
}

// Order returns the key that names the unit with an index in level -1 (parse
// units) or 0 (map units). The ids of later levels follow from their indexes.
func (j JobKeys) Order(level, index int64) []byte {
	return tuple.AppendInt(tuple.AppendInt(j.key("order"), level), index)
}

// OrderIndex returns the index that a key of Order has.
func (s *Space) OrderIndex(key []byte) (int64, error) {
	_, rest, err := s.Last(key)
	if err != nil {
		return 0, err
	}
	rest.Skip() // the job
	rest.Skip() // the level
	index := rest.Int()
	return index, rest.Err()
}

// OrderFrom returns the range of a level's units from an index on.
func (j JobKeys) OrderFrom(level, index int64) store.Range {
	r := childRange(tuple.AppendInt(j.key("order"), level))
	r.Begin = j.Order(level, index)
	return r
}

// Draw returns the key on which transactions conflict that take of what an orchestrator
// was granted. It has no value.
func (j JobKeys) Draw(o mapreduce.NodeID) []byte {
	return tuple.AppendString(j.key("draw"), string(o))
}

// Counter returns the key of one orchestrator's stripe of a counter.
func (j JobKeys) Counter(c Counter, level int64, o mapreduce.NodeID) []byte {
	k := tuple.AppendInt(tuple.AppendInt(j.key("ctr"), int64(c)), level)
	return tuple.AppendString(k, string(o))
}

// Counters returns the range of all of the job's counters.
func (j JobKeys) Counters() store.Range { return childRange(j.key("ctr")) }

// CounterStripes returns the range of one counter at one level.
func (j JobKeys) CounterStripes(c Counter, level int64) store.Range {
	return childRange(tuple.AppendInt(tuple.AppendInt(j.key("ctr"), int64(c)), level))
}

// Tally returns the key of a cut document's count of chunks.
func (j JobKeys) Tally(d mapreduce.DocumentID) []byte {
	return tuple.AppendString(j.key("tally"), string(d))
}

// Tallies returns the range of the job's cut documents.
func (j JobKeys) Tallies() store.Range { return childRange(j.key("tally")) }

// Checkpoint returns the key of a checkpoint with a known versionstamp.
func (j JobKeys) Checkpoint(v store.Versionstamp) []byte {
	return tuple.AppendVersionstamp(j.key("checkpoints"), tuple.Versionstamp{Transaction: v})
}

// NextCheckpoint returns the key of a checkpoint whose versionstamp the commit
// fills in at offset.
func (j JobKeys) NextCheckpoint() (key []byte, offset int) {
	k := j.key("checkpoints")
	offset = len(k) + 1 // after the type code
	return tuple.AppendVersionstamp(k, tuple.Incomplete(0)), offset
}

// Checkpoints returns the range of the job's checkpoints, oldest first.
func (j JobKeys) Checkpoints() store.Range {
	return childRange(j.key("checkpoints"))
}

// Seal returns the key of one link of the job's chain.
func (j JobKeys) Seal(number int64) []byte {
	return tuple.AppendInt(j.key("seal"), number)
}

// Seals returns the range of the job's chain.
func (j JobKeys) Seals() store.Range { return childRange(j.key("seal")) }

// BlobChunk returns the key of chunk i of a document's text.
func (j JobKeys) BlobChunk(sha256 []byte, i int64) []byte {
	return tuple.AppendInt(tuple.AppendBytes(j.key("blob"), sha256), i)
}

// Blob returns the range of chunks [from, to) of a document's text.
func (j JobKeys) Blob(sha256 []byte, from, to int64) store.Range {
	return store.Range{Begin: j.BlobChunk(sha256, from), End: j.BlobChunk(sha256, to)}
}

// Blobs returns the range of all documents' texts of the job.
func (j JobKeys) Blobs() store.Range { return childRange(j.key("blob")) }

// Skipped returns the key of the n-th document left out.
func (j JobKeys) Skipped(n int64) []byte {
	return tuple.AppendInt(j.key("skipped"), n)
}

// SkippedDocuments returns the range of the documents left out.
func (j JobKeys) SkippedDocuments() store.Range { return childRange(j.key("skipped")) }

// CauseMark returns the key of what was said of a cause of failed units.
func (j JobKeys) CauseMark(cause string) []byte {
	sum := sha256.Sum256([]byte(cause))
	return tuple.AppendBytes(j.key("cause"), sum[:])
}

// CauseMarks returns the range of what was said of causes of the job's failed units.
func (j JobKeys) CauseMarks() store.Range { return childRange(j.key("cause")) }

// Ingest returns the key that marks a submission under way.
func (j JobKeys) Ingest() []byte { return j.key("ingest") }

// Owned returns the ranges of all keys of a job, except its record, its control record,
// and keys by tenant or time.
func (j JobKeys) Owned() []store.Range {
	var all []store.Range
	for _, n := range ownedNames {
		key := j.key(n) // some have a single value, which is there
		all = append(all, store.Range{Begin: key, End: childRange(key).End})
	}
	return append(all, j.space.Nodes().Grants(mapreduce.JobScope(j.job)))
}
