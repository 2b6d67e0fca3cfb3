// Package label reads, checks and matches the labels of jobs, by which people tell jobs apart and count what they cost.
package label

import (
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
)

// The bounds of the labels of a job. Keys and values have the characters that Kubernetes gives the
// names of labels, and a key may have "/" as well, so that labels of pods can be labels of jobs.
const (
	Max     = 16 // of a job
	MaxSize = 63 // bytes of a key, and of a value
)

// CheckAll returns an error that names the label that no job can have.
func CheckAll(labels map[string]string) error {
	if len(labels) > Max {
		return errs.Field("labels", "a job has at most %d, and these are %d", Max, len(labels))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := Check(key, labels[key]); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error that says why no job can have a label.
func Check(key, value string) error {
	if !isText(key, "-_./") {
		return errs.Field("labels", "the key %.80q must be 1 to %d letters, digits, -, _, . and / of ASCII, and begin and end with a letter or a digit", key, MaxSize)
	}
	if value != "" && !isText(value, "-_.") {
		return errs.Field("labels", "the value %.80q of %s must be at most %d letters, digits, -, _ and . of ASCII, and begin and end with a letter or a digit", value, key, MaxSize)
	}
	return nil
}

// isText reports whether text has letters and digits alone, and within also the other characters.
func isText(text, others string) bool {
	if text == "" || len(text) > MaxSize {
		return false
	}
	for i, c := range []byte(text) {
		inside := i > 0 && i < len(text)-1
		if !isLetterOrDigit(c) && !(inside && strings.IndexByte(others, c) >= 0) {
			return false
		}
	}
	return true
}

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Parse returns the labels that texts give, each "KEY=VALUE".
func Parse(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}

	labels := make(map[string]string, len(texts))
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errs.Field("labels", "%.80q is not KEY=VALUE", text)
		}
		if _, twice := labels[key]; twice {
			return nil, errs.Field("labels", "%s is given twice; a job has one value of it", key)
		}
		labels[key] = value
	}
	return labels, CheckAll(labels)
}

// Texts returns labels as texts, each "KEY=VALUE", in the order of their keys.
func Texts(labels map[string]string) []string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

// A Filter chooses jobs by a label: by its value, or those that have it at all.
type Filter struct {
	Key, Value string
	Any        bool // whatever the value is
}

// ParseFilters returns the filters that texts give, each "KEY=VALUE", or "KEY" for any value.
func ParseFilters(texts []string) ([]Filter, error) {
	if len(texts) > Max {
		return nil, errs.Field("labels", "a job has at most %d, and %d are asked for", Max, len(texts))
	}

	var all []Filter
	for _, text := range texts {
		key, value, valued := strings.Cut(text, "=")
		if err := Check(key, value); err != nil {
			return nil, err
		}
		all = append(all, Filter{Key: key, Value: value, Any: !valued})
	}
	return all, nil
}

// String returns the text that ParseFilters reads.
func (f Filter) String() string {
	if f.Any {
		return f.Key
	}
	return f.Key + "=" + f.Value
}

// Match reports whether labels are what all filters ask for.
func Match(filters []Filter, labels map[string]string) bool {
	return !slices.ContainsFunc(filters, func(f Filter) bool {
		value, has := labels[f.Key]
		return !has || !f.Any && value != f.Value
	})
}
