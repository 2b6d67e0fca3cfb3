// Package cascading has the cascade of a stage: who may do its units, the cheapest first, and how good their
// answers have to be, as the file of a pipeline says it or the variables of a run. It is pure, and must import
// nothing of the project but api/errs: which stages take a cascade is the pipeline's, and what comes of one is
// found out where units run.
package cascading

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
)

// A Cascade is how the units of a stage are done where several may do them: each by the
// cheapest whose answer is good enough, as far as that is certified. A stage has one if it
// has Members.
type Cascade struct {
	// Members are who may do a unit, the cheapest first: Rules, or a model as
	// a stage names one. The last one is the oracle, by whom the others are judged.
	Members []string `json:"cascade,omitempty"`
	// Target is which share of the answers is to be as the oracle's, and Confidence with
	// which probability it is. Both are in (0,1); 0 is the default.
	Target     float64 `json:"target,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`
	// Per says of what Target is a share: PerField or PerRecord; empty is PerField.
	Per string `json:"per,omitempty"`
	// Seed decides which units are sampled; 0 leaves it to the job.
	Seed int64 `json:"seed,omitempty"`
	// Kind names the documents whose jobs use a certificate again; empty keeps none.
	Kind string `json:"kind,omitempty"`
}

// Rules is the member of a cascade that asks no model.
const Rules = "rules"

// Of what the target of a cascade is a share.
const (
	PerField  = "field"  // of the values of each field by itself
	PerRecord = "record" // of the records, all of whose fields have to be as the oracle's
)

// Defaults and bounds of a cascade.
const (
	DefaultTarget     = 0.95
	DefaultConfidence = 0.95
	MaxMembers        = 4
	MaxKind           = 64 // bytes of the name of a kind of documents
)

// IsSet reports whether there is a cascade.
func (c Cascade) IsSet() bool { return len(c.Members) > 0 }

// Oracle is the last member.
func (c Cascade) Oracle() string { return c.Members[len(c.Members)-1] }

// WithDefaults returns the cascade with what it leaves out.
func (c Cascade) WithDefaults() Cascade {
	if !c.IsSet() {
		return c
	}

	if c.Target == 0 {
		c.Target = DefaultTarget
	}
	if c.Confidence == 0 {
		c.Confidence = DefaultConfidence
	}
	if c.Per == "" {
		c.Per = PerField
	}
	return c
}

// Fault returns which key of the cascade is wrong, and why; "" if none is.
func (c Cascade) Fault() (key, rule string) {
	for _, share := range []struct {
		key   string
		value float64
	}{{"target", c.Target}, {"confidence", c.Confidence}} {
		if share.value != 0 && !(share.value > 0 && share.value < 1) {
			return share.key, "must be more than 0 and less than 1, such as 0.95, and is " + strconv.FormatFloat(share.value, 'g', -1, 64)
		}
	}

	switch {
	case !c.IsSet() && (c.Target != 0 || c.Confidence != 0 || c.Per != "" || c.Seed != 0 || c.Kind != ""):
		return "cascade", "is required beside target, confidence, per, seed and kind, which say how it is certified"
	case !c.IsSet():
		return "", ""
	case len(c.Members) < 2 || len(c.Members) > MaxMembers:
		return "cascade", "needs 2 to " + strconv.Itoa(MaxMembers) + " members, the cheapest first, and has " + strconv.Itoa(len(c.Members))
	case c.Oracle() == Rules:
		return "cascade", "ends with rules, and the last member is the one that the others are judged by: name a model there"
	case c.Per != "" && c.Per != PerField && c.Per != PerRecord:
		return "per", "must be field or record"
	case c.Seed < 0:
		return "seed", "must not be negative"
	case c.Kind != "" && len(c.Members) != 2:
		return "kind", "keeps the certificate of one member, and the cascade has " + strconv.Itoa(len(c.Members)) + ": name two members, or leave it out"
	case len(c.Kind) > MaxKind || !utf8.ValidString(c.Kind) || strings.ContainsFunc(c.Kind, unicode.IsControl) || strings.TrimSpace(c.Kind) != c.Kind:
		return "kind", "names the kind of the documents, in at most " + strconv.Itoa(MaxKind) + " bytes, such as receipts, and is " + strconv.Quote(c.Kind)
	}

	for i, m := range c.Members {
		switch {
		case m == "" || strings.TrimSpace(m) != m || strings.Contains(m, ","):
			return "cascade", "names a member that is " + strconv.Quote(m) + "; each is rules, provider/model, or an alias that the run gives"
		case slices.Contains(c.Members[:i], m):
			return "cascade", "names " + m + " twice"
		}
	}
	return "", ""
}

// The variables of a run that give a cascade to each stage that may have one and has none.
const (
	VarCascade    = "cascade" // members, with commas between them
	VarTarget     = "cascade_target"
	VarConfidence = "cascade_confidence"
	VarPer        = "cascade_per"
	VarSeed       = "cascade_seed"
	VarKind       = "cascade_kind"
)

// Variables are the names of these variables.
func Variables() []string {
	return []string{VarCascade, VarTarget, VarConfidence, VarPer, VarSeed, VarKind}
}

// Of returns the cascade that the variables of a run give. The field of an error is the
// variable that is wrong.
func Of(vars map[string]string) (Cascade, error) {
	var c Cascade
	if text := vars[VarCascade]; text != "" {
		c.Members = strings.Split(text, ",")
	}

	var err error
	read := func(name string, to *float64) {
		text, given := vars[name]
		if !given || err != nil {
			return
		}
		// Zero stands for the default where nobody says anything, so it is refused here.
		if *to, err = strconv.ParseFloat(text, 64); err != nil || !(*to > 0 && *to < 1) {
			err = errs.Field("vars."+name, "must be more than 0 and less than 1, such as 0.95, and is %.40q", text)
		}
	}
	read(VarTarget, &c.Target)
	read(VarConfidence, &c.Confidence)
	if err != nil {
		return Cascade{}, err
	}

	c.Per, c.Kind = vars[VarPer], vars[VarKind]
	if text, given := vars[VarSeed]; given {
		if c.Seed, err = strconv.ParseInt(text, 10, 64); err != nil || c.Seed < 1 {
			return Cascade{}, errs.Field("vars."+VarSeed, "must be a whole number of at least 1, and is %.40q", text)
		}
	}

	if key, rule := c.Fault(); key != "" {
		return Cascade{}, errs.Field("vars."+varOf(key), "%s", rule)
	}
	return c, nil
}

// varOf is the variable that gives a key of a cascade.
func varOf(key string) string {
	if key == VarCascade {
		return key
	}
	return VarCascade + "_" + key
}
