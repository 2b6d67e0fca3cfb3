package records

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/keys"
)

// SavingsByCounter are what caches saved, by the counters of it.
func SavingsByCounter(s *storagev1.Savings) map[keys.Counter]int64 {
	if s == nil {
		return nil
	}
	return map[keys.Counter]int64{
		keys.Answered: s.Answers, keys.AnswersSaved: s.AnswerMicros,
		keys.CacheWritten: s.CacheWrite, keys.CacheRead: s.CacheRead, keys.PromptsSaved: s.PromptMicros,
	}
}

// SavingsOf returns the domain's form of what caches saved.
func SavingsOf(s *storagev1.Savings) mapreduce.Savings {
	return mapreduce.Savings{
		Answers: s.GetAnswers(), AnswerMicros: s.GetAnswerMicros(),
		CacheWrite: s.GetCacheWrite(), CacheRead: s.GetCacheRead(), PromptMicros: s.GetPromptMicros(),
	}
}

// StoredSavings returns the stored form of what caches saved.
func StoredSavings(s mapreduce.Savings) *storagev1.Savings {
	return &storagev1.Savings{
		Answers: s.Answers, AnswerMicros: s.AnswerMicros,
		CacheWrite: s.CacheWrite, CacheRead: s.CacheRead, PromptMicros: s.PromptMicros,
	}
}
