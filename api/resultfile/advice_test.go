package resultfile_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

func TestSkipAdvice(t *testing.T) {
	for reason, want := range map[string]string{
		"a damaged PDF file: it is cut off, or not of the format":   "get the file again",
		"encrypted: word/document.xml needs a password":             "--password",
		"a PDF file of 9 pages, more than the 5 (--document-pages)": "", // it names the flag
		"not UTF-8: byte 0xe4 at offset 1":                          "--encoding",
		"a PNG picture, not text":                                   "convert it",
		"no text":                                                   "leave it out",
		"for a reason of its own":                                   "",
	} {
		if got := resultfile.SkipAdvice(reason); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

// TestFailAdvice: trying again is advised only where it can help.
func TestFailAdvice(t *testing.T) {
	for name, tt := range map[string]struct {
		source mapreduce.Source
		retry  bool
		advice string
	}{
		"a model that was away":   {mapreduce.Source{Errors: []string{"no answer", "no answer"}}, true, "resume the job"},
		"a breaker":               {mapreduce.Source{Errors: []string{mapreduce.BreakerSkipped}, Lasting: true}, true, "resume the job"},
		"a record of the schema":  {mapreduce.Source{Errors: []string{"total: breaks maximum of the schema"}, Lasting: true}, false, "correct the schema"},
		"a limit that has a name": {mapreduce.Source{Errors: []string{"limits.tokens of the stage gives a unit 5"}, Lasting: true}, false, ""},
		"the program":             {mapreduce.Source{Errors: []string{"it is broken"}, Lasting: true}, false, "would fail alike"},
		"no error":                {mapreduce.Source{}, true, "resume the job"},
	} {
		got := resultfile.FailedOf(&tt.source)
		if got.Retry != tt.retry || (got.Advice == "") != (tt.advice == "") || !strings.Contains(got.Advice, tt.advice) {
			t.Errorf("%s: %+v, want %t and %q", name, got, tt.retry, tt.advice)
		}
	}
}
