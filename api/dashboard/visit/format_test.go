package visit_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/dashboard/visit"
)

// Numbers are written for people: in full, and no more exactly than they are.
func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		visit.Count(int64(-1234567)): "−1\u202f234\u202f567", visit.Count(999): "999", visit.Money(0): "$0.00", visit.Money(1): "$0.000001", visit.Money(99_999): "$0.099999",
		visit.Money(100_000): "$0.10", visit.Money(-2_500_000): "−$2.50", visit.Money(1_234_567_890): "$1\u202f234.57", visit.Percent(999, 1000): "99.9 %", visit.Percent(1, 0): "–",
		visit.Percent(9999, 10000): "99.9 %", visit.Duration(350 * time.Millisecond): "350 ms", visit.Duration(9999 * time.Millisecond): "9.9 s",
		visit.Duration(61 * time.Second): "1 min 01 s", visit.Duration(25 * time.Hour): "1 d 01 h", visit.Duration(-1): "–",
		visit.Rate(30, 10*time.Second): "3.0/s", visit.Rate(5, 100*time.Second): "3/min", visit.Rate(2000, 10*time.Second): "200/s",
		visit.Visible("a\x00b\u202ec"): "a\u2400b\ufffdc",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
