package main

import (
	"os"

	"google.golang.org/grpc/grpclog"
)

// A silentLog is a log of gRPC's that drops everything. What gRPC and packages around it
// write there is what peers do wrong, line by line: peers could fill a disk. What matters of
// it comes back as an error, and is logged by who gets it. It takes no lock, as gRPC's own
// does even for what it drops: each call whose peer has gone writes a line, and where
// thousands end at once they would wait there for each other, with all that they hold.
type silentLog struct{}

var _ grpclog.DepthLoggerV2 = silentLog{}

func (silentLog) Info(...any)              {}
func (silentLog) Infoln(...any)            {}
func (silentLog) Infof(string, ...any)     {}
func (silentLog) InfoDepth(int, ...any)    {}
func (silentLog) Warning(...any)           {}
func (silentLog) Warningln(...any)         {}
func (silentLog) Warningf(string, ...any)  {}
func (silentLog) WarningDepth(int, ...any) {}
func (silentLog) Error(...any)             {}
func (silentLog) Errorln(...any)           {}
func (silentLog) Errorf(string, ...any)    {}
func (silentLog) ErrorDepth(int, ...any)   {}
func (silentLog) Fatal(...any)             { os.Exit(1) }
func (silentLog) Fatalln(...any)           { os.Exit(1) }
func (silentLog) Fatalf(string, ...any)    { os.Exit(1) }
func (silentLog) FatalDepth(int, ...any)   { os.Exit(1) }
func (silentLog) V(int) bool               { return false }
