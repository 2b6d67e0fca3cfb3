//go:build !unix

package program

import "os/exec"

// ownGroup does nothing: there are no process groups, and the program alone is killed when
// its context ends.
func ownGroup(*exec.Cmd) {}

// killGroup does nothing.
func killGroup(*exec.Cmd) bool { return false }
