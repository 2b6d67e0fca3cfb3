// Package almanac is an example, for tests, of a tool: all that it takes to add one is a
// package like this and an argument of toolbox.New, which the program has a row for.
package almanac

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
)

// Name is the name of the kit, and Tool that of its tool.
const (
	Name = "almanac"
	Tool = "weekday"
)

// A Kit tells the weekday of a date. It is safe for concurrent use.
type Kit struct{}

var _ tool.Kit = Kit{}

// Name implements tool.Kit.
func (Kit) Name() string { return Name }

// Tools implements tool.Kit.
func (Kit) Tools() []tool.Spec {
	return []tool.Spec{{
		Name: Tool, Description: "Tells the weekday of a date.", Idempotent: true,
		Input: json.RawMessage(`{"type":"object","properties":{"date":{"type":"string","format":"date"}},"required":["date"],"additionalProperties":false}`),
	}}
}

// Open implements tool.Kit.
func (Kit) Open(context.Context) (tool.Session, error) { return session{}, nil }

// Close implements tool.Kit.
func (Kit) Close() error { return nil }

type session struct{}

// Call implements tool.Session.
func (session) Call(_ context.Context, _ string, input json.RawMessage) (*tool.Result, error) {
	var in struct {
		Date string `json:"date"`
	}
	if err := tool.DecodeInput(input, &in); err != nil {
		return nil, err
	}

	day, err := time.Parse(time.DateOnly, in.Date)
	if err != nil {
		return nil, fmt.Errorf("%q is no date", in.Date)
	}

	text := fmt.Sprintf("%s is a %s.", in.Date, day.Weekday())
	return &tool.Result{Evidence: []tool.Evidence{{URI: Name + ":" + in.Date, Title: in.Date, Media: "text/plain", Retrieved: time.Now(), Text: text}}}, nil
}

// Close implements tool.Session.
func (session) Close() error { return nil }
