package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// DecodeInput reads the input of a call into a struct. It refuses what the struct has no
// field for, so that a misspelled property is not passed over, and inputs above MaxInput.
// The error is for the model.
func DecodeInput(input json.RawMessage, into any) error {
	if len(input) > MaxInput {
		return fmt.Errorf("the input has %d bytes, and at most %d are accepted", len(input), MaxInput)
	}

	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the input does not fit the schema of the tool: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the input does not fit the schema of the tool: it is one JSON object")
	}
	return nil
}
