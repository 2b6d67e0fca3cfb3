package schema

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

// formatsOfSchemas are the formats that are read, and that others are likely to be a slip of.
var formatsOfSchemas = []string{string(Date), string(DateTime), string(Time), string(Email), string(URI), string(Duration), string(Currency)}

// warnOfTypos warns of words that differ by one letter from a keyword or a format: they have no effect,
// and whoever wrote them does not mean that.
func (r *shaper) warnOfTypos(n *node, as role, path string) {
	if as == data || as == hints || as == values {
		return
	}

	for i, item := range n.items {
		at, inner := path, as
		if n.kind == nodeMap {
			key := n.keys[i]
			if as == keywords && (key.text == "example" || strings.HasPrefix(key.text, "x-")) {
				continue // no words of a schema
			}
			at, inner = joinPath(path, key.text), as.roleOf(key.text)
			if as == keywords {
				r.warnOfTypo(key, item, at)
			}
		}
		r.warnOfTypos(item, inner, at)
	}
}

// warnOfTypo looks at one keyword and its value.
func (r *shaper) warnOfTypo(key, value *node, path string) {
	if !slices.Contains(keywordsOfSchemas, key.text) {
		if i := slices.IndexFunc(meantKeywords, func(word string) bool { return oneApart(key.text, word) }); i >= 0 {
			r.warn(key, path, "%q has no effect; did you mean %q?", clipText(key.text), meantKeywords[i])
		}
		return
	}

	if key.text == "format" && value.kind == nodeString && len(value.text) > 3 && !slices.Contains(formatsOfSchemas, value.text) {
		if i := slices.IndexFunc(formatsOfSchemas, func(word string) bool { return oneApart(value.text, word) }); i >= 0 {
			r.warn(value, path, "%q is no format that is checked; did you mean %q?", clipText(value.text), formatsOfSchemas[i])
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
