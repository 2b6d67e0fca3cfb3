package llm

import "context"

// A Lister is a Provider whose server can be asked which models it has. It is safe for concurrent
// use.
type Lister interface {
	// Offers returns the models, in the order of the server, or an *Error. It makes one attempt.
	Offers(ctx context.Context) ([]Offer, error)
}

// An Offer is a model that a server has, as far as it says.
type Offer struct {
	Model     Model     `json:"model"`
	Window    int64     `json:"window,omitempty"`     // tokens of prompt and answer together; 0 if it does not say
	MaxAnswer int64     `json:"max_answer,omitempty"` // tokens; 0 if it does not say
	Abilities []Ability `json:"abilities,omitempty"`
	Told      bool      `json:"-"` // the server tells whether it calls tools
}

// A Describer is a Provider whose server tells more of one model, in one call, than in its list.
type Describer interface {
	// Describe returns what the server says of a model, or an *Error: NotFound if it has none.
	Describe(ctx context.Context, model Model) (Offer, error)
}

// Ability is something that a model can do.
type Ability string

// The abilities that servers tell of.
const (
	CanTools   Ability = "tools"    // it calls tools
	CanImages  Ability = "images"   // it sees pictures
	CanThink   Ability = "thinking" // it thinks before it answers
	CanEmbed   Ability = "vectors"  // it turns texts into vectors
	CanSchemas Ability = "schemas"  // its answers can be held to a schema
)

// maxOffers bounds a list of models.
const maxOffers = 10000

// CheckOffers refuses a list that is too long to be one.
func CheckOffers(all []Offer) ([]Offer, error) {
	if len(all) > maxOffers {
		return nil, NewError(Garbled, "the server lists %d models, and %d are the most that make sense", len(all), maxOffers)
	}
	return all, nil
}
