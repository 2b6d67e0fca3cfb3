package transport

// What reads certificate files.
var (
	ReadPair        = readPair
	ReadAuthorities = readAuthorities
)
