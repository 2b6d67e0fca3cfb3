package transport

import (
	"net"

	"google.golang.org/grpc/credentials"
)

// A Unix is what is known of a peer behind a Unix socket.
type Unix struct {
	credentials.CommonAuthInfo
	UID   int  // of its process, when it connected
	Known bool // whether the system has said so
}

// AuthType implements credentials.AuthInfo.
func (Unix) AuthType() string { return "unix" }

// A Plain is a peer over TCP without TLS.
type Plain struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (Plain) AuthType() string { return "plain" }

// A Memory is a peer in this process.
type Memory struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (Memory) AuthType() string { return "memory" }

// UnixPeer returns what the system says of the process at the other end of a Unix socket.
func UnixPeer(c *net.UnixConn) Unix {
	u := Unix{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	raw, err := c.SyscallConn()
	if err != nil {
		return u
	}
	_ = raw.Control(func(fd uintptr) { u.UID, u.Known = peerUID(int(fd)) }) // without it nothing is known
	return u
}
