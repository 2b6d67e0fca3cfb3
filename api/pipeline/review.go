package pipeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
)

// A Review says which values of a stage wait for a person, and for whom. A unit that has found
// such a value waits, without a slot, until somebody has decided about each of them. There is
// none if When is empty.
type Review struct {
	// When are the reasons for which a value waits, each as ParseReasons reads it.
	When []string `json:"when"`
	// By is the role that whoever decides has to have: one of ReviewRoles. Empty is ByReviewer.
	By string `json:"by,omitempty"`
	// Within is how long a unit waits, as time.Duration writes it; empty is for as long as it takes.
	Within string `json:"within,omitempty"`
	// Then is what becomes of values about which nobody has decided by then: ThenAccept or ThenFail.
	Then string `json:"then,omitempty"`
}

// What becomes of values about which nobody has decided in time.
const (
	ThenAccept = "accept" // they stay as they were found
	ThenFail   = "fail"   // their unit fails
)

// The least and the most time that values wait for a person, if it is bounded.
const (
	MinReviewTime = time.Second
	MaxReviewTime = 365 * 24 * time.Hour
)

// The roles by which units can be reviewed, as principals have them.
const (
	ByReviewer = "reviewer"
	ByOperator = "operator"
	ByAdmin    = "admin"
)

// ReviewRoles returns these roles.
func ReviewRoles() []string { return []string{ByReviewer, ByOperator, ByAdmin} }

// IsSet reports whether any value may wait.
func (r Review) IsSet() bool { return len(r.When) > 0 }

// IsZero reports whether nothing is said.
func (r Review) IsZero() bool {
	return len(r.When) == 0 && r.By == "" && r.Within == "" && r.Then == ""
}

// Time returns how long a unit waits at most; 0 if for as long as it takes. The review was checked.
func (r Review) Time() time.Duration {
	d, _ := time.ParseDuration(r.Within)
	return d
}

// Role returns who decides.
func (r Review) Role() string {
	if r.By == "" {
		return ByReviewer
	}
	return r.By
}

// Reasons returns why values wait. The review was checked.
func (r Review) Reasons() Reasons {
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

// reasonsKnown is for messages.
const reasonsKnown = "unverified, confidence < 0.8, conflict, fuzzy, missing, sample 5%, all, compared"

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
			err = errs.New(errs.Invalid, "names %.40q, which is no reason; reasons are %s", text, reasonsKnown)
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

// fault returns which key of the review is wrong, and why; "" if none is.
func (r Review) fault() (key, rule string) {
	switch {
	case r.By != "" && !slices.Contains(ReviewRoles(), r.By):
		return "by", "is " + strconv.Quote(r.By) + "; who decides has the role " + strings.Join(ReviewRoles(), ", ")
	case !r.IsSet() && !r.IsZero():
		return "when", "is required beside by, within and then: it says which values wait, such as unverified or confidence < 0.8"
	case r.Then != "" && r.Within == "":
		return "within", "is required beside then: it says how long values wait, such as 48h"
	case r.Within != "" && r.Then != ThenAccept && r.Then != ThenFail:
		return "then", "is " + strconv.Quote(r.Then) + "; beside within it says what becomes of values about which nobody has decided: accept leaves them as they were found, fail has the unit fail"
	}
	if r.Within != "" {
		if d, err := time.ParseDuration(r.Within); err != nil || d < MinReviewTime || d > MaxReviewTime {
			return "within", "is " + strconv.Quote(r.Within) + "; write a time of a second to 8760h, such as 48h"
		}
	}
	if _, err := ParseReasons(r.When); err != nil {
		return "when", err.Error()
	}
	return "", ""
}

// readReview reads the review of a stage. Reasons may be a list, or one text with commas between them.
func (r reader) readReview(n *filetree.Node, at string, to *Review) {
	r.ReadMapping(n, at, map[string]filetree.Entry{
		"by": r.ReadText(&to.By), "within": r.ReadText(&to.Within), "then": r.ReadText(&to.Then),
		"when": func(n *filetree.Node, at string) {
			if n.Kind == yaml.SequenceNode {
				r.ReadTexts(&to.When)(n, at)
				return
			}
			var text string
			r.ReadText(&text)(n, at)
			to.When = splitReasons(text)
		},
	})
	if to.IsZero() {
		r.RecordFault(at, n.Line, "needs when, which says which values wait: %s", reasonsKnown)
	}
}

// splitReasons takes reasons apart that stand in one text.
func splitReasons(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// checkReview refuses a review that makes no sense, or where nobody could decide about values.
func (c *checker) checkReview() error {
	if key, rule := c.Review.fault(); key != "" {
		return c.keyError("review."+key, "%s", rule)
	}
	if c.Review.IsSet() && (c.i > 0 || !c.takesReview()) {
		return c.keyError("review", "is for a first stage that finds records in documents, with each: document or chunk; the values of a whole result are reviewed when its job is complete")
	}
	if c.Review.Reasons().Compared && !c.Cascade.IsSet() {
		return c.keyError("review.when", "has compared, which is for units that a cascade draws, and the stage has none")
	}
	if c.Review.Reasons().Compared && c.Review.Then == ThenAccept {
		return c.keyError("review.then", "is accept, and a value about which nobody has decided is no person's answer to compare with: say fail")
	}
	if c.Review.Reasons().Compared && c.Kind != "" {
		return c.keyError("kind", "is for cascades whose last member compares, and by review a person does: leave it out, or the reason compared")
	}
	return nil
}

// takesReview reports whether values of the stage, if it is the first, can wait for a person: each has to
// be of one record of one document.
func (s *Stage) takesReview() bool {
	return s.From == Documents && (s.Each == EachDocument || s.Each == EachChunk) && s.Output.Kind == OutputRecords
}

// The variables of a run that have values of the first stage reviewed, unless it says so itself.
const (
	VarReview       = "review" // reasons, with commas between them
	VarReviewBy     = "review_by"
	VarReviewWithin = "review_within"
	VarReviewThen   = "review_then"
)

// ReviewVariables are the names of these variables.
func ReviewVariables() []string {
	return []string{VarReview, VarReviewBy, VarReviewWithin, VarReviewThen}
}

// ReviewOf returns the review that the variables of a run give. The field of an error is the
// variable that is wrong.
func ReviewOf(vars map[string]string) (Review, error) {
	r := Review{When: splitReasons(vars[VarReview]), By: vars[VarReviewBy], Within: vars[VarReviewWithin], Then: vars[VarReviewThen]}
	key, rule := r.fault()
	if key == "" {
		return r, nil
	}
	if key = VarReview + "_" + key; key == VarReview+"_when" {
		key = VarReview
	}
	return Review{}, errs.Field("vars."+key, "%s", rule)
}

// bindReview returns the stages with the review that the variables of a run give to the first, if it can
// have one and has none. An input of the pipeline of the same name gives none.
func (p *Pipeline) bindReview(vars map[string]string) Stages {
	if _, own := p.Inputs[VarReview]; own {
		return p.Stages
	}
	r, err := ReviewOf(vars)
	if err != nil || !r.IsSet() {
		return p.Stages
	}

	stages := slices.Clone(p.Stages)
	if s := stages[0]; s.takesReview() && !s.Review.IsSet() {
		one := *s
		one.Review = r
		stages[0] = &one
	}
	return stages
}

// Reviews reports whether values of a job may wait for a person, given its variables and the definition of
// its own pipeline, if it has one.
func Reviews(vars map[string]string, definition []byte) bool {
	if r, err := ReviewOf(vars); err == nil && r.IsSet() {
		return true
	}
	if len(definition) == 0 {
		return false
	}
	p, err := Parse("pipeline", definition)
	return err == nil && p.Stages[0].Review.IsSet()
}
