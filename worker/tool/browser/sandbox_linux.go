package browser

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// namespaceUser is the user that Chromium takes itself for. Its sandbox refuses root.
const namespaceUser = 1000

// enterNamespace lets a program that root starts run in a namespace in which it is
// another user, so that Chromium's sandbox works. It reports whether that is possible.
func enterNamespace(a *syscall.SysProcAttr) bool {
	if os.Geteuid() != 0 {
		return true
	}

	set := func(a *syscall.SysProcAttr) {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: namespaceUser, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: namespaceUser, HostID: os.Getegid(), Size: 1}}
	}

	set(a)
	try := exec.CommandContext(context.Background(), "true")
	try.SysProcAttr = new(syscall.SysProcAttr)
	set(try.SysProcAttr)
	return try.Run() == nil
}
