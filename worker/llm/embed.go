package llm

import (
	"context"
	"math"
)

// An Embedder is a Provider whose vendor turns texts into vectors, too. It is safe for
// concurrent use. Texts that mean something similar have vectors with a similar direction.
type Embedder interface {
	// Embed returns a vector for each text of a request, or an *Error. It makes one attempt.
	Embed(ctx context.Context, req *EmbedRequest) (*Embeddings, error)
}

// An EmbedRequest asks for the vectors of texts.
type EmbedRequest struct {
	Model Model
	Texts []string // at least one, none of them empty
	Trace Trace    // for whom
}

// Check refuses requests that no vendor would take.
func (r *EmbedRequest) Check() error {
	switch {
	case r.Model == "":
		return NewError(Invalid, "no model is named")
	case len(r.Texts) == 0:
		return NewError(Invalid, "there is no text to embed")
	}

	for i, text := range r.Texts {
		if text == "" {
			return NewError(Invalid, "text %d to embed is empty", i)
		}
	}
	return nil
}

// Embeddings are vectors, all of one length.
type Embeddings struct {
	Model   Model       // that answered, by its own account
	Vectors [][]float32 // in the order of the texts
	Usage   Usage
}

// maxDimensions bounds the length of a vector.
const maxDimensions = 16384

// CheckFor refuses vectors that are none of a request: too few, of different lengths, or with
// what is no number. The error has the kind Garbled.
func (e *Embeddings) CheckFor(req *EmbedRequest) error {
	if len(e.Vectors) != len(req.Texts) {
		return NewError(Garbled, "%d vectors came for %d texts", len(e.Vectors), len(req.Texts))
	}

	// A request has at least one text, so there is a first vector.
	length := len(e.Vectors[0])
	if length == 0 || length > maxDimensions {
		return NewError(Garbled, "a vector has %d numbers", length)
	}

	for i, v := range e.Vectors {
		if len(v) != length {
			return NewError(Garbled, "vector %d has %d numbers, and the first has %d", i, len(v), length)
		}
		for _, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return NewError(Garbled, "vector %d has a number that is none", i)
			}
		}
	}

	return nil
}
