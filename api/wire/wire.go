// Package wire turns the vocabulary of package mapreduce into the messages of
// the v1 API and back; package fault below it does so with errors and statuses, and what is
// too large for one message is cut by package parts. It is pure; it knows nothing of streams
// or connections, and imports of the project only the vocabulary, the error kinds and the
// generated messages.
//
// Messages from outside are checked while they are decoded: requests, and both
// sides of a worker's session. The first thing that is wrong is refused as
// errs.Invalid with the path of its field, so that no number out of range and no
// impossible id gets further. Replies are believed: decoding them cannot fail,
// and an enumerator that is newer than the reader becomes the unknown one.
//
// These do not survive the way over the wire: the difference between an empty
// and an absent slice or map, the location and the monotonic part of times,
// bytes in free text that are not UTF-8 (they become U+FFFD), integers beyond 32
// bits where the message has an int32 (they become the nearest), and of errors
// what Status says.
package wire

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// encodeEach encodes a slice into messages that lie in one allocation: batches on the
// work stream are the hot path.
func encodeEach[T, P any](in []T, fill func(*P, *T)) []*P {
	if len(in) == 0 {
		return nil
	}
	slab, out := make([]P, len(in)), make([]*P, len(in))
	for i := range in {
		fill(&slab[i], &in[i])
		out[i] = &slab[i]
	}
	return out
}

// convertEach maps in, keeping none as nil.
func convertEach[T, U any](in []T, f func(T) U) []U {
	if len(in) == 0 {
		return nil
	}
	out := make([]U, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

func stringsOf[T ~string](in []T) []string {
	return convertEach(in, func(v T) string { return string(v) })
}

// clampInt32 makes n fit. Numbers that do not are beyond every limit of the service
// anyway, and stay so.
func clampInt32(n int) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

// validText makes s legal in a message. Messages of models and parsers may hold any
// bytes, and one bad string would otherwise break the stream that carries it.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// encodeJSON returns JSON as the text that the wire holds, which must be UTF-8.
func encodeJSON(b []byte) string { return validText(string(b)) }

// decodeJSON returns the JSON that a text of the wire holds; nil if it is empty.
func decodeJSON(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func validTexts(in []string) []string {
	for _, s := range in {
		if !utf8.ValidString(s) {
			return convertEach(in, validText)
		}
	}
	return in
}

func textMap(in map[string]string) map[string]string {
	for k, v := range in {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return cleanMap(in)
		}
	}
	return in
}

func cleanMap(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[validText(k)] = validText(v)
	}
	return out
}

func encodeDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func encodeTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func decodeTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
