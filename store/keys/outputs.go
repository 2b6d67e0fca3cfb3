package keys

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// OutputKeys are the keys of what a job's units made: large results, journals, and the
// evidence that tools brought.
type OutputKeys struct {
	space *Space
	job   mapreduce.JobID
}

// Outputs returns the keys of what a job's units made.
func (s *Space) Outputs(j mapreduce.JobID) OutputKeys { return OutputKeys{s, j} }

func (o OutputKeys) key(name string) []byte { return o.space.jobKey(name, o.job) }

// NumberedResults returns the range of the large results of units whose ids are
// prefix and a number.
func (o OutputKeys) NumberedResults(prefix string) store.Range {
	return numberedRange(o.key("result"), prefix)
}

// NumberedJournals returns the range of the journals of units whose ids are prefix and
// a number.
func (o OutputKeys) NumberedJournals(prefix string) store.Range {
	return numberedRange(o.key("journal"), prefix)
}

// NumberedEvidence returns the range of the evidence of units whose ids are prefix and a
// number.
func (o OutputKeys) NumberedEvidence(prefix string) store.Range {
	return numberedRange(o.key("evidence"), prefix)
}

// ResultChunk returns the key of chunk i of a large result.
func (o OutputKeys) ResultChunk(u mapreduce.UnitID, attempt, i int64) []byte {
	k := tuple.AppendString(o.key("result"), string(u))
	return tuple.AppendInt(tuple.AppendInt(k, attempt), i)
}

// Result returns the range of the chunks of one attempt's result.
func (o OutputKeys) Result(u mapreduce.UnitID, attempt int64) store.Range {
	k := tuple.AppendString(o.key("result"), string(u))
	return childRange(tuple.AppendInt(k, attempt))
}

// Results returns the range of the results of all of a unit's attempts.
func (o OutputKeys) Results(u mapreduce.UnitID) store.Range {
	return childRange(tuple.AppendString(o.key("result"), string(u)))
}

// AllResults returns the range of all large results of the job.
func (o OutputKeys) AllResults() store.Range { return childRange(o.key("result")) }

// JournalChunk returns the key of chunk i of entry n of a unit's journal.
func (o OutputKeys) JournalChunk(u mapreduce.UnitID, n, i int64) []byte {
	return tuple.AppendInt(o.journalEntry(u, n), i)
}

func (o OutputKeys) journalEntry(u mapreduce.UnitID, n int64) []byte {
	return tuple.AppendInt(tuple.AppendString(o.key("journal"), string(u)), n)
}

// JournalEntries returns the range of entries [from, to) of a unit's journal.
func (o OutputKeys) JournalEntries(u mapreduce.UnitID, from, to int64) store.Range {
	return store.Range{Begin: o.journalEntry(u, from), End: o.journalEntry(u, to)}
}

// Journal returns the range of a unit's journal.
func (o OutputKeys) Journal(u mapreduce.UnitID) store.Range {
	return childRange(tuple.AppendString(o.key("journal"), string(u)))
}

// AllJournals returns the range of the journals of all units of the job.
func (o OutputKeys) AllJournals() store.Range {
	return childRange(o.key("journal"))
}

// Evidence returns the key of item n of the evidence of a unit.
func (o OutputKeys) Evidence(u mapreduce.UnitID, n int64) []byte {
	return tuple.AppendInt(tuple.AppendString(o.key("evidence"), string(u)), n)
}

// EvidenceChunk returns the key of chunk i of the text of item n.
func (o OutputKeys) EvidenceChunk(u mapreduce.UnitID, n, i int64) []byte {
	return tuple.AppendInt(o.Evidence(u, n), i)
}

// EvidenceText returns the range of the chunks of the text of item n.
func (o OutputKeys) EvidenceText(u mapreduce.UnitID, n int64) store.Range {
	return childRange(o.Evidence(u, n))
}

// EvidenceFrom returns the range of the items of a unit from item n on, with their texts.
func (o OutputKeys) EvidenceFrom(u mapreduce.UnitID, n int64) store.Range {
	return store.Range{Begin: o.Evidence(u, n), End: o.EvidenceOf(u).End}
}

// EvidenceOf returns the range of the evidence of a unit, with the texts.
func (o OutputKeys) EvidenceOf(u mapreduce.UnitID) store.Range {
	return childRange(tuple.AppendString(o.key("evidence"), string(u)))
}

// AllEvidence returns the range of the evidence of all units of the job.
func (o OutputKeys) AllEvidence() store.Range {
	return childRange(o.key("evidence"))
}
