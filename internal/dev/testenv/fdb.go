//go:build fdb

package testenv

const onFDB = true
