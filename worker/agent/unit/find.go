package unit

import (
	"context"
	"errors"
	"slices"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
)

// Find looks for quotes, given in the order of the text, in a stretch of the unit's text,
// and for those that are not there in the rest of the same document. Places of quotes that
// were not found are zero, but for those that are near: a model may be shown what stands
// there. The document is asked for only if it is needed; if it could not be looked through
// then, note says why.
func Find(ctx context.Context, task *agent.Task, stretch ground.Unit, quotes []string) (places []Place, note string, err error) {
	places = placesOf(task.Text, stretch, stretch.FindAll(quotes))

	document := wholeOf(task, stretch)
	if document == nil || !slices.ContainsFunc(places, func(p Place) bool { return !p.Verified() }) {
		return places, "", nil
	}

	// The place in the chunk may not be the only one, so all quotes are looked for again.
	err = document(ctx, func(t *ground.Text) {
		stretch.Document = t
		places = placesOf(task.Text, stretch, stretch.FindAll(quotes))
	})

	if errors.Is(err, agent.ErrTooLong) {
		return places, "quotes were looked for in their chunk alone: " + err.Error(), nil
	}
	return places, "", err
}

// wholeOf returns what gets the document that a stretch is part of, nil if there
// is no more of it.
func wholeOf(task *agent.Task, stretch ground.Unit) func(context.Context, func(*ground.Text)) error {
	if t := task.Text; task.Whole == nil && t.Chunks < 2 && len(stretch.Chunk.String()) < len(t.Content) {
		return func(_ context.Context, use func(*ground.Text)) error {
			use(ground.New(string(t.Content)))
			return nil
		}
	}
	return task.Whole
}

// Outside reports whether a place of the document is not all in what the unit was
// given of it.
func Outside(t *protocol.Text, s ground.Span) bool {
	from := s.ByteStart - int(t.ByteOffset)
	return from < 0 || from+s.ByteEnd-s.ByteStart > len(t.Content)
}

// placesOf returns the places of what an aligner has found. Outside is what the
// unit did not read, be it in another stretch or not.
func placesOf(t *protocol.Text, u ground.Unit, spans []ground.Span) []Place {
	places := make([]Place, len(spans))
	for i, s := range spans {
		if s.Verified() || s.Grade == ground.Near {
			places[i] = At(u, s)
			places[i].Outside = Outside(t, s)
		}
	}
	return places
}
