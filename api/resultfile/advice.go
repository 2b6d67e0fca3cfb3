package resultfile

import (
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// SkipAdvice returns what a user can do about the reason for which a document was skipped;
// "" if the reason says it itself, or nothing can be done.
func SkipAdvice(reason string) string {
	for _, a := range []struct{ part, advice string }{
		{"not UTF-8", "--encoding NAME names its encoding"},
		{"UTF-32", "convert it to UTF-8"},
		{"--", ""}, // the reason names a flag
		{"encrypted", "--password opens it, or save it without a password"},
		{"not text", "convert it to text, or to another format that is read, and name that file"},
		{"too large", "cut it into several files, or into lines of a .jsonl file"},
		{"unreadable", "check that you may read it"},
		{"archive within an archive", "unpack it, and name its files"},
		{"damaged", "get the file again, or open it where it was made and save it anew"},
		{"no text", "leave it out, or recognise its text first (--ocr)"},
	} {
		if strings.Contains(reason, a.part) {
			return a.advice
		}
	}

	return ""
}

// CanRetry reports whether trying a failed unit again can help. lasting says that its last
// attempt failed for a reason which every attempt has.
func CanRetry(lasting bool, failures []string) bool {
	n := len(failures)
	return !lasting || n > 0 && failures[n-1] == mapreduce.BreakerSkipped // the model may be well by now
}

// FailAdvice returns what a user can do about a unit that failed.
func FailAdvice(lasting bool, failures []string) string {
	last := ""
	if n := len(failures); n > 0 {
		last = failures[n-1]
	}

	switch {
	case CanRetry(lasting, failures):
		return "resume the job, which tries it again"
	case strings.Contains(last, "--") || strings.Contains(last, "limits."):
		return "" // the error names the setting
	case strings.Contains(last, "schema"):
		return "correct the schema or the document, or leave --strict-schema out"
	}
	return "another attempt would fail alike: change the document or the job, and run it again"
}
