package source

import (
	"slices"
	"strings"
)

// keywordsOfSchemas are those of JSON Schema from draft 4 to 2020-12, and those that OpenAPI and
// widespread tools add.
var keywordsOfSchemas = strings.Fields(`
	additionalItems additionalProperties allOf anyOf comment const contains contentEncoding contentMediaType contentSchema default
	definitions dependencies dependentRequired dependentSchemas deprecated description discriminator else enum enumDescriptions enumNames
	example examples exclusiveMaximum exclusiveMinimum externalDocs format if items maxContains maxItems maxLength maxProperties
	maximum minContains minItems minLength minProperties minimum multipleOf nullable oneOf pattern patternProperties
	prefixItems properties propertyNames propertyOrder readOnly required then title type unevaluatedItems unevaluatedProperties
	uniqueItems writeOnly xml`)

// meantKeywords are those for which another word may be a slip: each says something about values, and is
// no word that others use for notes of their own.
var meantKeywords = slices.DeleteFunc(slices.Clone(keywordsOfSchemas), func(word string) bool {
	return slices.Contains([]string{"comment", "definitions", "else", "if", "then", "xml"}, word)
})

// WarnOfTypos warns of words that differ by one letter from a keyword or a format: they have no effect,
// and whoever wrote them does not mean that.
func (t *TypoFinder) WarnOfTypos(n *Node, as Role, path string) {
	if as == Data || as == Hints || as == Values {
		return
	}

	for i, item := range n.Items {
		at, inner := path, as
		if n.Kind == Map {
			key := n.Keys[i]
			if as == Keywords && (key.Text == "example" || strings.HasPrefix(key.Text, "x-")) {
				continue // no words of a schema
			}
			at, inner = JoinPath(path, key.Text), as.RoleOf(key.Text)
			if as == Keywords {
				t.warnOfTypo(key, item, at)
			}
		}
		t.WarnOfTypos(item, inner, at)
	}
}

// warnOfTypo looks at one keyword and its value.
func (t *TypoFinder) warnOfTypo(key, value *Node, path string) {
	if !slices.Contains(keywordsOfSchemas, key.Text) {
		if i := slices.IndexFunc(meantKeywords, func(word string) bool { return oneApart(key.Text, word) }); i >= 0 {
			t.Warn(key, path, "%q has no effect; did you mean %q?", Clip(key.Text), meantKeywords[i])
		}
		return
	}

	if key.Text == "format" && value.Kind == String && len(value.Text) > 3 && !slices.Contains(t.Formats, value.Text) {
		if i := slices.IndexFunc(t.Formats, func(word string) bool { return oneApart(value.Text, word) }); i >= 0 {
			t.Warn(value, path, "%q is no format that is checked; did you mean %q?", Clip(value.Text), t.Formats[i])
		}
	}
}

// oneApart reports whether one letter that is left out, added, replaced, or changed for its neighbour
// makes one text another.
func oneApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(a) < 3 {
		return false
	}

	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	if len(a) < len(b) {
		return a[same:] == b[same+1:]
	}
	return same < len(a) && (a[same+1:] == b[same+1:] || // replaced
		same+1 < len(a) && a[same] == b[same+1] && a[same+1] == b[same] && a[same+2:] == b[same+2:]) // changed for its neighbour
}

// A TypoFinder warns of words that are likely to be slips.
type TypoFinder struct {
	*Faults
	Formats []string // that are read, and that others are likely to be a slip of
}
