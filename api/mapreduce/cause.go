package mapreduce

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// varying are the parts of errors that differ from unit to unit: numbers, ids, and what is quoted.
var varying = regexp.MustCompile(`"[^"]{0,200}"|\b[0-9a-f]{8,}\b|\d+([.,:]\d+)*`)

// CauseOf returns an error of a unit without what is that unit's own, so that units which failed
// for one reason have one cause. That of a cause is the cause itself.
func CauseOf(text string) string {
	for {
		// What was taken out can shorten a quote, or set an id apart. Each time text has fewer other signs, so it ends.
		next := varying.ReplaceAllString(text, "…")
		if next == text {
			return text
		}
		text = next
	}
}

// CauseOfAll returns the cause of the latest of a unit's errors; "" if there is none.
func CauseOfAll(errors []string) string {
	if len(errors) == 0 {
		return ""
	}
	return CauseOf(errors[len(errors)-1])
}

// MaxCause bounds the cause in a Resume, in bytes: errors are kept shorter.
const MaxCause = 8 << 10

// MaxCauseMarks bounds the causes of a job that are marked at a time.
const MaxCauseMarks = 100

// A CauseState is what somebody has said of all units of a job that failed for one cause.
type CauseState uint8

// The states of a cause.
const (
	// CauseOpen says that nobody has said anything, or not any more.
	CauseOpen CauseState = iota
	// CauseIgnored accepts that the units are missing: a resume of all failed units passes them over, and one that fails
	// for the cause later is accepted as well.
	CauseIgnored
	// CauseResolved says that the cause was dealt with: a unit that fails for it later opens it again.
	CauseResolved
)

var causeStateNames = [...]string{"open", "ignored", "resolved"}

// String returns the state's name.
func (s CauseState) String() string { return stateName(causeStateNames[:], s) }

// ParseCauseState returns the state of a name.
func ParseCauseState(name string) (CauseState, error) {
	i := slices.Index(causeStateNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("%q is none of %s", name, strings.Join(causeStateNames[:], ", "))
	}
	return CauseState(i), nil
}

// A CauseMark is what somebody has said of a cause.
type CauseMark struct {
	Cause string // as CauseOf has it
	State CauseState
	By    string // principal who said so
	Time  time.Time
	Units int64 // that had failed for it, as far as they have not been tried again since
}

// OpenFailures returns how many failed units nobody has ignored or resolved: at most, as units that failed for an ignored
// cause since that was said are among them.
func (j *Job) OpenFailures() int64 {
	open := j.FailedUnits
	for _, m := range j.Causes {
		open -= m.Units
	}
	return max(0, open)
}

// A CauseGroup is the failed units of a job that have one cause.
type CauseGroup struct {
	Cause   string
	Units   int64
	Lasting int64 // of these, for which another attempt would fail alike
	First   []*Unit
	Mark    CauseMark // Its State is CauseOpen if nobody has said anything
}

// Returned reports whether units have failed for the cause since it was resolved.
func (g *CauseGroup) Returned() bool { return g.Mark.State == CauseResolved && g.Units > g.Mark.Units }

// Open reports whether somebody should look at the cause.
func (g *CauseGroup) Open() bool { return g.Mark.State == CauseOpen || g.Returned() }

// shownOfGroup is how many units a CauseGroup names.
const shownOfGroup = 5

// GroupFailures returns the failed units of a job by cause, in the order in which they are listed. It reads so many units
// at most, and reports whether there are more.
func GroupFailures(ctx context.Context, c Client, j *Job, most int64) (groups []*CauseGroup, more bool, err error) {
	marks := make(map[string]CauseMark, len(j.Causes))
	for _, m := range j.Causes {
		marks[m.Cause] = m
	}

	byCause := make(map[string]*CauseGroup)
	query := ListUnitsQuery{Job: j.ID, States: []UnitState{UnitFailed}, PageSize: 1000}
	for read := int64(0); read < most; {
		page, err := c.ListUnits(ctx, query)
		if err != nil {
			return nil, false, err
		}

		read += int64(len(page.Units))
		for _, u := range page.Units {
			cause := CauseOfAll(u.Errors)
			g := byCause[cause]
			if g == nil {
				g = &CauseGroup{Cause: cause, Mark: marks[cause]}
				byCause[cause], groups = g, append(groups, g)
			}
			g.add(u)
		}

		if query.PageToken = page.NextPageToken; query.PageToken == "" {
			return groups, false, nil
		}
	}
	return groups, true, nil
}

func (g *CauseGroup) add(u *Unit) {
	g.Units++
	if u.Lasting {
		g.Lasting++
	}
	if len(g.First) < shownOfGroup {
		g.First = append(g.First, u)
	}
}
