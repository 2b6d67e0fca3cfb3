package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/outcome/certify"
	"github.com/coditect/mapreduce/worker/step"
)

// cascadeFlags are the flags of a cascade.
type cascadeFlags struct {
	members            []string
	target, confidence float64
	per                console.Choice
	kind               string
}

func (c *cascadeFlags) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&c.members, "cascade", nil, "`MEMBERS` who find the values, the cheapest first, such as rules,PROVIDER/MODEL,PROVIDER/MODEL: an answer of a cheaper one is accepted where enough of them are certified to be as the last one's")
	f.Float64Var(&c.target, "target", cascading.DefaultTarget, "with --cascade: `share` of the values that is to be as the last member has them, more than 0 and less than 1")
	f.Float64Var(&c.confidence, "confidence", cascading.DefaultConfidence, "with --cascade: `probability` with which that is so, more than 0 and less than 1")
	c.per = console.NewChoice(cascading.PerField, cascading.PerField, cascading.PerRecord)
	f.StringVar(&c.kind, "cascade-kind", "", "with --cascade: `NAME` of the kind of the documents, such as receipts: later runs over the same kind use what this one certifies, while a small sample shows that it still holds")
	f.Var(&c.per, "cascade-per", "with --cascade: what the target is a share of: the values of each field, or whole records")
}

// fill sets the variables of a job that give a cascade, and the model of the job to its last member
// unless that is named already.
func (c *cascadeFlags) fill(flags *pflag.FlagSet, s *mapreduce.JobSpec) error {
	for _, flag := range []string{"target", "confidence", "cascade-per", "cascade-kind"} {
		if flags.Changed(flag) && len(c.members) == 0 {
			return exit.UsageError("--%s: says how a cascade is certified; name its members with --cascade", flag)
		}
	}
	if len(c.members) == 0 {
		return nil
	}

	for name, value := range map[string]string{
		cascading.VarCascade: strings.Join(c.members, ","), cascading.VarPer: c.per.Value,
		cascading.VarTarget: strconv.FormatFloat(c.target, 'g', -1, 64), cascading.VarConfidence: strconv.FormatFloat(c.confidence, 'g', -1, 64),
	} {
		if _, twice := s.Vars[name]; twice {
			return exit.UsageError("--cascade: is also set by --var %s", name)
		}
		s.Vars[name] = value
	}
	if c.kind != "" {
		if _, twice := s.Vars[cascading.VarKind]; twice {
			return exit.UsageError("--cascade-kind: is also set by --var %s", cascading.VarKind)
		}
		s.Vars[cascading.VarKind] = c.kind
	}

	cascade, err := cascading.Of(s.Vars)
	if err != nil {
		return cascadeFault(err)
	}
	names, err := s.StageModels(cascade.Oracle())
	if err != nil {
		return exit.UsageError("--cascade: %s", err)
	}

	if !flags.Changed("provider") && !flags.Changed("model") {
		return s.SetModels(names)
	}
	if own := s.ModelNames()[0]; own != names[0] {
		return exit.UsageError("--cascade: ends with %s, and the model of the run is %s: leave out --model, or end with the same", names[0], own)
	}
	return nil
}

// cascadeFault is the error of a flag for one about the variable that it sets.
func cascadeFault(err error) error {
	e, ok := err.(*errs.Error) //nolint:errorlint // CascadeOf wraps nothing
	if !ok {
		return err
	}
	flag := strings.TrimPrefix(strings.TrimPrefix(e.Field, "vars."), cascading.VarCascade+"_")
	if flag == "per" || flag == "seed" || flag == "kind" {
		flag = "cascade-" + flag
	}
	return exit.UsageError("--%s: %s", flag, e.Message)
}

// A cascadeOutlook is what a plan says of the cascade of a stage.
type cascadeOutlook struct {
	stage   *pipeline.Stage
	units   int
	labels  int // that have to be compared, if the cheaper member is always right
	accepts int // units then
}

// cascadesOf returns what a plan says of the cascades of a job.
func cascadesOf(spec *mapreduce.JobSpec, planned *mapreduce.Plan) (all []cascadeOutlook, err error) {
	p, err := step.PipelineOf(spec)
	if err != nil {
		return nil, err
	}

	for _, stage := range p.Stages {
		if !stage.Cascade.IsSet() {
			continue
		}
		one := cascadeOutlook{stage: stage}
		for _, t := range planned.Tasks {
			if t.Stage == stage.Name && t.Kind == mapreduce.KindMap {
				one.units++
			}
		}
		if one.units == 0 {
			continue // another stage gets the documents
		}

		rules := certify.Rules{
			Target: stage.Target, Confidence: 1 - (1-stage.Confidence)/float64(len(stage.Members)-1), Seed: uint64(stage.Seed),
			Alone: len(stage.Members) > 2,
		}
		if one.labels, one.accepts, err = certify.Fewest(rules, one.units); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// line says what the cascade comes to at best.
func (c *cascadeOutlook) line() string {
	return fmt.Sprintf("cascade of stage %s: %s; target %v with confidence %v for each %s. Of %s, %d are asked of %s at least, and %d are accepted at most as a cheaper member answers them",
		c.stage.Name, strings.Join(c.stage.Members, ", "), c.stage.Target, c.stage.Confidence, c.stage.Per, plural.Count(int64(c.units), "unit"), c.units-c.accepts, c.stage.Oracle(), c.accepts)
}

// warning says why the cascade can hardly pay; "" if it can.
func (c *cascadeOutlook) warning() string {
	if c.accepts >= c.units/2 {
		return ""
	}

	// So many units pay at least half, if the cheaper member is always right.
	enough := 0
	sizes := []int{50, 100, 200, 300, 500, 700, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 50_000}
	rules := certify.Rules{Target: c.stage.Target, Confidence: 1 - (1-c.stage.Confidence)/float64(len(c.stage.Members)-1), Alone: len(c.stage.Members) > 2}
	if i := slices.IndexFunc(sizes, func(n int) bool {
		_, accepts, err := certify.Fewest(rules, n)
		return n > c.units && err == nil && accepts >= n/2
	}); i >= 0 {
		enough = sizes[i]
	}

	text := fmt.Sprintf("the cascade of stage %s can hardly pay: even if %s is always right, %d of %s have to be compared with %s to certify %v with confidence %v",
		c.stage.Name, c.stage.Members[0], c.labels, plural.Count(int64(c.units), "unit"), c.stage.Oracle(), c.stage.Target, c.stage.Confidence)
	if enough > 0 {
		text += fmt.Sprintf("; from about %d units up it saves half", enough)
	}
	return text
}
