package jobs

import (
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A tree is the stages of a job, one above the other, each with its units as far as they are few:
// units that depend on others stand below these.
type tree struct {
	Rows   []treeRow
	Height int // of the picture, in its own units
	Folded bool
}

// A treeRow is a stage or a level of one.
type treeRow struct {
	Name   string // of the stage; the catalogue's for the units that parse documents
	Badge  string // MAP, REDUCE L2, AGGREGATE, DIRECT, PARSE
	Units  int64
	Done   int64
	Failed int64
	Y      int
	Nodes  []treeNode // none if they are too many
}

// A treeNode is a unit.
type treeNode struct {
	X, Y  int
	ID    string
	State string
	Path  string
	Lines []treeLine // from what it depends on
}

// A treeLine leads from the middle of a unit's lower edge to that of another's upper one.
type treeLine struct{ X1, Y1, X2, Y2 int }

const (
	maxNodes  = 300 // units that are drawn
	treeWidth = 960
	rowHeight = 64
)

// loadTree makes the picture of a job: of its units if these are few, and else of its stages.
func loadTree(v *visit.Visit, j *JobView) (*tree, error) {
	if j.TotalUnits > maxNodes {
		return foldedTree(j.Job), nil
	}

	query := mapreduce.ListUnitsQuery{Job: j.ID, Inputs: true, PageSize: 1000}
	var units []*mapreduce.Unit
	for {
		page, err := v.Jobs.ListUnits(v, query)
		if err != nil {
			return nil, err
		}

		units = append(units, page.Units...)
		query.PageToken = page.NextPageToken
		if query.PageToken == "" || len(units) > 2*maxNodes {
			break
		}
	}

	return drawTree(units, func(u *mapreduce.Unit) string { return v.JobPath(j.ID, "units", visit.UnitAt(u)) }), nil
}

// foldedTree draws the stages of a job alone.
func foldedTree(j *mapreduce.Job) *tree {
	t := &tree{Folded: true}
	for i, s := range j.Stages {
		t.Rows = append(t.Rows, treeRow{
			Name: s.Name, Badge: phaseBadge(s), Units: s.Units, Done: s.Completed, Failed: s.Failed, Y: i * rowHeight,
		})
	}
	t.Height = len(t.Rows) * rowHeight
	return t
}

func phaseBadge(s mapreduce.StageProgress) string {
	switch {
	case s.Name == "":
		return "PARSE"
	case s.Phase == mapreduce.Reducing:
		return "REDUCE"
	}
	return "MAP"
}

// drawTree draws units in rows by their levels, in the order of a list.
func drawTree(units []*mapreduce.Unit, path func(*mapreduce.Unit) string) *tree {
	t := &tree{}
	places := make(map[mapreduce.UnitID]treeNode)
	var inputs []*mapreduce.Unit // of the nodes, in their order

	for _, u := range merged(units) {
		if n := len(t.Rows); n == 0 || t.Rows[n-1].Badge != badge(u) || t.Rows[n-1].Name != u.Stage {
			t.Rows = append(t.Rows, treeRow{Name: u.Stage, Badge: badge(u), Y: n * rowHeight})
		}

		row := &t.Rows[len(t.Rows)-1]
		row.Units++
		switch u.State {
		case mapreduce.UnitComplete:
			row.Done++
		case mapreduce.UnitFailed:
			row.Failed++
		}
		row.Nodes = append(row.Nodes, treeNode{ID: string(u.ID), State: stateOf(u), Path: path(u)})
		inputs = append(inputs, u)
	}

	next := 0
	for i := range t.Rows {
		row := &t.Rows[i]
		for k := range row.Nodes {
			node := &row.Nodes[k]
			node.X, node.Y = (2*k+1)*treeWidth/(2*len(row.Nodes)), row.Y+rowHeight/2
			for _, id := range inputs[next].DependsOn {
				if from, found := places[id]; found {
					node.Lines = append(node.Lines, treeLine{from.X, from.Y, node.X, node.Y})
				}
			}
			places[inputs[next].ID] = *node
			next++
		}
	}

	t.Height = len(t.Rows) * rowHeight
	return t
}

// merged puts together units that came on several pages for their many inputs.
func merged(units []*mapreduce.Unit) []*mapreduce.Unit {
	var all []*mapreduce.Unit
	for _, u := range units {
		if n := len(all); n > 0 && all[n-1].ID == u.ID {
			all[n-1].DependsOn = append(all[n-1].DependsOn, u.DependsOn...)
			continue
		}
		all = append(all, u)
	}
	return all
}

// badge says what a unit does, in capitals.
func badge(u *mapreduce.Unit) string {
	switch u.Kind {
	case mapreduce.KindParse:
		return "PARSE"
	case mapreduce.KindReduce:
		return "REDUCE L" + visit.Count(u.Level)
	case mapreduce.KindFinal:
		return "AGGREGATE"
	case mapreduce.KindDirect:
		return "DIRECT"
	}
	return "MAP"
}

// stateOf names the state of a unit as pages show it: one that is parked waits for something else
// than a worker.
func stateOf(u *mapreduce.Unit) string {
	if u.Parking != nil {
		return "parked"
	}
	return u.State.String()
}
