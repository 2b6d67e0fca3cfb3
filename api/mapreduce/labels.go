package mapreduce

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
)

// The bounds of the labels of a job. Keys and values have the characters that Kubernetes gives the
// names of labels, and a key may have "/" as well, so that labels of pods can be labels of jobs.
const (
	MaxLabels    = 16 // of a job
	MaxLabelSize = 63 // bytes of a key, and of a value
)

// MaxName is how many bytes the name of a job has at most.
const MaxName = 200

// CheckName returns an error for what no job can be called.
func CheckName(name string) error {
	if len(name) > MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errs.Field("display_name", "must be at most %d bytes of text without control characters", MaxName)
	}
	return nil
}

// NameOf returns what a job may be called that its owner gives no name, by the first of its inputs and how many
// there are.
func NameOf(first string, inputs int) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(first, "\ufffd") {
		if b.Len() > maxDefaultName {
			b.WriteString("…")
			break
		}
		if !unicode.IsControl(r) {
			b.WriteRune(r)
		}
	}

	if b.Len() > 0 && inputs > 1 {
		fmt.Fprintf(&b, " +%d", inputs-1)
	}
	return b.String()
}

// maxDefaultName is about how many bytes of an input are in a name.
const maxDefaultName = 60

// CheckLabels returns an error that names the label that no job can have.
func CheckLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return errs.Field("labels", "a job has at most %d, and these are %d", MaxLabels, len(labels))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := checkLabel(key, labels[key]); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(key, value string) error {
	if !isLabelText(key, "-_./") {
		return errs.Field("labels", "the key %.80q must be 1 to %d letters, digits, -, _, . and / of ASCII, and begin and end with a letter or a digit", key, MaxLabelSize)
	}
	if value != "" && !isLabelText(value, "-_.") {
		return errs.Field("labels", "the value %.80q of %s must be at most %d letters, digits, -, _ and . of ASCII, and begin and end with a letter or a digit", value, key, MaxLabelSize)
	}
	return nil
}

// isLabelText reports whether text has letters and digits alone, and within also the other characters.
func isLabelText(text, others string) bool {
	if text == "" || len(text) > MaxLabelSize {
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

// ParseLabels returns the labels that texts give, each "KEY=VALUE".
func ParseLabels(texts []string) (map[string]string, error) {
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
	return labels, CheckLabels(labels)
}

// LabelTexts returns labels as texts, each "KEY=VALUE", in the order of their keys.
func LabelTexts(labels map[string]string) []string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

// A LabelFilter chooses jobs by a label: by its value, or those that have it at all.
type LabelFilter struct {
	Key, Value string
	Any        bool // whatever the value is
}

// ParseLabelFilters returns the filters that texts give, each "KEY=VALUE", or "KEY" for any value.
func ParseLabelFilters(texts []string) ([]LabelFilter, error) {
	if len(texts) > MaxLabels {
		return nil, errs.Field("labels", "a job has at most %d, and %d are asked for", MaxLabels, len(texts))
	}

	var all []LabelFilter
	for _, text := range texts {
		key, value, valued := strings.Cut(text, "=")
		if err := checkLabel(key, value); err != nil {
			return nil, err
		}
		all = append(all, LabelFilter{Key: key, Value: value, Any: !valued})
	}
	return all, nil
}

// String returns the text that ParseLabelFilters reads.
func (f LabelFilter) String() string {
	if f.Any {
		return f.Key
	}
	return f.Key + "=" + f.Value
}

// MatchLabels reports whether labels are what all filters ask for.
func MatchLabels(filters []LabelFilter, labels map[string]string) bool {
	return !slices.ContainsFunc(filters, func(f LabelFilter) bool {
		value, has := labels[f.Key]
		return !has || !f.Any && value != f.Value
	})
}
