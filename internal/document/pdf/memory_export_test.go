//go:build linux || darwin

package pdf

// SetAside is setAside.
var SetAside = setAside
