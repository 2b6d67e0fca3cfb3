package wire

import (
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// parameterBits are the names by which package manners knows parameters.
func parameterBits() map[parameters.Name]manners.Parameters {
	return map[parameters.Name]manners.Parameters{
		parameters.Effort: manners.Effort, parameters.Thinking: manners.Thinking, parameters.Verbosity: manners.Verbosity, parameters.TopP: manners.TopP,
		parameters.Temperature: manners.Temperature, parameters.Seed: manners.Seed, parameters.Stop: manners.Stop,
	}
}

// ParametersOf returns the parameters of a request without those that a server refuses. An effort
// is the nearest that it takes.
func ParametersOf(req *llm.Request, with manners.Manners) parameters.Set {
	set := req.Parameters
	for _, name := range set.Given() {
		if with.Omit&parameterBits()[name] != 0 {
			set = set.Without(name)
		}
	}
	set.Effort = with.Efforts.Nearest(set.Effort)
	return set
}

// CacheKeyOf returns what says that requests begin alike, if a server takes that.
func CacheKeyOf(req *llm.Request, with manners.Manners) string {
	if with.Omit&manners.CacheKey != 0 {
		return ""
	}
	return req.CacheKey
}

// sentParameters says which parameters a request holds, but those that the interface has no field
// for.
func sentParameters(req *llm.Request, with manners.Manners) (bits manners.Parameters, effort string) {
	set := ParametersOf(req, with)
	for _, name := range set.Given() {
		bits |= parameterBits()[name]
	}
	return bits, set.Effort
}
