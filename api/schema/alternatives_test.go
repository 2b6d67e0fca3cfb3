package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// There are 2^60 ways through the alternatives of these schemas: one that is gone through
// more than once for each place where it stands is never read to its end.
func TestAlternativesThatAreShared(t *testing.T) {
	testenv.Raced(t)

	leaves := map[string]string{
		"nothing":  `{}`,
		"format":   `{"type": "string", "format": "date"}`,
		"hints":    `{"type": "string", "x-coditect": {"labels": ["Date"]}}`,
		"members":  `{"type": "object", "properties": {"at": {"type": "string"}}}`,
		"required": `{"type": "object", "required": ["at"]}`,
		"rest":     `{"type": "object", "additionalProperties": {"type": "number"}}`,
		"items":    `{"type": "array", "items": {"type": "number"}}`,
		"enum":     `{"enum": ["a", "b"]}`,
		"null":     `{"type": ["string", "null"], "description": "when"}`,
	}
	for name, leaf := range leaves {
		for _, key := range []string{"anyOf", "oneOf"} {
			t.Run(name+" "+key, func(t *testing.T) {
				t.Parallel()

				// Reading ends, and then finds that checking a value by it would not.
				_, err := schema.Parse("s.json", []byte(sharedAlternatives(key, leaf)))
				if err == nil || !strings.Contains(err.Error(), "too many steps") {
					t.Errorf("got error %v, want one that says that it would take too many steps", err)
				}
			})
		}
	}
}

// sharedAlternatives returns a schema whose one property has alternatives that both refer
// to two further ones, sixty levels deep.
func sharedAlternatives(key, leaf string) string {
	const levels = 60
	var defs strings.Builder
	for i := range levels {
		fmt.Fprintf(&defs, `"d%d": {%q: [{"$ref": "#/$defs/d%d", "title": "a"}, {"$ref": "#/$defs/d%d", "title": "b"}]}, `, i, key, i+1, i+1)
	}
	fmt.Fprintf(&defs, `"d%d": %s`, levels, leaf)
	return fmt.Sprintf(`{"type": "object", "properties": {"value": {"$ref": "#/$defs/d0"}}, "$defs": {%s}}`, defs.String())
}
