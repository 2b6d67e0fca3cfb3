package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// TestLevelsFollowTheSizeRule runs the shapes of A10.
func TestLevelsFollowTheSizeRule(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	for _, tt := range []struct {
		documents   int
		total       int64
		levels      string
		outputBytes int
	}{
		{1, 2, "1 final", 2000},
		{10, 11, "10 final", 2000},
		{11, 14, "11 2 final", 2000},
		{100, 111, "100 10 final", 2000},
		{101, 115, "101 11 2 final", 2000},
		{101, 102, "101 final", 0},
	} {
		t.Run(fmt.Sprintf("%d documents of %d bytes", tt.documents, tt.outputBytes), func(t *testing.T) {
			spec := enginetest.Script(map[string]string{"script.output_bytes": fmt.Sprint(tt.outputBytes)})
			spec.ReduceContextLimit = 100 + 20*tt.documents + min(tt.outputBytes, 1)*-20*tt.documents
			if tt.outputBytes == 0 {
				spec.ReduceContextLimit = 1 << 30
			}
			id := n.Submit(spec, tt.documents)
			job := n.WantEnd(id, mapreduce.JobComplete)
			if job.TotalUnits != tt.total {
				t.Errorf("job has %d units, want %d", job.TotalUnits, tt.total)
			}
			units := n.Units(id)
			if int64(len(units)) != tt.total {
				t.Errorf("%d units are listed, want %d", len(units), tt.total)
			}
			if got := strings.Replace(enginetest.ShapeOf(t, units), "F", "final", 1); got != tt.levels {
				t.Errorf("levels are %s, want %s", got, tt.levels)
			}
		})
	}
}
