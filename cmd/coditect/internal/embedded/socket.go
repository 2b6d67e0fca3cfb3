package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/client"
)

const (
	socketFile  = "coditect.sock" // in the data directory
	pointerFile = "socket"        // in it, if the socket is elsewhere: holds its path
	shortDir    = "coditect-"     // what names of folders for such sockets begin with
	shortSocket = "s"             // in such a folder

	// maxSocketPath is what every system has room for in the address of a
	// Unix socket, in bytes.
	maxSocketPath = 100
)

// A dirSocket is where the holder of a data directory listens.
type dirSocket struct {
	listener net.Listener
	paths    []string // to remove when it closes, the last first
}

// listenSocket makes the socket of a data directory. Only the process that holds the store
// calls it, so a socket that is there already is a dead process's.
func listenSocket(dir string) (*dirSocket, error) {
	path := filepath.Join(dir, socketFile)
	if err := errors.Join(removeStale(path), removeStaleDir(dir)); err != nil {
		return nil, err
	}

	s := &dirSocket{}
	if len(path) > maxSocketPath {
		var err error
		if path, err = s.makeShortDir(dir); err != nil {
			return nil, errors.Join(err, s.removeFiles())
		}
	}

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), s.removeFiles())
	}

	s.listener = l // which removes path when it closes
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close(), s.removeFiles())
	}
	return s, nil
}

func removeStale(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket of an earlier process: %w", err)
	}
	return nil
}

// removeStaleDir removes the folder that a process which was killed made for its socket,
// and the file that says where it is. Nothing else goes, whatever that file says.
func removeStaleDir(dir string) error {
	pointer := filepath.Join(dir, pointerFile)
	if data, err := os.ReadFile(pointer); err == nil {
		path := strings.TrimSpace(string(data))
		if short := filepath.Dir(path); filepath.Base(path) == shortSocket && strings.HasPrefix(filepath.Base(short), shortDir) {
			_ = errors.Join(os.Remove(path), os.Remove(short)) //nolint:gosec // the names were looked at; they may be gone, and are in nobody's way
		}
	}
	return removeStale(pointer)
}

// makeShortDir makes a folder with a short name for the socket, and says in the
// data directory where it is.
func (s *dirSocket) makeShortDir(dir string) (string, error) {
	short, err := os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), shortDir)
	if err != nil {
		short, err = os.MkdirTemp("", shortDir)
	}
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}

	s.paths = append(s.paths, short)
	path := filepath.Join(short, shortSocket)
	pointer := filepath.Join(dir, pointerFile)
	if err := os.WriteFile(pointer, []byte(path), 0o600); err != nil { //nolint:gosec // the folder is the data directory, which the owner of the process names
		return "", fmt.Errorf("socket: %w", err)
	}

	s.paths = append(s.paths, pointer)
	return path, nil
}

// removeFiles removes what a closed listener leaves.
func (s *dirSocket) removeFiles() error {
	var errs []error
	for _, path := range slices.Backward(s.paths) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// socketPath returns where the holder of a data directory listens.
func socketPath(dir string) string {
	if data, err := os.ReadFile(filepath.Join(dir, pointerFile)); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data))
	}
	return filepath.Join(dir, socketFile)
}

// SocketAddress returns the address of the process that holds a data directory, as
// client.Dial takes it.
func SocketAddress(dir string) string {
	path := socketPath(dir)
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return "unix:" + path
}

// dialSocket returns a client of the process that holds a data directory. The path
// goes past the syntax of targets, which has no room for every name of a file.
func dialSocket(dir string) (*client.Client, error) {
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socketPath(dir))
	})
	return client.Dial("unix:holder", client.Config{Name: "the process that holds " + dir, Options: append(markOptions(), dial)})
}
