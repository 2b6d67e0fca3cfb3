package mapreduce

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
)

// MaxModels bounds the models of a job, or of a stage, that stand for each other.
const MaxModels = 8

// SpreadModels makes several models of a list: where Model names several, separated by commas, the first
// is the model, and the others are its fallbacks. All are of Provider; without one, each is
// "provider/model", and Provider is that of the first. It changes nothing if it was done before. The
// error names the field.
func (s *JobSpec) SpreadModels() error {
	each := s.Provider == "" || s.Provider == DefaultProvider // which asks no model
	if !strings.Contains(s.Model, ",") && !(each && strings.Contains(s.Model, "/")) {
		return nil
	}

	names, err := SplitModels(s.Model)
	if err != nil {
		return errs.Field("model", "%s", err.Error())
	}

	if !each {
		for i, name := range names {
			names[i] = s.Provider + "/" + name
		}
	}
	return s.SetModels(names)
}

// SplitModels returns the names of a list, which are separated by commas. The error says what is wrong
// with the list, and has no field.
func SplitModels(list string) ([]string, error) {
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" {
			return nil, errs.New(errs.Invalid, "%.80q has an empty name between commas", list)
		}
		if slices.Contains(names[:i], names[i]) {
			return nil, errs.New(errs.Invalid, "%.80q names %s twice", list, names[i])
		}
	}

	if len(names) > MaxModels {
		return nil, errs.New(errs.Invalid, "at most %d models stand for each other, and these are %d", MaxModels, len(names))
	}
	return names, nil
}

// SetModels sets provider, model and fallbacks to models in the order in which they are asked, each
// "provider/model". The error names the field.
func (s *JobSpec) SetModels(names []string) error {
	for _, name := range names {
		if provider, model, _ := strings.Cut(name, "/"); provider == "" || model == "" {
			return errs.Field("model", "%.80q is not provider/model; name each model of the list so, or the provider of all", name)
		}
	}
	s.Provider, s.Model, _ = strings.Cut(names[0], "/")
	s.Fallbacks = names[1:]
	return nil
}

// StageModels returns the models that a stage or an agent names, each "provider/model", in the order in
// which they are asked: what stands there is a name or an alias, or several, separated by commas, and an
// alias may stand for several. It returns none of "". The error says what is wrong, and has no field.
func (s *JobSpec) StageModels(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}

	named, err := SplitModels(list)
	if err != nil {
		return nil, err
	}

	var all []string
	for _, name := range named {
		if alias, ok := s.Models[name]; ok {
			name = alias
		}
		all = append(all, name)
	}

	if all, err = SplitModels(strings.Join(all, ",")); err != nil {
		return nil, err
	}

	for _, name := range all { // a provider that asks no model has none to name
		if provider, _, named := strings.Cut(name, "/"); provider == "" || !named {
			return nil, errs.New(errs.Invalid, "%.80q is neither provider/model nor an alias that the run gives", name)
		}
	}
	return all, nil
}

// ModelNames returns the models of a job in the order in which they are asked, each "provider/model".
func (s *JobSpec) ModelNames() []string {
	return append([]string{s.Provider + "/" + s.Model}, s.Fallbacks...)
}

// AnsweredBy is how units name a model that answered: the name by which it was asked, "provider/model",
// and behind " as " the one that it has for itself, if that is another.
func AnsweredBy(asked, own string) string {
	_, model, _ := strings.Cut(asked, "/")
	if own == "" || own == model {
		return asked
	}
	return asked + answeredAs + own
}

const answeredAs = " as "

// Answered reports whether a model, "provider/model", is among those that answered.
func Answered(by []string, model string) bool {
	return slices.ContainsFunc(by, func(name string) bool {
		asked, _, _ := strings.Cut(name, answeredAs)
		return asked == model
	})
}
