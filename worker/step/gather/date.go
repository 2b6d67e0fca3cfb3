package gather

import (
	"regexp"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/prose"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// dated is how far into a text its own date is looked for, in bytes.
const dated = 2000

// date is the first date of the text, or null.
func (x *extract) date() any {
	iso, span := dateOf(string(x.evidence.Text))
	if iso == "" {
		return nil
	}
	x.cite(span.Start, span.End)
	return iso
}

// dateOf returns the date that a page has near its beginning, and where it stands; "" if it has none. Dates
// whose year has two digits are none, as versions of programs look like them, and neither are dates in code,
// and dates of which nothing tells whether the day or the month comes first.
func dateOf(text string) (iso string, span prose.Span) {
	day := schema.Property{Name: "date", Type: schema.String, Format: schema.Date}
	code := prose.CodeBlocks(text)

	for _, s := range form.Of(&day)(text, 0, min(len(text), dated), format.NumberStyle{}) {
		if touches(code, s.Start, s.End) {
			continue
		}
		if iso := readDate(text, s.Start, s.End); iso != "" {
			return iso, prose.Span{Start: s.Start, End: s.End}
		}
	}
	return "", prose.Span{}
}

// readDate reads the date at [start, end) of a text; "" if it is none, or nothing tells which one it is.
func readDate(text string, start, end int) string {
	written := text[start:end]
	iso, ok := calendar.ParseDate(written)
	if !ok || !strings.Contains(written, iso[:4]) {
		return ""
	}

	for d := range calendar.NumericDates(written) {
		if d.IsAmbiguous() {
			return d.In(orderAt(text, end))
		}
	}
	return iso
}

// americanTime matches the time behind a date as pages of North America write it.
var americanTime = regexp.MustCompile(`^\W{0,3}(?:at )?\d{1,2}:\d\d(?::\d\d)?\s?(?i:[ap]\.?m\.?)?\s?(?:[ECMP][SD]?T)\b`)

// orderAt returns the order of the numbers of a date that ends at end: that of the time zone behind it, or
// of those dates of the text that can be read in one order alone, if these agree; "" if nothing tells.
func orderAt(text string, end int) calendar.DateOrder {
	if americanTime.MatchString(text[end:min(len(text), end+40)]) {
		return calendar.MDY
	}

	switch count := calendar.CountOrders(text); {
	case count.DayFirst > 0 && count.MonthFirst == 0:
		return calendar.DMY
	case count.MonthFirst > 0 && count.DayFirst == 0:
		return calendar.MDY
	}
	return ""
}
