package worker

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

var _ agent.Sharer = (*unit)(nil)

// A lookup is a request for an answer that waits for its reply.
type lookup struct {
	done chan struct{} // closed when answered
	data []byte        // valid once done is closed
}

// An answerOut is a request that is to be sent.
type answerOut struct {
	u    *unit
	key  string
	keep []byte // nil asks
}

// Shares implements agent.Sharer.
func (u *unit) Shares() bool { return u.job.spec.Cache }

// Answer implements agent.Sharer. Requests for the same share a reply.
func (u *unit) Answer(ctx context.Context, key []byte) ([]byte, error) {
	l := u.lookUp(string(key))
	select {
	case <-l.done:
		return l.data, nil
	case <-u.ctx.Done():
		return nil, context.Cause(u.ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (u *unit) lookUp(key string) *lookup {
	u.mu.Lock()
	l := u.lookups[key]
	if l != nil {
		u.mu.Unlock()
		return l
	}
	l = &lookup{done: make(chan struct{})}
	if u.lookups == nil {
		u.lookups = make(map[string]*lookup)
	}
	u.lookups[key] = l
	u.mu.Unlock()
	u.session.sendAnswer(answerOut{u: u, key: key})
	return l
}

// Share implements agent.Sharer.
func (u *unit) Share(key, answer []byte) {
	if len(answer) > 0 && len(answer) <= mapreduce.MaxAnswer {
		u.session.sendAnswer(answerOut{u: u, key: string(key), keep: answer})
	}
}

// told takes a reply. One that was asked for twice, over two streams, comes twice,
// and counts once.
func (u *unit) told(r mapreduce.AnswerReply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.lookups[string(r.Key)]
	if l == nil {
		return
	}
	delete(u.lookups, string(r.Key))
	if len(r.Data) > 0 {
		l.data = r.Data
	}
	close(l.done)
}

// lookingUp returns what is asked for.
func (u *unit) lookingUp() (all []answerOut) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range u.lookups {
		all = append(all, answerOut{u: u, key: key})
	}
	return all
}

func (s *session) sendAnswer(a answerOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.answers = append(s.out.answers, a)
	s.signal()
}

// pullAnswers takes requests, in messages of their own: what is to be kept must
// arrive before the report that ends the attempt, after which it would be refused.
// mu is held.
func (s *session) pullAnswers() *mapreduce.FromWorker {
	o := &s.out
	m := &mapreduce.FromWorker{}
	for room := maxMessage; len(o.answers) > 0 && room > 0; o.answers = o.answers[1:] {
		a := o.answers[0]
		o.answers[0] = answerOut{}
		m.Answers = append(m.Answers, mapreduce.AnswerRequest{Held: a.u.held(), Key: []byte(a.key), Keep: a.keep})
		room -= len(a.keep) + 128
	}
	if len(m.Answers) == 0 {
		return nil
	}
	return m
}

// tell takes replies.
func (s *session) tell(r mapreduce.AnswerReply) {
	s.mu.Lock()
	u := s.held(r.Held)
	s.mu.Unlock()
	if u != nil {
		u.told(r)
	}
}
