package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A Report is what came of the attacks.
type Report struct {
	doctor string   // its last line
	faults []string // lines of the server's log about panics and internal errors

	mu       sync.Mutex // guards the variables below
	counts   map[string]int
	answers  map[codes.Code]int
	internal []string // lies that were answered with an internal error
	failures []string // what did not go as it should
	delays   []time.Duration
	peak     int64 // bytes
	rest     int64 // bytes
	jobs     int   // of the honest tenant, with equal results
	unequal  []string
}

func newReport() *Report {
	return &Report{counts: make(map[string]int), answers: make(map[codes.Code]int)}
}

// count counts attacks of a kind.
func (r *Report) count(kind string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[kind] += n
}

// answered notes how a lie was answered.
func (r *Report) answered(kind, lie string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[kind]++
	code := status.Code(err)
	r.answers[code]++
	if (code == codes.Internal || code == codes.Unknown) && len(r.internal) < 1000 {
		r.internal = append(r.internal, kind+": "+lie+": "+err.Error())
	}
}

func (r *Report) addFailure(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

// addResult notes a result of the honest tenant.
func (r *Report) addResult(equal bool, job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if equal {
		r.jobs++
	} else {
		r.unequal = append(r.unequal, job)
	}
}

func (r *Report) noteDelay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays = append(r.delays, d)
}

func (r *Report) notePeak(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peak = max(r.peak, n)
}

func (r *Report) setRest(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = n
}

// percentile returns the delay that so many in a hundred did not exceed. The caller holds
// mu.
func (r *Report) percentile(p int) time.Duration {
	if len(r.delays) == 0 {
		return 0
	}
	slices.Sort(r.delays)
	return r.delays[min(len(r.delays)-1, len(r.delays)*p/100)]
}

// verdict returns what the server failed at. If it is not timed, how quick it was and how
// soon it gave memory back are only printed.
func (r *Report) verdict(timed bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []error
	add := func(is bool, format string, args ...any) {
		if is {
			failed = append(failed, fmt.Errorf(format, args...))
		}
	}

	add(len(r.failures) > 0, "%s", strings.Join(r.failures, "; "))
	add(len(r.unequal) > 0, "%d results of the honest tenant are not equal: %s", len(r.unequal), strings.Join(r.unequal, "; "))
	add(r.jobs == 0, "no job of the honest tenant has ended")
	add(timed && r.percentile(99) > mostDelay, "99 in 100 calls of GetJob took up to %v; at most %v are allowed", r.percentile(99), mostDelay)
	add(r.peak > mostMemory, "the server took %d MiB; at most %d are allowed", r.peak>>20, mostMemory>>20)
	add(timed && r.rest > restMemory, "the server takes %d MiB after the attacks; at most %d are allowed", r.rest>>20, restMemory>>20)
	add(len(r.internal) > 0, "%d lies were answered as if the server were at fault", len(r.internal))
	add(len(r.faults) > 0, "the server logged %d faults of its own", len(r.faults))

	return errors.Join(failed...)
}

// Print prints the report.
func (r *Report) Print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(w, "%-32s %8d\n", kind, r.counts[kind])
	}

	fmt.Fprintf(w, "%-32s", "answers")
	for _, code := range slices.Sorted(maps.Keys(r.answers)) {
		fmt.Fprintf(w, " %s %d", code, r.answers[code])
	}

	fmt.Fprintf(w, "\n%-32s %8d, results equal\n", "jobs of the honest tenant", r.jobs)
	fmt.Fprintf(w, "%-32s %8d calls; 50 in 100 within %v, 99 within %v, all within %v\n", "GetJob of the honest tenant", len(r.delays),
		r.percentile(50).Round(time.Microsecond), r.percentile(99).Round(time.Microsecond), r.percentile(100).Round(time.Microsecond))
	fmt.Fprintf(w, "%-32s %8d MiB at most, %d MiB after the attacks\n", "memory of the server", r.peak>>20, r.rest>>20)
	fmt.Fprintf(w, "%-32s %s\n", "doctor", r.doctor)

	for _, group := range []struct {
		title string
		lines []string
	}{{"answered as a fault of the server", r.internal}, {"logged as a fault of the server", r.faults}} {
		for i, line := range group.lines {
			if i == 20 {
				fmt.Fprintf(w, "… and %d more\n", len(group.lines)-i)
				break
			}
			fmt.Fprintf(w, "%s: %.400s\n", group.title, line)
		}
	}
}
