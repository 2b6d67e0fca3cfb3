package form_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// surroundings are what models write around an answer.
var surroundings = map[string]func(string) string{
	"nothing":           func(s string) string { return s },
	"white space":       func(s string) string { return "\ufeff\n\n  " + s + "\n\n" },
	"prose":             func(s string) string { return "Here is the JSON that you asked for:\n" + s + "\nHope this helps!" },
	"a code block":      func(s string) string { return "```json\n" + s + "\n```" },
	"prose and a block": func(s string) string { return "Sure [see below].\n\n```\n" + s + "\n```\n\nLet me know." },
	"thinking":          func(s string) string { return "<think>The vendor {maybe} is \"Bolt\" …</think>\n" + s },
	"thinking in a row": func(s string) string { return "<thinking>a</thinking><thinking>{\"b\": 1}</thinking>" + s },
	"half a thought":    func(s string) string { return "so {\"vendor\": \"Bolt\"} it is\n</think>\n\n" + s },
	"a tag":             func(s string) string { return "<answer>" + s + "</answer>" },
	"a word before":     func(s string) string { return "json\n" + s },
	"a call":            func(s string) string { return "answer(" + s + ")" },
}

// renderJSON writes a value as JSON.
func renderJSON(v any) string {
	raw, err := answer.Encode(v)
	if err != nil {
		panic(err) // made of texts and numbers
	}
	return string(raw)
}

// notations are how models write JSON.
var notations = map[string]func(v any) string{
	"JSON":              renderJSON,
	"trailing commas":   writer{trailing: true}.render,
	"comments":          writer{comments: true}.render,
	"single marks":      writer{mark: "'"}.render,
	"keys bare":         writer{bareKeys: true}.render,
	"words of Python":   writer{python: true}.render,
	"a last bracket":    func(v any) string { s := renderJSON(v); return s[:len(s)-1] },
	"commas missing":    writer{lines: true}.render,
	"line breaks":       func(v any) string { return strings.ReplaceAll(writer{indent: true}.render(v), `\n`, "\n") },
	"typographic marks": writer{mark: "“"}.render,
	"needless escapes":  func(v any) string { return strings.ReplaceAll(renderJSON(v), "/", `\/`) },
	"unicode escapes":   func(v any) string { return strings.ReplaceAll(renderJSON(v), "金", "\\u91d1") },
}

// A writer writes JSON with faults.
type writer struct {
	trailing, comments, bareKeys, python, lines, indent bool
	mark                                                string
}

func (w writer) render(v any) string { return w.value(v) }

func (w writer) value(v any) string {
	switch v := v.(type) {
	case answer.Object:
		var parts []string
		for _, m := range v {
			parts = append(parts, w.key(m.Key)+": "+w.value(m.Value))
		}
		return w.enclose("{", parts, "}")
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, w.value(one))
		}
		return w.enclose("[", parts, "]")
	case string:
		return w.text(v)
	case bool:
		if w.python {
			return map[bool]string{true: "True", false: "False"}[v]
		}
	case nil:
		if w.python {
			return "None"
		}
	}
	return fmt.Sprint(v)
}

func (w writer) key(key string) string {
	if w.bareKeys && !strings.Contains(key, " ") {
		return key
	}
	return w.text(key)
}

func (w writer) text(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text
	}
	inner := string(raw[1 : len(raw)-1])
	switch w.mark {
	case "'":
		return "'" + strings.ReplaceAll(strings.ReplaceAll(inner, "'", `\'`), `\"`, `"`) + "'"
	case "“":
		return "“" + inner + "”"
	}
	return string(raw)
}

func (w writer) enclose(open string, parts []string, end string) string {
	comma := ", "
	if w.comments {
		comma = ", // see above\n"
	}
	if w.lines && open == "{" {
		comma = "\n"
	}
	if w.indent {
		comma = ",\n\t"
	}
	inner := strings.Join(parts, comma)
	if w.trailing && len(parts) > 0 {
		inner += ","
	}
	if w.comments {
		inner = "/* " + open + " */ " + inner + " # end\n"
	}
	return open + inner + end
}

// shapes are answers in other shapes than the one that is asked for: what is written, and what
// is to be read of it.
var shapes = map[string]func(f *form.Form, truth []record) (v any, want []record, ok bool){
	"values alone": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachRecord(f, truth, func(fields answer.Object) any { return values(fields) }), withoutQuotes(truth), true
	},
	"values within fields": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachRecord(f, truth, func(fields answer.Object) any { return answer.Object{{Key: "fields", Value: values(fields)}} }), withoutQuotes(truth), true
	},
	"one finding without its list": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachRecord(f, truth, func(fields answer.Object) any {
			return answer.Object{{Key: "fields", Value: singles(fields)}, {Key: "not_found", Value: []any{}}}
		}), truth, len(f.Fields) > 1
	},
	"quotes as one text": func(f *form.Form, truth []record) (any, []record, bool) {
		if !allHaveOneQuote(truth) {
			return nil, nil, false
		}
		return eachFinding(f, truth, func(o answer.Object) answer.Object { return set(o, "quotes", first(o, "quotes")) }), truth, true
	},
	"no confidence": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachFinding(f, truth, func(o answer.Object) answer.Object { return o[:2] }), truth, true
	},
	"a confidence in percent": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachFinding(f, truth, func(o answer.Object) answer.Object { return set(o, "confidence", "90%") }), truth, true
	},
	"no quotes": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachFinding(f, truth, func(o answer.Object) answer.Object { return answer.Object{o[0], o[2]} }), withoutQuotes(truth), true
	},
	"a key too many": func(f *form.Form, truth []record) (any, []record, bool) {
		return eachFinding(f, truth, func(o answer.Object) answer.Object {
			return append(o, answer.Member{Key: "page", Value: json.Number("3")})
		}), truth, true
	},
	"keys in capitals": func(f *form.Form, truth []record) (any, []record, bool) {
		return renamed(write(f, truth), strings.ToUpper), truth, true
	},
	"keys with spaces": func(f *form.Form, truth []record) (any, []record, bool) {
		return renamed(write(f, truth), func(key string) string { return strings.ReplaceAll(strings.ToUpper(key[:1])+key[1:], "_", " ") }), truth, true
	},
	"an envelope": func(f *form.Form, truth []record) (any, []record, bool) {
		return answer.Object{{Key: "output", Value: write(f, truth)}}, truth, true
	},
	"a call as a text": func(f *form.Form, truth []record) (any, []record, bool) {
		return answer.Object{{Key: "name", Value: "answer"}, {Key: "arguments", Value: renderJSON(write(f, truth))}}, truth, true
	},
	"all as a text": func(f *form.Form, truth []record) (any, []record, bool) {
		return renderJSON(write(f, truth)), truth, true
	},
	"a list of one": func(f *form.Form, truth []record) (any, []record, bool) {
		return []any{write(f, truth)}, truth, !f.Many()
	},
	"nulls for what is not there": func(f *form.Form, truth []record) (any, []record, bool) {
		changed := write(f, truth)
		return set(changed, changed[len(changed)-1].Key, nil), truth, true
	},
}

// eachRecord writes records, each as made of its fields.
func eachRecord(f *form.Form, truth []record, make func(fields answer.Object) any) any {
	whole := write(f, truth)
	if !f.Many() {
		fields, _ := whole.Get("fields")
		return make(fields.(answer.Object))
	}
	list, _ := whole.Get("records")
	var all []any
	for _, one := range list.([]any) {
		fields, _ := one.(answer.Object).Get("fields")
		all = append(all, make(fields.(answer.Object)))
	}
	return answer.Object{{Key: "records", Value: all}}
}

// eachFinding writes records with each finding changed.
func eachFinding(f *form.Form, truth []record, change func(answer.Object) answer.Object) any {
	return eachRecord(f, truth, func(fields answer.Object) any {
		var out answer.Object
		for _, m := range fields {
			all := []any{}
			for _, one := range m.Value.([]any) {
				all = append(all, change(one.(answer.Object)))
			}
			out = append(out, answer.Member{Key: m.Key, Value: all})
		}
		return answer.Object{{Key: "fields", Value: out}, {Key: "not_found", Value: []any{}}}
	})
}

// values writes fields as their values: one alone, or a list.
func values(fields answer.Object) answer.Object {
	var out answer.Object
	for _, m := range fields {
		var all []any
		for _, one := range m.Value.([]any) {
			all = append(all, one.(answer.Object)[0].Value)
		}
		if len(all) == 1 {
			out = append(out, answer.Member{Key: m.Key, Value: all[0]})
		} else {
			out = append(out, answer.Member{Key: m.Key, Value: all})
		}
	}
	return out
}

// singles writes lists of one finding as that finding.
func singles(fields answer.Object) answer.Object {
	var out answer.Object
	for _, m := range fields {
		if list := m.Value.([]any); len(list) == 1 {
			m.Value = list[0]
		}
		out = append(out, m)
	}
	return out
}

func withoutQuotes(truth []record) []record {
	var out []record
	for _, r := range truth {
		one := record{}
		for key, all := range r {
			for _, f := range all {
				one[key] = append(one[key], say(f.Value))
			}
		}
		out = append(out, one)
	}
	return out
}

func allHaveOneQuote(truth []record) bool {
	for _, r := range truth {
		for _, all := range r {
			for _, f := range all {
				if len(f.Quotes) != 1 {
					return false
				}
			}
		}
	}
	return true
}

// set returns an object with a value of its own.
func set(o answer.Object, key string, v any) answer.Object {
	out := append(answer.Object{}, o...)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = v
		}
	}
	return out
}

func first(o answer.Object, key string) any {
	list, _ := o.Get(key)
	return list.([]any)[0]
}

// renamed returns a value with all keys changed.
func renamed(v any, change func(string) string) any {
	switch v := v.(type) {
	case answer.Object:
		var out answer.Object
		for _, m := range v {
			out = append(out, answer.Member{Key: change(m.Key), Value: renamed(m.Value, change)})
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, renamed(one, change))
		}
		return out
	}
	return v
}
