package model

import (
	"context"

	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

func (s *session) reduce(ctx context.Context) (*agent.Result, error) {
	out, err := unit.Reduce(s.schema, s.task)
	if err != nil {
		return nil, err
	}
	return unit.Reduced(out)
}
