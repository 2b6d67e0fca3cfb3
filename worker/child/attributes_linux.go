package child

import "syscall"

// Attributes returns how programs are started: in a process group of their own, and
// killed when this process is gone.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
