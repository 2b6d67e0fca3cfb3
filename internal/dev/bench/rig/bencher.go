package rig

import (
	"context"
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Bencher takes as long over a unit as Do does, and returns Output bytes, which
// no compression makes less.
type Bencher struct {
	Output int                                               // bytes
	Do     func(ctx context.Context, task *agent.Task) error // nil: no time at all
}

// Run implements agent.Agent.
func (b *Bencher) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if b.Do != nil {
		if err := b.Do(ctx, task); err != nil {
			return nil, err
		}
	}
	out := outputOf(randomBytes(task.Index, b.Output))
	return &agent.Result{Output: out, Size: int64(b.Output), Confidence: 1}, nil
}

// reasonField is the number of the field of an encoded output that says why it has
// no records.
const reasonField = 4

// outputOf makes noise an encoded output of as many bytes, or about as many: one
// without records, that says why.
func outputOf(noise []byte) []byte {
	text := noise[min(3, len(noise)):]
	for i, b := range text {
		text[i] = letters[b%64]
	}

	head := protowire.AppendVarint(protowire.AppendTag(nil, reasonField, protowire.BytesType), uint64(len(text)))
	if free := len(noise) - len(text); len(head) <= free { // no copy is a part of what is measured
		copy(noise[free-len(head):], head)
		return noise[free-len(head):]
	}
	return append(head, text...)
}

// randomBytes returns n bytes, the same for the same seed.
func randomBytes(seed int64, n int) []byte {
	out := make([]byte, 0, n+8)
	for r := newRandom(uint64(seed)); len(out) < n; {
		out = binary.LittleEndian.AppendUint64(out, r.Uint64())
	}
	return out[:n]
}

// DocumentIndex returns which of the job's documents a map unit works on.
func DocumentIndex(task *agent.Task) int { return int(task.Index >> 20) }

// IsMap reports whether a unit is one of the map.
func IsMap(task *agent.Task) bool { return task.Kind == mapreduce.KindMap }
