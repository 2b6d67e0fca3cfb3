package pack

import "math"

// A Part is a stretch of an item, all of it most of the time.
type Part struct {
	Item       int   // position in the sizes that were folded
	Start, End int64 // tokens of the item, half-open
}

// A Call is one call of a fold. It reads the accumulator, which is the output of the
// call before it, and some more items.
type Call struct {
	Carried int64 // the most tokens that the accumulator may have; 0 in the first call
	Parts   []Part
	Size    int64 // of the parts
}

// Fold divides the input of one unit into calls within the budget, in order. If
// everything fits there is one call. Otherwise each call but the first also reads an
// accumulator of at most carried tokens, which bounds the output of the call before
// it, and then as many items as fit. Fold splits an item that does not fit a call
// beside an accumulator into parts for consecutive calls. Without items there is no
// call.
//
// If carried is 0, it is a quarter of the budget. It is at most half of the budget,
// so that the accumulator leaves room for items.
func Fold(sizes []int64, budget, carried int64) []Call {
	budget = max(1, budget)
	f := folder{budget: budget, carried: Carried(budget, carried)}
	for i, size := range sizes {
		f.addItem(i, max(0, size))
	}
	return f.calls
}

// Calls returns the number of calls of Fold, and the tokens that they read together,
// including accumulators. Its time is linear in the number of items, whatever their
// sizes.
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

		// An item that is larger than the room goes on in further calls.
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

// Carried returns the greatest size of an accumulator that Fold assumes.
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

// addItem adds an item to the last call if it fits, otherwise to the next call and
// those after it.
func (f *folder) addItem(item int, size int64) {
	for start := int64(0); ; {
		if len(f.calls) == 0 || size-start > f.room {
			f.openCall()
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

func (f *folder) openCall() {
	c := Call{}
	if len(f.calls) > 0 {
		c.Carried = f.carried
	}
	f.room = f.budget - c.Carried
	f.calls = append(f.calls, c)
}
