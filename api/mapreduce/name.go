package mapreduce

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
)

// MaxName is how many bytes the name of a job has at most.
const MaxName = 200

// CheckName returns an error for what no job can be called.
func CheckName(name string) error {
	if len(name) > MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errs.Field("display_name", "must be at most %d bytes of text without control characters", MaxName)
	}
	return nil
}

// NameOf returns what a job may be called that its owner gives no name, by the first of its inputs and how many
// there are.
func NameOf(first string, inputs int) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(first, "\ufffd") {
		if b.Len() > maxDefaultName {
			b.WriteString("…")
			break
		}
		if !unicode.IsControl(r) {
			b.WriteRune(r)
		}
	}

	if b.Len() > 0 && inputs > 1 {
		fmt.Fprintf(&b, " +%d", inputs-1)
	}
	return b.String()
}

// maxDefaultName is about how many bytes of an input are in a name.
const maxDefaultName = 60
