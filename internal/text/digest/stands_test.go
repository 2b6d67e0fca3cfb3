package digest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/digest"
)

// sound are passages that answer askCaches, each in a sentence of its own.
var sound = []string{
	"A cache may reuse a stored response while the response is fresh.",
	"Servers mark a response that no cache may store with a directive.",
	"The age of a response is counted by each cache on its way.",
}

const askCaches = "When may a cache reuse a stored response?"

// compose makes a report of passages.
func compose(question string, texts ...string) digest.Report {
	q := digest.NewQuery(question)
	return digest.Compose(q, digest.EachPassage(q, passagesOf(texts...), 4), digest.Parts{Opening: true, Closing: true})
}

// What is no statement by itself stands in no report of passages that have some: parts of lists and
// tables, asides, talk, markup, questions, and sentences that begin by pointing back.
func TestWhatStandsInNoReport(t *testing.T) {
	for kind, text := range map[string]string{
		"element of a list in -ing":   "Generating a new stored response key for every cache that is associated with the resource.",
		"element without a verb":      "Better cache reuse of each stored response for the servers of a network.",
		"element without a subject":   "Requires a cache to reuse the stored response on every call of the client.",
		"what a list explains":        "`reuse` — makes the cache reuse a stored response of the server.",
		"label and list":              "Committed changes: more room in the cache to reuse a stored response, and alarms that are tested.",
		"clause without its main one": "When a cache may reuse a stored response of the server.",
		"row of a table":              "0.8 Cache reuse 19.1 20.8 1.7 The cache may reuse a stored response of the server.",
		"number of a page":            "40 Changes in caches that may reuse a stored response of the server.",
		"heads in capitals":           "STORED RESPONSES Cache: The cache may reuse a stored response of the server.",
		"end of an aside":             "The cache may reuse a stored response of the server.)",
		"aside":                       "(The cache may reuse a stored response of the server.)",
		"talk":                        "Cool, let's see when a cache may reuse a stored response.",
		"answer to nobody":            "Yes, the cache may reuse a stored response of the server.",
		"of its own text":             "Repeating the concern about caches: a cache may reuse a stored response of the server.",
		"question":                    "May a cache of the server reuse a stored response?",
		"template":                    "A cache may reuse a stored response as {{storing}} says of servers.",
		"end of a quotation":          "A cache may reuse a stored response of the server.\"",
		"beginning of a quotation":    "“The cache may reuse a stored response of the server.",
		"this":                        "This lets the cache reuse a stored response of the server.",
		"further":                     "As a further refinement the cache may reuse a stored response of the server.",
		"these":                       "The cache may reuse these responses if they were stored by the server.",
		"this document":               "A drawback of this document is that the cache may reuse a stored response.",
	} {
		r := compose(askCaches, append(slices.Clone(sound), text)...)
		all := r.Opening + "\n" + r.Body + "\n" + r.Closing
		if strings.Contains(all, strings.TrimRight(text, ".?)")) {
			t.Errorf("%s: the report has %q:\n%s", kind, text, all)
		}
		if !strings.Contains(all, "while the response is fresh") {
			t.Errorf("%s: the report lacks the answer:\n%s", kind, all)
		}
	}
}

// A sentence stands in a report without the marks of its source.
func TestMarksOfSources(t *testing.T) {
	for text, want := range map[string]string{
		"A cache may reuse a *stored* response of the server [RFC7234].":                                "A cache may reuse a stored response of the server [REF_0000000a].",
		"A cache may reuse a stored response[^fresh] of the _server_.":                                  "A cache may reuse a stored response of the server [REF_0000000a].",
		"A cache may reuse a stored response (per {{storing}}) of the server.":                          "A cache may reuse a stored response of the server [REF_0000000a].",
		"A cache may reuse a stored response (see Storing) as {{Section 4 of RFC9111}} says.":           "A cache may reuse a stored response as Section 4 of RFC9111 says [REF_0000000a].",
		"Freshness: A cache may reuse a stored response of the server.":                                 "A cache may reuse a stored response of the server [REF_0000000a].",
		"Note that a cache may reuse a stored response of the server.":                                  "A cache may reuse a stored response of the server [REF_0000000a].",
		"[![Build](https://ci.example/b.svg)](https://ci.example) A cache may reuse a stored response.": "A cache may reuse a stored response [REF_0000000a].",
		"A cache may reuse a stored_response_key of the server.":                                        "A cache may reuse a stored_response_key of the server [REF_0000000a].",
	} {
		if r := compose(askCaches, text); r.Opening != want {
			t.Errorf("%q: the report opens with %q, want %q", text, r.Opening, want)
		}
	}
}

// Versions of a text that say almost the same are one sentence, but for other numbers.
func TestVersionsOfASentence(t *testing.T) {
	r := compose(askCaches, append(slices.Clone(sound),
		"The server SHOULD reply with an error if a cache reuses a stored response with another key.",
		"The server MUST reply with an error if a cache reuses a stored response with another key.",
		"A cache reuses the stored response of a proxy after 30 seconds at least.",
		"A cache reuses the stored response of a proxy after 60 seconds at least.")...)
	all := r.Opening + "\n" + r.Body + "\n" + r.Closing
	if n := strings.Count(all, "reply with an error"); n != 1 {
		t.Errorf("the same is said %d times, want once:\n%s", n, all)
	}
	if !strings.Contains(all, "30 seconds") || !strings.Contains(all, "60 seconds") {
		t.Errorf("a number is lost:\n%s", all)
	}
}

// Where no passage has more than a word of the question, the report says so.
func TestNothingAnswers(t *testing.T) {
	r := compose("How are types and enums declared?",
		"Applications in production should turn on the lint rules that know the types of a program.",
		"The client calls functions of the program in two languages.",
		"Editors show the types of a function below its name.")
	if !strings.HasPrefix(r.Opening, "No passage has more than one word of the question") {
		t.Errorf("the report opens with %q", r.Opening)
	}
	if r := compose(askCaches, sound...); strings.Contains(r.Opening, "No passage") {
		t.Errorf("a report with an answer opens with %q", r.Opening)
	}
}

// A theme has the sentences of several passages, and no name of one word where there is one of two.
func TestThemesSayWhatTheirPassagesSay(t *testing.T) {
	q := digest.NewQuery(askCaches)
	themes := digest.Themes(q, passagesOf(
		"A cache may reuse a stored response within its freshness lifetime.",
		"The freshness lifetime tells a cache how long it may reuse a stored response.",
		"Requests expand the freshness lifetime. Servers set the freshness lifetime that a cache uses before it may reuse a response.",
	), 1)
	if len(themes) != 1 {
		t.Fatalf("got %d themes, want 1", len(themes))
	}
	if themes[0].Topic != "Freshness lifetime" {
		t.Errorf("the theme is called %q, want Freshness lifetime", themes[0].Topic)
	}
	for _, ref := range []string{"REF_0000000a", "REF_0000000b", "REF_0000000c"} {
		if !strings.Contains(themes[0].Text, ref) {
			t.Errorf("the finding %q has no sentence of %s", themes[0].Text, ref)
		}
	}
}
