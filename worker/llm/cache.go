package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Answers keep responses by key. An error of theirs costs a call, never an
// answer.
type Answers interface {
	Get(ctx context.Context, key string) (response []byte, found bool, err error)
	Put(ctx context.Context, key string, response []byte) error
}

// Cache answers a request that was answered before without asking, and without
// spending. It keeps answers that are whole. The scope, a tenant, keeps those
// of others apart.
type Cache struct {
	Provider
	Answers Answers
	Scope   string
}

// Complete implements Provider.
func (c *Cache) Complete(ctx context.Context, req *Request) (*Response, error) {
	key, err := CacheKey(c.Scope, c.Name(), req)
	if err != nil {
		return nil, wrap(Invalid, err)
	}
	if raw, ok, err := c.Answers.Get(ctx, key); err == nil && ok {
		var kept Response
		if json.Unmarshal(raw, &kept) == nil {
			kept.Cached, kept.Usage = true, Usage{Reported: true}
			return &kept, nil
		}
	}
	res, err := c.Provider.Complete(ctx, req)
	if err != nil || (res.Stop != StopEnd && res.Stop != StopTool && res.Stop != StopSequence) {
		return res, err
	}
	if raw, err := json.Marshal(res); err == nil {
		_ = c.Answers.Put(ctx, key, raw) // the next one asks again
	}
	return res, nil
}

// CacheKey is the hash of everything that decides an answer.
func CacheKey(scope, provider string, req *Request) (string, error) {
	type tool struct{ Name, Description, Schema string }
	all := struct {
		Scope, Provider, Model, System, Force, Schema string
		Tools                                         []tool
		Messages                                      []Message
		MaxTokens                                     int64
	}{
		Scope: scope, Provider: provider, Model: string(req.Model), System: req.System, Force: req.Force,
		MaxTokens: req.maxTokens(),
	}
	if req.Schema != nil {
		all.Schema = req.Schema.name + "\n" + string(req.Schema.Document())
	}
	for _, t := range req.Tools {
		one := tool{Name: t.Name, Description: t.Description}
		if t.Schema != nil {
			one.Schema = string(t.Schema.Document())
		}
		all.Tools = append(all.Tools, one)
	}
	for _, m := range req.Messages {
		said := Message{Role: m.Role}
		for _, p := range m.Parts {
			p.Cache = ""
			said.Parts = append(said.Parts, p)
		}
		all.Messages = append(all.Messages, said)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
