package main

import (
	"os"

	"google.golang.org/grpc/grpclog"
)

// A silentLog drops all log lines of gRPC. Most of them say what peers do wrong, so peers
// could fill a disk with them; what matters comes back as an error as well, and the caller
// logs that. silentLog takes no lock, as gRPC's own logger does even for lines that it
// drops: each call whose peer has gone writes a line, and where thousands of calls end at
// once they would wait for each other there.
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
