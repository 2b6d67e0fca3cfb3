package mapreduce

// A See says whether the models of a job are shown pictures of pages.
type See string

// VarSee is the variable of a job that says so, with the default SeeNever.
const VarSee = "see"

// Whether models are shown pictures of pages whose text was recognised, or that have none.
const (
	SeeNever  See = "never"  // they get the text that was recognised, and nothing else
	SeeAuto   See = "auto"   // they are, if they see pictures
	SeeAlways See = "always" // they are, and a model that sees none is refused
)

// Sees returns the words for it, the default first.
func Sees() []string { return []string{string(SeeNever), string(SeeAuto), string(SeeAlways)} }

// See returns what the job says; SeeNever if it says nothing.
func (s *JobSpec) See() See {
	if said := See(s.Vars[VarSee]); said != "" {
		return said
	}
	return SeeNever
}
