package payload

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// WithCalls returns an encoded output with the calls of models and tools that were made
// for it. Decode leaves them out, so that no reduce carries them on.
func WithCalls(data []byte, calls []mapreduce.Call) ([]byte, error) {
	if len(calls) == 0 {
		return data, nil
	}

	m := &storagev1.Output{}
	for _, c := range calls {
		m.Calls = append(m.Calls, &storagev1.Call{
			Name: c.Name, AtMicros: c.At.Microseconds(), LatencyMicros: c.Latency.Microseconds(),
			TokensIn: c.Tokens.In, TokensOut: c.Tokens.Out, CostMicros: c.CostMicros,
			Error: c.Error, Prompt: c.Prompt, Answer: c.Answer, Cut: c.Cut, Tool: c.Kind == mapreduce.CallTool, Turn: int32(min(c.Turn, math.MaxInt32)),
		})
	}

	// Fields of a message may follow each other in any order.
	all, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(slices.Clip(data), m)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return all, nil
}

// CallsOf returns the calls that an encoded output holds.
func CallsOf(data []byte) ([]mapreduce.Call, error) {
	var m storagev1.Output
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}

	var calls []mapreduce.Call
	for _, c := range m.Calls {
		kind := mapreduce.CallModel
		if c.Tool {
			kind = mapreduce.CallTool
		}
		calls = append(calls, mapreduce.Call{
			Kind: kind, Turn: int(c.Turn), Name: c.Name, At: time.Duration(c.AtMicros) * time.Microsecond, Latency: time.Duration(c.LatencyMicros) * time.Microsecond,
			Tokens: mapreduce.Tokens{In: c.TokensIn, Out: c.TokensOut}, CostMicros: c.CostMicros,
			Error: c.Error, Prompt: c.Prompt, Answer: c.Answer, Cut: c.Cut,
		})
	}

	return calls, nil
}

// WithoutCalls returns an encoded output as a reduce is given it.
func WithoutCalls(data []byte) ([]byte, error) {
	var m storagev1.Output
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}

	if len(m.Calls) == 0 {
		return data, nil
	}
	m.Calls = nil
	return proto.MarshalOptions{Deterministic: true}.Marshal(&m)
}
