package cascade

import (
	"context"
	"sync/atomic"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

// apart keeps what a member does in the journal under keys of its own: two members may ask the
// same of different models.
type apart struct {
	agent.Calls
	prefix string
}

// Do implements agent.Journal.
func (a *apart) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	return a.Calls.Do(ctx, a.prefix+key, fn)
}

// DoOnce implements agent.Journal.
func (a *apart) DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	return a.Calls.DoOnce(ctx, a.prefix+key, fn)
}

// Recall implements agent.Journal.
func (a *apart) Recall(key string) ([]byte, bool) { return a.Calls.Recall(a.prefix + key) }

// metered adds up what a member spends. Its calls may be made at once.
type metered struct {
	agent.Calls
	tokens, cost atomic.Int64
}

// Spent implements agent.Calls.
func (m *metered) Spent(c mapreduce.Charge) {
	m.tokens.Add(c.Tokens.Total())
	m.cost.Add(c.CostMicros)
	m.Calls.Spent(c)
}

// LineReply implements agent.Calls. What a batch answered was paid for when it came, and is told once: the
// journal remembers it from then on.
func (m *metered) LineReply(ctx context.Context, key []byte) (*protocol.LineReply, error) {
	r, err := m.Calls.LineReply(ctx, key)
	if r != nil {
		m.tokens.Add(r.Tokens.Total())
		m.cost.Add(r.CostMicros)
	}
	return r, err
}
