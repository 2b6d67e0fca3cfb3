//go:build !linux

package child

import "syscall"

// Attributes returns how programs are started: in a process group of their own.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
