package bedrock

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
)

var _ llm.ModelChecker = (*provider)(nil)

// CheckModel implements llm.ModelChecker: a profile of a continent can be asked in the regions of that
// continent alone, and an ARN in its own.
func (p *provider) CheckModel(model llm.Model) error {
	if !p.known {
		return nil
	}
	if arn := strings.Split(string(model), ":"); arn[0] == "arn" && len(arn) > 5 {
		if arn[3] != "" && arn[3] != p.region {
			return llm.NewError(llm.Invalid, "the model is of the region %s, and AWS_REGION is %s; set it to %s", arn[3], p.region, arn[3])
		}
		return nil
	}

	prefix, rest, _ := strings.Cut(string(model), ".")
	regions := regionsOf(prefix)
	if regions == nil || slices.ContainsFunc(regions, func(r string) bool { return strings.HasPrefix(p.region, r) }) {
		return nil
	}

	// The error names what can be asked in this region.
	could := "global." + rest
	for _, other := range []string{"us-gov", "us", "eu", "apac"} {
		if slices.ContainsFunc(regionsOf(other), func(r string) bool { return strings.HasPrefix(p.region, r) }) {
			could = other + "." + rest + " and " + could
			break
		}
	}

	return llm.NewError(llm.Invalid, "the model is asked by the profile %q, which regions that begin with %s have, and AWS_REGION is %s; there, %s may be asked",
		prefix, strings.Join(regions, " or "), p.region, could)
}

// regionsOf returns how the regions begin in which a profile may be asked, where that is only some: by
// docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html; nil of what is no
// such profile.
func regionsOf(prefix string) []string {
	switch prefix {
	case "us":
		return []string{"us-east-", "us-west-", "ca-", "mx-", "sa-"}
	case "us-gov":
		return []string{"us-gov-"}
	case "eu":
		return []string{"eu-", "il-", "me-"}
	case "apac":
		return []string{"ap-", "me-"}
	case "jp", "au":
		return []string{"ap-"}
	case "ca":
		return []string{"ca-"}
	}
	return nil
}
