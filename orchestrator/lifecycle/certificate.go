package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
	"github.com/coditect/mapreduce/internal/outcome/certify"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/cascade"
)

// A keeping is where the certificate of a job's cascade is kept, and what it says of itself.
type keeping struct {
	at             cascade.Keeping
	kind           string
	member, oracle string // as models, not as the stage names them
	schema         string
}

// keepingOf returns where certificates of the cascade of a stage are kept; nil if it names no kind of documents.
//
// A certificate goes for jobs that ask the same in the same way: what may change an answer, or how sure it is, is
// hashed into its name. What only changes when and where units run is not.
func keepingOf(compiled *jobspec.Compiled, stageIndex int) (*keeping, error) {
	spec, file := compiled.Spec, compiled.Graph.Pipeline()
	stage := *file.Stages[stageIndex]
	if stage.Kind == "" || stage.Review.Reasons().Compared {
		return nil, nil
	}
	names := make([]string, len(stage.Members))
	for i, member := range stage.Members {
		names[i] = mapreduce.DefaultProvider
		if member != cascading.Rules {
			all, err := spec.StageModels(member)
			if err != nil {
				return nil, err
			}
			names[i] = strings.Join(all, ",")
		}
	}

	vars := maps.Clone(spec.Vars)
	for _, name := range cascading.Variables() {
		delete(vars, name) // the stage has them
	}
	stage.Seed, stage.Name, stage.Progress, stage.Parallel, stage.OnError = 0, "", "", 0, ""
	canonical := compiled.Schemas[stageIndex].Canonical()
	sum, err := hashOf(struct {
		Edition      int
		Names        []string
		Schema       []byte
		Stage        *pipeline.Stage
		Vars         map[string]string
		Inputs       map[string]*string // whose defaults are rendered where Vars says nothing
		Agents       map[string]*pipeline.Agent
		Tokens       int
		Overlap      int
		Estimator    string
		Reading      mapreduce.Reading
		StrictSchema bool
	}{ascent.Edition, names, canonical, &stage, vars, file.Inputs, file.Agents, spec.MaxTokensPerUnit, spec.ChunkOverlap, spec.Estimator, spec.Reading, spec.StrictSchema})
	if err != nil {
		return nil, err
	}

	schemaSum := sha256.Sum256(canonical)
	return &keeping{
		at:   cascade.Keeping{Tenant: spec.Tenant, ID: mapreduce.CertificateID(sum)},
		kind: stage.Kind, member: names[0], oracle: names[len(names)-1], schema: hex.EncodeToString(schemaSum[:16]),
	}, nil
}

// hashOf returns 32 hexadecimal digits that differ for different values.
func hashOf(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// of returns where a job keeps its certificate; nil if it keeps none, as one that repeats another does.
func (k *keeping) of(repeats mapreduce.JobID) *cascade.Keeping {
	if k == nil || repeats != "" {
		return nil
	}
	return &k.at
}

// beginWith returns where the certificate is kept with which a trial may begin. That of a job which repeats another is
// the one that the other began with, whatever has become of it, or it would need answers that nobody has kept.
func (j *judgement) beginWith(ctx context.Context, member int64, t *cascade.Trial) (*cascade.Keeping, error) {
	if j.keep == nil || j.repeats == "" {
		return j.keep.of(j.repeats), nil
	}
	other, err := j.jobs.Cascade.Trial(ctx, j.repeats, member)
	if err == nil && other != nil {
		t.Certificate, t.Fallen, t.Unkept = other.Certificate, other.Fallen, other.Unkept
	}
	return nil, err
}

// certificate returns what later jobs accept answers by.
func (d *drawing) certificate(floors []certify.Score) *cascade.Certificate {
	t := d.stored
	c := &cascade.Certificate{
		Kind: d.keep.kind, Member: d.keep.member, Oracle: d.keep.oracle, Measures: t.Measures, Target: t.Target, Confidence: t.Confidence,
		Schema: d.keep.schema, Job: string(d.job), Seed: t.Seed, Units: t.Units, Drawn: t.Drawn,
	}

	for _, floor := range floors {
		c.Floors = append(c.Floors, uint32(floor))
	}
	for i := range t.Verdicts {
		c.Verdicts = append(c.Verdicts, t.Verdicts[i].ToStored())
	}
	return c
}

// audit has a sample of the units compared that a certificate accepts, and decides the trial by the certificate, or says
// that it has fallen. It reports whether all of the sample are labelled.
func (d *drawing) audit(ctx context.Context) (settled bool, err error) {
	t := d.stored
	floors := make([]certify.Score, len(t.Measures))
	for m := range floors {
		if floors[m] = mapreduce.MaxScore + 1; m < len(t.Certificate.Floors) {
			floors[m] = certify.Score(t.Certificate.Floors[m])
		}
	}
	held, sample := d.trial.Audit(floors, t.Certificate.Uses)
	if settled, err = d.label(ctx, sample); err != nil || !settled || t.Fallen {
		return settled, err
	}

	accepts := make(map[int]bool, len(held))
	for _, item := range held {
		accepts[item] = true
	}
	d.accept(func(item int) bool { return accepts[item] })

	t.Verdicts = make([]cascade.Verdict, len(t.Measures))
	for m := range t.Verdicts {
		v := cascade.Verdict{Least: uint32(floors[m]), Labels: int64(len(sample)), Ended: "certificate"}
		for i := range d.units {
			if d.units[i].Scores[m] >= v.Least {
				v.First++
			}
		}
		for _, item := range sample {
			if d.labels[item][m] == certify.Right {
				v.Right++
			}
		}
		t.Verdicts[m] = v
	}

	most := certify.Rules{Target: t.Target}.Most(len(held), len(d.units))
	err = d.jobs.Cascade.DecideBy(ctx, d.job, d.member, t, d.units, d.keep.of(d.repeats), func(c *cascade.Certificate) bool {
		return d.rejects(c, sample, most)
	})
	if err != nil {
		return false, err
	}
	d.signals.MarkDue(d.job) // to carry it out, or to draw
	return true, nil
}

// rejects adds what labels of a sample have shown to a certificate, and reports whether it does not hold any more.
func (d *drawing) rejects(c *cascade.Certificate, sample []int, most float64) bool {
	rejects := false
	c.Drift = cascade.FitDrift(c.Drift, len(d.names))
	for m, shown := range c.Drift {
		labels := make([]certify.Label, len(sample))
		for i, item := range sample {
			labels[i] = d.labels[item][m]
		}

		drift := certify.Drift{Labels: shown.Labels, Right: shown.Right, Sums: shown.Sums}
		rejects = drift.Rejects(labels, most, len(d.names)) || rejects
		shown.Labels, shown.Right, shown.Sums = drift.Labels, drift.Right, drift.Sums
	}
	return rejects
}
