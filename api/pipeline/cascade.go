package pipeline

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
	// Members are who may do a unit, the cheapest first: CascadeRules, or a model as
	// Stage.Model names one. The last one is the oracle, by whom the others are judged.
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

// CascadeRules is the member of a cascade that asks no model.
const CascadeRules = "rules"

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

// withDefaults returns the cascade with what it leaves out.
func (c Cascade) withDefaults() Cascade {
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

// setCascade gives the stage a cascade, and the model that its units then ask as a rule: the
// oracle. What has no model yet is asked of that one.
func (s *Stage) setCascade(c Cascade) {
	s.Cascade = c.withDefaults()
	if s.Cascade.IsSet() && s.Model == "" && s.Cascade.Oracle() != CascadeRules {
		s.Model = s.Cascade.Oracle()
	}
}

// bindCascade returns the stages with the cascade that the variables of a run give to those
// that may have one and have none. A variable that the pipeline has as an input of its own
// gives none, and what is wrong with it CascadeOf says.
func (p *Pipeline) bindCascade(vars map[string]string) Stages {
	if _, own := p.Inputs[VarCascade]; own {
		return p.Stages
	}
	c, err := CascadeOf(vars)
	if err != nil || !c.IsSet() {
		return p.Stages
	}

	stages := slices.Clone(p.Stages)
	for i, s := range stages {
		if s.takesCascade() && !s.Cascade.IsSet() && s.Model == "" {
			one := *s
			one.setCascade(c)
			stages[i] = &one
		}
	}
	return stages
}

// fault returns which key of the cascade is wrong, and why; "" if none is.
func (c Cascade) fault() (key, rule string) {
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
	case c.Oracle() == CascadeRules:
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

// checkCascade refuses a cascade that makes no sense, or where nothing can be told of answers.
func (c *checker) checkCascade() error {
	if key, rule := c.Cascade.fault(); key != "" {
		return c.keyError(key, "%s", rule)
	}
	if !c.Cascade.IsSet() {
		return nil
	}

	switch {
	case !c.takesCascade():
		return c.keyError("cascade", "is for stages that find records in documents, with each: document or chunk and no tools")
	case c.Model != "" && c.Model != c.Cascade.Oracle():
		return c.keyError("model", "is %s, and the last member of the cascade %s: leave out model, or name the same", c.Model, c.Cascade.Oracle())
	}
	return nil
}

// takesCascade reports whether a cascade may do the units of the stage.
func (s *Stage) takesCascade() bool {
	return s.From == Documents && (s.Each == EachDocument || s.Each == EachChunk) && s.Output.Kind == OutputRecords && len(s.Tools) == 0
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

// CascadeVariables are the names of these variables.
func CascadeVariables() []string {
	return []string{VarCascade, VarTarget, VarConfidence, VarPer, VarSeed, VarKind}
}

// CascadeOf returns the cascade that the variables of a run give. The field of an error is the
// variable that is wrong.
func CascadeOf(vars map[string]string) (Cascade, error) {
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

	if key, rule := c.fault(); key != "" {
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
