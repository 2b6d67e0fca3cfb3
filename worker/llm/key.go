package llm

import "github.com/coditect/mapreduce/worker/llm/internal/redact"

// A Key is a credential. It prints, encodes and logs as stars, whatever it is
// part of; only a vendor's request holds it in the clear.
type Key = redact.Key

// NewKey returns the key that was read from the environment or a file.
func NewKey(secret string) Key { return redact.NewKey(secret) }
