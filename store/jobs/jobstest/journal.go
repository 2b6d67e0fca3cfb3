package jobstest

import (
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// JournalEntry is an entry as it is stored.
func JournalEntry(key string, attempt int) []byte {
	raw, err := proto.Marshal(&storagev1.JournalEntry{Key: key, Attempt: int64(attempt)})
	if err != nil {
		panic(err)
	}
	return raw
}

// AppendOf is an append by the session that holds a unit.
func AppendOf(id mapreduce.JobID, u *records.Unit, first int, entries ...[]byte) *content.JournalAppend {
	return &content.JournalAppend{
		Held:    protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)},
		Session: u.Session, First: first, Entries: entries,
	}
}

// Remember adds an entry for each key to the journal of a unit.
func (w *World) Remember(j *jobs.Jobs, id mapreduce.JobID, u *records.Unit, first int, keys ...string) {
	w.Helper()
	a := AppendOf(id, u, first)
	for _, k := range keys {
		a.Entries = append(a.Entries, JournalEntry(k, a.Attempt))
	}
	w.Must(j.Content.AppendJournal(w.Ctx, a))
}
