package validator

import (
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/schema/pattern"
)

// maxPlainPattern bounds the patterns that RE2 matches, in instructions. Matching cannot be
// stopped, so that it must not take long.
const maxPlainPattern = 1000

// IsPlainPattern reports whether RE2 matches a pattern in little time.
func IsPlainPattern(expr string) bool {
	tree, err := pattern.Parse(expr)
	return err == nil && pattern.Size(tree) <= maxPlainPattern
}

// compilePattern compiles the pattern of a keyword. What RE2 does not know, such as
// look-around, or what is too large for it, is matched with work that is counted.
func compilePattern(expr string) (jsonschema.Regexp, error) {
	if IsPlainPattern(expr) {
		return regexp.Compile(expr)
	}
	return pattern.CompileEcma(expr)
}
