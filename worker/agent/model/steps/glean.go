package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/llm"
)

// askGleaning asks, and reads the answer. As often as the job says it has it looked
// over: first by code, which knows of quotes that are not in the document and of
// fields that are not filled, and if that finds nothing, by the model itself.
func (s *attempt) askGleaning(ctx context.Context, req *llm.Request, r *answerReading) error {
	res, err := s.CompleteRequest(ctx, req)
	if err != nil {
		return err
	}

	if err := s.read(ctx, req, res, r); err != nil {
		return err
	}

	for range s.Glean {
		advice, least := codeAdvice(r.faults), r.countFound()
		if advice == "" {
			if advice, err = s.judgeAnswer(ctx, req, res.Answer); err != nil || advice == "" {
				return s.dropGleanError(ctx, err)
			}
			// It may find that a few values are wrong whose quotes are right.
			least = max(min(least, 1), least-max(1, least/4))
		}

		next, err := s.CompleteRequest(ctx, model.FollowUp(req, res.Answer, advice+again))
		if err != nil {
			return s.dropGleanError(ctx, err)
		}

		better := &answerReading{form: r.form, task: r.task, aligner: r.aligner, shown: r.shown}
		if err := better.readAnswer(ctx, next.Answer); err != nil {
			return err
		}
		if len(better.faults) > len(r.faults) || better.countFound() < least {
			return nil // it made things worse
		}

		better.tokens = writtenOf(next)
		*r, res = *better, next
	}

	return nil
}

// writtenOf is how many tokens an answer has by its vendor's count.
func writtenOf(res *llm.Response) int64 {
	if res.Written == nil {
		return token.Unknown
	}
	return *res.Written
}

// dropGleanError drops the error of a failed review: the model could not be asked, or did
// not answer in the required form. The first answer remains valid, unless the attempt is
// over.
func (s *attempt) dropGleanError(ctx context.Context, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if ctx.Err() == nil && (ok && e.Kind == llm.Mismatch || s.InVain(ctx, err)) {
		s.NoteError("looking again", err)
		return nil
	}
	return err
}

// again asks for an answer in place of one that was found wanting.
const again = "\nGive the whole answer again, with this mended and nothing else changed. What the document does not say stays out of it."

// maxAdvice bounds the faults in one message to a model.
const maxAdvice = 20

// codeAdvice is what code finds wrong with an answer.
func codeAdvice(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	more := ""
	if n := len(faults) - maxAdvice; n > 0 {
		faults, more = faults[:maxAdvice], fmt.Sprintf("\nand %d more like these", n)
	}
	return "These parts of your answer do not hold:\n" + strings.Join(faults, "\n") + more
}

// judgeAnswer has the model judge its answer. It returns what to improve, or "".
func (s *attempt) judgeAnswer(ctx context.Context, req *llm.Request, answer json.RawMessage) (string, error) {
	judge := model.FollowUp(req, answer, "Look over this answer. Is any value of the document missing, or any value or quote wrong?")
	judge.Schema = s.Verdict

	res, err := s.CompleteRequest(ctx, judge)
	if err != nil {
		return "", err
	}

	var verdict struct {
		Refine       bool   `json:"should_refine"`
		Improvements string `json:"improvements"`
	}
	if err := json.Unmarshal(res.Answer, &verdict); err != nil || !verdict.Refine {
		return "", err
	}
	return "Improve your answer: " + found.Line(verdict.Improvements), nil
}
