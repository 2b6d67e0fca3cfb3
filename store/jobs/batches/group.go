package batches

import "github.com/coditect/mapreduce/api/mapreduce"

// Bounds of a batch, beside those of its vendor: its worker holds all of it in memory while it makes it.
const (
	MostLines = 100_000
	MostBytes = 32 << 20
)

// pageLines is how many lines one transaction looks at, of those that wait or of a batch. A batch that takes more
// is filled by several.
const pageLines = 1000

// A waiting line is one that is in no batch yet.
type waiting struct {
	unit            mapreduce.UnitID
	provider, model string
	size            int64 // bytes in a batch of its vendor
	tokens          int64 // of its prompt
	mostLines       int64 // of one batch; 0 is no limit
	mostBytes       int64 // likewise
	mostTokens      int64 // of the prompts of one batch; 0 is no limit
	fewest          int64 // lines of a batch
}

// A filling is a batch to which lines may be added: nobody has been given it.
type filling struct {
	number          int64 // 0 of one that is yet to be
	provider, model string
	lines, bytes    int64
	tokens          int64
}

// A group is lines that go into one batch.
type group struct {
	into   filling
	lines  []waiting
	bytes  int64 // of these
	tokens int64 // likewise
	ends   bool  // no more lines are added to the batch
	few    bool  // they are fewer than their vendor makes a batch of, and no more are to come
}

// nextGroup returns what goes into a batch next, or nil. all are lines that wait, in order, behind which
// there may be more; open are batches that are being filled. Lines of a batch ask one model of one
// provider, and keep to the limits of its vendor. A batch that is not full is ended only with hurry: then
// no more lines are to come.
func nextGroup(all []waiting, more bool, open []filling, hurry bool) *group {
	type model struct{ provider, model string }
	var order []model
	groups := make(map[model]*group)
	full := make(map[model]bool)
	for _, f := range open {
		of := model{f.provider, f.model}
		groups[of], order = &group{into: f}, append(order, of)
	}

	for _, w := range all {
		of := model{w.provider, w.model}
		g := groups[of]
		if g == nil {
			g = &group{into: filling{provider: w.provider, model: w.model}}
			groups[of], order = g, append(order, of)
		}

		// A line that does not fit ends its batch: those behind it keep their order.
		if !full[of] && g.fits(w) {
			g.lines, g.bytes, g.tokens = append(g.lines, w), g.bytes+w.size, g.tokens+w.tokens
			full[of] = g.count() >= mostLines(w)
			continue
		}
		full[of] = true
	}

	var largest *group
	for _, of := range order {
		g := groups[of]
		if g.ends = full[of] || hurry && !more; g.ends {
			g.few = g.into.number == 0 && int64(len(g.lines)) < g.lines[0].fewest
			return g
		}
		if largest == nil || len(g.lines) > len(largest.lines) {
			largest = g
		}
	}

	// What is behind these lines is seen once they are out of the way.
	if more && largest != nil && len(largest.lines) > 0 {
		return largest
	}
	return nil
}

// count is how many lines the batch has with those of the group.
func (g *group) count() int64 { return g.into.lines + int64(len(g.lines)) }

// mostLines is how many lines a batch of w's vendor takes here.
func mostLines(w waiting) int64 {
	if w.mostLines > 0 {
		return min(w.mostLines, MostLines)
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
	if w.mostTokens > 0 && g.into.tokens+g.tokens+w.tokens > w.mostTokens {
		return g.count() == 0
	}
	return g.count() == 0 || g.count() < mostLines(w) && g.into.bytes+g.bytes+w.size <= most
}
