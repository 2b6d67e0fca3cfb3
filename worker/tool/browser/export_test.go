package browser

import (
	"io"
	"time"
)

// OnlyPage is the one frame that Relay takes for a page.
const OnlyPage = "D0F1E5821016C4A7"

// Relay relays messages within bounds.
func Relay(to io.Writer, from io.Reader, mostOfAnswers, mostOfEvents int) error {
	return filter{mostOfAnswers, mostOfEvents, func(frame string) bool { return frame == OnlyPage }}.relay(to, from)
}

// SetTimes changes how long pages may load and take to answer. No call may run.
func SetTimes(k *Kit, load, answer time.Duration) {
	k.config.LoadTime, k.config.AnswerTime = load, answer
}

// End ends the browser as it is ended when a page of a unit takes too much.
func End(k *Kit, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live.end(why)
}
