package pipeline

import "slices"

// A Phase is the part of a job in which the units of a stage run.
type Phase int

// The phases.
const (
	Decomposition Phase = iota + 1 // before anything fans out
	Mapping                        // up to the last stage that fans out
	Reducing                       // behind that
)

// Phase returns the phase of a stage, given by its index. A job without any stage
// that fans out is mapping all the time.
func (p *Pipeline) Phase(stage int) Phase {
	above, below := p.fansOutAbove(), p.fansOutBelow()
	up, down := above[stage], below[stage]
	switch {
	case p.Stages[stage].FansOut() || up == down:
		return Mapping
	case up:
		return Reducing
	}
	return Decomposition
}

// fansOutAbove says of each stage whether it, or anything that it depends on, fans out.
func (p *Pipeline) fansOutAbove() []bool {
	up := make([]bool, len(p.Stages))
	for i, s := range p.Stages {
		up[i] = s.FansOut() || slices.ContainsFunc(p.stageDependencies(i), func(j int) bool { return up[j] })
	}
	return up
}

// fansOutBelow says of each stage whether anything that depends on it fans out.
func (p *Pipeline) fansOutBelow() []bool {
	down := make([]bool, len(p.Stages))
	for i, s := range slices.Backward(p.Stages) {
		for _, j := range p.stageDependencies(i) {
			down[j] = down[j] || down[i] || s.FansOut()
		}
	}
	return down
}

// stageDependencies returns the indexes of the earlier stages that the i-th stage looks
// at: those that it reads, and the one that selects its agents.
func (p *Pipeline) stageDependencies(i int) []int {
	names := p.Stages[i].Sources()
	if stage, _, ok := p.Stages[i].SelectPath(); ok {
		names = append(names, stage)
	}
	var all []int
	for _, name := range names {
		if j := p.Index(name); j >= 0 && j < i {
			all = append(all, j)
		}
	}
	return all
}

// isStageRead reports whether a later stage looks at the i-th.
func (p *Pipeline) isStageRead(i int) bool {
	for j := i + 1; j < len(p.Stages); j++ {
		if slices.Contains(p.stageDependencies(j), i) {
			return true
		}
	}
	return false
}

// optionalStages says of each stage whether a run may skip it: because of its condition,
// because an earlier stage gets the documents, or because all that it reads is skipped.
func (p *Pipeline) optionalStages() []bool {
	may := make([]bool, len(p.Stages))
	for i, s := range p.Stages {
		may[i] = s.When != ""
		if s.From == Documents {
			may[i] = may[i] || i > 0
			continue
		}
		sources := true
		for _, name := range s.Sources() {
			j := p.Index(name)
			sources = sources && j >= 0 && j < i && may[j]
		}
		may[i] = may[i] || sources
		if stage, _, ok := s.SelectPath(); ok {
			if j := p.Index(stage); j >= 0 && j < i {
				may[i] = may[i] || may[j]
			}
		}
	}
	return may
}
