package wire

import (
	"math"
	"strconv"
	"strings"
)

// A Count is a count of tokens as a server wrote it, if it wrote one. What cannot be read does
// not spoil the answer around it: it is a count that no call has.
type Count struct {
	N     int64
	Known bool
}

// impossible is a count that no call has.
const impossible = -1

// UnmarshalJSON implements json.Unmarshaler. It never fails. A server may write a count as a text,
// or with a fraction of zero; null and an empty text are none.
func (c *Count) UnmarshalJSON(raw []byte) error {
	*c = parseCount(strings.Trim(string(raw), `"`))
	return nil
}

func parseCount(text string) Count {
	if text == "" || text == "null" {
		return Count{}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Count{n, true}
	}

	// Above 2^53 not every whole number can be told from the next.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return Count{impossible, true}
	}
	return Count{int64(f), true}
}
