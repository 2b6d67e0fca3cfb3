package runners

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/browser"
	"github.com/coditect/mapreduce/worker/tool/mcp"
)

// mcpServers is what the names of the kits of MCP servers begin with.
const mcpServers = "mcp:"

// openServers starts the servers of the file that --mcp names, all at once: those that
// --tool names, or all if it names none.
func openServers(ctx context.Context, n kitNeeds) ([]tool.Kit, error) {
	data, err := console.ReadBounded(ctx, n.flags.mcp, console.MaxConfigFile)
	if err != nil {
		return nil, console.UnreadableFlag(ctx, "--mcp", err)
	}

	servers, err := mcp.ParseServers(data, n.getenv)
	if err != nil {
		return nil, exit.RefusedError("--mcp: %s: %w", n.flags.mcp, err)
	}

	servers = slices.DeleteFunc(servers, func(s mcp.Server) bool { return !n.flags.namesServer(s.Name) })
	kits, failed := make([]tool.Kit, len(servers)), make([]error, len(servers))
	var starting sync.WaitGroup
	for i, s := range servers {
		starting.Go(func() {
			k, err := mcp.New(ctx, s, mcp.Config{})
			if kits[i] = k; err != nil {
				kits[i], failed[i] = nil, exit.RefusedError("--mcp: %s: %w", n.flags.mcp, err)
			}
		})
	}
	starting.Wait()

	kits = slices.DeleteFunc(kits, func(k tool.Kit) bool { return k == nil })

	// One server that does not start fails the command, so those that did start are closed.
	if err := errors.Join(failed...); err != nil {
		for _, k := range kits {
			err = errors.Join(err, k.Close())
		}
		return nil, err
	}
	return kits, nil
}

// namesServer reports whether a server is wanted: --tool names it, or none of its kind.
func (t *toolFlags) namesServer(name string) bool {
	others := false
	for _, n := range t.names {
		kit, _, _ := strings.Cut(n, "/")
		if kit == mcpServers || kit == mcpServers+name {
			return true
		}
		others = others || strings.HasPrefix(kit, mcpServers)
	}
	return !others
}

// openBrowser starts the browser.
func openBrowser(ctx context.Context, n kitNeeds) ([]tool.Kit, error) {
	t := n.flags
	if n.network.Hosts.Empty() {
		return nil, exit.UsageError("--tool browser: reaches nothing without --allow-host HOST[:PORT]")
	}

	kit, err := browser.New(ctx, browser.Config{
		Network: n.network, Formats: n.formats, Path: t.chromium, NoSandbox: t.noSandbox,
	})
	switch {
	case errors.Is(err, browser.ErrNone):
		return nil, exit.RefusedError("--tool browser: %w with --browser-path", err)
	case errors.Is(err, browser.ErrNoSandbox):
		return nil, exit.RefusedError("--tool browser: %w with --browser-no-sandbox", err)
	case err != nil:
		return nil, exit.RefusedError("--tool browser: %w", err)
	}

	return []tool.Kit{kit}, nil
}
