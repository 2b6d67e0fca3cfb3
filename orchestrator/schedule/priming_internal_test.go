package schedule

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
)

// One unit runs before the others, until it has ended, or takes too long; never again then.
func TestOneUnitPrimesTheCache(t *testing.T) {
	now := time.Unix(1000, 0)
	called := &protocol.Report{Outcome: protocol.Returned, Calls: 1}
	for name, tt := range map[string]struct {
		ends func(*prefixPriming) bool
		want bool
	}{
		"it is done":                   {func(p *prefixPriming) bool { return p.noteReport(&protocol.Report{Outcome: protocol.Done}) }, true},
		"it comes back after a call":   {func(p *prefixPriming) bool { return p.noteReport(called) }, true},
		"it comes back without a call": {func(p *prefixPriming) bool { return p.noteReport(&protocol.Report{Outcome: protocol.Returned}) }, false},
		"it is looked at once":         {func(p *prefixPriming) bool { return p.endIfSlow(time.Minute, now) }, false},
		"it has run too long": {func(p *prefixPriming) bool {
			p.endIfSlow(time.Minute, now.Add(-time.Minute))
			return p.endIfSlow(time.Minute, now)
		}, true},
	} {
		var p prefixPriming
		if free := p.capSlots(9, 4); free != 9 {
			t.Errorf("%s: %d units may begin of a job that is not cold", name, free)
		}

		p.start()
		if first, second := p.capSlots(9, 0), p.capSlots(9, 1); first != 1 || second != 0 {
			t.Errorf("%s: %d units may begin at first, and %d beside one", name, first, second)
		}
		if more := tt.ends(&p); more != tt.want || p.cold == tt.want {
			t.Errorf("%s: more may begin is %t, want %t", name, more, tt.want)
		}

		p.start()
		if p.cold == tt.want {
			t.Errorf("%s: the job is cold again: %t", name, p.cold)
		}
	}
}
