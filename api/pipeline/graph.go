package pipeline

import "slices"

// Stages are the stages of a pipeline, in the order of its file: each reads documents or
// earlier stages.
type Stages []*Stage

// Index returns the position of the stage of a name, or -1.
func (all Stages) Index(name string) int {
	return slices.IndexFunc(all, func(s *Stage) bool { return s.Name == name })
}

// OfDocuments returns the stages that read documents. The first of them whose
// condition holds gets the documents; the others are skipped.
func (all Stages) OfDocuments() Stages {
	var some Stages
	for _, s := range all {
		if s.From == Documents {
			some = append(some, s)
		}
	}
	return some
}

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
func (all Stages) Phase(stage int) Phase {
	above, below := all.fansOutAbove(), all.fansOutBelow()
	up, down := above[stage], below[stage]
	switch {
	case all[stage].FansOut() || up == down:
		return Mapping
	case up:
		return Reducing
	}
	return Decomposition
}

// fansOutAbove says of each stage whether it, or anything that it depends on, fans out.
func (all Stages) fansOutAbove() []bool {
	up := make([]bool, len(all))
	for i, s := range all {
		up[i] = s.FansOut() || slices.ContainsFunc(all.dependencies(i), func(j int) bool { return up[j] })
	}
	return up
}

// fansOutBelow says of each stage whether anything that depends on it fans out.
func (all Stages) fansOutBelow() []bool {
	down := make([]bool, len(all))
	for i, s := range slices.Backward(all) {
		for _, j := range all.dependencies(i) {
			down[j] = down[j] || down[i] || s.FansOut()
		}
	}
	return down
}

// dependencies returns the indexes of the earlier stages that the i-th stage looks
// at: those that it reads, and the one that selects its agents.
func (all Stages) dependencies(i int) []int {
	names := all[i].Sources()
	if stage, _, ok := all[i].SelectPath(); ok {
		names = append(names, stage)
	}

	var found []int
	for _, name := range names {
		if j := all.Index(name); j >= 0 && j < i {
			found = append(found, j)
		}
	}

	return found
}

// isRead reports whether a later stage looks at the i-th.
func (all Stages) isRead(i int) bool {
	for j := i + 1; j < len(all); j++ {
		if slices.Contains(all.dependencies(j), i) {
			return true
		}
	}
	return false
}

// optional says of each stage whether a run may skip it: because of its condition,
// because an earlier stage gets the documents, or because all that it reads is skipped.
func (all Stages) optional() []bool {
	may := make([]bool, len(all))
	for i, s := range all {
		may[i] = s.When != ""
		if s.From == Documents {
			may[i] = may[i] || i > 0
			continue
		}

		// A stage that reads only skipped stages is skipped itself.
		sources := true
		for _, name := range s.Sources() {
			j := all.Index(name)
			sources = sources && j >= 0 && j < i && may[j]
		}
		may[i] = may[i] || sources

		if stage, _, ok := s.SelectPath(); ok {
			if j := all.Index(stage); j >= 0 && j < i {
				may[i] = may[i] || may[j]
			}
		}
	}
	return may
}
