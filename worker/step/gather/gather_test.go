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
		{"an anchor", "", "# Outages {#outages}\n\n" + answer, "Outages"},
		{"another part", "Outages", "# Outages\n\n## Root cause of customers\n\n" + filler + "\n\n## Disks\n\n" + answer, "Outages"},
		{"another part, underlined", "Outages", "Outages\n=======\n\nRoot cause\n----------\n\n" + filler + "\n\nDisks\n-----\n\n" + answer, "Outages"},
		{"the part", "Site", "# Outages\n\n## Root cause\n\n### Disks\n\n" + answer, "Root cause"},
		{"a line among headings", "Disks", "# Disks\n\nRoot cause of the outage\n\n" + answer, "Disks"},
		{"an element of a list", "Disks", "1. Customers are affected.\n\n" + answer + "\n\nDisks", "Disks"},
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

// TestFindingIsTheBestPart: of a long paragraph the finding is what bears on the question, and no question; what a
// site lists of its other pages is none.
func TestFindingIsTheBestPart(t *testing.T) {
	const answer = "A full disk was the root cause of the outage, and some 40 customers in Europe were affected by it for two hours."
	talk := strings.Repeat("The team met on Monday and went through its plans for the next quarter in some detail. ", 6)
	for name, text := range map[string]string{
		"behind other sentences": talk + answer,
		"behind a question":      "What was the root cause of the outage, and how many customers of it were affected?\n\n" + talk + "\n\n" + answer,
		"above other pages":      answer + "\n\nMost Read\n\nThe root cause of the outage that affected customers and many of their customers, at the root of each cause.\n\n" + talk,
		"behind a credit":        "ASSOCIATED PRESS The root cause of the outage affected many customers, as this picture of customers shows.\n\n" + answer,
	} {
		if got := gather.Finding(question, text); !strings.HasSuffix(got, answer) || strings.Contains(got, "?") || len(got) > 400 {
			t.Errorf("%s: the finding is %q, want %q at its end", name, got, answer)
		}
	}
}

// TestFoundWhereSomethingIsSaid: a page says something to a question if a part that can be shown does.
func TestFoundWhereSomethingIsSaid(t *testing.T) {
	for text, want := range map[string]bool{
		"A full disk was the root cause, and some 40 customers in Europe were affected by it for two hours.": true,
		"# Root cause of the outage\n\nCustomers can read all that there is to know about us on this page.":  false,
		filler: false,
	} {
		if got := gather.IsFoundIn(question, text); got != want {
			t.Errorf("found in %q is %t", text, got)
		}
	}
}

// TestDates: the date of a page has a year of four digits, stands in no code, and can be read in one way alone.
func TestDates(t *testing.T) {
	const us, eu = "It began on 04/25/2016 and ended later.", "It began on 25/04/2016 and ended later."
	for _, tt := range []struct{ text, want string }{
		{"Head\n\nBy A. Writer\n\n10/04/2016 05:07 AM EDT\n\nText.", "2016-10-04"},
		{"Head\n\n10/04/2016 at 5:07 ET", "2016-10-04"},
		{"Head\n\n10/04/2016\n\n" + us, "2016-10-04"},
		{"Head\n\n10/04/2016\n\n" + eu, "2016-04-10"},
		{"Head\n\n10/04/2016 05:07 CEST\n\nText.", ""},
		{"Head\n\n10/04/2016\n\nUpdated October 5, 2016", "2016-10-05"},
		{"Head\n\n10/04/2016\n\n" + us + " " + eu, "2016-04-25"},
		{"Head\n\n04/04/2016", "2016-04-04"},
		{"Head\n\n2016-10-04", "2016-10-04"},
		{"* Kernel version between 2.6.33 and 3.0.x, or 3.7 or greater", ""},
		{"```\nwhen = '2030-01-01'\n```\n\nSaid on May 3, 2024.", "2024-05-03"},
	} {
		if got := gather.DateOf(tt.text); got != tt.want {
			t.Errorf("the date of %q is %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestPlainFinding: what is shown has no marks, and is cited as it stands.
func TestPlainFinding(t *testing.T) {
	const source = "The *root cause* of the [outage](outage.md#cause)\n   was a ``full disk``, as :ref:`said <disk>`, by which\n   40 customers were affected."
	shown, quote := gather.Cited(source)
	if want := "The root cause of the outage was a `full disk`, as said, by which 40 customers were affected."; shown != want || quote != source {
		t.Errorf("shown is %q, want %q; the quote is %q, want %q", shown, want, quote, source)
	}
}
