// Package asking runs jobs whose units ask a model, with the model and the workers in processes of
// their own: how near they come to the calls that a fleet may make at once, what they do where the
// model refuses or fails and where workers are killed, and agents with tools. The model is a scripted
// one, behind HTTP.
//
// It measures, and package figures says how much of it is measured and reports it; so it must not
// import that package.
package asking

import (
	"context"
	"encoding/json"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// A Load is how much of it there is.
type Load struct {
	rig.Site

	Units int           // that ask a model
	Calls int           // that they may make at once, of all but agents
	Think time.Duration // that a call takes, on average
	Kills int           // workers killed in the midst of calls
}

// An Order is what a process is to do: to be a model, or a worker. One of them is set. Its form as JSON is
// part of that of the orders of whatever program measures, which starts itself for them.
type Order struct {
	Model *modelOrder `json:",omitempty"`
	Asker *askerOrder `json:",omitempty"`
}

// IsZero reports whether nothing is ordered.
func (o *Order) IsZero() bool { return o.Model == nil && o.Asker == nil }

// CarryOut does what is ordered until ctx ends, and writes what its parent is to know.
func (o *Order) CarryOut(ctx context.Context, out *json.Encoder) error {
	if o.Model != nil {
		return o.Model.serveModel(ctx, out)
	}
	return o.Asker.runAsker(ctx, out)
}
