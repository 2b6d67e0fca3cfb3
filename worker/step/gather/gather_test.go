package gather_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/step/gather"
)

const question = "What was the root cause of the outage and how many customers were affected?"

// filler keeps two paragraphs from being one place.
var filler = strings.Repeat("The team met on Monday and went through its plans for the next quarter in some detail. ", 12)

// TestRelevanceOfAPage: a page that answers a question in several places, or with its title, is about it. One
// that has its words here and there is not (D2).
func TestRelevanceOfAPage(t *testing.T) {
	for _, tt := range []struct {
		name, question, title, text string
		about                       bool
	}{
		{"in one place", question, "", "The root cause of the outage was a full disk, by which 40 customers were affected.", true},
		{
			"in places far apart", question, "", "The root cause was a disk that had no room.\n\n" + filler + "\n\nFor two hours customers in Europe were affected.",
			true,
		},
		{
			"words here and there", question, "Notes on an outage", "A tree has a root.\n\n" + filler + "\n\nWe have more customers.\n\n" + filler + "\n\nNobody was affected.", false,
		},
		{"something else", question, "Gardens", filler, false},
		{"nothing is asked", "", "Gardens", filler, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gather.Relevance(tt.question, tt.title, tt.text); (got >= gather.BearsOn) != tt.about {
				t.Errorf("relevance %.2f, from %.2f on a page is about the question; want that it is: %t", got, gather.BearsOn, tt.about)
			}
		})
	}
}

// TestFindingIsNoHeading: what a page says is a paragraph, even if a heading has all words of the question (D2).
func TestFindingIsNoHeading(t *testing.T) {
	const answer = "A full disk was the root cause, and some 40 customers in Europe were affected by it for two hours."
	for _, heading := range []string{
		"# Root cause of the outage and how many customers it affected in Europe and in Asia", "Root cause of the outage and how many customers it affected in Europe and Asia",
	} {
		if got := gather.Finding(question, heading+"\n\n"+answer+"\n\n"+filler); got != answer {
			t.Errorf("below %q the finding is %q, want %q", heading, got, answer)
		}
	}
}

// TestFindingIsASentence: tags and captions are no findings, and a finding ends with a whole sentence.
func TestFindingIsASentence(t *testing.T) {
	const answer = "A full disk was the root cause, and some 40 customers in Europe were affected by it for two hours."
	for name, beside := range map[string]string{
		"tags":    "Filed under:\nRoot Cause,\nOutage,\nCustomers,\nEurope,\nAffected Customers,\nOutage In Europe,\nCustomers Affected,\n2016 Outage,\n2016 Root Cause,\nThe Disk Caucus,\nEurope Outage 2016,\nCauses of Outages,\nRoot Cause 2016,\nCustomers In Europe",
		"caption": "The root cause of the outage is shown to customers who were affected, by two engineers who went to Europe for it on Monday and stood for three hours in front of the building of the company, which is in Ipoh. (Evan Vucci / AP)",
		"opening": "The root cause of the outage, and how many customers were affected by it in Europe, was told to two engineers on Monday, who stood for three hours in front of the building of the company, which is in Ipoh, and said:",
	} {
		if got := gather.Finding(question, beside+"\n\n"+answer+"\n\n"+filler); got != answer {
			t.Errorf("%s: the finding is %q, want %q", name, got, answer)
		}
	}

	if got := gather.Finding(question, filler+"\n\n"+answer+" The customers affected in Europe were:\n\n"+filler); got != answer {
		t.Errorf("the finding is %q, want it to end with a whole sentence", got)
	}
}

// TestHeadlinesOfSources: files that are their marks have headlines that people would give them.
func TestHeadlinesOfSources(t *testing.T) {
	const answer = "A full disk was the root cause of the outage, and some 40 customers in Europe were affected by it."
	for _, tt := range []struct{ name, title, text, want string }{
		{"a target", "How It Works", ".. _how_it_works:\n\nHow It Works\n============\n\n" + answer, "How It Works"},
		{"no title of the page", "", ".. _faq:\n\nRoot causes\n===========\n\n" + answer, "Root causes"},
		{"a note", "", "#####\nDisks\n#####\n\n.. note:: An outage affected many customers, whatever its root cause was\n\n" + answer, "Disks"},
		{"code", "Hooks", "# Hooks\n\n```python\noutage = root(cause, customers)\n```\n\noutage = Outage('root cause', customers=[affected])\n\n" + answer, "Hooks"},
		{"badges", "outages", "# outages [![Build Status](https://example.org/a.svg)](https://example.org/b)\n\n" + answer, "outages"},
		{"contents", "Outages", "# Outages\n\n## Table of Contents\n\n" + answer, "Outages"},
		{"an opening", "Outages", "# Outages\n\nThe root cause of an outage affects customers in these ways:\n\n" + answer, "Outages"},
		{"a caption", "Outages - The Paper", "Outages - The Paper\n\nCustomers affected by the outage at its root on Jan. 23, 2016. (Evan Vucci / AP)\n\n" + answer, "Outages - The Paper"},
		{"the first line", "", ".. _target:\n\n" + answer, answer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gather.Headline(question, tt.title, tt.text); got != tt.want {
				t.Errorf("headline %q, want %q", got, tt.want)
			}
		})
	}
}

// TestFindingIsNoCode: code is no finding, whatever words of the question it has.
func TestFindingIsNoCode(t *testing.T) {
	const answer = "A full disk was the root cause, and some 40 customers in Europe were affected by it for two hours."
	text := "Head\n====\n\n.. code-block:: python\n\n    outage = find(root, cause)\n\n    The root cause of the outage, by which customers were affected, stands here.\n\n" + answer + "\n\n" + filler
	if got := gather.Finding(question, text); got != answer {
		t.Errorf("the finding is %q, want %q", got, answer)
	}
}

// TestFindingHasTheRareWords: of two paragraphs, what a page says is that with the words that few others have.
func TestFindingHasTheRareWords(t *testing.T) {
	const answer = "When validation of the answer fails, the model is asked to retry it, up to as often as the budget allows."
	text := "An agent that meets an error in one of its tools ends with an error, as each agent does at the end.\n\n" + answer
	for _, rest := range []string{"starts with an error", "ends with errors", "logs an error", "shows an error", "keeps its errors"} {
		text += "\n\nThe agent of this part " + rest + ", and another agent reads what was written of the error."
	}
	if got := gather.Finding("How does an agent retry after a validation error?", text); got != answer {
		t.Errorf("the finding is %q, want %q", got, answer)
	}
}
