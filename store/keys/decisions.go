package keys

import (
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// DecisionKeys are the keys of what was decided about values of a job's result. They have
// the order of the records of that result.
type DecisionKeys struct {
	space *Space
	job   mapreduce.JobID
}

// Decisions returns the keys of what was decided about values of a job's result.
func (s *Space) Decisions(j mapreduce.JobID) DecisionKeys { return DecisionKeys{s, j} }

// A DecisionAt names a decision: the n-th about a field of a record.
type DecisionAt struct {
	Record mapreduce.RecordID
	Field  string
	Number int64
}

func (d DecisionKeys) record(id mapreduce.RecordID) []byte {
	unit, n, _ := id.Parse()
	return tuple.AppendInt(tuple.AppendInt(d.space.jobKey("decision", d.job), unit), n)
}

// Key returns the key of a decision. The record of at must have a valid id.
func (d DecisionKeys) Key(at DecisionAt) []byte {
	return tuple.AppendInt(tuple.AppendString(d.record(at.Record), at.Field), at.Number)
}

// OfValue returns the range of the decisions about a field of a record, oldest first.
func (d DecisionKeys) OfValue(record mapreduce.RecordID, field string) store.Range {
	return childRange(tuple.AppendString(d.record(record), field))
}

// OfRecord returns the range of the decisions about a record.
func (d DecisionKeys) OfRecord(record mapreduce.RecordID) store.Range {
	return childRange(d.record(record))
}

// OfUnit returns the range of the decisions about records of a map unit, by its index.
func (d DecisionKeys) OfUnit(index int64) store.Range {
	return childRange(tuple.AppendInt(d.space.jobKey("decision", d.job), index))
}

// Prefix returns what all keys of decisions of the job begin with.
func (d DecisionKeys) Prefix() []byte { return d.space.jobKey("decision", d.job) }

// All returns the range of all decisions of the job.
func (d DecisionKeys) All() store.Range { return childRange(d.Prefix()) }

// At returns which decision a key is of.
func (d DecisionKeys) At(key []byte) (at DecisionAt, err error) {
	name, rest, err := d.space.Last(key)
	if err != nil {
		return at, err
	}

	job, unit, record := rest.Text(), rest.Int(), rest.Int()
	at = DecisionAt{Record: mapreduce.NewRecordID(unit, record), Field: rest.Text(), Number: rest.Int()}
	if err := rest.Err(); err != nil {
		return at, err
	}
	if name != "decision" || job != string(d.job) || unit < 0 || record < 0 || at.Number < 1 {
		return at, fmt.Errorf("keys: %x is of no decision of job %s", key, d.job)
	}
	return at, nil
}

// Reviewing returns the key of who is about to review a record, which must have a valid id.
func (d DecisionKeys) Reviewing(record mapreduce.RecordID) []byte {
	unit, n, _ := record.Parse()
	return tuple.AppendInt(tuple.AppendInt(d.space.jobKey("reviewing", d.job), unit), n)
}

// AllReviewing returns the range of who is about to review records of the job, in the order of these.
func (d DecisionKeys) AllReviewing() store.Range {
	return childRange(d.space.jobKey("reviewing", d.job))
}

// ReviewingAt returns the record that a key is about.
func (d DecisionKeys) ReviewingAt(key []byte) (mapreduce.RecordID, error) {
	name, rest, err := d.space.Last(key)
	if err != nil {
		return "", err
	}

	job, unit, record := rest.Text(), rest.Int(), rest.Int()
	if err := rest.Err(); err != nil {
		return "", err
	}
	if name != "reviewing" || job != string(d.job) || unit < 0 || record < 0 {
		return "", fmt.Errorf("keys: %x is of no record of job %s", key, d.job)
	}
	return mapreduce.NewRecordID(unit, record), nil
}
