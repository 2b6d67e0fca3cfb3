// Package parameters has the parameters of a model's answers: how long it thinks, how much it says,
// and how it chooses its words. They are named and written alike in flags, in the variables of jobs
// and in pipeline files.
//
// The package is pure. It imports nothing of the project.
package parameters

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Name is what users call a parameter in the variables of a job and in pipeline files. Its flag
// has dashes.
type Name string

// The parameters, in the order in which they are shown.
const (
	Effort      Name = "effort"          // how much a model thinks: one of Efforts
	Thinking    Name = "thinking_budget" // tokens that it may think for; 0 switches thinking off
	Verbosity   Name = "verbosity"       // how much it says: low, medium or high
	Temperature Name = "temperature"     // 0 to 2: how often it takes words that are less likely
	TopP        Name = "top_p"           // above 0 to 1: the share of likely words that it chooses from
	Seed        Name = "seed"            // 0 to 2,147,483,647: the same choices each time, as far as the server can
	Stop        Name = "stop"            // texts that end an answer
	Tier        Name = "tier"            // at which price and how soon it is answered: one of Tiers, FlexFirst or Batch
)

// Names returns all names, in order.
func Names() []Name { return []Name{Effort, Thinking, Verbosity, Temperature, TopP, Seed, Stop, Tier} }

// Flag returns the name of the parameter's flag, without dashes before it.
func (n Name) Flag() string { return strings.ReplaceAll(string(n), "_", "-") }

// The efforts that need a name in code.
const (
	NoEffort = "none" // the model does not think
	Minimal  = "minimal"
	Low      = "low"
	Medium   = "medium"
	High     = "high"
	XHigh    = "xhigh"
	Max      = "max"
)

// Efforts returns the levels of effort, the least first.
func Efforts() []string { return []string{NoEffort, Minimal, Low, Medium, High, XHigh, Max} }

// The tiers in which vendors answer.
const (
	Standard = "standard"
	Flex     = "flex"     // for less, later, and refused while there is no room
	Priority = "priority" // sooner, for more

	// Batch is many calls together, for less, within a day or so. It is no tier of a single call.
	Batch = "batch"

	// FlexFirst is flex where there is room, and otherwise standard.
	FlexFirst = Flex + "," + Standard
)

// Tiers returns the tiers, the cheapest first.
func Tiers() []string { return []string{Flex, Standard, Priority} }

// A Set is parameters with their values. What is empty or nil is left to the model. A Set is not
// changed once it is used.
type Set struct {
	Effort      string   `json:"effort,omitempty"`
	Thinking    *int64   `json:"thinking_budget,omitempty"` // tokens
	Verbosity   string   `json:"verbosity,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	Tier        string   `json:"tier,omitempty"`
}

// Bounds of values.
const (
	maxThinking = 1 << 20 // tokens
	maxStops    = 16
	maxStop     = 256 // bytes
)

// Read returns the parameters among the variables of a job. The error is a *ValueError.
func Read(vars map[string]string) (Set, error) {
	var s Set
	for _, name := range Names() {
		if text, given := vars[string(name)]; given {
			if err := s.Put(name, text); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// A ValueError is a value that a parameter cannot have.
type ValueError struct {
	Name Name
	Rule string // what it has to be, and what it is
}

// Error implements error.
func (e *ValueError) Error() string { return string(e.Name) + ": " + e.Rule }

// Put sets a parameter to a value as text. Of Stop, the text is the one that ends an answer, or a
// list of such texts in JSON. The error is a *ValueError.
func (s *Set) Put(name Name, text string) error {
	var err error
	switch name {
	case Effort:
		s.Effort, err = text, checkWord(text, Efforts())
	case Thinking:
		s.Thinking, err = wholeNumber(text, maxThinking)
	case Verbosity:
		s.Verbosity, err = text, checkWord(text, []string{Low, Medium, High})
	case Temperature:
		s.Temperature, err = number(text, 2, false)
	case TopP:
		s.TopP, err = number(text, 1, true)
	case Seed:
		s.Seed, err = wholeNumber(text, math.MaxInt32)
	case Stop:
		s.Stop, err = stopTexts(text)
	case Tier:
		s.Tier, err = text, checkWord(text, append(Tiers(), FlexFirst, Batch))
	default:
		err = fmt.Errorf("is no parameter; there are %s", joinNames(Names()))
	}

	if err != nil {
		return &ValueError{name, err.Error()}
	}

	return nil
}

func checkWord(text string, words []string) error {
	if !slices.Contains(words, text) {
		return fmt.Errorf("%.80q is not one of %s", text, strings.Join(words, ", "))
	}
	return nil
}

func wholeNumber(text string, most int64) (*int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return nil, fmt.Errorf("%.80q is not a whole number from 0 to %d", text, most)
	}
	return &n, nil
}

// number reads a number from 0 to most; above 0, if it has to be.
func number(text string, most float64, above bool) (*float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > most || above && f == 0 {
		from := "from 0"
		if above {
			from = "above 0 and up"
		}
		return nil, fmt.Errorf("%.80q is not a number %s to %v", text, from, most)
	}
	return &f, nil
}

func stopTexts(text string) ([]string, error) {
	texts := []string{text}
	if strings.HasPrefix(text, "[") {
		texts = nil
		if err := json.Unmarshal([]byte(text), &texts); err != nil {
			return nil, fmt.Errorf("%.80q begins like a list of texts in JSON, and is none", text)
		}
	}

	if len(texts) == 0 || len(texts) > maxStops {
		return nil, fmt.Errorf("has %d texts; 1 to %d can end an answer", len(texts), maxStops)
	}

	for _, t := range texts {
		if t == "" || len(t) > maxStop {
			return nil, fmt.Errorf("has a text of %d bytes; one that ends an answer has 1 to %d", len(t), maxStop)
		}
	}

	return texts, nil
}

// IsZero reports whether all is left to the model.
func (s Set) IsZero() bool { return len(s.Given()) == 0 }

// has reports whether a parameter is set.
func (s Set) has(n Name) bool {
	switch n {
	case Effort:
		return s.Effort != ""
	case Thinking:
		return s.Thinking != nil
	case Verbosity:
		return s.Verbosity != ""
	case Temperature:
		return s.Temperature != nil
	case TopP:
		return s.TopP != nil
	case Seed:
		return s.Seed != nil
	case Stop:
		return len(s.Stop) > 0
	case Tier:
		return s.Tier != ""
	}
	return false
}

// Given returns the names of what is set, in order.
func (s Set) Given() []Name {
	return slices.DeleteFunc(Names(), func(n Name) bool { return !s.has(n) })
}

// Over returns s, with what it leaves out as other has it.
func (s Set) Over(other Set) Set {
	out := Set{
		Effort: cmp.Or(s.Effort, other.Effort), Thinking: cmp.Or(s.Thinking, other.Thinking), Verbosity: cmp.Or(s.Verbosity, other.Verbosity),
		Temperature: cmp.Or(s.Temperature, other.Temperature), TopP: cmp.Or(s.TopP, other.TopP), Seed: cmp.Or(s.Seed, other.Seed), Stop: s.Stop,
		Tier: cmp.Or(s.Tier, other.Tier),
	}
	if len(out.Stop) == 0 {
		out.Stop = other.Stop
	}
	return out
}

// Without returns s without some parameters.
func (s Set) Without(names ...Name) Set {
	for _, n := range names {
		switch n {
		case Effort:
			s.Effort = ""
		case Thinking:
			s.Thinking = nil
		case Verbosity:
			s.Verbosity = ""
		case Temperature:
			s.Temperature = nil
		case TopP:
			s.TopP = nil
		case Seed:
			s.Seed = nil
		case Stop:
			s.Stop = nil
		case Tier:
			s.Tier = ""
		}
	}
	return s
}

// Value returns a parameter as Put reads it; "" if it is not set.
func (s Set) Value(n Name) string {
	if !s.has(n) {
		return ""
	}

	switch n {
	case Effort:
		return s.Effort
	case Thinking:
		return strconv.FormatInt(*s.Thinking, 10)
	case Verbosity:
		return s.Verbosity
	case Temperature:
		return strconv.FormatFloat(*s.Temperature, 'g', -1, 64)
	case TopP:
		return strconv.FormatFloat(*s.TopP, 'g', -1, 64)
	case Seed:
		return strconv.FormatInt(*s.Seed, 10)
	case Tier:
		return s.Tier
	}
	return stopText(s.Stop)
}

func stopText(texts []string) string {
	if len(texts) == 1 && !strings.HasPrefix(texts[0], "[") {
		return texts[0]
	}
	raw, err := json.Marshal(texts)
	if err != nil {
		return ""
	}
	return string(raw)
}

// String returns what is set, for people: "effort high, temperature 0"; "" if nothing is.
func (s Set) String() string {
	var all []string
	for _, n := range s.Given() {
		value := s.Value(n)
		if n == Stop {
			value = strconv.Quote(value)
		}
		all = append(all, string(n)+" "+value)
	}
	return strings.Join(all, ", ")
}

// thoughts are the tokens that are kept free for what a model thinks, by its effort. Vendors state
// no bounds: these are about the largest sums that their own tools assume, and an answer that needs
// more is cut off like any that is too long.
func thoughts() map[string]int64 {
	return map[string]int64{Minimal: 1 << 10, Low: 4 << 10, Medium: 8 << 10, High: 16 << 10, XHigh: 32 << 10, Max: 64 << 10}
}

// Room returns the tokens that a call may take for thinking, beside those of its answer: the budget
// for that, or what its effort comes to; 0 if neither is set, as thinking is then a part of the
// answer.
func (s Set) Room() int64 {
	if s.Thinking != nil {
		return *s.Thinking
	}
	return thoughts()[s.Effort]
}

func joinNames(names []Name) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return strings.Join(words, ", ")
}
