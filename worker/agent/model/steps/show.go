package steps

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm"
)

// refusedPictures are the words of servers whose model takes no pictures:
// github.com/ollama/ollama/issues/17301, github.com/vllm-project/vllm/issues/11629,
// github.com/OpenCoworkAI/open-cowork/issues/251.
var refusedPictures = regexp.MustCompile(`(?i)image|picture|vision|multi-?modal`)

// hideRefused reports whether a server refused a call for its pictures, so that it is to be made without.
// Later units of the job are shown none then. With SeeAlways the unit fails.
func (x *extraction) hideRefused(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.Invalid && e.Kind != llm.NotFound || len(x.shown.Parts) == 0 || x.See != mapreduce.SeeAuto || !refusedPictures.MatchString(e.Message) {
		return false
	}
	x.Blind.Store(true)
	x.shown = model.Pages{}
	x.NoteError("the model takes no pictures, and was given the text alone", err)
	return true
}

// showPages draws the pages that the model is shown beside the unit's text. Each is as large as all
// models that may be asked see as it is.
func (s *attempt) showPages(ctx context.Context) (model.Pages, error) {
	var shown model.Pages
	if s.Sight == nil || s.Task.Pictures == nil || s.Blind.Load() {
		return shown, nil
	}

	all, err := s.Task.Pictures(ctx, s.Sight.Fit)
	if errors.Is(err, agent.ErrNoPages) && s.See == mapreduce.SeeAuto {
		s.NoteError("the model was shown no pages", err)
		return shown, nil
	}
	if err != nil {
		return shown, err
	}

	var size int64
	for i, p := range all {
		picture := llm.NewPicture(p.MediaType, p.Width, p.Height, s.Sight.Tokens(p.Width, p.Height), p.Data)
		if size += picture.Encoded(); i == s.Sight.Most || size > s.Sight.Total {
			s.NoteError(fmt.Sprintf("the model was shown %d of %d pages, which are all that the vendor takes at once; smaller units have fewer (--max-tokens-per-unit)", i, len(all)), nil)
			break
		}
		shown.Numbers = append(shown.Numbers, p.Page)
		shown.Parts = append(shown.Parts, llm.Part{Picture: picture})
	}
	return shown, nil
}
