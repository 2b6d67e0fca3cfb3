package digest_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/digest"
)

// manual is documentation as people write it: headings, menus, code, and what bears on a question.
const manual = `Tables
======

- [Install](install.md)
- [Usage](usage.md)

Tables without ruled lines are found by the gaps between the columns of their words.

.. code-block:: python

    tables = find_tables(page)
    print(tables) # Tables without lines are found here.

` + "```\nfind --tables --without lines\n```" + `

The order of the words decides which line of a table without ruled lines a cell stands in.
Version 2.1 was released in March of 2023 with a new command for the terminal.
`

func passagesOf(texts ...string) (all []digest.Passage) {
	for i, text := range texts {
		all = append(all, digest.Passage{Ref: "REF_0000000" + string(rune('a'+i)), Text: text})
	}
	return all
}

// TestNoCodeInReports: what is chosen of a manual, and what a report says, is prose that bears on the
// question, and no sentence stands in two parts.
func TestNoCodeInReports(t *testing.T) {
	q := digest.NewQuery("How are tables without ruled lines found?")
	var texts []string
	for _, place := range digest.Choose(manual, q, 3, 120) {
		texts = append(texts, place.In(manual))
	}
	if len(texts) == 0 {
		t.Fatal("nothing is chosen")
	}
	texts = append(texts, "Gaps between words that are wider than a blank are the columns of tables without lines.", "Ruled lines that do not meet are joined before the cells of tables are found.")
	passages := passagesOf(texts...)
	r := digest.Compose(q, digest.EachPassage(q, passages, 3), digest.Parts{Opening: true, Closing: true})
	all := r.Opening + "\n" + r.Body + "\n" + r.Closing
	for _, no := range []string{"find_tables", "--tables", "Install", "====", "code-block", "Version 2.1"} {
		if strings.Contains(all, no) {
			t.Errorf("the report has %q:\n%s", no, all)
		}
	}
	for _, one := range []string{"by the gaps between the columns", "order of the words decides"} {
		if strings.Count(all, one) != 1 {
			t.Errorf("%q stands %d times in the report, want once:\n%s", one, strings.Count(all, one), all)
		}
	}
}

// TestTopicsAreNames: a theme is called by a phrase of its passages, and not by words of addresses or
// code.
func TestTopicsAreNames(t *testing.T) {
	q := digest.NewQuery("What do rivers carry?")
	passages := passagesOf(
		"Rivers carry salt water back at high tide. See https://example.com/salt_water.html for the salt water of each.",
		"The salt water that rivers carry kills reeds.",
		"Rivers carry 30 tonnes of sand each year.",
	)
	themes := digest.Themes(q, passages, 2)
	if len(themes) == 0 || themes[0].Topic != "Salt water" {
		t.Errorf("the themes are %+v, want the first called Salt water", themes)
	}
}

// TestPartsThatAReportLacks: what would stand in a part that a report does not have stands in its
// body, where it would be lost otherwise.
func TestPartsThatAReportLacks(t *testing.T) {
	const best = "The bridge did open to traffic early, as it opened in 1913."
	q := digest.NewQuery("When did the bridge open?")
	texts := []string{best, "The bridge of the town is old and wide.", "The bridge was open at night in those years."}
	for n := 1; n <= len(texts); n++ {
		for _, parts := range []digest.Parts{{}, {Opening: true}, {Closing: true}, {Opening: true, Closing: true}} {
			r := digest.Compose(q, digest.EachPassage(q, passagesOf(texts[:n]...), 3), parts)
			if all := r.Opening + r.Body + r.Closing; !strings.Contains(all, "1913") {
				t.Errorf("%d passages, %+v: the best sentence is lost: %+v", n, parts, r)
			}
			if (r.Opening != "") != parts.Opening || (r.Closing != "") != parts.Closing || r.Body == "" {
				t.Errorf("%d passages: got %+v, want the parts %+v and a body", n, r, parts)
			}
		}
	}
}
