// Package postgres runs a PostgreSQL server for one measurement: a new cluster in a folder, reached
// over a socket there. What it commits is synced before that is acknowledged, as it comes.
//
// It needs the programs of a PostgreSQL that is installed, and knows nothing of who uses it.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Server is one that runs.
type Server struct {
	dir     string
	program func(name string) string
	as      *syscall.Credential // nil: the user of this process
	Version string
}

// settings are those by which PostgreSQL's documentation has a server of this memory tuned. Of
// what makes commits durable nothing is changed: fsync and synchronous_commit are on.
var settings = []string{
	"shared_buffers=512MB", "max_wal_size=4GB", "checkpoint_timeout=15min", "max_connections=200", "listen_addresses=",
}

// Start makes a cluster in a folder and starts it.
func Start(ctx context.Context, dir string) (*Server, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}

	s := &Server{dir: dir, program: func(name string) string { return filepath.Join(bin, name) }}
	if err := s.chooseUser(); err != nil {
		return nil, err
	}
	version, err := s.run(ctx, "postgres", "--version")
	if err != nil {
		return nil, err
	}
	s.Version = strings.TrimSpace(strings.TrimPrefix(version, "postgres (PostgreSQL)"))

	if _, err := s.run(ctx, "initdb", "--pgdata", s.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8"); err != nil {
		return nil, err
	}
	var options strings.Builder
	for _, o := range append(slices.Clone(settings), "unix_socket_directories="+dir) {
		fmt.Fprintf(&options, "-c %s ", o)
	}
	_, err = s.run(ctx, "pg_ctl", "start", "--wait", "--pgdata", s.data(), "--log", filepath.Join(dir, "log"), "--options", options.String())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// findPrograms returns the folder of the newest PostgreSQL that is installed.
func findPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(initdb), nil
	}
	if len(found) == 0 {
		return "", errors.New("PostgreSQL's initdb is not on the PATH, nor below /usr/lib/postgresql: install PostgreSQL (Debian: postgresql)")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// chooseUser gives the folder to another user if this one is root, as which PostgreSQL does not run.
func (s *Server) chooseUser() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}

	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(s.dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run runs one of PostgreSQL's programs to its end.
func (s *Server) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program(name), args...) //nolint:gosec // a program of PostgreSQL, with arguments from here
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	// A file, since the server keeps what pg_ctl writes to, and a pipe would be waited for.
	file, err := os.CreateTemp(s.dir, "out-")
	if err != nil {
		return "", err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file

	err = cmd.Run()
	said, readErr := os.ReadFile(file.Name())
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return string(said), readErr
}

// URL is where a database of it is.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=postgres", database, s.dir)
}

// Close stops the server.
func (s *Server) Close() error {
	_, err := s.run(context.Background(), "pg_ctl", "stop", "--wait", "--mode", "fast", "--pgdata", s.data())
	return err
}
