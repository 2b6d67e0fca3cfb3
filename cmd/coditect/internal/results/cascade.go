package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
)

// A cascade is what was certified of a member of a cascade, as result.json has it.
type cascade struct {
	Member   string  `json:"member"`
	Oracle   string  `json:"oracle"`
	Target   float64 `json:"target"`
	Units    int64   `json:"units"`
	Labels   int64   `json:"labels"`
	Accepted int64   `json:"accepted"`
	Measures []struct {
		Field string  `json:"field"`
		First int64   `json:"certified"`
		Least float64 `json:"least_confidence"`
		Right int64   `json:"alike"`
		Of    int64   `json:"of"`
		Ended string  `json:"ended"`
	} `json:"measures"`
	Certificate *struct {
		Kind       string `json:"kind"`
		Job        string `json:"job_id"`
		AgeSeconds int64  `json:"age_seconds"`
		Held       bool   `json:"held"`
	} `json:"certificate"`
	SavedTokens int64   `json:"saved_tokens"`
	SavedUSD    float64 `json:"saved_usd"`
}

// cascadeColumns are the columns of the table of cascades in reports.
var cascadeColumns = []string{"member", "field", "target", "units", "compared", "alike", "certified", "least confidence", "accepted", "saved", "search ended"}

// wholeRecord stands for the field of a cascade that is certified by whole records.
const wholeRecord = "whole record"

// cascadeRows returns the rows of that table, one for each field of each member. What is of the member as a
// whole stands in its first row.
func cascadeRows(raw []byte) (rows [][]string, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var all []cascade
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}

	for _, c := range all {
		for i, m := range c.Measures {
			row := []string{
				"", cmp.Or(m.Field, wholeRecord), "", "", "",
				fmt.Sprintf("%d of %d", m.Right, m.Of), shareText(m.First, c.Units), "", "", "", m.Ended,
			}
			if m.First > 0 {
				row[7] = strconv.FormatFloat(m.Least, 'f', 2, 64)
			}
			if i == 0 {
				row[0], row[2], row[3], row[4] = c.Member+" for "+c.Oracle, strconv.FormatFloat(c.Target, 'g', -1, 64), strconv.FormatInt(c.Units, 10), strconv.FormatInt(c.Labels, 10)
				row[8], row[9] = shareText(c.Accepted, c.Units), c.saved()
				row[10] = c.ended(m.Ended)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// ended says why the search of a measure ended, and by which certificate of an earlier job answers were accepted, or
// that it did not hold.
func (c *cascade) ended(why string) string {
	of := c.Certificate
	if of == nil {
		return why
	}
	text := fmt.Sprintf("certificate of job %s for %s, %s old", of.Job, of.Kind, ageText(of.AgeSeconds))
	if of.Held {
		return text
	}
	return why + "; the " + text + ", did not hold and was dropped"
}

// ageText returns an age in the largest unit of which it has two.
func ageText(seconds int64) string {
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"days", 86_400}, {"hours", 3_600}, {"minutes", 60}} {
		if n := seconds / unit.seconds; n >= 2 {
			return fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return plural.Count(seconds, "second")
}

// saved is what the oracle did not have to be asked for; "" if that is not known, or nothing.
func (c *cascade) saved() string {
	switch {
	case c.SavedUSD > 0:
		return mapreduce.DollarText(int64(c.SavedUSD * 1e6))
	case c.SavedTokens > 0:
		return fmt.Sprintf("%d tokens", c.SavedTokens)
	}
	return ""
}

// shareText returns how many of all there are, with their share.
func shareText(n, all int64) string {
	if all == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(all))
}
