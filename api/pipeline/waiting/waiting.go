// Package waiting has the rule by which values that units of a stage have found wait for a person, and for
// whom, as the file of a pipeline says it or the variables of a run. It is pure, and must import nothing of the
// project but api/errs: which values a rule is about is found out where they were found.
package waiting

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// A Rule says which values of a stage wait for a person, and for whom. A unit that has found
// such a value waits, without a slot, until somebody has decided about each of them. There is
// none if When is empty.
type Rule struct {
	// When are the reasons for which a value waits, each as ParseReasons reads it.
	When []string `json:"when"`
	// By is the role that whoever decides has to have: one of Roles. Empty is ByReviewer.
	By string `json:"by,omitempty"`
	// Within is how long a unit waits, as time.Duration writes it; empty is for as long as it takes.
	Within string `json:"within,omitempty"`
	// Then is what becomes of values about which nobody has decided by then: Accept or Fail.
	Then string `json:"then,omitempty"`
}

// What becomes of values about which nobody has decided in time.
const (
	Accept = "accept" // they stay as they were found
	Fail   = "fail"   // their unit fails
)

// The least and the most time that values wait for a person, if it is bounded.
const (
	MinTime = time.Second
	MaxTime = 365 * 24 * time.Hour
)

// The roles by which units can be reviewed, as principals have them.
const (
	ByReviewer = "reviewer"
	ByOperator = "operator"
	ByAdmin    = "admin"
)

// Roles returns these roles.
func Roles() []string { return []string{ByReviewer, ByOperator, ByAdmin} }

// IsSet reports whether any value may wait.
func (r Rule) IsSet() bool { return len(r.When) > 0 }

// IsZero reports whether nothing is said.
func (r Rule) IsZero() bool {
	return len(r.When) == 0 && r.By == "" && r.Within == "" && r.Then == ""
}

// Time returns how long a unit waits at most; 0 if for as long as it takes. The review was checked.
func (r Rule) Time() time.Duration {
	d, _ := time.ParseDuration(r.Within)
	return d
}

// Role returns who decides.
func (r Rule) Role() string {
	if r.By == "" {
		return ByReviewer
	}
	return r.By
}

// Reasons returns why values wait. The review was checked.
func (r Rule) Reasons() Reasons {
	reasons, _ := ParseReasons(r.When)
	return reasons
}

// Reasons are why values of a stage wait for a person. The zero value is no reason.
type Reasons struct {
	All        bool    // each value waits, and each that was not found
	Unverified bool    // it was found and is no value of the record
	Conflict   bool    // others were found for the same record
	Fuzzy      bool    // its quote is not quite what was looked for
	Missing    bool    // the schema requires it, and the record has none
	Confidence float64 // it is less sure than this; 0 is no reason
	Sample     float64 // the share that chance chooses; 0 is none
	Compared   bool    // a cascade has drawn its unit, and a person is asked instead of the last member
}

// ReasonsKnown is for messages.
const ReasonsKnown = "unverified, confidence < 0.8, conflict, fuzzy, missing, sample 5%, all, compared"

// ParseReasons reads reasons: unverified, conflict, fuzzy, missing, all, compared, a bound of the confidence
// such as "confidence < 0.8", and a share such as "sample 5%".
func ParseReasons(texts []string) (r Reasons, err error) {
	flags := map[string]*bool{"all": &r.All, "unverified": &r.Unverified, "conflict": &r.Conflict, "fuzzy": &r.Fuzzy, "missing": &r.Missing, "compared": &r.Compared}
	given := make(map[string]bool)

	for _, text := range texts {
		word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		if name, bound, tight := strings.Cut(word, "<"); tight {
			word, rest = name, "<"+bound+rest
		}
		if given[word] {
			return Reasons{}, errs.New(errs.Invalid, "names %s twice", word)
		}
		given[word] = true

		flag := flags[word]
		switch {
		case flag != nil && rest == "":
			*flag = true
		case word == "confidence":
			r.Confidence, err = parseBound(rest)
		case word == "sample":
			r.Sample, err = parseSample(rest)
		default:
			err = errs.New(errs.Invalid, "names %.40q, which is no reason; reasons are %s", text, ReasonsKnown)
		}
		if err != nil {
			return Reasons{}, err
		}
	}
	return r, nil
}

func parseBound(text string) (float64, error) {
	rest, found := strings.CutPrefix(strings.TrimSpace(text), "<")
	x, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if !found || err != nil || !(x > 0 && x <= 1) {
		return 0, errs.New(errs.Invalid, "has confidence %.40q; write it as confidence < 0.8, with a number above 0 and up to 1", text)
	}
	return x, nil
}

// parseSample reads a share, in percent.
func parseSample(text string) (float64, error) {
	rest, found := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if !found || err != nil || !(x > 0 && x <= 100) {
		return 0, errs.New(errs.Invalid, "has sample %.40q; write it as sample 5%%, with a number above 0 and up to 100", text)
	}
	return x / 100, nil
}

// Fault returns which key of the review is wrong, and why; "" if none is.
func (r Rule) Fault() (key, rule string) {
	switch {
	case r.By != "" && !slices.Contains(Roles(), r.By):
		return "by", "is " + strconv.Quote(r.By) + "; who decides has the role " + strings.Join(Roles(), ", ")
	case !r.IsSet() && !r.IsZero():
		return "when", "is required beside by, within and then: it says which values wait, such as unverified or confidence < 0.8"
	case r.Then != "" && r.Within == "":
		return "within", "is required beside then: it says how long values wait, such as 48h"
	case r.Within != "" && r.Then != Accept && r.Then != Fail:
		return "then", "is " + strconv.Quote(r.Then) + "; beside within it says what becomes of values about which nobody has decided: accept leaves them as they were found, fail has the unit fail"
	}

	if r.Within != "" {
		if d, err := time.ParseDuration(r.Within); err != nil || d < MinTime || d > MaxTime {
			return "within", "is " + strconv.Quote(r.Within) + "; write a time of a second to 8760h, such as 48h"
		}
	}

	if _, err := ParseReasons(r.When); err != nil {
		return "when", err.Error()
	}
	return "", ""
}

// SplitReasons takes reasons apart that stand in one text.
func SplitReasons(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// The variables of a run that have values of the first stage reviewed, unless it says so itself.
const (
	Var       = "review" // reasons, with commas between them
	VarBy     = "review_by"
	VarWithin = "review_within"
	VarThen   = "review_then"
)

// Variables are the names of these variables.
func Variables() []string {
	return []string{Var, VarBy, VarWithin, VarThen}
}

// Of returns the review that the variables of a run give. The field of an error is the
// variable that is wrong.
func Of(vars map[string]string) (Rule, error) {
	r := Rule{When: SplitReasons(vars[Var]), By: vars[VarBy], Within: vars[VarWithin], Then: vars[VarThen]}
	key, rule := r.Fault()
	if key == "" {
		return r, nil
	}
	if key = Var + "_" + key; key == Var+"_when" {
		key = Var
	}
	return Rule{}, errs.Field("vars."+key, "%s", rule)
}
