package pipeline

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/pipeline/condition"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
)

// Some keys of stages are numbers, or hold numbers, that a run may set: "size:
// {{input.batch}}" is the value of the input batch. A value that cannot be used leaves the
// default of the input in force, with a warning, so that a broken configuration does not
// stop a run.

// settingKeys are the keys that inputs may set, in the order in which they are bound.
var settingKeys = []string{"when", "size", "passage", "tokens", "chunk_size", limitsContext}

const limitsContext = "limits.context"

// readSetting reads a key that an input may set: a template is kept, and anything else is
// read as it stands.
func (r reader) readSetting(s *Stage, key string, read filetree.Entry) filetree.Entry {
	return func(n *filetree.Node, at string) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || !strings.Contains(n.Text, "{{") {
			read(n, at)
			return
		}
		if s.Settings == nil {
			s.Settings = make(map[string]string)
		}
		s.Settings[key] = n.Text
	}
}

// inputName is a variable in a setting.
var inputName = regexp.MustCompile(`\{\{\s*\.?input\.([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})\s*\}\}`)

// bindDefaults sets the keys that inputs set to what the defaults of these make them. It
// refuses an input without a default that can be used.
func (p *Pipeline) bindDefaults() error {
	for i, s := range p.Stages {
		for _, key := range settingKeys {
			text := s.Settings[key]
			if text == "" {
				continue
			}

			field := stageField(i, key)
			// A number is one input; a condition may name several.
			if key != "when" && inputName.FindString(text) != text {
				return p.fieldError(field, "must be a number, or one input of the run as in {{input.NAME}}, and is %.80q", text)
			}

			for _, m := range inputName.FindAllStringSubmatch(text, -1) {
				value := p.Inputs[m[1]]
				if _, ok := settingNumber(value, key); !ok {
					return p.fieldError(field, "names the input %s, which has to have a default that is a whole number of at least %d", m[1], leastOf(key))
				}
			}

			if rest := inputName.ReplaceAllString(text, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
				return p.fieldError(field, "has %.80q, and only inputs of the run can stand here, as {{input.NAME}}", text)
			}

			s.applySetting(key, func(name string) string { return *p.Inputs[name] })
		}
	}
	return nil
}

// leastOf is the least number that a key accepts.
func leastOf(key string) int64 {
	switch key {
	case "when":
		return 0
	case "chunk_size":
		return 2
	}
	return 1
}

// settingNumber returns a number as a key accepts it.
func settingNumber(text *string, key string) (string, bool) {
	if text == nil {
		return "", false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(*text), 10, 64)
	return strconv.FormatInt(n, 10), err == nil && n >= leastOf(key) && n <= filetree.MaxNumber
}

// applySetting sets a key to its template with the values of inputs, which are numbers.
func (s *Stage) applySetting(key string, value func(name string) string) {
	text := inputName.ReplaceAllStringFunc(s.Settings[key], func(v string) string {
		return strings.TrimSpace(value(inputName.FindStringSubmatch(v)[1]))
	})

	n, _ := strconv.ParseInt(text, 10, 64) // of a condition there is none
	switch key {
	case "when":
		s.When = text
	case "size":
		s.Size = n
	case "passage":
		s.Passage = n
	case "tokens":
		s.Tokens = n
	case "chunk_size":
		s.ChunkSize = &n
	case limitsContext:
		s.Limits.Context = n
	}
}

// Bind returns the pipeline with the cascade and the review that a run gives and the keys that inputs of a
// run set, and what is wrong with these: an input that is no number which its key accepts
// leaves the default in force.
func (p *Pipeline) Bind(vars map[string]string) (bound *Pipeline, warnings []string) {
	if vars[cascading.VarCascade] != "" {
		with := *p
		with.Stages = p.bindCascade(vars)
		p = &with
	}
	if vars[waiting.Var] != "" {
		with := *p
		with.Stages = p.bindReview(vars)
		p = &with
	}
	if !slices.ContainsFunc(p.Stages, func(s *Stage) bool { return len(s.Settings) > 0 }) {
		return p, nil
	}

	of := *p
	of.Stages = slices.Clone(p.Stages)
	for i, s := range of.Stages {
		if len(s.Settings) == 0 {
			continue
		}

		one := *s
		for _, key := range settingKeys {
			if one.Settings[key] == "" {
				continue
			}
			one.applySetting(key, func(name string) string {
				text, given := vars[name]
				number, ok := settingNumber(&text, key)
				if ok {
					return number
				}
				if given {
					warnings = append(warnings, fmt.Sprintf("the input %s is %.40q, which is no number that can be used: the default %s is used", name, text, *p.Inputs[name]))
				}
				return *p.Inputs[name]
			})
		}

		if _, err := condition.Parse(one.When); err != nil { // with these numbers it never holds
			warnings = append(warnings, fmt.Sprintf("the condition of stage %s cannot be used: %s: the default %q is used", s.Name, err, s.When))
			one.When = s.When
		}

		of.Stages[i] = &one
	}

	slices.SortStableFunc(warnings, cmp.Compare[string])
	return &of, slices.Compact(warnings)
}
