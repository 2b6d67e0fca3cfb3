package format_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A plain number is read without the rules for signs, units and groups. It must mean what
// these say: a blank in front of it, which nobody counts, leads to them.
func TestPlainNumbersAreReadAsAllOthers(t *testing.T) {
	styles := []format.NumberStyle{
		{}, {Decimal: '.'}, {Decimal: ','}, {Decimal: ',', Blanks: format.No}, {Decimal: '.', Blanks: format.Yes}, {Negative: "()"}, {Negative: "-"},
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?[0-9]{0,5}\.?[0-9]{0,4}`).Draw(t, "number")
		style := rapid.SampledFrom(styles).Draw(t, "style")
		if diff := cmp.Diff(format.ReadNumber(" "+number, style), format.ReadNumber(number, style)); diff != "" {
			t.Errorf("%q in %+v (-by the rules +got):\n%s", number, style, diff)
		}
	})
}
