//go:build fdb

package fdb

// Mapped is how errors of the client are told to callers.
var Mapped = mapped
