package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// The tests of this file run jobs whose reduces depend on the order.

// TestFoldedTreesKeepTheOrder: with the rules too each reduce of a fold takes
// neighbours, which packing by size alone does not.
func TestFoldedTreesKeepTheOrder(t *testing.T) {
	n := checkedRules(t)
	docs, order := enginetest.Keyed(24)
	for i, id := range order {
		docs[id] = strings.Repeat(fmt.Sprintf("ORDER: K-%d\nTOTAL: %d\n", i%7, i), 1+i%4*3)
	}
	apart := func(id mapreduce.JobID) (found bool) {
		position := make(map[mapreduce.UnitID]int)
		for i, u := range n.Tasks(id) {
			position[u.Unit] = i
			for k := 1; k < len(u.DependsOn); k++ {
				found = found || position[u.DependsOn[k]] != position[u.DependsOn[k-1]]+1
			}
		}
		return found
	}
	var records []string
	for _, tt := range []struct {
		name  string
		ask   enginetest.Ask
		apart bool
	}{
		{"by size", enginetest.Ask{enginetest.Budget(60)}, true},
		{"in order", enginetest.Ask{enginetest.Piped(enginetest.Folded), enginetest.Budget(60)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Extracting(t, listOfOrders)
			for _, a := range tt.ask {
				a(&spec)
			}
			id, got := n.Run(spec, enginetest.Texts(docs, order...))
			if units := len(n.Tasks(id)); units < 24+4 {
				t.Fatalf("%d units: it shows too little", units)
			}
			if got := apart(id); got != tt.apart {
				t.Errorf("reduces take what is no neighbours: %t, want %t", got, tt.apart)
			}
			var rows []string
			for _, r := range bare(got) {
				rows = append(rows, fmt.Sprint(r["order"], r["total"], r["_sources"]))
			}
			if records == nil {
				records = rows
			}
			if diff := cmp.Diff(records, rows); diff != "" {
				t.Errorf("records (-by size +in order):\n%s", diff)
			}
		})
	}
	n.Sound()
}

const listOfOrders = `
title: orders
type: array
items:
  type: object
  properties:
    order: {type: string, x-coditect: {labels: [ORDER]}}
    total: {type: number, x-coditect: {labels: [TOTAL]}}
x-coditect: {key: [order, total]}
`
