package ascent

import (
	"strconv"
	"strings"
)

// A Decision is what becomes of the answer of a member: what a call that wakes the unit says.
type Decision string

// The decisions.
const (
	Accept  Decision = "accept"  // it is the unit's
	Compare Decision = "compare" // that of the last member is, and both are compared
	Ascend  Decision = "ascend"  // the next member is asked
)

// handle begins the handles under which units wait for decisions.
const handle = "cascade/"

// Handle is under what a unit is parked with the answer of a member, by its number from 0.
func Handle(member int) string { return handle + strconv.Itoa(member) }

// MemberOf returns whose answer waits under a handle.
func MemberOf(waits string) (member int, ok bool) {
	text, ok := strings.CutPrefix(waits, handle)
	if !ok {
		return 0, false
	}
	member, err := strconv.Atoi(text)
	return member, err == nil && member >= 0
}
