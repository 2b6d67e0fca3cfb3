package step

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// ModelsOf returns the models that a job, its stages and its agents name, each "provider/model".
func ModelsOf(spec *mapreduce.JobSpec) (all []string) {
	add := func(names []string) {
		for _, name := range names {
			provider, model, _ := strings.Cut(name, "/")
			if provider != mapreduce.DefaultProvider && model != "" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}

	add(spec.ModelNames())
	p, err := PipelineOf(spec)
	if err != nil {
		return all // such a job is refused
	}
	// Stages and agents may name lists of models.
	lists := make([]string, 0, len(p.Stages))
	for _, s := range p.Stages {
		lists = append(append(lists, s.Model), s.Members...)
	}
	for _, a := range p.Agents {
		lists = append(lists, a.Model)
	}

	slices.Sort(lists)
	for _, list := range lists {
		if names, err := spec.StageModels(list); err == nil {
			add(names)
		}
	}

	return all
}
