package runners

import (
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/sight"
)

// pageText is how many tokens the text of a page that is a picture is expected to have: that of a
// receipt has some 200, and that of a full page more.
const pageText = 400

// Looker returns the function that says what documents that are pictures will come to: their headers are
// read, and nothing is decoded.
func Looker(askers map[string]*model.Agent) func(*mapreduce.JobSpec, string, []byte) (plan.Look, bool) {
	return func(spec *mapreduce.JobSpec, mediaType string, data []byte) (plan.Look, bool) {
		if !strings.HasPrefix(mediaType, "image/") {
			return plan.Look{}, false
		}
		size, ok := picture.Measure(data)
		if !ok {
			return plan.Look{}, false
		}

		pages := int64(size.Pages)
		look := plan.Look{Text: pages * pageText}
		if rule := sightOf(spec, askers[spec.Provider]); rule != nil {
			across, down := rule.Fit(size.Width, size.Height)
			look.Pages, look.Page = pages, rule.Tokens(across, down)
			look.Most = min(protocol.MaxShownPages, int64(rule.Most))
		}
		return look, true
	}
}

// sightOf returns the rule of pictures that the models of a job are shown, nil if they are shown none.
func sightOf(spec *mapreduce.JobSpec, asker *model.Agent) *sight.Rule {
	if asker == nil || spec.See() == mapreduce.SeeNever || !asker.Sees(spec) {
		return nil
	}

	var rule sight.Rule
	for _, name := range spec.ModelNames() {
		provider, named, _ := strings.Cut(name, "/")
		if spec.See() == mapreduce.SeeAuto && llm.Lacks(provider, llm.Model(named), llm.Need{Sees: true}) != "" {
			return nil
		}
		rule = rule.Both(sight.Of(provider, llm.Model(named)))
	}
	return &rule
}
