package batches

import "github.com/coditect/mapreduce/api/mapreduce"

// Bounds of a batch, beside those of its vendor: one transaction gives a batch its lines, and its
// worker holds all of it in memory while it makes it.
const (
	MostLines = 1000
	MostBytes = 32 << 20
)

// A waiting line is one that is in no batch yet.
type waiting struct {
	unit            mapreduce.UnitID
	provider, model string
	size            int64 // bytes in a batch of its vendor
	mostLines       int64 // of one batch; 0 is no limit
	mostBytes       int64 // likewise
	fewest          int64 // lines of a batch
}

// A group is lines that go into one batch.
type group struct {
	lines []waiting
	bytes int64
	few   bool // they are fewer than their vendor makes a batch of, and no more are to come
}

// nextGroup returns the next batch of the lines that wait, in order, or nil. Lines of a batch ask one
// model of one provider, and keep to the limits of its vendor. A batch that is not full is made only
// with hurry: then no more lines are to come.
func nextGroup(all []waiting, hurry bool) *group {
	type model struct{ provider, model string }
	var order []model
	groups := make(map[model]*group)
	full := make(map[model]bool)

	for _, w := range all {
		of := model{w.provider, w.model}
		g := groups[of]
		if g == nil {
			g = new(group)
			groups[of], order = g, append(order, of)
		}

		// A line that does not fit ends its batch: those behind it keep their order.
		if !full[of] && g.fits(w) {
			g.lines, g.bytes = append(g.lines, w), g.bytes+w.size
			full[of] = len(g.lines) == mostLines(w)
			continue
		}
		full[of] = true
	}

	for _, of := range order {
		if g := groups[of]; full[of] || hurry {
			g.few = int64(len(g.lines)) < g.lines[0].fewest
			return g
		}
	}
	return nil
}

// mostLines is how many lines a batch of w's vendor takes here.
func mostLines(w waiting) int {
	if w.mostLines > 0 {
		return int(min(w.mostLines, MostLines))
	}
	return MostLines
}

// fits reports whether a line may be added. The first always may: whoever put it has seen that it
// does not pass the vendor's limit.
func (g *group) fits(w waiting) bool {
	most := int64(MostBytes)
	if w.mostBytes > 0 {
		most = min(most, w.mostBytes)
	}
	return len(g.lines) == 0 || len(g.lines) < mostLines(w) && g.bytes+w.size <= most
}
