package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A format is the form of printed data.
type format string

const (
	text     format = "text"
	jsonText format = "json"
)

var _ pflag.Value = (*format)(nil)

// String implements pflag.Value.
func (f *format) String() string {
	if *f == "" {
		return string(text)
	}
	return string(*f)
}

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	if s != string(text) && s != string(jsonText) {
		return fmt.Errorf("must be text or json")
	}
	*f = format(s)
	return nil
}

// Type implements pflag.Value.
func (*format) Type() string { return "text|json" }

// A choice is a flag with a fixed list of values.
type choice struct {
	value string
	of    []string
}

var _ pflag.Value = (*choice)(nil)

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Set implements pflag.Value.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("must be %s", strings.Join(c.of, " or "))
	}
	c.value = s
	return nil
}

// Type implements pflag.Value.
func (c *choice) Type() string { return strings.Join(c.of, "|") }

// valueIndex returns the index of the value in the list.
func (c *choice) valueIndex() uint8 { return uint8(slices.Index(c.of, c.value)) }
