package judge

import (
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// Validate checks a record of normalised values against a schema. Null stands for "not
// found" and is taken as absent, unless it is required and may be null, so it breaks only
// "required". What the result says about its values is not looked at. The error names each
// value that does not fit.
func Validate(s *schema.Schema, record map[string]any) error {
	err := checkerOf(s).validate(s.Flatten(record))
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}

	var msgs []string
	for _, leaf := range validator.Leaves(invalid) {
		path := strings.Join(leaf.InstanceLocation, ".")
		msg := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		msgs = append(msgs, strings.TrimPrefix(path+": "+msg, ": "))
	}

	slices.Sort(msgs)
	return errors.New(strings.Join(msgs, "; "))
}
