package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/coditect/mapreduce/api/mapreduce"
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
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
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
