package files

import (
	"container/list"
	"io/fs"
	"sync"
)

// A textCache keeps the texts of the files that were read last. A file that has another
// size or time is another file.
type textCache struct {
	max int64 // bytes

	mu    sync.Mutex // guards the variables below
	bytes int64
	names map[string]*list.Element
	order *list.List // of *cached, the last used first
}

type cached struct {
	name string
	text *fileText
}

func newTextCache(most int64) *textCache {
	return &textCache{max: most, names: make(map[string]*list.Element), order: list.New()}
}

// find returns the text of a file as it is now, or nil.
func (c *textCache) find(name string, info fs.FileInfo) *fileText {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.names[name]
	if e == nil {
		return nil
	}
	t := e.Value.(*cached).text
	if t.size != info.Size() || !t.modified.Equal(info.ModTime()) {
		c.remove(e)
		return nil
	}
	c.order.MoveToFront(e)
	return t
}

// keep keeps a text, in place of those that were used longest ago.
func (c *textCache) keep(name string, t *fileText) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.names[name]; e != nil {
		c.remove(e)
	}
	if int64(len(t.text)) > c.max/4 {
		return
	}
	c.names[name] = c.order.PushFront(&cached{name, t})
	c.bytes += int64(len(t.text))
	for c.bytes > c.max {
		c.remove(c.order.Back())
	}
}

// remove removes an element. c.mu is held.
func (c *textCache) remove(e *list.Element) {
	old := c.order.Remove(e).(*cached)
	delete(c.names, old.name)
	c.bytes -= int64(len(old.text.text))
}
