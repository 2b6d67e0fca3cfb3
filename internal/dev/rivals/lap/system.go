// Package lap measures one system that runs units, in the same way whatever the system is: how
// long a unit waits on an idle queue, how many that do nothing go through a second, and how long it
// takes until the unit of a worker that was killed runs elsewhere.
//
// A system is behind the interfaces of this file, each in a program of its own, whose main function
// calls Serve. It keeps what it is given as its own documentation says that it is kept across a
// loss of power, and counts a unit as ended when that is kept, too. The package knows no system.
package lap

import (
	"context"
	"time"
)

// A System is something that runs units.
type System interface {
	Info() Info

	// Open starts the system's server in an empty folder, with nothing to do.
	Open(ctx context.Context, dir string) (Server, error)

	// Work runs units of the server at an address until ctx ends: it is what a process does
	// that is killed.
	Work(ctx context.Context, address string, w Worker) error
}

// Info is what the report says of a system.
type Info struct {
	Name string
	// Module is the path of the module whose version is reported.
	Module string
	// Settings are those that differ from what the system comes with, and what for.
	Settings string
	// Units are how many a lap has, for it to take some seconds.
	Units int
	// Again says that nothing takes over the units of a process that is killed, until the same
	// worker is started again.
	Again bool
	// Killed is what has to be known of the time after a kill.
	Killed string
}

// A Server is one that is open. Its methods may be called at once, but for Close.
type Server interface {
	// Address is where workers of other processes find it.
	Address() string

	// Submit makes units that may run, and returns when they are kept.
	Submit(ctx context.Context, units []string) error

	// Work runs units in this process until ctx ends. That it ends is no error.
	Work(ctx context.Context, w Worker) error

	// AwaitEnded waits until as many units have ended as were submitted in all, and returns
	// when the last one was kept as ended.
	AwaitEnded(ctx context.Context, submitted int) (time.Time, error)

	Close() error
}

// A Worker is what a system is to run units with.
type Worker struct {
	Name  string // of a process; the one that is started again in its place has the same
	Slots int    // units at once; 0 are as many as are run quickest
	Ready func() // called once, when the worker can be given units; nil: nobody waits for that
	Run   func(ctx context.Context, unit string) error
}

// ready calls Ready, where there is one.
func (w *Worker) ready() {
	if w.Ready != nil {
		w.Ready()
	}
}

// Begun says that the worker can be given units.
func (w *Worker) Begun() { w.ready() }
