package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A Format is the form of printed data.
type Format string

// The forms of printed data.
const (
	Text Format = "text"
	JSON Format = "json"
)

var _ pflag.Value = (*Format)(nil)

// String implements pflag.Value.
func (f *Format) String() string {
	if *f == "" {
		return string(Text)
	}
	return string(*f)
}

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	if s != string(Text) && s != string(JSON) {
		return fmt.Errorf("must be text or json")
	}
	*f = Format(s)
	return nil
}

// Type implements pflag.Value.
func (*Format) Type() string { return "text|json" }

// A Choice is a flag with a fixed list of values.
type Choice struct {
	Value string
	Of    []string
}

// NewChoice returns a flag with a default and the list of its values.
func NewChoice(value string, of ...string) Choice { return Choice{Value: value, Of: of} }

var _ pflag.Value = (*Choice)(nil)

// String implements pflag.Value.
func (c *Choice) String() string { return c.Value }

// Set implements pflag.Value.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.Of, s) {
		return fmt.Errorf("must be %s", strings.Join(c.Of, " or "))
	}
	c.Value = s
	return nil
}

// Type implements pflag.Value.
func (c *Choice) Type() string { return strings.Join(c.Of, "|") }

// ValueIndex returns the index of the value in the list.
func (c *Choice) ValueIndex() uint8 { return uint8(slices.Index(c.Of, c.Value)) }
