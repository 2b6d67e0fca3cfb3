package outputs

import (
	"context"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

const maxTexts = 4 // of at most protocol.MaxWholeText each

// A TextCache keeps texts of documents that units cite outside of what they read:
// outputs are checked against them. Its zero value is empty.
type TextCache struct {
	mu    sync.Mutex   // guards texts
	texts []cacheEntry // the latest last
}

// A cacheEntry is the text of a document of a job.
type cacheEntry struct {
	job  mapreduce.JobID
	sha  string
	text *ground.Text
}

// WholeText returns the text of the document that a unit is a chunk of; nil if that is
// too long to be handed to units, which then can cite no more than their chunks.
func (c *TextCache) WholeText(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID, src *records.Source) (*ground.Text, error) {
	if src.Length > protocol.MaxWholeText {
		return nil, nil
	}
	is := func(b cacheEntry) bool { return b.job == id && b.sha == string(src.SHA256) }

	c.mu.Lock()
	if i := slices.IndexFunc(c.texts, is); i >= 0 {
		b := c.texts[i]
		c.texts = append(slices.Delete(c.texts, i, i+1), b)
		c.mu.Unlock()
		return b.text, nil
	}
	c.mu.Unlock()

	// The text is read outside the lock: others need not wait for the store.
	data, err := j.Content.Text(ctx, id, src.SHA256, 0, src.Length)
	if err != nil {
		return nil, err
	}
	b := cacheEntry{id, string(src.SHA256), ground.New(string(data))}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts = append(c.texts, b); len(c.texts) > maxTexts {
		c.texts = slices.Delete(c.texts, 0, 1)
	}
	return b.text, nil
}
