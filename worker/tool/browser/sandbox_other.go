//go:build !linux

package browser

import "syscall"

// enterNamespace does nothing: elsewhere the sandbox needs no namespace.
func enterNamespace(*syscall.SysProcAttr) bool { return true }
