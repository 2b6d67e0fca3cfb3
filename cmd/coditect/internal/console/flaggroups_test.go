package console_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
)

// Help shows each flag once: the first ones at the top in their order, the others by group, and
// what is in no group at the end.
func TestFlagGroups(t *testing.T) {
	cmd := &cobra.Command{Use: "cook", Example: "  cook --soup leek", Run: func(*cobra.Command, []string) {}}
	parent := &cobra.Command{Use: "kitchen"}
	parent.PersistentFlags().String("house", "", "where the kitchen is")
	parent.AddCommand(cmd)

	f := cmd.Flags()
	f.SortFlags = false
	groups := console.GroupFlags(cmd, []string{"wine", "soup"}, "Food", "Drinks", "Nothing")
	groups.Add("Drinks", func() {
		f.String("water", "", "still or sparkling")
		f.String("wine", "", "red or white")
	})
	groups.Add("Food", func() { f.String("soup", "", "of what") })
	groups.Add("Food", func() {
		f.Int("rolls", 2, "number of rolls")
		f.Bool("secret", false, "no help shows it")
	})
	groups.Add("Service", func() { f.Bool("waiter", false, "have it brought") })
	f.Bool("candles", false, "light candles")
	f.Lookup("secret").Hidden = true

	var got []string
	for line := range strings.SplitSeq(cmd.UsageString(), "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			got = append(got, words[0])
		}
	}
	want := []string{
		"Usage:", "kitchen", "Examples:", "cook",
		"What", "--wine", "--soup", "Food:", "--rolls", "Drinks:", "--water", "Service:", "--waiter", "Other", "--candles", "Global", "--house",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the first words of the lines of help (-want +got):\n%s", diff)
	}
}
