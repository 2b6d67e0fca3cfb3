package scripted

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The faults of a unit: the values of script.poison.UNIT, and for some the
// names of rates.
const (
	fail       = "fail"      // an error worth another attempt
	permanent  = "permanent" // an error that is not
	panics     = "panic"
	hang       = "hang"    // does not return when its context ends
	exit       = "exit"    // ends the process
	kill       = "kill"    // ends the process by a signal
	memory     = "memory"  // ends the process for want of memory
	goexit     = "goexit"  // ends its goroutine
	huge       = "huge"    // an output of 65 MiB
	garbage    = "nul"     // soft errors with NUL and invalid UTF-8
	garbled    = "garbled" // an error with a long text of the same
	wrongQuote = "wrong_quote"

	// The faults of a reference that a value should have.
	dropRefs    = "drop_refs"    // it is left out
	inventRefs  = "invent_refs"  // one that was not issued stands in its place
	mixRefs     = "mix_refs"     // another one that was issued does
	rewriteRefs = "rewrite_refs" // it is spelled otherwise: still to be understood, or with another digit
)

const (
	maxOutputBytes = 32 << 20 // of filler
	hugeBytes      = 65 << 20 // more than a worker takes
)

// behaviourNames are what a unit can be poisoned with.
func behaviourNames() []string {
	return []string{fail, permanent, panics, hang, exit, kill, memory, goexit, huge, garbage, garbled}
}

// ratedNames are what units do with a probability.
func ratedNames() []string {
	return []string{fail, permanent, panics, hang, exit, goexit, wrongQuote, dropRefs, inventRefs, mixRefs, rewriteRefs}
}

// A script is the variables of a job that begin with "script.".
//
//	script.seed          number; defaults to 0
//	script.latency       of a call: "200ms", or "lognormal:200ms,0.8" with mean and sigma
//	script.calls         model calls of a unit; defaults to 1
//	script.tokens_in     of a call; defaults to 0
//	script.tokens_out    of a call; defaults to 0
//	script.cost          of a call, in millionths of a US dollar
//	script.output_bytes  how much filler an output has at level 0
//	script.growth        by which factor that grows with each level; defaults to 1
//	script.items         elements of each list in a value that is written; defaults
//	                     to 3. script.items.STAGE is that of one stage
//	script.pages         what a unit with tools finds; defaults to 1
//	script.page_bytes    of each; defaults to 1000
//	script.parks         how often a unit is parked before it ends, after as many calls
//	                     each time as can be
//	script.park_for      how long each time: "50ms"; defaults to until a call wakes it
//	script.answer        what that call has to say: with it, time alone does not do
//	script.breaker       how many calls fail at first, of this agent's
//	script.X_rate        probability in [0,1] that an attempt does X: fail, panic,
//	                     hang, exit, goexit; or that a unit does: permanent,
//	                     wrong_quote; or what happens to each reference of a value:
//	                     drop_refs, invent_refs, mix_refs, rewrite_refs
//	script.poison.UNIT   what every attempt at a unit does: fail, permanent,
//	                     panic, hang, exit, kill, memory, goexit, huge, nul, garbled
type script struct {
	seed        int64
	latency     latency
	calls       int
	tokensIn    int64
	tokensOut   int64
	cost        int64
	outputBytes int
	growth      float64
	breaker     int
	items       map[string]int // by stage; "" is of all others
	pages       int
	pageBytes   int
	parks       int
	parkFor     time.Duration
	answer      string
	rates       map[string]float64
	poison      map[string]string
}

// parseScript reads a script out of a job's variables.
func parseScript(vars map[string]string) (script, error) {
	s := script{calls: 1, pages: 1, pageBytes: 1000, growth: 1, items: map[string]int{"": 3}, rates: map[string]float64{}, poison: map[string]string{}}

	var errs []error
	for key, value := range vars {
		name, ok := strings.CutPrefix(key, "script.")
		if !ok {
			continue
		}
		if err := s.setVariable(name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}

	return s, errors.Join(errs...)
}

func (s *script) setVariable(name, value string) (err error) {
	switch name {
	case "seed":
		s.seed, err = strconv.ParseInt(value, 10, 64)
	case "latency":
		s.latency, err = parseLatency(value)
	case "calls":
		s.calls, err = parseCount[int](value)
	case "tokens_in":
		s.tokensIn, err = parseCount[int64](value)
	case "tokens_out":
		s.tokensOut, err = parseCount[int64](value)
	case "cost":
		s.cost, err = parseCount[int64](value)
	case "output_bytes":
		s.outputBytes, err = parseCount[int](value)
	case "growth":
		s.growth, err = strconv.ParseFloat(value, 64)
	case "pages":
		s.pages, err = parseCount[int](value)
	case "page_bytes":
		s.pageBytes, err = parseCount[int](value)
	case "parks":
		s.parks, err = parseCount[int](value)
	case "park_for":
		s.parkFor, err = time.ParseDuration(value)
	case "answer":
		s.answer = value
	case "breaker":
		s.breaker, err = parseCount[int](value)
	case "items":
		s.items[""], err = parseCount[int](value)
	default:
		return s.setMap(name, value)
	}
	return err
}

func (s *script) setMap(name, value string) error {
	if unit, ok := strings.CutPrefix(name, "poison."); ok {
		s.poison[unit] = value
		return oneOf(value, behaviourNames())
	}

	if stage, ok := strings.CutPrefix(name, "items."); ok {
		n, err := parseCount[int](value)
		s.items[stage] = n
		return err
	}

	kind, ok := strings.CutSuffix(name, "_rate")
	if !ok {
		return errors.New("no such variable")
	}

	rate, err := strconv.ParseFloat(value, 64)
	// NaN is refused, too.
	if err == nil && !(rate >= 0 && rate <= 1) {
		err = errors.New("must be in [0,1]")
	}
	s.rates[kind] = rate
	return errors.Join(err, oneOf(kind, ratedNames()))
}

// itemsOf is how many elements lists have in a stage.
func (s *script) itemsOf(stage string) int {
	if n, ok := s.items[stage]; ok {
		return n
	}
	return s.items[""]
}

func oneOf(value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%q is none of %s", value, strings.Join(known, ", "))
}

func parseCount[T int | int64](value string) (T, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err == nil && n < 0 {
		err = errors.New("must not be negative")
	}
	return T(n), err
}

// A latency is how long calls take: exactly mean, or log-normal around it.
type latency struct {
	mean  time.Duration
	sigma float64
}

func parseLatency(value string) (l latency, err error) {
	rest, lognormal := strings.CutPrefix(value, "lognormal:")
	mean, sigma, _ := strings.Cut(rest, ",")
	if lognormal {
		if l.sigma, err = strconv.ParseFloat(sigma, 64); err != nil {
			return l, err
		}
	} else {
		mean = value
	}

	l.mean, err = time.ParseDuration(mean)
	return l, err
}

// drawDuration returns one duration. The mean of a log-normal variable is
// exp(mu + sigma²/2).
func (l latency) drawDuration(r *rand.Rand) time.Duration {
	if l.sigma == 0 {
		return l.mean
	}
	return time.Duration(float64(l.mean) * math.Exp(l.sigma*r.NormFloat64()-l.sigma*l.sigma/2))
}
