package mapreduce

import "regexp"

// varying are the parts of errors that differ from unit to unit: numbers, ids, and what is quoted.
var varying = regexp.MustCompile(`"[^"]{0,200}"|\b[0-9a-f]{8,}\b|\d+([.,:]\d+)*`)

// CauseOf returns an error of a unit without what is that unit's own, so that units which failed
// for one reason have one cause.
func CauseOf(text string) string { return varying.ReplaceAllString(text, "…") }

// CauseOfAll returns the cause of the latest of a unit's errors; "" if there is none.
func CauseOfAll(errors []string) string {
	if len(errors) == 0 {
		return ""
	}
	return CauseOf(errors[len(errors)-1])
}

// MaxCause bounds the cause in a Resume, in bytes: errors are kept shorter.
const MaxCause = 8 << 10
