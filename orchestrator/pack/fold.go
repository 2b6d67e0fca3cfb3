package pack

import "math"

// A Part is a stretch of an item, all of it most of the time.
type Part struct {
	Item       int   // position in the sizes that were folded
	Start, End int64 // tokens of the item, half-open
}

// A Call is one call of a fold: it reads the accumulator, which is what the call
// before it wrote, and some more of the items.
type Call struct {
	Carried int64 // the most tokens that the accumulator may have; 0 in the first call
	Parts   []Part
	Size    int64 // of the parts
}

// Fold divides what one unit has to read into calls within the budget, in order.
// If all of it fits there is one call. Else each call but the first also reads
// an accumulator of at most carried tokens, which is as much as the call before
// it may write, and then takes as many items as fit. An item that does not fit a
// call together with an accumulator is cut, and its parts are read one call
// after another. No items need no call.
//
// If carried is 0 or more than half of the budget, it is a quarter of the
// budget, or half of it: else the accumulator would leave no room to go on.
func Fold(sizes []int64, budget, carried int64) []Call {
	budget = max(1, budget)
	f := folder{budget: budget, carried: Carried(budget, carried)}
	for i, size := range sizes {
		f.add(i, max(0, size))
	}
	return f.calls
}

// Calls returns how many calls Fold would make, and what they would read in all,
// accumulators included, in time linear in the number of items however large
// they are.
func Calls(sizes []int64, budget, carried int64) (calls, read int64) {
	budget = max(1, budget)
	carried = Carried(budget, carried)
	room, total := int64(0), int64(0)
	for _, size := range sizes {
		size = max(0, size)
		total = Sum(total, size)
		switch {
		case calls == 0:
			calls, room = 1, budget
		case size > room:
			calls, room = Sum(calls, 1), budget-carried
		}
		if size <= room {
			room -= size
			continue
		}
		each := budget - carried
		rest := size - room
		more := (rest-1)/each + 1
		calls = Sum(calls, more)
		room = each - (rest - (more-1)*each)
	}
	if calls > 1 && carried > 0 && calls-1 > (math.MaxInt64-total)/carried {
		return calls, math.MaxInt64
	}
	return calls, total + max(0, calls-1)*carried
}

// Carried returns the most tokens of an accumulator that Fold reckons with.
func Carried(budget, asked int64) int64 {
	if asked <= 0 {
		return budget / 4
	}
	return min(asked, budget/2)
}

type folder struct {
	budget, carried int64
	calls           []Call
	room            int64 // left in the last call
}

// add puts an item into the last call if all of it fits, else into the next and
// those after it.
func (f *folder) add(item int, size int64) {
	for start := int64(0); ; {
		if len(f.calls) == 0 || size-start > f.room {
			f.open()
		}
		part := Part{Item: item, Start: start, End: start + min(size-start, f.room)}
		last := &f.calls[len(f.calls)-1]
		last.Parts = append(last.Parts, part)
		last.Size += part.End - part.Start
		f.room -= part.End - part.Start
		if start = part.End; start == size {
			return
		}
	}
}

func (f *folder) open() {
	c := Call{}
	if len(f.calls) > 0 {
		c.Carried = f.carried
	}
	f.room = f.budget - c.Carried
	f.calls = append(f.calls, c)
}
