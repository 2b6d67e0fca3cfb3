// Package recent keeps what was used last, within a bound of bytes. It imports nothing of
// the project.
package recent

import (
	"container/list"
	"sync"
)

// A Cache keeps values by their keys. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	max int64

	mu    sync.Mutex // guards the variables below
	bytes int64
	keys  map[K]*list.Element
	order *list.List // of *kept[K, V], the last used first
}

type kept[K comparable, V any] struct {
	key   K
	value V
	bytes int64
}

// New returns a cache of values that have at most so many bytes together.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{max: most, keys: make(map[K]*list.Element), order: list.New()}
}

// Find returns the value of a key.
func (c *Cache[K, V]) Find(key K) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.keys[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// Keep keeps a value in place of the key's earlier one, and of those that were used longest
// ago. A value that would take more than a quarter of the room is not kept.
func (c *Cache[K, V]) Keep(key K, value V, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.keys[key])
	if bytes > c.max/4 {
		return
	}
	c.keys[key] = c.order.PushFront(&kept[K, V]{key, value, bytes})
	for c.bytes += bytes; c.bytes > c.max; {
		c.remove(c.order.Back())
	}
}

// Drop removes the values whose keys match.
func (c *Cache[K, V]) Drop(matches func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.keys {
		if matches(key) {
			c.remove(e)
		}
	}
}

// remove removes an element, if there is one. c.mu is held.
func (c *Cache[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	old := c.order.Remove(e).(*kept[K, V])
	delete(c.keys, old.key)
	c.bytes -= old.bytes
}
