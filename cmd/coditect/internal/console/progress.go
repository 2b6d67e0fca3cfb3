package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/plural"
)

// MeterConfig holds where progress is shown. Out is needed.
type MeterConfig struct {
	Out io.Writer
	// Terminal means that Out is a terminal, which gets a bar instead of lines.
	Terminal bool
	// Width returns the width of the terminal, in characters. Defaults to 80.
	Width func() int
	// Quiet suppresses everything but notes.
	Quiet bool
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// linePause is the least time between two lines of a log in the same phase.
const linePause = 5 * time.Second

// barPause is the least time between two changes of the bar while documents are
// submitted. There may be many thousands of documents a second.
const barPause = 100 * time.Millisecond

// A Meter shows the progress of one job. It is safe for concurrent use.
type Meter struct {
	config MeterConfig

	mu         sync.Mutex // guards the variables below, and writing
	bar        string     // the bar that the terminal shows
	last       mapreduce.Job
	shownAt    time.Time // of the last line
	shownShare float64   // the greatest share of the job that a bar has shown, in [0,1]
	rate       rate
}

// NewMeter returns a meter.
func NewMeter(c MeterConfig) *Meter {
	if c.Width == nil {
		c.Width = func() int { return 80 }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Meter{config: c}
}

// Write writes lines of other writers between those of the meter, without control
// characters.
func (m *Meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.eraseBar()
	_, err := m.config.Out.Write(EscapeControls(p))
	m.drawBar()
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Note writes a line.
func (m *Meter) Note(format string, args ...any) {
	fmt.Fprintf(m, format+"\n", args...)
}

// Submitting shows how many documents, and bytes of them, were submitted so far.
// Their total is not known.
func (m *Meter) Submitting(documents, bytes int64) { m.showReading("submitting", documents, bytes) }

// Planning shows how many documents, and bytes of them, were planned so far.
func (m *Meter) Planning(documents, bytes int64) { m.showReading("planning", documents, bytes) }

// Writing shows how many records and units of a result were written so far.
func (m *Meter) Writing(records, units int64) {
	m.showCount(func() string {
		return "writing: " + plural.Count(records, "record") + ", " + plural.Count(units, "unit")
	})
}

func (m *Meter) showReading(what string, documents, bytes int64) {
	m.showCount(func() string { return what + ": " + plural.Count(documents, "document") + ", " + sizeOf(bytes) })
}

// showCount shows a count that grows, not too often.
func (m *Meter) showCount(text func() string) {
	if m.config.Quiet {
		return
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.config.Now()
	if m.shownAt.IsZero() && !m.config.Terminal {
		m.shownAt = now // most submissions end before the first line is due
	}

	pause := linePause
	if m.config.Terminal {
		pause = barPause
	}
	if now.Sub(m.shownAt) < pause {
		return
	}

	m.shownAt = now
	if m.config.Terminal {
		m.replaceBar(clipText(text(), m.config.Width()-1))
		return
	}
	fmt.Fprintln(m.config.Out, text())
}

// sizeOf formats a number of bytes for people.
func sizeOf(bytes int64) string {
	switch {
	case bytes < 1e6:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// Job shows the progress of a job, and a line for each thing that its units say.
func (m *Meter) Job(j *mapreduce.Job) {
	if m.config.Quiet {
		return
	}

	// Note takes the lock itself.
	for _, a := range j.Activity {
		m.Note("%s", lineOfActivity(a))
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	now := m.config.Now()
	m.rate.add(now, doneUnits(j))

	if m.config.Terminal {
		m.replaceBar(m.barOf(j))
		return
	}

	turned := j.State != m.last.State || j.Level != m.last.Level
	moved := doneUnits(j) != doneUnits(&m.last) || j.ParkedUnits != m.last.ParkedUnits
	if turned || now.Sub(m.shownAt) >= linePause && moved {
		fmt.Fprintf(m.config.Out, "%s\n", lineOf(j))
		m.last, m.shownAt = *j, now
	}
}

// End removes the bar.
func (m *Meter) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replaceBar("")
}

func doneUnits(j *mapreduce.Job) int64 { return j.CompletedUnits + j.FailedUnits }

func (m *Meter) replaceBar(bar string) {
	m.eraseBar()
	m.bar = bar
	m.drawBar()
}

// eraseBar erases the bar from the screen; drawBar draws it again.
func (m *Meter) eraseBar() {
	if m.bar != "" {
		fmt.Fprint(m.config.Out, "\r\x1b[K")
	}
}

func (m *Meter) drawBar() {
	if m.bar != "" {
		fmt.Fprint(m.config.Out, m.bar)
	}
}

// phaseOf names the phase of a job.
func phaseOf(j *mapreduce.Job) string {
	if j.State == mapreduce.Reducing {
		return fmt.Sprintf("%s %d", j.State, j.Level)
	}
	return j.State.String()
}

// lineOfActivity returns a line, whatever a worker has made of the note.
func lineOfActivity(a mapreduce.Activity) string {
	line := string(a.Unit) + ": "
	if a.Attempt > 1 {
		line += fmt.Sprintf("attempt %d, ", a.Attempt)
	}
	return strings.Join(strings.Fields(line+a.Note), " ")
}

func lineOf(j *mapreduce.Job) string {
	s := phaseOf(j) + ": " + plural.Of(doneUnits(j), j.TotalUnits, "unit")
	if j.FailedUnits > 0 {
		s += fmt.Sprintf(", %d failed", j.FailedUnits)
	}
	if j.ParkedUnits > 0 {
		s += fmt.Sprintf(", %d parked", j.ParkedUnits)
		if pipeline.Reviews(j.Spec.Vars, j.Spec.Definition) {
			s += " (values wait for a person: coditect mapreduce review " + string(j.ID) + ")"
		}
	}
	if t := j.TotalTokens.Total(); t > 0 {
		s += ", " + plural.Count(t, "token")
	}

	return s
}

const (
	minCells = 10 // of a bar
	maxCells = 40
)

// barOf returns one line that fits the terminal.
func (m *Meter) barOf(j *mapreduce.Job) string {
	left, right := fmt.Sprintf("%-13s ", phaseOf(j)), fmt.Sprintf(" %d/%d", doneUnits(j), j.TotalUnits)
	if j.FailedUnits > 0 {
		right += fmt.Sprintf("  %d failed", j.FailedUnits)
	}
	if j.ParkedUnits > 0 {
		right += fmt.Sprintf("  %d parked", j.ParkedUnits)
	}
	if r := m.rate.perSecond(); r > 0 {
		right += fmt.Sprintf("  %.0f/s", r)
		if rest := j.TotalUnits - doneUnits(j); rest > 0 {
			right += "  " + time.Duration(float64(rest)/r*float64(time.Second)).Round(time.Second).String()
		}
	}

	width := m.config.Width() - 1 // in the last column some terminals wrap
	cells := min(width-len(left)-len(right)-2, maxCells)
	if cells < minCells {
		return clipText(left+right, width)
	}

	// The share that is done drops when a level is added or a resume retries
	// failed units, but the bar must not move back.
	if j.TotalUnits > 0 {
		m.shownShare = min(max(m.shownShare, float64(doneUnits(j))/float64(j.TotalUnits)), 1)
	}

	full := int(m.shownShare * float64(cells))
	return left + "[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + "]" + right
}

func clipText(s string, width int) string { return s[:max(0, min(len(s), width))] }

// A rate measures the recent growth of a count.
type rate struct {
	times  [20]time.Time // a ring
	counts [20]int64
	n      int // added so far
}

func (r *rate) add(t time.Time, count int64) {
	r.times[r.n%len(r.times)], r.counts[r.n%len(r.counts)] = t, count
	r.n++
}

func (r *rate) perSecond() float64 {
	if r.n < 2 {
		return 0
	}
	newest, oldest := (r.n-1)%len(r.times), max(0, r.n-len(r.times))%len(r.times)
	elapsed := r.times[newest].Sub(r.times[oldest]).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return float64(r.counts[newest]-r.counts[oldest]) / elapsed
}
