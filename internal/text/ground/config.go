package ground

import (
	"cmp"
	"errors"
	"fmt"
)

// A Config sets what passes as Fuzzy. The zero Config is that of New.
type Config struct {
	// Coverage is the least share, in (0,1], of the words of a quote that are
	// found. Defaults to 3/4.
	Coverage float64
	// Density is the least share, in (0,1], of the words at the place found
	// that are in the quote. Defaults to 1/3.
	Density float64
	// MinWords and MinCharacters are how long a quote must be, in the one or
	// the other. They default to 4 and 20.
	MinWords, MinCharacters int
	// Off turns the grade off. What the other fields say is ignored then.
	Off bool
}

func (c Config) withDefaults() Config {
	c.Coverage = cmp.Or(c.Coverage, 3.0/4)
	c.Density = cmp.Or(c.Density, 1.0/3)
	c.MinWords = cmp.Or(c.MinWords, 4)
	c.MinCharacters = cmp.Or(c.MinCharacters, 20)
	return c
}

func (c Config) validate() error {
	if c.Off {
		return nil
	}
	if c.MinWords < 0 || c.MinCharacters < 0 {
		return errors.New("ground: the least length of a quote is negative")
	}
	return errors.Join(validateShare("coverage", c.Coverage), validateShare("density", c.Density))
}

func validateShare(name string, x float64) error {
	if x > 0 && x <= 1 {
		return nil
	}
	return fmt.Errorf("ground: %s of %v is not in (0,1]", name, x)
}

// New prepares text.
func (c Config) New(text string) (*Text, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return newText(text, c), nil
}
