// Package twist changes what a scripted model says, as models do that look as if they had done
// their work. Each function takes an answer that is JSON and returns another. It must import
// nothing of the project: what is wrong with an answer does not depend on who gave it.
package twist

import (
	"encoding/json"
	"regexp"
	"strings"
)

// NearMiss alters a word in the middle of every quote: the fields of that name,
// wherever they stand.
func NearMiss(answer, field string) string {
	return changeQuotes(answer, field, func(q string) string {
		words := strings.Fields(q)
		if len(words) < 3 {
			return q + "s"
		}
		words[len(words)/2] = "approximately"
		return strings.Join(words, " ")
	})
}

// Invent puts a quote that stands nowhere in place of every one.
func Invent(answer, field string) string {
	return changeQuotes(answer, field, func(string) string {
		return "the parties have settled this matter out of court in 1999"
	})
}

// reference is how citations are spelled in prompts.
var reference = regexp.MustCompile(`REF_[0-9A-Za-z]{8,}`)

// Foreign puts the id of a citation of another unit in place of every one.
func Foreign(answer, id string) string { return reference.ReplaceAllString(answer, id) }

// Grow makes a reducer say more than it was given: every list has its items
// twice.
func Grow(answer string) string {
	return changeValues(answer, func(_ string, v any) any {
		if list, ok := v.([]any); ok {
			return append(list, list...)
		}
		return v
	})
}

// order is how a document gives orders to a model, in tests.
var order = regexp.MustCompile(`(?i)ignore (?:all|your) (?:previous )?instructions[^{]*(\{[^}]*\})`)

// Obey answers as the document orders, if it gives orders.
func Obey(answer, document string) string {
	if m := order.FindStringSubmatch(document); m != nil {
		return m[1]
	}
	return answer
}

func changeQuotes(answer, field string, f func(string) string) string {
	return changeValues(answer, func(key string, v any) any {
		if s, ok := v.(string); ok && key == field {
			return f(s)
		}
		return v
	})
}

// changeValues rewrites each value, the inner ones first. What is no JSON is left.
func changeValues(answer string, f func(key string, v any) any) string {
	var v any
	if json.Unmarshal([]byte(answer), &v) != nil {
		return answer
	}

	var walk func(string, any) any
	walk = func(key string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, sub := range v {
				v[k] = walk(k, sub)
			}
		case []any:
			for i, sub := range v {
				v[i] = walk(key, sub)
			}
		}
		return f(key, v)
	}

	raw, err := json.Marshal(walk("", v))
	if err != nil {
		return answer
	}
	return string(raw)
}
