package jobstest

import (
	"crypto/sha256"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// KeyOf is the key under which the answer to a question is kept.
func KeyOf(question string) []byte {
	sum := sha256.Sum256([]byte(question))
	return sum[:]
}

// Keep keeps the answer to a question, unless one that is younger than since is kept.
func (w *World) Keep(t mapreduce.TenantID, question, answer string, since time.Time) {
	w.Helper()
	w.Must(w.Look.Answers.Keep(w.Ctx, t, KeyOf(question), []byte(answer), since))
}

// Sound reports what a check finds wrong.
func (k *Kept) Sound() (wrong []string) {
	k.Helper()
	k.Must(k.Look.Check.Run(k.Ctx, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			wrong = append(wrong, f.Key+": "+f.Message)
		}
		return nil
	}))
	return wrong
}
