package jobs

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/keys"
)

// addSavings adds what caches saved an attempt to its unit and its job.
func (t *changes) addSavings(u *storagev1.Unit, owner mapreduce.NodeID, s mapreduce.Savings) {
	if s == (mapreduce.Savings{}) {
		return
	}
	u.Savings = storedSavings(savingsOf(u.Savings).Add(s))
	for c, n := range savingsByCounter(storedSavings(s)) {
		t.addFor(owner, c, 0, n)
	}
}

// savingsByCounter are what caches saved, by the counters of it.
func savingsByCounter(s *storagev1.Savings) map[keys.Counter]int64 {
	if s == nil {
		return nil
	}
	return map[keys.Counter]int64{
		keys.Answered: s.Answers, keys.AnswersSaved: s.AnswerMicros,
		keys.CacheWritten: s.CacheWrite, keys.CacheRead: s.CacheRead, keys.PromptsSaved: s.PromptMicros,
	}
}

// savingsOf returns the domain's form of what caches saved.
func savingsOf(s *storagev1.Savings) mapreduce.Savings {
	return mapreduce.Savings{
		Answers: s.GetAnswers(), AnswerMicros: s.GetAnswerMicros(),
		CacheWrite: s.GetCacheWrite(), CacheRead: s.GetCacheRead(), PromptMicros: s.GetPromptMicros(),
	}
}

// storedSavings returns the stored form of what caches saved.
func storedSavings(s mapreduce.Savings) *storagev1.Savings {
	return &storagev1.Savings{
		Answers: s.Answers, AnswerMicros: s.AnswerMicros,
		CacheWrite: s.CacheWrite, CacheRead: s.CacheRead, PromptMicros: s.PromptMicros,
	}
}

// totalSavings are those of a job.
func (c counters) totalSavings() mapreduce.Savings {
	return mapreduce.Savings{
		Answers: c.sumLevels(keys.Answered), AnswerMicros: c.sumLevels(keys.AnswersSaved),
		CacheWrite: c.sumLevels(keys.CacheWritten), CacheRead: c.sumLevels(keys.CacheRead), PromptMicros: c.sumLevels(keys.PromptsSaved),
	}
}
