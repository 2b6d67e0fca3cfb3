//go:build unix

package program

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup has a program start in a process group of its own, all of which is killed when
// its context ends: a wrapper may have started the program that works.
func ownGroup(run *exec.Cmd) {
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error {
		if !killGroup(run) {
			return os.ErrProcessDone
		}
		return nil
	}
}

// killGroup kills the group of a program, and reports whether there was still something of
// it.
func killGroup(run *exec.Cmd) bool {
	return run.Process != nil && syscall.Kill(-run.Process.Pid, syscall.SIGKILL) == nil
}
