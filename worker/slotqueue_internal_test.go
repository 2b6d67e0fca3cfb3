package worker

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/apart"
)

// TestSlotQueue: attempts get slots in the order in which they came, what must run alone gets a
// process or all slots, and no more slots are taken than there are.
func TestSlotQueue(t *testing.T) {
	// A step is the name of an attempt that comes ("!" before it: which must run alone), "-" and
	// the name of one that gives its slots back, or "x" and the name of one that is given up.
	for _, tt := range []struct {
		name      string
		slots     int
		runsApart bool
		steps     []string
		want      []string // in the order in which they got slots
		taken     int
		apart     int
	}{
		{"no slot is free", 2, false, []string{"a", "b", "c"}, []string{"a", "b"}, 2, 0},
		{"a slot is given back", 2, false, []string{"a", "b", "c", "-a"}, []string{"a", "b", "c"}, 2, 0},
		{"one that waits is given up", 1, false, []string{"a", "b", "c", "xb", "-a"}, []string{"a", "c"}, 1, 0},
		{"alone takes all slots", 2, false, []string{"!a", "b"}, []string{"a"}, 2, 0},
		{"alone waits for all, and nobody overtakes", 2, false, []string{"a", "!b", "c"}, []string{"a"}, 1, 0},
		{"alone gets all in its turn", 2, false, []string{"a", "!b", "c", "-a"}, []string{"a", "b"}, 2, 0},
		{"behind alone", 2, false, []string{"a", "!b", "c", "-a", "-b"}, []string{"a", "b", "c"}, 1, 0},
		{"apart takes one slot", 2, true, []string{"a", "!b", "c"}, []string{"a", "b"}, 2, 1},
		{
			"as many apart as may, and others overtake", apart.Most + 3, true,
			[]string{"!1", "!2", "!3", "!4", "!5", "!6", "!7", "!8", "!9", "a"},
			[]string{"1", "2", "3", "4", "5", "6", "7", "8", "a"},
			apart.Most + 1, apart.Most,
		},
		{
			"the next apart", apart.Most + 3, true,
			[]string{"!1", "!2", "!3", "!4", "!5", "!6", "!7", "!8", "!9", "-3"},
			[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"},
			apart.Most, apart.Most,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := slotQueue{slots: tt.slots, runsApart: tt.runsApart}
			all := make(map[string]*entry)
			var got []string

			for _, step := range tt.steps {
				switch name := step[1:]; step[0] {
				case '-':
					q.release(all[name])
				case 'x':
					q.remove(all[name])
				case '!':
					all[name] = &entry{held: protocol.Held{Unit: mapreduce.UnitID(name)}, alone: true}
					q.add(all[name])
				default:
					all[step] = &entry{held: protocol.Held{Unit: mapreduce.UnitID(step)}}
					q.add(all[step])
				}

				for e := q.next(); e != nil; e = q.next() {
					got = append(got, string(e.held.Unit))
				}
			}

			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("what got slots (-want +got):\n%s", diff)
			}
			if q.taken != tt.taken || q.apart != tt.apart {
				t.Errorf("%d slots are taken, and %d run apart; want %d and %d", q.taken, q.apart, tt.taken, tt.apart)
			}
		})
	}
}

// TestSlotQueueIsEmptied: what waited comes out in its order, and does not wait any more.
func TestSlotQueueIsEmptied(t *testing.T) {
	q := slotQueue{slots: 1}
	all := []*entry{{}, {}, {}}
	for _, e := range all {
		q.add(e)
	}
	if first := q.next(); first != all[0] {
		t.Fatal("the first to come did not get the slot")
	}
	if got := q.removeAll(); !slices.Equal(got, all[1:]) {
		t.Errorf("%d attempts came out; want the 2 that waited, in their order", len(got))
	}
	q.release(all[0])
	if e := q.next(); e != nil {
		t.Error("an attempt got a slot that waits no more")
	}
}
